"""Regret on RiverSwim: against the optimal value, and the chapter."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from urbe.paper.results import Results
from urbe.paper.riverswim_regret import CONTENDERS, RegretCell, Row, figures
from urbe.paper.riverswim_regret.figures import regret
from urbe.paper.riverswim_regret.run import run

SMALL = RegretCell("PSRL", episodes=30, tuning_seeds=2, reported_seeds=3)


@pytest.mark.parametrize("agent", list(CONTENDERS))
def test_every_agent_runs_and_regret_only_grows(agent):
    rows = run(replace(SMALL, agent=agent, episodes=5), Path())
    assert {row.seed for row in rows} == {2, 3, 4}
    found = regret(Results.of(rows, Row))
    assert found.min() >= 0.0
    assert np.diff(found, axis=1).min() >= 0.0


def test_the_same_cell_gives_the_same_rows_and_another_seed_others():
    assert run(SMALL, Path()) == run(SMALL, Path())
    assert run(SMALL, Path()) != run(replace(SMALL, seed=5), Path())


def test_posterior_sampling_stops_losing():
    """The last third of the episodes loses far less than the first; an agent that is stuck loses the same."""
    rows = run(replace(SMALL, episodes=600, reported_seeds=10), Path())
    mean = regret(Results.of(rows, Row)).mean(axis=0)
    third = len(mean) // 3
    assert mean[-1] - mean[-third] < 0.25 * mean[third]


def test_the_chapter_orders_agents_by_their_last_regret():
    rows = [row for agent in ("PSRL", "certainty equivalent") for row in run(replace(SMALL, agent=agent), Path())]
    (section,) = figures.sections(Results.of(rows, Row))
    table = section.exhibits[1].tables[0]
    assert {row[0] for row in table.rows} == {"PSRL", "certainty equivalent"}
    last = [float(row[1].split()[0]) for row in table.rows]
    assert last == sorted(last)
