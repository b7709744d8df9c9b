"""Optimal decisions while learning which of a few models is true: the belief MDP, solved with certified bounds.

A state of the belief MDP is a pair of a state s and a belief b over K models. The true model moves the state, and
Bayes' rule moves the belief. With c the belief after a possible jump of the true model,

    y_k(a)  = sum_s' P_k(s' | s, a) [ r(s, a, s') + gamma V(s', b') ],    b'_k proportional to c_k P_k(s' | s, a)
    V(s, b) = max_a  CVaR_level(y(a))  under c

Level 1 is the Bayes-adaptive optimum, whose value includes the value of information. Lower levels put more weight on
the models under which the action turns out badly, at every step; level 0 counts only the worst model of the support.

Only relevant pairs are visited. Each keeps bounds on its value, initially those of `urbe.planners.belief_bounds`, which
hold everywhere and improve when the equation above is applied to the bounds of successors. Trials follow the
actions that may be best and the outcomes with the widest bounds [Smith2004], until the bounds of the start meet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks, memory
from urbe.belief.credible import tail_weights
from urbe.belief.switching import Switching, of_members
from urbe.mdp.model import MDP, check_model, check_same_pairs
from urbe.planners.belief_bounds import first_bounds
from urbe.types import FloatArray, IntArray

DIGITS = 12
"""Beliefs that agree to this many decimals count as equal; the slack of the bounds covers it at level 1."""

Progress = Callable[[int, float], None]
"""Called with the number of pairs visited and the distance between the bounds of the start."""


@dataclass
class _Node:
    """A visited pair: its bounds, and for each action the successors with their nodes."""

    state: int
    belief: FloatArray  # over members, after the jump that precedes the next step
    log_b: FloatArray
    lower: float
    upper: float
    successors: list[IntArray] = field(default_factory=list)
    children: list[list[int]] = field(default_factory=list)


class BeliefPlan:
    """A policy over states and beliefs, and bounds on its value.

    Attributes:
      lower, upper: bounds on the optimal value from the start, including rounding error.
      pairs: pairs of state and belief that were visited.
      status: a sentence on the accuracy reached.
    """

    def __init__(self, search: _Search, lower: float, upper: float, status: str) -> None:
        self.lower, self.upper, self.status = lower, upper, status
        self.pairs = len(search.nodes)
        self._search = search

    @property
    def gap(self) -> float:
        """upper - lower."""
        return self.upper - self.lower

    def act(self, state: int, belief: ArrayLike) -> int:
        """The action whose lower bound is highest; following it earns at least `lower` from the start.

        Args:
          state: the current, non-terminal state.
          belief: `(K,)`, or `(H, K)` with candidates of the hazard, before the next step.
        """
        table = np.atleast_2d(checks.float_array("belief", belief))
        expected = (len(self._search.switching.hazards), len(self._search.probability))
        if table.shape != expected:
            raise ValueError(f"belief has shape {table.shape}, expected {expected}: candidates of the hazard, members.")
        if not 0 <= state < self._search.mdp.n_states or self._search.mdp.terminal[state]:
            raise ValueError(f"state is {state}, expected one of the {self._search.mdp.n_states} that is not terminal.")
        with np.errstate(divide="ignore"):
            return self._search.best_action(state, np.log(table / table.sum()))

    def after(self, state: int, action: int, successor: int, belief: ArrayLike) -> FloatArray:
        """The belief after a step: a possible jump, then Bayes' rule."""
        with np.errstate(divide="ignore"):
            log_b = np.log(np.atleast_2d(checks.float_array("belief", belief)))
        row = self._search.mdp.row_of(state, action)
        with np.errstate(divide="ignore"):
            likelihood = np.log(self._search.probability[:, row, successor])
        log_b, _ = self._search.switching.update(self._search.switching.jump(log_b), likelihood)
        moved: FloatArray = np.exp(log_b)
        return moved

    def __repr__(self) -> str:
        return f"BeliefPlan(value in [{self.lower:.6g}, {self.upper:.6g}], {self.pairs} pairs of state and belief)"


