"""Robust options: courses of action that run until they end, against a nature that may change every step.

An option is a policy, states where it may begin, and a probability of ending on arrival [SuttonPrecupSingh1999]. With
U(s, o) the value of running option o in s, and V(s) that of choosing one [Mankowitz2018],

    U(s, o) = sum_a pi_o(a|s) min_{p in U(s, a)} [ r(s, a) + gamma p . ((1 - end_o) U(., o) + end_o V) ]
    V(s)    = max_o U(s, o)                                   over the options that may begin in s

Nature sees the state, the running option and the action. With the running option as a part of the state the set is
rectangular: all methods, bounds and certificates of the library apply as they are. Options of one step are the actions
themselves, and an option that never ends is the robust evaluation of its policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks, memory
from urbe.ambiguity.coupled.option_nature import OptionNature, Running, lifted_rows
from urbe.ambiguity.rectangular import RectangularSet, check_rectangular
from urbe.mdp.labels import NO_LABELS, Labels
from urbe.mdp.model import MDP, check_model
from urbe.mdp.rows import index_type
from urbe.types import BoolArray, FloatArray, IntArray


class Option(NamedTuple):
    """A course of action.

    Attributes:
      policy: `(S,)` actions, -1 where it has none, or `(S, A)` probabilities, all zero where it has none.
      ends: probability of ending on arrival in a state: a number, or one for each state `(S,)`. Terminal states end it.
      starts: `(S,)` truth values, where it may begin; None for every state in which it has an action.
    """

    policy: ArrayLike
    ends: ArrayLike
    starts: ArrayLike | None = None


@dataclass(frozen=True, eq=False, repr=False)
class OptionModel:
    """A model whose decisions are options, and what nature may do in it: `solve(model.mdp, model.set)`.

    Attributes:
      mdp: states 0 .. S - 1 are those of the model, in which an option is chosen: action o is option o. State
        S + o S + s is state s while option o runs, with o as its only action. It is named "s, option o running" if the
        model names its states.
      set: the set, valid only for this model.
      base: the model without options.
      n_options: how many there are.
    """

    mdp: MDP
    set: OptionSet
    base: MDP
    n_options: int

    def state(self, state: int | str, running: int | None = None) -> int:
        """The number of a state in which an option is chosen, or in which option `running` continues."""
        at = self.base.labels.state_id("state", state, self.base.n_states)
        if running is None:
            return at
        return (1 + checks.index("running", running, self.n_options)) * self.base.n_states + at

    def __repr__(self) -> str:
        return f"OptionModel({self.n_options} options in {self.base})"

    def policy(self, choice: ArrayLike) -> IntArray:
        """The policy of `mdp` that chooses option `choice[s]` in state s, for `urbe.evaluate_policy`.

        Args:
          choice: `(S,)` options, -1 at terminal states.
        """
        chosen = checks.int_array("choice", choice, -1, self.n_options, "option (-1 at terminal states)")
        if len(chosen) != self.base.n_states:
            raise ValueError(f"choice has {len(chosen)} entries, expected one for each of {self.base.n_states} states.")
        going_on = np.repeat(np.arange(self.n_options), self.base.n_states)
        going_on[self.mdp.terminal[self.base.n_states :]] = -1
        return np.concatenate([chosen, going_on]).astype(np.int32)


@dataclass(frozen=True, eq=False)
class OptionSet(RectangularSet):
    """What nature may do while options run; made by `with_options`.

    Args:
      base: the model without options.
      set: what nature may do with its rows.
      running: the rows of each option, with the probabilities of their actions.
      shape: numbers of states, rows and entries of the model with options.
    """

    base: MDP
    set: RectangularSet
    running: tuple[_Rows, ...]
    shape: tuple[int, int, int]

    def bind(self, mdp: MDP) -> OptionNature:
        found = (mdp.n_states, mdp.n_rows, mdp.rows.n_entries)
        if found != self.shape:
            raise ValueError(
                f"mdp is {mdp}, expected the model with options that belongs to this set, of {self.shape[0]} states, "
                f"{self.shape[1]} rows and {self.shape[2]} entries. Solve model.mdp."
            )
        rows = replace(self.base.rows, reward=np.zeros(self.base.n_rows))  # rewards are those of the rows of options
        nature = self.set.bind(replace(self.base, rows=rows, discount=mdp.discount))
        reach = self.set.choices().bind(replace(self.base, rows=rows, discount=1.0))
        parts = []
        for o, each in enumerate(self.running):
            used, pick = np.unique(each.pick, return_inverse=True)
            natures = nature.take(used), reach.take(used)
            parts.append(Running(each.at, *natures, pick, each.weight, each.first, o, each.ends))
        return OptionNature(mdp.rows, mdp.discount, self.base.n_states, tuple(parts))

    def choices(self) -> RectangularSet:
        return replace(self, set=self.set.choices())


class _Rows(NamedTuple):
    """Rows `at` of the model with options: row i mixes `pick[first[i] : first[i + 1]]` of the base with `weight`."""

    at: IntArray
    pick: IntArray
    weight: FloatArray
    first: IntArray
    ends: FloatArray


def with_options(mdp: MDP, options: Sequence[Option], set: RectangularSet) -> OptionModel:
    """The model in which options are chosen and run until they end, against a nature bound by `set`.

    It has (1 + number of options) times as many states.

    Args:
      mdp: with rewards r(s, a).
      options: at least one that may begin in every state that is not terminal. `one_step(mdp)` gives the actions.
      set: what nature may do with a row of `mdp`, such as `L1Ball(0.2)`: a set that chooses each row on its own.

    >>> import numpy as np, urbe
    >>> river = urbe.library.riverswim(6, discount=0.95)
    >>> ends = np.eye(6)[0] + np.eye(6)[5]  # at the banks
    >>> swim = with_options(river, [urbe.Option([a] * 6, ends) for a in (0, 1)], urbe.L1Ball(0.1))
    >>> solution = urbe.solve(swim.mdp, swim.set)
    >>> solution.policy[:6], urbe.certify(solution).holds
    (array([1, 1, 1, 1, 1, 1], dtype=int32), True)
    """
    check_model("mdp", mdp)
    check_rectangular("set", set, "options are policies, and nature answers each of their actions on its own.")
    if mdp.rows.rewards_successors:
        raise ValueError(
            "The rewards of the model depend on the successor, which rows that mix several actions cannot express. "
            "Use rewards r(s, a): MDP.with_rows(...) with expected rewards."
        )
    some = "a list of at least one option, such as Option([0, 0, 1], ends=0.2)"
    checks.kind("options", options, not isinstance(options, Option), some)
    checks.sequence("options", options, some)
    n, live = mdp.n_states, ~mdp.terminal
    policies, ends, starts = zip(*(_read(f"options[{o}]", each, mdp) for o, each in enumerate(options)), strict=True)
    nowhere = live & ~np.any(starts, axis=0)
    if nowhere.any():
        raise ValueError(
            f"No option may begin in state {int(np.argmax(nowhere))}. Give one with an action and starts there; "
            "one_step(mdp) has one for each action."
        )
    # rows in the order of states: those of decisions, then one for each state in which an option may continue
    begin_at, begin_option = np.nonzero(np.array(starts).T)
    goes_on = np.array([live & (end < 1.0) for end in ends])
    on_option, on_at = np.nonzero(goes_on)
    state, option = np.concatenate([begin_at, on_at]), np.concatenate([begin_option, on_option])
    memory.require(
        {f"{len(state)} rows of {len(options)} options": 40.0 * len(state) * mdp.rows.n_entries / max(mdp.n_rows, 1)},
        "Use fewer options, or a smaller model.",
    )
    running = tuple(
        _rows_of(mdp, policies[o], ends[o], np.flatnonzero(option == o), state[option == o])
        for o in range(len(options))
    )
    reward = np.empty(len(state))
    for each in running:
        reward[each.at] = np.add.reduceat(each.weight * mdp.rows.reward[each.pick], each.first) if len(each.at) else 0.0
    parts = [(each, o, mdp.rows.take(each.pick)) for o, each in enumerate(running)]
    rows = lifted_rows(n, (1 + len(options)) * n, reward, parts)
    count = np.concatenate([np.bincount(begin_at, minlength=n), goes_on.ravel()])
    row_start: IntArray = np.append(0, np.cumsum(count)).astype(index_type(len(state)))
    initial = None if mdp.initial is None else np.concatenate([mdp.initial, np.zeros(len(options) * n)])
    labels = NO_LABELS
    if mdp.labels.states is not None:
        texts = mdp.labels.state_texts(range(n))
        running_texts = (f"{text}, option {o} running" for o in range(len(options)) for text in texts)
        labels = Labels(states=(*mdp.labels.states, *running_texts))
    wide = MDP(row_start, option.astype(np.int32), rows, mdp.discount, initial, labels=labels)
    shape = (wide.n_states, wide.n_rows, rows.n_entries)
    return OptionModel(wide, OptionSet(mdp, set, running, shape), mdp, len(options))


def one_step(mdp: MDP) -> list[Option]:
    """The actions of a model as options that end after one step."""
    check_model("mdp", mdp)
    policy = np.full((mdp.n_actions, mdp.n_states), -1)
    policy[mdp.action, mdp.row_state] = mdp.action
    return [Option(each, 1.0) for each in policy]


def _read(name: str, option: Any, mdp: MDP) -> tuple[FloatArray, FloatArray, BoolArray]:
    """`(R,)` probabilities of rows, `(S,)` those of ending, and where the option may begin."""
    checks.kind(name, option, isinstance(option, Option), "Option(policy, ends)")
    n = mdp.n_states
    if np.ndim(option.policy) == 1:
        ids = checks.int_array(f"{name}.policy", option.policy, -1, mdp.n_actions, "action (-1 where it has none)")
        if len(ids) != n:
            raise ValueError(f"{name}.policy has {len(ids)} entries, expected one for each of {n} states.")
        weight = np.where(mdp.action == ids[mdp.row_state], 1.0, 0.0)
        wanted = (ids >= 0).astype(np.float64)
    else:
        table = checks.float_array(f"{name}.policy", option.policy, ndim=2)
        if table.shape != (n, mdp.n_actions):
            raise ValueError(f"{name}.policy has shape {table.shape}, expected ({n},) or ({n}, {mdp.n_actions}).")
        checks.non_negative(f"{name}.policy", table)
        weight, wanted = table[mdp.row_state, mdp.action], table.sum(axis=1)
    total = np.bincount(mdp.row_state, weight, minlength=n)
    wrong = (np.abs(wanted - np.round(wanted)) > 1e-9) | (wanted > 1.5) | (np.abs(total - wanted) > 1e-9)
    if wrong.any():
        s = int(np.argmax(wrong))
        raise ValueError(
            f"{name}.policy[{s}] gives the actions of state {s} probability {total[s]:.12g} and all of them "
            f"{wanted[s]:.12g}, expected 1 for both, or 0 where it has no action."
        )
    ends = np.array(np.broadcast_to(_numbers(f"{name}.ends", option.ends, n), n))
    outside = (ends < 0.0) | (ends > 1.0)
    if outside.any():
        s = int(np.argmax(outside))
        raise ValueError(f"{name}.ends[{s}] is {ends[s]:g}, expected a probability in [0, 1].")
    known = total > 0.5
    stuck = ~mdp.terminal & ~known & (ends < 1.0)
    if stuck.any():
        s = int(np.argmax(stuck))
        raise ValueError(
            f"{name} has no action in state {s}, but may continue there (ends[{s}] is {ends[s]:g}). Give it an action "
            f"there, or let it end: ends[{s}] = 1."
        )
    starts = known.copy() if option.starts is None else checks.mask(f"{name}.starts", option.starts, (n,))
    if (starts & ~known).any():
        s = int(np.argmax(starts & ~known))
        raise ValueError(f"{name} may start in state {s}, where it has no action.")
    return np.where(known[mdp.row_state], weight / np.where(known, total, 1.0)[mdp.row_state], 0.0), ends, starts


def _numbers(name: str, value: ArrayLike, n: int) -> FloatArray:
    array = checks.float_array(name, value)
    if array.shape not in ((), (n,)):
        raise ValueError(f"{name} has shape {array.shape}, expected a number, or one for each of {n} states.")
    return array


def _rows_of(mdp: MDP, weight: FloatArray, ends: FloatArray, at: IntArray, states: IntArray) -> _Rows:
    """The rows `at` in which an option acts in `states`."""
    used = np.flatnonzero(weight > 0.0)
    begin = np.searchsorted(mdp.row_state[used], np.arange(mdp.n_states + 1))
    length = np.diff(begin)[states]
    first = np.concatenate([[0], np.cumsum(length)[:-1]]).astype(np.int64) if len(states) else np.zeros(0, np.int64)
    place = np.repeat(begin[:-1][states] - first, length) + np.arange(int(length.sum()))
    return _Rows(at, used[place], weight[used[place]], first, ends)
