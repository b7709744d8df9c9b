"""Safe policies from logged data: what each planner guarantees, what its policy is worth, and how often it is wrong.

A data set is a log of the uniform policy, from the model's start, of a true model that is

    drawn    from the prior (Dirichlet, one on every feasible successor): what the Bayesian guarantee is about
    fixed    the classic model itself, data set after data set: nothing promised by the Bayesian planners

Longer logs of a data set continue the shorter ones. A guarantee fails where, in some state, the policy's value under
the true model, an exact linear solve, is below the guaranteed one. The policy of the mean model is there for
comparison: what it states is its value under the mean model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from urbe.experiments.base import everywhere
from urbe.experiments.models import MODELS
from urbe.mdp.evaluate import policy_value
from urbe.mdp.model import MDP
from urbe.planners import BCI, RSVF, HoeffdingSets, PlanningMethod, VaRBellman, plan
from urbe.posteriors.dirichlet import Posterior
from urbe.rng import stream
from urbe.solvers import solve
from urbe.statistics.estimates import Band, Interval, frequency_interval, mean_band, paired_difference
from urbe.types import FloatArray, IntArray

if TYPE_CHECKING:
    from urbe.report.content import Section

NAME = "safe_policies"
TITLE = "Safe policies from logged data"

METHODS: dict[str, PlanningMethod] = {
    "VaR": VaRBellman(),
    "RSVF": RSVF(),
    "BCI": BCI(),
    "Hoeffding": HoeffdingSets(),
}
NOMINAL = "nominal"
WORLDS = ("riverswim", "machine_replacement")
TRUTHS = ("drawn", "fixed")
TRANSITIONS = (100, 1000, 10_000)
DATA_SETS = {"drawn": 40, "fixed": 16}
CONFIDENCE = 0.9
DRAWS = 400
SEED = 2019

ROUNDING = 1e-9
"""Below a guarantee by less than this is not below it."""


@dataclass(frozen=True)
class SafeCell:
    """All planners on the logs of one length.

    Attributes:
      model: key of `MODELS`.
      truth: "drawn" or "fixed".
      transitions: in each log.
      data_sets: how many logs.
      seed: of everything random.
    """

    model: str
    truth: str
    transitions: int
    data_sets: int
    seed: int = SEED

    @property
    def name(self) -> str:
        """E.g. `riverswim-drawn-1000`."""
        return f"{self.model}-{self.truth}-{self.transitions}"

    @property
    def cost(self) -> float:
        """See `urbe.experiments.base`: seconds, about."""
        return 2.5


class Row(NamedTuple):
    """One planner on one data set.

    Attributes:
      guaranteed: value from the start, as guaranteed (of the nominal policy: as the mean model has it).
      value: from the start, under the true model.
      optimum: the best value from the start under the true model.
      failed: 1 when the true value is below the guaranteed one in some state.
    """

    model: str
    truth: str
    transitions: int
    data_set: int
    method: str
    guaranteed: float
    value: float
    optimum: float
    failed: int


CELLS = everywhere(
    SafeCell(model, truth, n, DATA_SETS[truth]) for model in WORLDS for truth in TRUTHS for n in TRANSITIONS
)


def run(cell: SafeCell, _: Path) -> list[Row]:
    """Plans from every data set of a cell."""
    model = MODELS[cell.model].build()
    prior = Posterior.before(model)
    rows: list[Row] = []
    for k in range(cell.data_sets):
        names = (NAME, cell.model, cell.truth, k)
        truth = model if cell.truth == "fixed" else prior.sample(stream(cell.seed, *names, "truth"))
        log = logged(truth, cell.transitions, stream(cell.seed, *names, "log"))
        rows += _planned(cell, k, truth, prior.with_counts(log))
    return rows


def _planned(cell: SafeCell, data_set: int, truth: MDP, posterior: Posterior) -> list[Row]:
    best = solve(truth).value
    stated: dict[str, tuple[IntArray, FloatArray]] = {}
    for name, method in METHODS.items():
        rng = stream(cell.seed, NAME, cell.model, cell.truth, data_set, cell.transitions, "plan")
        found = plan(posterior, confidence=CONFIDENCE, method=method, rng=rng, draws=DRAWS, held_out=0)
        stated[name] = found.policy, found.guaranteed
        stated[NOMINAL] = found.nominal_policy, found.nominal_value
    rows = []
    for name, (policy, claimed) in stated.items():
        value = policy_value(truth, policy)
        failed = int((value < claimed - ROUNDING * np.abs(value).max()).any())
        promised, worth, most = (float(found.start @ x) for x in (claimed, value, best))
        rows.append(Row(cell.model, cell.truth, cell.transitions, data_set, name, promised, worth, most, failed))
    return rows


def logged(truth: MDP, transitions: int, rng: np.random.Generator) -> FloatArray:
    """`(E,)` how often each successor was seen in a log of the uniform policy.

    Args:
      truth: a model with an initial distribution and without terminal states.
      transitions: length of the log; a longer one from the same generator continues it.
      rng: generator used for nothing else.
    """
    if truth.initial is None or truth.terminal.any():
        raise ValueError(f"{truth} cannot be logged: expected an initial distribution and no terminal state.")
    first = int(rng.choice(truth.n_states, p=truth.initial))
    cumulative = np.cumsum(truth.rows.probability)
    counts = np.zeros(truth.rows.n_entries)
    _walk(
        first, truth.row_start, truth.rows.entry_start, truth.rows.successor, cumulative, rng.random((transitions, 2)),
        counts,
    )  # fmt: skip
    return counts


@njit(cache=True, nogil=True)
def _walk(state, row_start, entry_start, successor, cumulative, uniform, counts):  # type: ignore[no-untyped-def]
    """Counts the entries met; `cumulative` are the probabilities summed over all rows."""
    for t in range(len(uniform)):
        n_actions = row_start[state + 1] - row_start[state]
        row = row_start[state] + min(np.int64(uniform[t, 0] * n_actions), n_actions - 1)
        a, b = entry_start[row], entry_start[row + 1]
        before = cumulative[a - 1] if a > 0 else 0.0
        wanted = before + uniform[t, 1] * (cumulative[b - 1] - before)
        entry = min(a + np.searchsorted(cumulative[a:b], wanted, side="right"), b - 1)
        counts[entry] += 1.0
        state = successor[entry]


@dataclass(frozen=True, eq=False)
class Outcome:
    """All planners on one model and kind of truth, over n lengths of the log.

    Attributes:
      transitions: `(n,)` increasing.
      data_sets: in each of them.
      guaranteed, value: means over the data sets with 95 % intervals, for each method.
      optimum: the same of the best policy for each truth.
      failures: frequency for each length, with Wilson's 95 % interval, for each method.
      ahead: for neighbours in the order of `METHODS`, the mean difference of their guaranteed values at each length.
    """

    model: str
    truth: str
    transitions: IntArray
    data_sets: int
    guaranteed: dict[str, Band]
    value: dict[str, Band]
    optimum: Band
    failures: dict[str, list[Interval]]
    ahead: dict[tuple[str, str], list[Interval]]


def analyse(rows: Sequence[Row]) -> list[Outcome]:
    """One `Outcome` for each model and kind of truth, in the order in which they first appear."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.model, row.truth), []).append(row)
    return [_outcome(model, truth, each) for (model, truth), each in found.items()]