def solve_belief(
    members: Sequence[MDP],
    start: int,
    *,
    switching: Switching | None = None,
    level: float = 1.0,
    tolerance: float = 1e-3,
    most_pairs: int = 100_000,
    progress: Progress | None = None,
) -> BeliefPlan:
    """Computes the best policy of an agent that knows a few models and learns by acting which one is true.

    Args:
      members: the models: the same pairs of state and action, the same rewards, and one discount below 1.
      start: the first state.
      switching: prior, and the hazard with which the true model changes before a step; None for a uniform prior and
        no change. For jumps per episode, make the end of an episode a step that leads to the start.
      level: caution, in [0, 1].
      tolerance: the largest distance between the bounds.
      most_pairs: limit on pairs of state and belief. If it is reached, the bounds stay wider, and the status says so.
      progress: called after each trial.

    >>> import numpy as np, urbe
    >>> from urbe.planners import solve_belief
    >>> pays = [[0.0, 0.0], [1.0, 1.0], [-1.0, -1.0]]  # in state 0 one may bet; state 1 is won, state 2 lost
    >>> def game(win):
    ...     back = [[1.0, 0.0, 0.0]] * 2
    ...     return urbe.MDP.from_dense([[[0.0, win, 1.0 - win], [1.0, 0.0, 0.0]], back, back], pays, discount=0.9)
    >>> solve_belief([game(0.9), game(0.2)], 0).act(0, [0.5, 0.5])  # worth finding out
    0
    """
    model = _checked(members)
    checks.whole_number("start", start, 0)
    if start >= model.n_states:
        raise ValueError(f"start is {start}, expected a state below {model.n_states}.")
    checks.number("level", level, 0.0, 1.0)
    checks.positive("tolerance", tolerance)
    checks.whole_number("most_pairs", most_pairs, 1)
    assumed = Switching() if switching is None else switching
    if assumed.per == "episode" and assumed.hazards.any():
        raise ValueError(
            'switching jumps per "episode", expected per="step": make the end of an episode a step that leads to the '
            "start of the next."
        )
    search = _Search(model, members, assumed, level, tolerance, most_pairs)
    root = search.node(start, assumed.begin(len(members)))
    while search.gap(root) > tolerance and len(search.nodes) < most_pairs:
        search.trial(root)
        if progress is not None:
            progress(len(search.nodes), search.gap(root))
    found = search.nodes[root]
    lower, upper = found.lower - search.slack, found.upper + search.slack
    reached = found.upper - found.lower <= tolerance
    status = (
        f"The bounds are within {tolerance:g}."
        if reached
        else f"The bounds are {upper - lower:.3g} apart, not within {tolerance:g}: most_pairs, {most_pairs}, were "
        "visited. Allow more, or a larger tolerance."
    )
    return BeliefPlan(search, lower, upper, status)


