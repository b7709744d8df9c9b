"""Runs one cell of the study of safe policies: plans from logs and compares with the true model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numba import njit

from urbe.mdp.evaluate import policy_value, start_weights
from urbe.mdp.model import MDP
from urbe.paper.models import MODELS
from urbe.paper.safe_policies import (
    COMPARED,
    CONFIDENCE,
    DRAWS,
    FROM_START,
    METHODS,
    NAME,
    NOMINAL,
    OVERCONFIDENT,
    START_TRANSITIONS,
    Row,
    SafeCell,
    StartCell,
)
from urbe.planners import plan
from urbe.posteriors.dirichlet import Posterior
from urbe.rng import stream
from urbe.solvers import solve
from urbe.types import FloatArray, IntArray

ROUNDING = 1e-9
"""Tolerance for values below a guarantee."""


def run(cell: SafeCell | StartCell, _: Path) -> list[Row]:
    """Computes plans from every data set of a cell."""
    model = MODELS[cell.model].build()
    if isinstance(cell, StartCell):
        model = replace(model, initial=start_weights(model))
        return [row for k in range(cell.first, cell.first + cell.data_sets) for row in _from_start(cell, k, model)]
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
        stated[name] = found.policy, found.worst_case
        stated[NOMINAL] = found.nominal_policy, found.nominal_value
    rows = []
    for name, (policy, claimed) in stated.items():
        value = policy_value(truth, policy)
        failed = int((value < claimed - ROUNDING * np.abs(value).max()).any())
        promised, worth, most = (float(found.start @ x) for x in (claimed, value, best))
        rows.append(Row(cell.model, cell.truth, cell.transitions, data_set, name, promised, worth, most, failed))
    return rows


def _from_start(cell: StartCell, data_set: int, model: MDP) -> list[Row]:
    """Computes what each planner guarantees from the start, with the same random numbers."""
    names = (NAME, "start", cell.model, cell.truth, data_set)
    truth = model if cell.truth == "fixed" else Posterior.before(model).sample(stream(cell.seed, *names, "truth"))
    log = logged(truth, START_TRANSITIONS, stream(cell.seed, *names, "log"))
    prior = Posterior.before(model, OVERCONFIDENT) if cell.truth == "overconfident" else Posterior.before(model)
    best = float(start_weights(model) @ solve(truth).value)
    rows = []
    for name, method in COMPARED.items():
        rng = stream(cell.seed, *names, "plan")
        found = plan(prior.with_counts(log), confidence=CONFIDENCE, method=method, rng=rng, held_out=0)
        value, promised = float(found.start @ policy_value(truth, found.policy)), found.guaranteed_at_start
        failed = int(value < promised - ROUNDING * abs(value))
        where = (cell.model, cell.truth, START_TRANSITIONS, data_set, FROM_START.format(name))
        rows.append(Row(*where, promised, value, best, failed))
    return rows


def logged(truth: MDP, transitions: int, rng: np.random.Generator) -> FloatArray:
    """`(E,)` counts of each successor in a log of the uniform policy.

    Args:
      truth: a model with an initial distribution and without terminal states.
      transitions: length of the log; a longer one from the same generator continues it.
      rng: generator used only here.
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
def _walk(state, row_start, entry_start, successor, cumulative, uniform, counts):
    """Counts the visited entries; `cumulative` are the probabilities summed over all rows."""
    for t in range(len(uniform)):
        n_actions = row_start[state + 1] - row_start[state]
        row = row_start[state] + min(np.int64(uniform[t, 0] * n_actions), n_actions - 1)
        a, b = entry_start[row], entry_start[row + 1]
        before = cumulative[a - 1] if a > 0 else 0.0
        wanted = before + uniform[t, 1] * (cumulative[b - 1] - before)
        entry = min(a + np.searchsorted(cumulative[a:b], wanted, side="right"), b - 1)
        counts[entry] += 1.0
        state = successor[entry]
