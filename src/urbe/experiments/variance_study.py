"""The posterior variance of robust values: what the equations say, against posterior draws solved one by one.

Random layered models (4 layers of 3 states, 2 actions; every state leads to the next layer) have known posteriors:
`count` pseudo-observations of each row. For every set and radius the true variance of a pair's robust value is that
over draws of the centre, under the policy of the mean model. Held against it, over the same draws:

    Jensen       calibrated local term, u = nu + gamma^2 q* u
    sharp        the same, successors taken to be uncorrelated
    published    nu = Qmax^2 sum_j Var[q_j] / E[q_j] of the worst-case rows of the draws
    bound        nu = Qmax^2 (K - 1) / (N + 1), the same at the centre
    counted      nu = 1 / N: its scale is arbitrary, its spread is not

and the published bound of the local term, Qmax^2 K / N, against the local term itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from urbe.ambiguity import (
    Chi2Ball,
    Contamination,
    Exact,
    KLBall,
    L1Ball,
    L2Ball,
    LikelihoodRegion,
    LInfBall,
    WassersteinBall,
    WeightedL1Ball,
)
from urbe.ambiguity.rectangular import RectangularSet
from urbe.experiments.base import everywhere
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.posteriors.dirichlet import Posterior
from urbe.rng import stream
from urbe.types import FloatArray, IntArray
from urbe.variance.local import Bound, Count
from urbe.variance.local_draws import MonteCarlo
from urbe.variance.value_variance import value_variance

if TYPE_CHECKING:
    from urbe.report.content import Section

NAME = "variance_study"
TITLE = "How uncertain is a robust value?"

LAYERS, WIDTH, ACTIONS = 4, 3, 2
DISCOUNT = 0.9
COUNTS = (5, 20, 50, 200, 500)
MODELS = 6
DRAWS = 150
COPIES = 25
"""Draws solved at once, as one model of so many copies."""
SEED = 2019

MakeSet = Callable[[float, int], RectangularSet]


def _place(n_states: int) -> IntArray:
    """`(S,)` which state of its copy of the model each one is."""
    return np.arange(n_states) % (LAYERS * WIDTH + 1)


def _weighted(radius: float, n_states: int) -> RectangularSet:
    return WeightedL1Ball(radius, 0.5 + _place(n_states) % WIDTH / 2.0)


def _transport(radius: float, n_states: int) -> RectangularSet:
    place = _place(n_states)
    return WassersteinBall(radius, np.abs(np.subtract.outer(place, place)) / WIDTH)


SETS: dict[str, tuple[MakeSet, tuple[float, ...]]] = {
    "nominal": (lambda radius, n_states: Exact(), (0.0,)),  # noqa: ARG005
    "L1": (lambda radius, n_states: L1Ball(radius), (0.2, 0.6)),  # noqa: ARG005
    "weighted L1": (_weighted, (0.2, 0.6)),
    "L2": (lambda radius, n_states: L2Ball(radius), (0.1, 0.3)),  # noqa: ARG005
    "L-infinity": (lambda radius, n_states: LInfBall(radius), (0.07, 0.2)),  # noqa: ARG005
    "KL": (lambda radius, n_states: KLBall(radius), (0.02, 0.2)),  # noqa: ARG005
    "reverse KL": (lambda radius, n_states: LikelihoodRegion(radius), (0.02, 0.2)),  # noqa: ARG005
    "chi-square": (lambda radius, n_states: Chi2Ball(radius), (0.04, 0.4)),  # noqa: ARG005
    "Wasserstein": (_transport, (0.05, 0.2)),
    "contamination": (lambda radius, n_states: Contamination(radius), (0.1, 0.3)),  # noqa: ARG005
}
"""From a radius and a number of states to a set, and the radii: little, and a lot."""

FORMS = ("jensen", "sharp", "published", "bound", "counted")


@dataclass(frozen=True)
class VarianceCell:
    """One set, one radius, one amount of data; several models.

    Attributes:
      set: key of `SETS`.
      radius: of the set, the same for every pair.
      count: pseudo-observations of each row.
      models: how many random models.
      draws: of each posterior.
      seed: of everything random.
    """

    set: str
    radius: float
    count: int
    models: int = MODELS
    draws: int = DRAWS
    seed: int = SEED

    @property
    def name(self) -> str:
        """E.g. `KL-0.2-50`."""
        return f"{self.set.replace(' ', '_')}-{self.radius:g}-{self.count}"

    @property
    def cost(self) -> float:
        """See `urbe.experiments.base`: seconds, about."""
        return 0.3


class Row(NamedTuple):
    """One pair at the first step.

    Attributes:
      truth: variance of its robust value over the draws.
      jensen, sharp, published, bound, counted: what the equations say of it.
      local: the published local term of the pair.
      limit: the published bound on that, Qmax^2 K / N.
    """

    set: str
    radius: float
    observations: int
    model: int
    pair: int
    truth: float
    jensen: float
    sharp: float
    published: float
    bound: float
    counted: float
    local: float
    limit: float


CELLS = everywhere(
    VarianceCell(name, radius, n) for name, (_, radii) in SETS.items() for radius in radii for n in COUNTS
)


def run(cell: VarianceCell, _: Path) -> list[Row]:
    """All pairs of a cell that lead to more than one state."""
    rows: list[Row] = []
    for k in range(cell.models):
        # models and draws are the same for every set and radius
        mdp = layered_model(stream(cell.seed, NAME, "model", k))
        posterior = Posterior.before(mdp, cell.count * (0.99 * mdp.rows.probability + 0.01 / WIDTH))
        draws = posterior.draws(stream(cell.seed, NAME, "draws", k, cell.count), cell.draws)
        rows += _compared(cell, k, posterior, draws)
    return rows


def _compared(cell: VarianceCell, model: int, posterior: Posterior, draws: FloatArray) -> list[Row]:
    make = SETS[cell.set][0]
    nature, n_states = make(cell.radius, posterior.model.n_states), posterior.model.n_states
    loose = value_variance(posterior, nature, horizon=LAYERS)
    policy = loose.policy
    published = value_variance(posterior, nature, horizon=LAYERS, policy=policy, local=MonteCarlo(draws))
    plans = {
        "jensen": loose,
        "sharp": value_variance(posterior, nature, horizon=LAYERS, policy=policy, sharp=True),
        "published": published,
        "bound": value_variance(posterior, nature, horizon=LAYERS, policy=policy, local=Bound()),
        "counted": value_variance(posterior, nature, horizon=LAYERS, policy=policy, local=Count()),
    }
    pieces = [
        drawn_values(posterior, draws[i : i + COPIES], lambda n: make(cell.radius, n * n_states), policy)
        for i in range(0, len(draws), COPIES)
    ]
    truth = np.var(np.concatenate(pieces), axis=0, ddof=1)
    largest = LAYERS * posterior.model.rows.largest_reward
    limit = largest**2 * posterior.feasible / posterior.total
    return [
        Row(
            set=cell.set,
            radius=cell.radius,
            observations=cell.count,
            model=model,
            pair=int(pair),
            truth=float(truth[pair]),
            **{form: float(plan.variance[0, pair]) for form, plan in plans.items()},
            local=float(published.local[0, pair]),
            limit=float(limit[pair]),
        )
        for pair in np.flatnonzero(posterior.feasible > 1.0)
    ]


def layered_model(rng: np.random.Generator) -> MDP:
    """Every state leads to all states of the next layer, with random chances and rewards; the last layer ends."""
    n_states = LAYERS * WIDTH + 1
    transition = np.zeros((n_states, ACTIONS, n_states))
    for state in range(n_states - 1):
        layer = state // WIDTH
        ends = layer == LAYERS - 1
        following = slice(n_states - 1, n_states) if ends else slice((layer + 1) * WIDTH, (layer + 2) * WIDTH)
        transition[state, :, following] = 1.0 if ends else rng.dirichlet(np.ones(WIDTH), size=ACTIONS)
    transition[-1, :, -1] = 1.0
    reward = rng.random((n_states, ACTIONS))
    return MDP.from_dense(transition, reward, discount=DISCOUNT, terminal=[n_states - 1])


def drawn_values(
    posterior: Posterior, draws: FloatArray, make: Callable[[int], RectangularSet], policy: IntArray | FloatArray
) -> FloatArray:
    """`(K, R)` robust values of the pairs at the first step when the centre is a draw.

    Args:
      posterior: of the model.
      draws: `(K, E)` centres; solved at once, as one model of K copies.
      make: from a number of copies to the set on them.
      policy: `(H, S)` actions.
    """
    model, n = posterior.model, len(draws)
    rows, n_states = model.rows, model.n_states
    every = np.arange(n)
    shift = (every * rows.n_entries)[:, None]
    entry_start = np.append((rows.entry_start[:-1] + shift).ravel(), n * rows.n_entries)
    successor = (rows.successor + (every * n_states)[:, None]).ravel()
    stacked = Rows(n * n_states, entry_start, successor, np.ascontiguousarray(draws).ravel(), np.tile(rows.reward, n))
    row_start = np.append((model.row_start[:-1] + (every * model.n_rows)[:, None]).ravel(), n * model.n_rows)
    nature = make(n).bind(MDP(row_start, np.tile(model.action, n), stacked, model.discount))
    v = np.zeros(n * n_states)
    q = np.zeros((n, model.n_rows))
    for actions in policy[::-1]:
        q = nature.values(v).reshape(n, model.n_rows)
        chosen = np.zeros((n, n_states))
        live = np.flatnonzero(~model.terminal)
        chosen[:, live] = q[:, [model.row_of(int(s), int(actions[s])) for s in live]]
        v = chosen.ravel()
    return q


@dataclass(frozen=True, eq=False)
class Comparison:
    """One set and radius; arrays over all its rows.

    Attributes:
      observations, model: `(n,)` of each pair.
      ratio: for each form, `(n,)` what it says over the true variance.
      excess: `(n,)` the published local term over its published bound.
    """

    set: str
    radius: float
    observations: IntArray
    model: IntArray
    ratio: dict[str, FloatArray]
    excess: FloatArray


KNOWN = 1e-12
"""Pairs whose value varies by less, relative to the largest one squared, are left out: nature alone decides there."""


def analyse(rows: Sequence[Row]) -> list[Comparison]:
    """One `Comparison` for each set and radius, in the order in which they first appear."""
    found: dict[tuple[str, float], list[Row]] = {}
    for row in rows:
        found.setdefault((row.set, row.radius), []).append(row)
    out = []
    for (name, radius), group in found.items():
        truth = np.array([row.truth for row in group])
        keep = truth > KNOWN * (LAYERS**2)
        column = {field: np.array([getattr(row, field) for row in group])[keep] for field in Row._fields[2:]}
        out.append(
            Comparison(
                name,
                radius,
                column["observations"],
                column["model"],
                {form: column[form] / truth[keep] for form in FORMS},
                column["local"] / column["limit"],
            )
        )
    return out


def plot(table: Sequence[Comparison]) -> list[Section]:
    """A summary with verdicts, then the figures."""
    from urbe.experiments import variance_plots  # drawing needs matplotlib, computing does not

    return variance_plots.sections(table)