class _Search:
    """Visited pairs, and trials that improve their bounds."""

    def __init__(
        self, mdp: MDP, members: Sequence[MDP], switching: Switching, level: float, tolerance: float, most: int
    ) -> None:
        self.mdp, self.switching, self.level, self.tolerance, self.most = mdp, switching, level, tolerance, most
        self.probability = np.stack([member.to_dense()[0] for member in members])[:, mdp.row_state, mdp.action]
        self.reward = _rewards(mdp, members)
        self.leaves = first_bounds(mdp, switching, level, self.probability, self.reward)
        self.nodes: list[_Node] = []
        self._number: dict[tuple[int, bytes], int] = {}
        size = max(float(np.abs(self.leaves.upper).max()), float(np.abs(self.leaves.worst).max()), 1e-300)
        terms = self.probability.shape[0] + self.probability.shape[2] + 10
        # rounding of each application, and of beliefs that count as equal, accumulated with the discount
        self.slack = size * (terms * 2.0**-52 + 10.0**-DIGITS * terms) / (1.0 - mdp.discount) ** 2

    def node(self, state: int, log_b: FloatArray) -> int:
        """The number of a pair; adds it if it is new."""
        belief = np.exp(log_b)
        key = (state, (belief if self.level < 1.0 else belief.round(DIGITS) + 0.0).tobytes())
        if key not in self._number:
            self._number[key] = len(self.nodes)
            lower, upper = self._leaf(state, belief.ravel())
            jumped = self.switching.jump(log_b)
            self.nodes.append(_Node(state, of_members(jumped), jumped, lower, upper))
        return self._number[key]

    def gap(self, number: int) -> float:
        """The distance between the bounds of a pair."""
        return self.nodes[number].upper - self.nodes[number].lower

    def trial(self, root: int) -> None:
        """Follows promising actions to pairs with wide bounds, and improves the bounds on the way back."""
        path, number, allowed = [], root, self.tolerance
        while (
            self.gap(number) > allowed
            and len(self.nodes) < self.most
            and not self.mdp.terminal[self.nodes[number].state]
        ):
            path.append(number)
            self._expand(number)
            node = self.nodes[number]
            above = [self._value(node, at, "upper")[0] for at in range(len(node.children))]
            at = int(np.argmax(above))
            weights = self._value(node, at, "upper")[1]
            row = int(self.mdp.row_start[node.state]) + at
            share = weights @ self.probability[:, row, node.successors[at]]
            allowed = allowed / self.mdp.discount if self.mdp.discount > 0.0 else np.inf
            gaps = np.array([self.gap(child) for child in node.children[at]])
            number = node.children[at][int(np.argmax(share * (gaps - min(allowed, gaps.max()))))]
        for visited in reversed(path):
            node = self.nodes[visited]
            actions = range(len(node.children))
            node.lower = max(node.lower, max(self._value(node, at, "lower")[0] for at in actions))
            node.upper = min(node.upper, max(self._value(node, at, "upper")[0] for at in actions))

    def best_action(self, state: int, log_b: FloatArray) -> int:
        """The action with the highest lower bound one step ahead."""
        number = self.node(state, log_b)
        self._expand(number)
        node = self.nodes[number]
        below = [self._value(node, at, "lower")[0] for at in range(len(node.children))]
        return int(self.mdp.action[self.mdp.row_start[state] + int(np.argmax(below))])

    def _expand(self, number: int) -> None:
        node = self.nodes[number]
        if node.children:
            return
        for row in range(int(self.mdp.row_start[node.state]), int(self.mdp.row_start[node.state + 1])):
            possible = np.flatnonzero(node.belief @ self.probability[:, row] > 0.0)
            with np.errstate(divide="ignore"):
                likelihood = np.log(self.probability[:, row, possible])
            after = [self.switching.update(node.log_b, likelihood[:, j])[0] for j in range(len(possible))]
            children = [self.node(int(s), log_b) for s, log_b in zip(possible, after, strict=True)]
            node.successors.append(possible)
            node.children.append(children)

    def _value(self, node: _Node, at: int, side: str) -> tuple[float, FloatArray]:
        """CVaR over members of the value of an action, from one side's bounds, and the weights of the members."""
        row, successors = int(self.mdp.row_start[node.state]) + at, node.successors[at]
        ahead = np.array([getattr(self.nodes[child], side) for child in node.children[at]])
        y = self.probability[:, row, successors] @ (self.reward[row, successors] + self.mdp.discount * ahead)
        weights = np.asarray(tail_weights(node.belief, y, self.level))
        return float(weights @ y), weights

    def _leaf(self, state: int, belief: FloatArray) -> tuple[float, float]:
        below = [float(self.leaves.worst[state]), *(self.leaves.lowers[:, state] @ belief).tolist()]
        return max(below), float(self.leaves.upper[state] @ belief)


def _checked(members: Sequence[MDP]) -> MDP:
    if not members:
        raise ValueError("members is empty, expected at least one model.")
    for k, member in enumerate(members):
        check_model(f"members[{k}]", member)
    first = members[0]
    for k, member in enumerate(members):
        if member.discount != first.discount:
            raise ValueError(
                f"members[{k}] has the discount {member.discount:g}, expected {first.discount:g} as in members[0]."
            )
        check_same_pairs(f"members[{k}]", member, "members[0]", first)
    if first.discount >= 1.0:
        raise ValueError(f"members[0] has the discount {first.discount:g}, expected one below 1.")
    needed = 8 * (len(members) + 1) * first.n_rows * first.n_states
    memory.require({"probabilities of every member": needed}, "Take fewer states or fewer members.")
    return first


def _rewards(mdp: MDP, members: Sequence[MDP]) -> FloatArray:
    """`(R, S)` rewards; for successors that a member does not reach, those of a member that does."""
    table = np.full((mdp.n_rows, mdp.n_states), np.nan)
    for k, member in enumerate(members):
        rows = member.rows
        reward = rows.reward_per_entry
        known = table[rows.entry_row, rows.successor]
        wrong = ~np.isnan(known) & (known != reward)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ValueError(
                f"members[{k}] pays {reward[at]:g} from {mdp.row_name(int(rows.entry_row[at]))} to state "
                f"{rows.successor[at]}, expected {known[at]:g} as in an earlier member: rewards are the same in all."
            )
        table[rows.entry_row, rows.successor] = reward
    return np.where(np.isnan(table), 0.0, table)
