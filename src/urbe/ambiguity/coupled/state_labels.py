"""Labels and options that nature picks before it knows the action: options whose actions share a budget.

    V(s, i) = max_pi  min_{o of label i}  min_{(q_a) in U_o(s)}  sum_a pi_a q_a . z_o(a)
    z_o(a, s') = r(s, a, s') + gamma V(s', next_o(s))

The policy may have to randomise, also between options. For a given policy the minimum over options is that of their
operators. The best policy is found by cutting planes: an option's answer to a policy gives every action a value w(a),
and the minimum is at most sum_a pi_a w(a) for every policy pi. The game between actions and the answers found so far
(`matrix_games`) has the next policy, and its value bounds V from above; the search ends when it meets what the best
policy so far is worth.

Nature's half of the saddle point mixes options: its kernel leads to several labels, and the mass on the states of a
label is the probability of the option that leads there. Therefore two options may not lead to one label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from urbe import memory
from urbe.ambiguity.coupled.matrix_games import solve_games
from urbe.ambiguity.entries import joined_rows
from urbe.ambiguity.evidence import Extended, RowBound, RowEvidence, largest_value, over_rows, unproven
from urbe.ambiguity.operator import (
    ROUNDING,
    AmbiguitySet,
    Improvement,
    LinearSystem,
    Memory,
    Operator,
    PolicyOperator,
    PolicyRows,
    StepBound,
    StepEvidence,
    StepMoments,
    linear_system,
    midrange,
)
from urbe.ambiguity.rectangular import RectangularSet
from urbe.ambiguity.row_nature import values_under
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows, index_type
from urbe.types import FloatArray, IntArray
from urbe.workers import SERIAL, Workers

ACCURACY = 1e-12
"""The search ends when its bounds are this close, as a share of rewards and the range of values."""

MOST_ROUNDS = 400


@dataclass(frozen=True, eq=False)
class StateLabelledSet:
    """Nature's options in a model with labels, picked before the action; made by `labelled`.

    Args:
      base: the model without labels; its probabilities and rewards are not used.
      options: the options of each label.
      next_labels: `(S,)` the next labels of each option of each label.
      relaxed: a set for the same model in which nature sees the action, and contains this one.
    """

    base: MDP
    options: tuple[tuple[AmbiguitySet, ...], ...]
    next_labels: tuple[tuple[IntArray, ...], ...]
    relaxed: RectangularSet

    def operator(self, mdp: MDP) -> StateLabelOperator:
        relaxed = self.relaxed.operator(mdp)  # refuses other models
        parts = []
        for i, (sets, following) in enumerate(zip(self.options, self.next_labels, strict=True)):
            n_labels, base = len(self.options), self.base.rows
            own = tuple(np.split(x, n_labels)[i] for x in (mdp.rows.probability, mdp.rows.reward))
            model = replace(self.base, rows=replace(base, probability=own[0], reward=own[1]), discount=mdp.discount)
            parts.append(tuple(Option(x.operator(model), labels) for x, labels in zip(sets, following, strict=True)))
        return StateLabelOperator(mdp, self.base, tuple(parts), relaxed)


class Option(NamedTuple):
    """An option under a label: T over the states without labels, and `(S,)` the next label of each state."""

    operator: Operator
    labels: IntArray


class _Saddle(NamedTuple):
    """The result of a search.

    Attributes:
      value: `(kS,)` what the policy is worth.
      weights: `(kR,)` the policy.
      q: `(kR,)` values of the rows under nature's mixture of answers.
      answered: the options (by their place in each label) and the policies that they answered.
      mixture: `(K, kS)` the probability of each answer.
    """

    value: FloatArray
    weights: FloatArray
    q: FloatArray
    answered: list[tuple[int, FloatArray]]
    mixture: FloatArray


@dataclass(frozen=True, eq=False)
class StateLabelOperator:
    """T of a labelled model whose options are picked before the action.

    Args:
      mdp: the labelled model.
      base: the model without labels.
      options: the options of each label.
      relaxed: T of the set in which nature sees the action.
    """

    mdp: MDP
    base: MDP
    options: tuple[tuple[Option, ...], ...]
    relaxed: Operator

    modulus = None  # T is monotone

    @property
    def singleton(self) -> bool:
        return all(len(each) == 1 and each[0].operator.singleton for each in self.options)

    def improve(
        self, v: FloatArray, memory: Memory = None, workers: Workers = SERIAL, out: FloatArray | None = None
    ) -> Improvement[FloatArray]:
        """Computes T v; `q` has the values of the actions under a kernel that is optimal for nature."""
        found = self._search(v, memory)
        return Improvement(found.value, found.q, PolicyRows.of_weights(found.weights), found.weights)

    def against(self, policy: PolicyRows, memory: Memory = None) -> tuple[PolicyOperator, Memory]:
        return StateLabelPolicy(self, policy), None

    def kernel(self, v: FloatArray, policy: PolicyRows) -> Rows:
        """Returns nature's mixture of answers if the policy is optimal, and else the worst option's answer to it."""
        weights = policy.weights(self.mdp.n_rows)
        best = self._search(v, weights)
        worth = self.worst_values(v, weights).min(axis=0)
        if (worth >= best.value - 4.0 * self._allowed(v)).all():
            parts = [(self.answer(v, o, w), mix) for (o, w), mix in zip(best.answered, best.mixture, strict=True)]
            return self._mixed(parts)
        return self.worst_answer(v, weights)

    def action_values(
        self, v: FloatArray, at: FloatArray, policy: PolicyRows, memory: Memory = None
    ) -> tuple[FloatArray, Memory]:
        """Returns the values of all actions under nature's answer to the policy."""
        middle, gamma = midrange(v), self.mdp.discount
        return values_under(self.kernel(at, policy), gamma * (v - middle)) + gamma * middle, None

    def error(self, v: FloatArray) -> float:
        parts = [option.operator.error(ahead) for option, ahead in self._blocks(v)]
        return max(parts, default=0.0) + 8.0 * self._allowed(v)  # of the values and of the kernel

    def moments(
        self,
        v: FloatArray,
        u: FloatArray,
        policy: PolicyRows | None = None,
        memory: Memory = None,
        q: FloatArray | None = None,
    ) -> StepMoments:
        """Refused: the rows of all labels are those of one model."""
        raise ValueError(
            "The posterior variance of values with labels is not available for options whose actions share a budget: "
            "all labels share the rows of the model, and the variance equations take rows for independent."
        )

    def evidence(self, kernel: Rows | None, optimal: bool) -> StepEvidence:
        """Bounds by the options' own evidence; the kernel's mass on each label is the probability of an option."""
        below = self._below()
        n_rows = self.mdp.n_rows
        if kernel is None:
            nothing = unproven(n_rows, 1.0), unproven(n_rows, -1.0)
            rows = RowEvidence(*nothing, np.full(n_rows, -np.inf), np.zeros(n_rows, dtype=np.bool_))
            return over_rows(self.mdp, rows, optimal)._replace(below=below)
        pieces, excess, failure = self._read(kernel)

        def combined(side: Callable[[_Piece], RowBound]) -> RowBound:
            def bound(v: FloatArray) -> Extended:
                out = np.zeros(n_rows, dtype=np.longdouble)
                for piece in pieces:
                    worth = side(piece)(self._block(v, piece.label))
                    out[piece.rows] += piece.share[piece.rows] * worth[piece.base_rows]
                return out

            return bound

        above = combined(lambda piece: piece.above) if failure is None else unproven(n_rows, 1.0)
        nothing_wrong = RowEvidence(above, unproven(n_rows, -1.0), np.full(n_rows, excess), np.zeros(n_rows, np.bool_))
        found = over_rows(self.mdp, nothing_wrong, optimal)
        eps = 16.0 * float(np.finfo(np.longdouble).eps) * len(self.options)
        actions = tuple(
            self._widened(combined(side), sign * eps)
            for side, sign in ((lambda piece: piece.rows_below, -1.0), (lambda piece: piece.rows_above, 1.0))
        )
        widened = self._widened_step(found.above, eps)
        return StepEvidence(widened, below, excess, failure, (actions[0], actions[1]))

    def clock(self) -> Operator:
        """Returns the clock of the set in which nature sees the action, which contains this one."""
        return self.relaxed.clock()

    def worst_values(self, v: FloatArray, weights: FloatArray) -> FloatArray:
        """`(options, kS)` what a policy is worth against each option."""
        return np.stack([self._mean(q, weights) for q in self._answers(v, weights)])

    def answer(self, v: FloatArray, place: int, weights: FloatArray) -> Rows:
        """An option's kernel against a policy, on all rows."""
        parts = []
        for i, options in enumerate(self.options):
            option = options[min(place, len(options) - 1)]
            policy = PolicyRows.of_weights(self._own(weights, i))
            for label, rows in self._groups(option.labels):
                found = option.operator.kernel(self._block(v, label), policy).take(rows)
                lifted = replace(found, n_states=self.mdp.n_states, successor=self._lifted(found.successor, label))
                parts.append((rows + i * self.base.n_rows, lifted))
        return joined_rows(self.mdp.rows, parts)

    def worst_answer(self, v: FloatArray, weights: FloatArray) -> Rows:
        """The kernel of each state's worst option against a policy, on all rows."""
        worst = self.worst_values(v, weights).argmin(axis=0)[self.mdp.row_state]
        kernels = {place: self.answer(v, place, weights) for place in np.unique(worst).tolist()}
        at = {place: np.flatnonzero(worst == place) for place in kernels}
        return joined_rows(self.mdp.rows, [(at[place], rows.take(at[place])) for place, rows in kernels.items()])

    def _search(self, v: FloatArray, start: FloatArray | None) -> _Saddle:
        mdp = self.mdp
        lengths = np.diff(mdp.row_start)[mdp.row_state]
        weights = 1.0 / np.maximum(lengths, 1) if start is None else start
        best, policy = np.full(mdp.n_states, -np.inf), weights.copy()
        columns: list[FloatArray] = []
        answered: list[tuple[int, FloatArray]] = []
        allowed = self._allowed(v)
        for _ in range(MOST_ROUNDS):
            answers = self._answers(v, weights)
            worth = np.min([self._mean(q, weights) for q in answers], axis=0)
            better = worth > best
            best = np.where(better, worth, best)
            policy = np.where(better[mdp.row_state], weights, policy)
            columns += answers
            answered += [(place, weights) for place in range(len(answers))]
            stacked = np.stack(columns)
            upper, proposed, mixture = solve_games(mdp.row_start, stacked)
            still = upper - best > allowed
            if not still.any():
                q = (stacked * mixture[:, mdp.row_state]).sum(axis=0)
                return _Saddle(best, policy, q, answered, mixture)
            weights = np.where(still[mdp.row_state], proposed, policy)
        worst = int(np.argmax(upper - best))
        raise RuntimeError(
            f"After {MOST_ROUNDS} rounds the bounds of T in state {mdp.labels.state(worst)} are "
            f"{upper[worst] - best[worst]:.3g} apart, expected at most {allowed:.3g}. Use a set with linear budgets, "
            "such as SRectangular(L1Ball(0.5))."
        )

    def _answers(self, v: FloatArray, weights: FloatArray) -> list[FloatArray]:
        """`(kR,)` the values of all rows under each option's answer to a policy; labels with fewer repeat the last."""
        found = []
        for place in range(max(map(len, self.options))):
            q = np.empty(self.mdp.n_rows)
            for i, options in enumerate(self.options):
                option = options[min(place, len(options) - 1)]
                policy, own = PolicyRows.of_weights(self._own(weights, i)), self._own(q, i)
                for label, rows in self._groups(option.labels):
                    ahead = self._block(v, label)
                    own[rows] = option.operator.action_values(ahead, ahead, policy)[0][rows]
            found.append(q)
        return found

    def _below(self) -> StepBound:
        """The least of the options' own lower bounds."""
        parts = [[option.operator.evidence(None, False).below for option in options] for options in self.options]

        def bound(v: FloatArray, policy: PolicyRows) -> Extended:
            out = np.zeros(self.mdp.n_states, dtype=np.longdouble)
            weights = policy.weights(self.mdp.n_rows)
            for i, options in enumerate(self.options):
                own = out[i * self.base.n_states : (i + 1) * self.base.n_states]
                own[~self.base.terminal] = np.inf
                mine = PolicyRows.of_weights(self._own(weights, i))
                for option, below in zip(options, parts[i], strict=True):
                    for label in np.unique(option.labels):
                        at = np.flatnonzero((option.labels == label) & ~self.base.terminal)
                        own[at] = np.minimum(own[at], below(self._block(v, int(label)), mine)[at])
            return out

        return bound

    def _read(self, kernel: Rows) -> tuple[list[_Piece], float, str | None]:
        """Splits a kernel into the options that it mixes; also how far it leaves the set, and what is wrong with it."""
        base, k = self.base, len(self.options)
        block = kernel.successor // base.n_states
        memory.require(
            {f"nature's probabilities of {k} labels in each row": 32.0 * k * self.mdp.n_rows},
            "Certify a model with fewer labels (a smaller budget).",
        )
        mass = np.zeros((self.mdp.n_rows, k))
        np.add.at(mass, (kernel.entry_row, block), kernel.probability)
        first = self.mdp.row_start[self.mdp.row_state]
        share = (mass / mass.sum(axis=1, keepdims=True))[first].astype(np.longdouble)  # that of the first action
        uneven = float(np.abs(mass - mass[first]).max(initial=0.0))
        excess, failure, used = uneven, None, np.zeros_like(mass)
        if not (uneven <= 1e-9 and (kernel.probability >= 0.0).all()):
            failure = f"nature's kernel picks options with probabilities that differ between actions by {uneven:.3g}."
        pieces: list[_Piece] = []
        for i, options in enumerate(self.options):
            for option in options:
                found = []
                for label, rows in self._groups(option.labels):
                    at = rows + i * base.n_rows
                    taken = at[mass[at, label] > 0.0]
                    part = kernel.take(taken)
                    part = part.select(part.successor // base.n_states == label)
                    part = replace(
                        part,
                        n_states=base.n_states,
                        successor=(part.successor % base.n_states).astype(np.int32),
                        probability=part.probability / mass[taken, label][part.entry_row],
                    )
                    found.append((taken - i * base.n_rows, part))
                    used[at, label] = mass[at, label]
                pieces += self._evidence_of(option, i, found, share)
        excess = max([excess, float(np.abs(used - mass).max(initial=0.0)), *(piece.excess for piece in pieces)])
        if failure is None and (used != mass).any():
            failure = "nature's kernel leads to labels of which no option is possible."
        failures = [piece.failure for piece in pieces if piece.failure is not None]
        return pieces, excess, failures[0] if failure is None and failures else failure

    def _evidence_of(
        self, option: Option, i: int, found: list[tuple[IntArray, Rows]], share: Extended
    ) -> Iterator[_Piece]:
        """The evidence for one option of a label, from its part of the kernel; the other rows stay nominal."""
        base, operator = self.base, option.operator
        taken = np.concatenate([at for at, _ in found])
        rest = np.setdiff1d(np.arange(base.n_rows), taken)
        whole = joined_rows(operator.mdp.rows, [*found, (rest, operator.mdp.rows.take(rest))])
        proof = operator.evidence(whole, False)
        most = int(np.diff(base.row_start).max(initial=0))
        live = np.flatnonzero(~base.terminal)
        chosen = [np.minimum(base.row_start[live] + a, base.row_start[live + 1] - 1) for a in range(most)]

        def above(v: FloatArray) -> Extended:
            """One action after another, so that the excess of the kernel is accounted for."""
            out = np.empty(base.n_rows, dtype=np.longdouble)
            for rows in chosen:
                out[rows] = proof.above(v, PolicyRows(rows))[live]
            return out

        for label, rows in self._groups(option.labels):
            at = rows + i * base.n_rows
            yield _Piece(
                label, at, rows, share[:, label], above, proof.rows[0], proof.rows[1], proof.excess, proof.failure
            )

    def _mixed(self, parts: list[tuple[Rows, FloatArray]]) -> Rows:
        """Mixes kernels, each with `(kS,)` its probability in every state."""
        like, n = self.mdp.rows, self.mdp.n_states
        keys: list[IntArray] = []
        mass: list[FloatArray] = []
        paid: list[FloatArray] = []
        for rows, mix in parts:
            weight = mix[self.mdp.row_state][rows.entry_row]
            used = weight > 0.0
            keys.append((rows.entry_row.astype(np.int64) * n + rows.successor)[used])
            mass.append((weight * rows.probability)[used])
            reward = rows.entry_reward
            paid.append(np.zeros(int(used.sum())) if reward is None else reward[used])
        every, at = np.unique(np.concatenate(keys), return_inverse=True)
        probability: FloatArray = np.bincount(at, np.concatenate(mass), minlength=len(every)).astype(np.float64)
        reward = like.reward
        if like.rewards_successors:
            reward = np.empty(len(every))
            reward[at] = np.concatenate(paid)  # the same for all parts
        start: IntArray = np.searchsorted(every // n, np.arange(self.mdp.n_rows + 1)).astype(index_type(len(every)))
        return Rows(n, start, (every % n).astype(np.int32), probability, reward)

    def _blocks(self, v: FloatArray) -> Iterator[tuple[Option, FloatArray]]:
        for options in self.options:
            for option in options:
                for label in np.unique(option.labels):
                    yield option, self._block(v, int(label))

    def _groups(self, labels: IntArray) -> Iterator[tuple[int, IntArray]]:
        """Each next label of an option, and the rows (without labels) that lead to it."""
        of_rows = labels[self.base.row_state]
        for label in np.unique(of_rows):
            yield int(label), np.flatnonzero(of_rows == label)

    def _mean(self, q: FloatArray, weights: FloatArray) -> FloatArray:
        total = np.bincount(self.mdp.row_state, weights * q, minlength=self.mdp.n_states)
        return total.astype(np.float64, copy=False)

    def _own(self, rows: FloatArray, i: int) -> FloatArray:
        return rows[i * self.base.n_rows : (i + 1) * self.base.n_rows]

    def _block(self, v: FloatArray, label: int) -> FloatArray:
        return v[label * self.base.n_states : (label + 1) * self.base.n_states]

    def _lifted(self, successor: IntArray, label: int) -> IntArray:
        lifted: IntArray = (successor + label * self.base.n_states).astype(np.int32)
        return lifted

    def _allowed(self, v: FloatArray) -> float:
        """The distance of its bounds at which a search ends; rounding grows with the size of v."""
        reward, gamma = self.mdp.rows.largest_reward, self.mdp.discount
        spread, largest = (float(np.ptp(v)), float(np.abs(v).max())) if len(v) else (0.0, 0.0)
        return float(ACCURACY * (reward + gamma * spread) + 64.0 * ROUNDING * (reward + gamma * largest))

    def _widened(self, bound: RowBound, share: float) -> RowBound:
        rows, gamma = self.mdp.rows, self.mdp.discount
        return lambda v: bound(v) + share * largest_value(rows, gamma, v)

    def _widened_step(self, bound: StepBound, share: float) -> StepBound:
        rows, gamma = self.mdp.rows, self.mdp.discount
        return lambda v, policy: np.where(
            self.mdp.terminal, 0.0, bound(v, policy) + share * largest_value(rows, gamma, v)
        )


class _Piece(NamedTuple):
    """The part of an option in a kernel, on the rows that lead to one label.

    Attributes:
      label: the next label.
      rows, base_rows: the rows, in the labelled model and without labels.
      share: `(kR,)` the probability of the option.
      above: upper bounds on the values of rows under a kernel of the option's set.
      rows_below, rows_above: bounds on the values of rows under the part itself.
      excess, failure: as in `StepEvidence`.
    """

    label: int
    rows: IntArray
    base_rows: IntArray
    share: Extended
    above: RowBound
    rows_below: RowBound
    rows_above: RowBound
    excess: float
    failure: str | None


class StateLabelPolicy:
    """T_pi: the worst option in each state."""

    def __init__(self, operator: StateLabelOperator, policy: PolicyRows) -> None:
        self._operator, self._policy = operator, policy
        self._weights = policy.weights(operator.mdp.n_rows)

    @property
    def entries(self) -> int:
        return int(self._operator.mdp.rows.length[self._policy.rows].sum()) * max(map(len, self._operator.options))

    def apply(self, v: FloatArray, memory: Memory = None, workers: Workers = SERIAL) -> tuple[FloatArray, Memory]:
        return self._operator.worst_values(v, self._weights).min(axis=0), memory

    def kernel(self, v: FloatArray, memory: Memory = None) -> Rows:
        return self._operator.worst_answer(v, self._weights).take(self._policy.rows)

    def linear_system(self, v: FloatArray, memory: Memory = None) -> LinearSystem:
        mdp = self._operator.mdp
        return linear_system(mdp.n_states, mdp.row_state[self._policy.rows], self._policy, self.kernel(v))
