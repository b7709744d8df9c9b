"""Limited deviations: nature may leave the model at most D times.

    V(s, d) = max_a  min( p . [r + gamma V(., d)],   min_{q in U(s, a)} q . [r + gamma V(., d - 1)] )

where d is the remaining budget, and the second term applies only for d > 0 [MannorMebelXu2012]. If the actions of a
state share a budget in U (`SRectangular`), nature decides before it knows the action, and both terms are means over the
actions of a policy. D = 0 is the model
itself, and D of at least the horizon is the set U. Deviations are observed when they happen, and each lasts one step:
`labelled` keeps the remaining budget.

If a deviation were permanent for its state, the problem would differ and be intractable in general: a policy that
returns would have to be evaluated against all of nature's earlier choices. Both agree if no state is visited twice;
otherwise stationary deviations are rejected.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from urbe import checks
from urbe.ambiguity.coupled.labels import COUPLED, LabelledModel, LabelOption, labelled, require_labels, seeing
from urbe.ambiguity.exact import Exact
from urbe.ambiguity.rectangular import RectangularSet, check_rectangular
from urbe.ambiguity.shared_budget.s_rectangular import SRectangular
from urbe.mdp.model import MDP, check_model, check_same_pairs
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray


def limited_deviations(
    mdp: MDP, set: RectangularSet | SRectangular, budget: int, *, stationary: bool = False
) -> LabelledModel:
    """Builds the problem in which nature may deviate at most `budget` times, each time for one step and within `set`.

    Label d is the remaining budget; the model starts with all of it, and has budget + 1 times as many states.

    Args:
      mdp: the nominal model.
      set: nature's choices when it deviates: a set that is rectangular in (s, a), such as `L1Ball(0.5)`, or
        `SRectangular`.
      budget: D, at least 0; see `deviation_budget`.
      stationary: whether deviations are permanent for their state, rather than for one step. Rejected unless no state
        can be visited twice; then it makes no difference.

    >>> import urbe
    >>> river = limited_deviations(urbe.library.riverswim(6, discount=0.9), urbe.L1Ball(1.0), budget=2)
    >>> solution = urbe.solve(river.mdp, river.set)
    >>> river.by_label(solution.value)[:, 5].round(2)  # at the right end, with 0, 1 and 2 deviations to come
    array([5.15, 4.46, 3.77])
    """
    check_model("mdp", mdp)
    if not isinstance(set, SRectangular):
        check_rectangular("set", set, COUPLED)
    most = checks.whole_number("budget", budget, 0)
    require_labels(mdp, most + 1)
    calm = [[LabelOption(Exact(), d)] for d in range(most + 1)]
    struck = [[LabelOption(set, d - 1)] if d else [] for d in range(most + 1)]
    out = labelled(mdp, [one + other for one, other in zip(calm, struck, strict=True)], initial_label=most)
    if stationary:
        _require_no_return(mdp, seeing(mdp)(set))
    return out


def deviation_budget(steps: int, rate: float, confidence: float) -> int:
    """The smallest D with P(more than D deviations) <= 1 - confidence, if each step deviates with probability `rate`.

    The number of deviations in `steps` independent steps is binomial. With a discount, use the effective horizon.

    Args:
      steps: T, at least 1.
      rate: the probability of a deviation in a step, in [0, 1].
      confidence: in (0, 1).

    >>> deviation_budget(50, 0.02, 0.95)
    3
    """
    from scipy.stats import binom

    n = checks.whole_number("steps", steps, 1)
    chance = checks.number("rate", rate, 0.0, 1.0)
    failure = 1.0 - checks.confidence(confidence)
    return int(np.argmax(binom.sf(np.arange(n + 1), n, chance) <= failure * (1.0 + 1e-12)))


def random_deviations(model: LabelledModel, kernel: MDP, rate: float) -> MDP:
    """Builds the model with labels in which deviations are random: with probability `rate` in each step, while d > 0.

    Args:
      model: of `limited_deviations`.
      kernel: the dynamics of deviations: a model without labels, such as one of the worst cases of the set.
      rate: the chance of a deviation in a step, in [0, 1].

    Returns:
      an MDP over the labelled states, to evaluate policies or to act in (`urbe.envs.FiniteEnv.of`). The budget is never
      exceeded: at d = 0 there are no deviations.
    """
    chance = checks.number("rate", rate, 0.0, 1.0)
    checks.kind("model", model, isinstance(model, LabelledModel), "a model of limited_deviations")
    check_model("kernel", kernel)
    base, n = model.base, model.base.n_states
    check_same_pairs("kernel", kernel, "the model without labels", base)
    own, other = _listed(base, base.rows), _listed(base, kernel.rows)
    row, successor, probability, reward = [], [], [], []
    for d in range(model.n_labels):
        share = chance if d else 0.0
        for each, weight, label in ((own, 1.0 - share, d), (other, share, d - 1)):
            if weight > 0.0:
                row.append(each.row + d * base.n_rows)
                successor.append(each.successor + label * n)
                probability.append(weight * each.probability)
                reward.append(each.reward)
    at, to = np.concatenate(row), np.concatenate(successor)
    order = np.lexsort((to, at))
    start = np.searchsorted(at[order], np.arange(model.mdp.n_rows + 1)).astype(np.int32)
    mixed = (np.concatenate(x)[order] for x in (probability, reward))
    return model.mdp.with_rows(Rows(model.mdp.n_states, start, to[order].astype(np.int32), *mixed))


class _Listed(NamedTuple):
    """The entries of a kernel, with a reward for each."""

    row: IntArray
    successor: IntArray
    probability: FloatArray
    reward: FloatArray


def _listed(base: MDP, rows: Rows) -> _Listed:
    reward = rows.entry_reward
    each = base.rows.row_reward[rows.entry_row] if reward is None else reward
    return _Listed(rows.entry_row, rows.successor, rows.probability, each)


def _require_no_return(mdp: MDP, set: RectangularSet) -> None:
    """Raises if some state may be visited twice, under the model or under a deviation."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    nature = set.bind(mdp)
    stay = Rows(mdp.n_states, np.arange(mdp.n_rows + 1), mdp.row_state.astype(np.int32), np.ones(mdp.n_rows),
                mdp.rows.row_reward)  # fmt: skip
    stays = np.isfinite(nature.excess(stay))  # the row lists its own state, or any state may follow
    rows = nature.rows
    source = mdp.row_state[rows.entry_row]
    graph = csr_array((np.ones(rows.n_entries), (source, rows.successor)), shape=(mdp.n_states, mdp.n_states))
    n_parts, part = connected_components(graph, directed=True, connection="strong")
    cyclic = np.bincount(part, minlength=n_parts)[part] > 1
    cyclic[mdp.row_state[stays]] = True
    if cyclic.any():
        raise ValueError(
            f"stationary is True, but state {int(np.argmax(cyclic))} may be visited twice: permanent deviations make "
            "the problem intractable, and the recursion over the budget would be wrong. Use stationary=False "
            "(each deviation lasts one step), or a model and a set in which no state is visited twice, such as one "
            "with time in its state."
        )