def _outcome(model: str, truth: str, rows: Sequence[Row]) -> Outcome:
    lengths = sorted({row.transitions for row in rows})
    sets = sorted({row.data_set for row in rows})
    names = [*METHODS, NOMINAL]
    place = {(row.method, row.data_set, row.transitions): row for row in rows}

    def table(name: str, field: str) -> FloatArray:
        """`(data sets, lengths)`."""
        return np.array([[getattr(place[name, k, n], field) for n in lengths] for k in sets], dtype=np.float64)

    guaranteed = {name: table(name, "guaranteed") for name in names}
    failed = {name: table(name, "failed").sum(axis=0) for name in names}
    order = list(METHODS)
    return Outcome(
        model=model,
        truth=truth,
        transitions=np.array(lengths),
        data_sets=len(sets),
        guaranteed={name: mean_band(x) for name, x in guaranteed.items()},
        value={name: mean_band(table(name, "value")) for name in names},
        optimum=mean_band(table(NOMINAL, "optimum")),
        failures={name: [frequency_interval(int(k), len(sets)) for k in x] for name, x in failed.items()},
        ahead={
            (first, second): [
                paired_difference(guaranteed[first][:, i], guaranteed[second][:, i]) for i in range(len(lengths))
            ]
            for first, second in pairwise(order)
        },
    )


def plot(table: Sequence[Outcome]) -> list[Section]:
    """A summary with verdicts, then for each model its values and its failures."""
    from urbe.experiments import safe_plots  # drawing needs matplotlib, planning does not

    return safe_plots.sections(table)
