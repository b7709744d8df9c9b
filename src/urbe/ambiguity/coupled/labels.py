"""k-rectangular sets: nature's choices depend on its earlier choices through a label with at most k values.

    V(s, i) = max_a  min_{o of label i}  min_{p in U_o(s, a)}  sum_s' p(s') [r(s, a, s') + gamma V(s', next_o(s, a))]

Nature picks an option o that the label allows and a kernel of its set; the option determines the next label
[MannorMebelXu2016]. Agent and nature observe the label. With the label as part of the state the set is rectangular: the
model has k times as many states, and all methods, certificates and policy evaluations of the library apply unchanged.

If the actions of a state share a budget in the set of some option (`SRectangular`), nature picks options before it
knows the action, and policies may have to randomise (`state_labels`).

With one label and one option this is the option's own set. For a budget of deviations the label is the remaining
budget: "lightning does not strike twice" (`limited_deviations`) [MannorMebelXu2012].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from urbe import checks, memory
from urbe.ambiguity.coupled.label_nature import Branch, LabelNature
from urbe.ambiguity.coupled.state_labels import StateLabelledSet
from urbe.ambiguity.rectangular import RectangularSet, check_rectangular
from urbe.ambiguity.shared_budget.s_rectangular import SRectangular
from urbe.mdp.model import MDP, check_model
from urbe.mdp.rows import Rows, index_type
from urbe.types import FloatArray, IntArray


class LabelOption(NamedTuple):
    """One option of nature under a label.

    Attributes:
      set: the kernels of the option: a set that chooses each row independently, such as `Exact()` or `L1Ball(0.5)`, or
        `SRectangular`.
      next_label: the next label: a whole number, or one for each state `(S,)`, `(R,)` or `(S, A)`.
    """

    set: RectangularSet | SRectangular
    next_label: Any


@dataclass(frozen=True, eq=False, repr=False)
class LabelledModel:
    """A model with a label in its state, and nature's options: `solve(labelled.mdp, labelled.set)`.

    Attributes:
      mdp: state i S + s stands for state s under label i, and is named "s, label i" if the model names its states. Its
        rows are those of the model, and lead to the next label of each label's first option.
      set: the set, valid only for this model.
      base: the model without labels.
      n_labels: k.
    """

    mdp: MDP
    set: LabelledSet | StateLabelledSet
    base: MDP
    n_labels: int

    def state(self, state: int | str, label: int) -> int:
        """Returns the index of a state under a label; a text is the name of a state."""
        at = self.base.labels.state_id("state", state, self.base.n_states)
        return checks.index("label", label, self.n_labels) * self.base.n_states + at

    def by_label(self, values: Any) -> Any:
        """Reshapes numbers of all states, such as `solution.value`, to `(..., k, S, ...)`, with an axis for labels."""
        array = np.asarray(values)
        sizes = np.flatnonzero(np.array(array.shape) == self.mdp.n_states)
        if not len(sizes):
            raise ValueError(f"values has shape {array.shape}, expected an axis of {self.mdp.n_states} states.")
        axis = int(sizes[0]) if array.ndim < 2 or array.shape[-1] != self.mdp.n_states else array.ndim - 1
        shape = (*array.shape[:axis], self.n_labels, self.base.n_states, *array.shape[axis + 1 :])
        return array.reshape(shape)

    def __repr__(self) -> str:
        return f"LabelledModel({self.n_labels} labels of {self.base})"


@dataclass(frozen=True, eq=False)
class LabelledSet(RectangularSet):
    """Nature's options in a model with labels; made by `labelled` and `limited_deviations`.

    Args:
      base: the model without labels; its probabilities and rewards are not used.
      options: the options of each label.
      next_labels: `(R,)` the next labels of each option of each label.
    """

    base: MDP
    options: tuple[tuple[RectangularSet, ...], ...]
    next_labels: tuple[tuple[IntArray, ...], ...]

    def bind(self, mdp: MDP) -> LabelNature:
        n_labels, base = len(self.options), self.base
        found = (mdp.n_states, mdp.n_rows, mdp.rows.n_entries)
        expected = tuple(n_labels * n for n in (base.n_states, base.n_rows, base.rows.n_entries))
        if found != expected:
            raise ValueError(
                f"mdp is {mdp}, expected the labelled model that belongs to this set, of {expected[0]} states, "
                f"{expected[1]} rows and {expected[2]} entries. Solve labelled.mdp."
            )
        branches = []
        for i, (sets, following) in enumerate(zip(self.options, self.next_labels, strict=True)):
            centre, reward = (_part(x, i, n_labels) for x in (mdp.rows.probability, mdp.rows.reward))
            own = replace(base, rows=replace(base.rows, probability=centre, reward=reward), discount=mdp.discount)
            for o, (each, labels) in enumerate(zip(sets, following, strict=True)):
                nature = each.bind(own)
                for label in np.unique(labels):
                    rows = np.flatnonzero(labels == label)
                    part = nature if len(rows) == base.n_rows else nature.take(rows)
                    branches.append(Branch(rows + i * base.n_rows, part, int(label), o))
        return LabelNature(mdp.rows, mdp.discount, base.n_states, tuple(branches))

    def choices(self) -> RectangularSet:
        return replace(self, options=tuple(tuple(each.choices() for each in sets) for sets in self.options))


def labelled(mdp: MDP, options: Sequence[Sequence[LabelOption]], initial_label: int = 0) -> LabelledModel:
    """Builds a model with a label in its state, and nature's options under each label: a k-rectangular set.

    The labelled model is k times as large as the model, (D + 1) times for a budget D of deviations.

    Args:
      mdp: the model.
      options: nature's options for each label, at least one. The first one is nature's default: the rows of the
        labelled model lead to its next label.
      initial_label: the label at the start, if the model has an initial distribution.

    >>> import urbe
    >>> calm, storm = urbe.LabelOption(urbe.Exact(), 0), urbe.LabelOption(urbe.L1Ball(0.4), 1)
    >>> river = labelled(urbe.library.riverswim(6, discount=0.9), [[calm, storm], [calm]])  # no two storms in a row
    >>> solution = urbe.solve(river.mdp, river.set)
    >>> river.by_label(solution.value).shape
    (2, 6)
    """
    check_model("mdp", mdp)
    checks.sequence("options", options, "nature's options for each of at least one label")
    n_labels = len(options)
    require_labels(mdp, n_labels)
    first = checks.index("initial_label", initial_label, n_labels)
    sets, following = [], []
    for i, each in enumerate(options):
        some = f"a list of at least one option, such as LabelOption(Exact(), {i})"
        checks.kind(f"options[{i}]", each, not isinstance(each, LabelOption), some)
        checks.sequence(f"options[{i}]", each, some)
        for o, option in enumerate(each):
            name = f"options[{i}][{o}]"
            checks.kind(name, option, isinstance(option, LabelOption), "LabelOption(set, next_label)")
            if not isinstance(option.set, SRectangular):
                check_rectangular(f"{name}.set", option.set, COUPLED)
        sets.append(tuple(option.set for option in each))
        names = (f"options[{i}][{o}].next_label" for o in range(len(each)))
        following.append(tuple(_labels(name, mdp, x.next_label, n_labels) for name, x in zip(names, each, strict=True)))
    wide = _widened(mdp, [labels[0] for labels in following], first)
    given = tuple(sets)
    relaxed = LabelledSet(mdp, tuple(tuple(map(seeing(mdp), each)) for each in given), tuple(following))
    if not any(isinstance(each, SRectangular) for options in given for each in options):
        return LabelledModel(wide, relaxed, mdp, n_labels)
    return LabelledModel(wide, StateLabelledSet(mdp, given, _of_states(mdp, following), relaxed), mdp, n_labels)


COUPLED = (
    "an option is a choice for one state, so that its set may couple the actions of a state (SRectangular), but not "
    "different states."
)


def seeing(mdp: MDP) -> Callable[[RectangularSet | SRectangular], RectangularSet]:
    """Maps sets whose actions share a budget to those in which each action has all of it, and others to themselves."""
    return lambda each: each.relaxed(mdp) if isinstance(each, SRectangular) else each


def _of_states(mdp: MDP, following: Sequence[Sequence[IntArray]]) -> tuple[tuple[IntArray, ...], ...]:
    """`(S,)` the next labels of options that are picked before the action."""
    first, live = np.minimum(mdp.row_start[:-1], max(mdp.n_rows - 1, 0)), ~mdp.terminal
    reason = "nature picks the option before it knows the action if the actions of a state share a budget."
    for i, each in enumerate(following):
        of_states = [labels[first] for labels in each]
        for o, labels in enumerate(each):
            where = mdp.row_state[labels != of_states[o][mdp.row_state]]
            if len(where):
                raise ValueError(
                    f"options[{i}][{o}].next_label depends on the action in state "
                    f"{mdp.labels.state(int(where[0]))}, "
                    f"expected one label for all actions of a state: {reason}"
                )
            for other in range(o):
                same = np.flatnonzero((of_states[o] == of_states[other]) & live)
                if len(same):
                    raise ValueError(
                        f"options[{i}][{other}] and options[{i}][{o}] both lead to label {of_states[o][same[0]]} from "
                        f"state {mdp.labels.state(int(same[0]))}, expected different labels: {reason} Its choice is "
                        "proven by the labels that follow. Give each option a label of its own."
                    )
    return tuple(tuple(labels[first] for labels in each) for each in following)


def require_labels(mdp: MDP, n_labels: int) -> None:
    """Raises if a model with that many labels does not fit into memory: its rows, and one nature or more per label."""
    rows = mdp.rows
    memory.require(
        {
            f"{n_labels} copies of {rows.n_entries} successors, one for each label": 20.0 * n_labels * rows.n_entries,
            f"nature's options under {n_labels} labels": n_labels * (4e3 + 16.0 * rows.n_rows),
            f"names of states under {n_labels} labels": 100.0 * n_labels * len(mdp.labels.states or ()),
        },
        "Use fewer labels (a smaller budget), or a smaller model.",
    )


def _labels(name: str, mdp: MDP, given: Any, n_labels: int) -> IntArray:
    """`(R,)` the next label of each row."""
    array = np.asarray(given)
    if array.ndim == 0:
        array = np.full(mdp.n_rows, checks.whole_number(name, given, 0))
    elif array.shape == (mdp.n_states, mdp.n_actions):
        array = array[mdp.row_state, mdp.action]
    elif array.shape == (mdp.n_states,):
        array = array[mdp.row_state]
    elif array.shape != (mdp.n_rows,):
        raise ValueError(
            f"{name} has shape {array.shape}, expected a whole number, one for each state ({mdp.n_states},), row "
            f"({mdp.n_rows},), or state and action ({mdp.n_states}, {mdp.n_actions})."
        )
    return checks.int_array(name, array, 0, n_labels, "label")


def _widened(mdp: MDP, labels: list[IntArray], initial_label: int) -> MDP:
    """Builds the labelled model, whose rows lead to the next label of the first option."""
    rows, k = mdp.rows, len(labels)
    successor = np.concatenate([rows.successor + mdp.n_states * of_rows[rows.entry_row] for of_rows in labels])
    wide = Rows(
        k * mdp.n_states,
        _shifted(rows.entry_start, rows.n_entries, k),
        successor.astype(np.int32),
        np.tile(rows.probability, k),
        np.tile(rows.reward, k),
    )
    initial = None
    if mdp.initial is not None:
        initial = np.zeros(k * mdp.n_states)
        initial[initial_label * mdp.n_states :][: mdp.n_states] = mdp.initial
    names = mdp.labels
    if names.states is not None:
        texts = names.state_texts(range(mdp.n_states))
        names = replace(names, states=tuple(f"{text}, label {i}" for i in range(k) for text in texts))
    row_start = _shifted(mdp.row_start, mdp.n_rows, k)
    return MDP(row_start, np.tile(mdp.action, k), wide, mdp.discount, initial, labels=names)


def _shifted(start: IntArray, size: int, copies: int) -> IntArray:
    """Repeats `start`, whose last number is `size`, for several consecutive copies."""
    parts = np.arange(copies)[:, None] * size + start[:-1].astype(np.int64)
    whole: IntArray = np.append(parts.ravel(), copies * size).astype(index_type(copies * size))
    return whole


def _part(array: FloatArray, i: int, parts: int) -> FloatArray:
    size = len(array) // parts
    return np.ascontiguousarray(array[i * size : (i + 1) * size])
