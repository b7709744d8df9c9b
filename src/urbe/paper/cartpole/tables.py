"""Tables of the CartPole comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from urbe.paper.cartpole import NOMINAL
from urbe.paper.cartpole.claims import LONGER
from urbe.paper.cartpole.results import agents_of, by_seed, changed_agents, level, places, scores, ways
from urbe.paper.results import Results
from urbe.report.content import Table
from urbe.report.numbers import interval_column
from urbe.rng import stream
from urbe.statistics.aggregates import iqm
from urbe.statistics.bootstrap import stratified_bootstrap
from urbe.statistics.estimates import ConfidenceInterval, mean_interval
from urbe.types import FloatArray

SEED = 509002
"""Seed of the bootstrap for interquartile means."""

RESAMPLES = 2_000
"""Resamples of the bootstrap; the error of interval ends is 3 % of the half width."""


def mean_of(samples: FloatArray) -> ConfidenceInterval | None:
    """The mean of the finite samples with Student's interval; without width for a single seed."""
    here = samples[np.isfinite(samples)]
    if len(here) < 2:
        return ConfidenceInterval(float(here[0]), float(here[0]), float(here[0])) if len(here) else None
    return mean_interval(here)


def iqm_of(samples: FloatArray) -> ConfidenceInterval | None:
    """The interquartile mean of the finite samples, with a bootstrap interval."""
    here = samples[np.isfinite(samples)]
    if len(here) < 2:
        return mean_of(samples)
    return stratified_bootstrap(iqm, here, stream(SEED, "iqm"), resamples=RESAMPLES)


def table(
    title: str, agents: Sequence[str], columns: Mapping[str, Sequence[ConfidenceInterval | None]], most: int = 1
) -> Table:
    """Makes a row for each agent, with at most this many decimals."""
    cells = [interval_column(column, most=most) for column in columns.values()]
    rows = tuple((agent, *(column[i] for column in cells)) for i, agent in enumerate(agents))
    return Table(title, ("agent", *columns), rows)


def returns_table(here: Results, acting: str) -> Table:
    """Test returns at every length."""
    agents = agents_of(here)
    columns = {
        f"{length:g}": [mean_of(scores(here, a, "return", acting, at=length)) for a in agents]
        for length in places(here, "return")
    }
    return table(f"Mean test return by half length, {acting}, with 95 % intervals over seeds", agents, columns)


def lengths_table(here: Results, acting: str) -> Table:
    """Mean and interquartile mean with the nominal pole and with longer ones."""
    agents = agents_of(here)
    columns: dict[str, list[ConfidenceInterval | None]] = {}
    for where, lengths in (("nominal", (NOMINAL,)), ("longer", LONGER)):
        values = [level(here, a, acting, lengths) for a in agents]
        columns[f"{where}: mean"] = [mean_of(each) for each in values]
        columns[f"{where}: IQM"] = [iqm_of(each) for each in values]
    title = f"Test returns, {acting}: mean and interquartile mean (IQM) over seeds, with 95 % intervals"
    return table(title, agents, columns)


def spans_table(here: Results, acting: str) -> Table:
    """Spans and spreads of the states visited."""
    agents = agents_of(here)
    names = {"span": "span, m deg", "spread-x": "sd of x, m", "spread-theta": "sd of theta, deg"}
    columns = {name: [mean_of(scores(here, a, metric, acting)) for a in agents] for metric, name in names.items()}
    title = f"States visited, {here.one('inputs')} inputs, {acting}: means over seeds, 95 % intervals"
    return table(title, agents, columns, most=2)


def change_table(here: Results, change: float) -> Table:
    """Training returns around a change, and the recovery time."""
    agents = changed_agents(here, change)
    columns = {
        metric: [mean_of(scores(here, a, metric, change=change)) for a in agents]
        for metric in ("before", "early", "late")
    }
    columns["late: IQM"] = [iqm_of(scores(here, a, "late", change=change)) for a in agents]
    means = table(f"Training, {NOMINAL:g} to {change:g}: mean returns over seeds, 95 % intervals", agents, columns)
    recoveries = [_recovery(by_seed(here, a, "recovery", change=change)) for a in agents]
    rows = tuple((*row, text) for row, text in zip(means.rows, recoveries, strict=True))
    return Table(means.title, (*means.head, "steps to 90 %"), rows)


def changed_tests_table(here: Results, change: float) -> Table:
    """Test returns with the new pole, at the end of training with it."""
    agents = changed_agents(here, change)
    columns: dict[str, list[ConfidenceInterval | None]] = {}
    for acting in ways(here):
        values = [scores(here, a, "return", acting, change=change, at=change) for a in agents]
        columns[f"{acting}: mean"] = [mean_of(each) for each in values]
        columns[f"{acting}: IQM"] = [iqm_of(each) for each in values]
    return table(f"Tests with the pole of {change:g}, trained with it last: 95 % intervals", agents, columns)


def _recovery(of_seeds: dict[int, float]) -> str:
    """Formats the median over seeds, and the number of seeds that never recovered."""
    values = np.array(list(of_seeds.values()))
    never = int(np.isinf(values).sum())
    middle = float(np.median(values)) if never * 2 < len(values) else np.inf
    text = f"{middle:,.0f}" if np.isfinite(middle) else "never"
    return text + (f" ({never} of {len(values)} never)" if never else "")
