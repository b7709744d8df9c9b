"""Adaptation: cells of exact agents against exact performance, verdicts and figures from rows made by hand."""

from pathlib import Path

import numpy as np
import pytest

from urbe.paper.adaptation import (
    AGENTS,
    BELIEF,
    CHAPTER,
    GAIN,
    NOMINAL,
    ORACLE,
    QUICK_WORLDS,
    ROBUST,
    ROVER,
    AdaptationCell,
    Row,
    agents,
    figures,
    results,
    worlds,
)
from urbe.paper.adaptation.run import run
from urbe.paper.choice import Selection
from urbe.paper.results import Results


def of_rows(rows, **wanted):
    return {row.world: row.value for row in rows if all(getattr(row, name) == is_ for name, is_ in wanted.items())}


@pytest.fixture(scope="module")
def planned():
    """Of the oracle in all worlds, and of policies that are deployed in those of the quick scale."""
    deployed = {agent: run(AdaptationCell(ROVER, agent, 2, brief=True), Path()) for agent in (NOMINAL, ROBUST)}
    return deployed | {ORACLE: run(AdaptationCell(ROVER, ORACLE, 2), Path())}


def test_the_oracle_is_exact_and_nobody_beats_it_where_nothing_changes(planned):
    """Numbers computed independently: 0.831 at 0.005, 0.435 at 0.02, waiting above 0.054."""
    oracle = of_rows(planned[ORACLE], metric="return")
    assert oracle["stationary 0.005"] == pytest.approx(0.831, abs=5e-4)
    assert oracle["stationary 0.02"] == pytest.approx(0.435, abs=5e-4)
    for world in ("stationary 0.08", "stationary 0.3", "stationary 0.9"):
        assert oracle[world] == pytest.approx(-0.2, abs=1e-6)
    assert oracle["schedule"] == pytest.approx((2 * 0.831 + 0.6875 - 0.4) / 5, abs=2e-3)


def test_the_robust_policy_waits_and_the_nominal_one_travels(planned):
    waits = of_rows(planned[ROBUST], metric="return")
    assert np.allclose(list(waits.values()), -0.2, atol=1e-5)
    travels = of_rows(planned[NOMINAL], metric="return")
    assert travels["stationary 0.3"] == pytest.approx(-1.0, abs=0.02)
    assert travels.keys() == waits.keys() == set(QUICK_WORLDS) & set(worlds.rover().worlds)
    assert travels["stationary 0.005"] > 0.5


def test_agents_that_learn_run_and_report_one_life(monkeypatch):
    monkeypatch.setattr(agents, "STEPS", {ROVER: 4_096, GAIN: 4_096})
    monkeypatch.setattr(worlds, "PHASE", 5)
    rows = run(AdaptationCell(GAIN, BELIEF, 2, brief=True), Path())
    assert {row.world for row in rows} == set(worlds.gain().worlds) & set(QUICK_WORLDS)
    belief = [row for row in rows if row.metric == "belief"]
    by_episode = {}
    for row in belief:
        by_episode.setdefault(row.at, []).append(row.value)
    assert len(by_episode) == worlds.gain().worlds["schedule"].episodes
    assert all(len(shares) == 15 and sum(shares) == pytest.approx(1.0, abs=1e-5) for shares in by_episode.values())


def by_hand(seeds=3, belief=0.3):
    """Rows of a rover world and of a gain world, in which the belief agent does well."""
    rows = []
    for world, oracle in (
        ("schedule", 0.39),
        ("slow schedule", 0.39),
        ("stationary 0.005", 0.83),
        ("stationary 0.3", -0.2),
    ):
        for agent, value in ((ORACLE, oracle), (NOMINAL, -0.5 if world == "stationary 0.3" else 0.05), (ROBUST, -0.2)):
            rows.append(Row(ROVER, agent, world, 0, "return", -1, -1, value))
        for seed in range(seeds):
            value = oracle - 0.02 * (seed + 1) if world != "schedule" else belief + 0.001 * seed
            rows.append(Row(ROVER, BELIEF, world, seed, "return", -1, -1, value))
    for seed in range(seeds):
        for metric in ("phase", "first"):
            for world in results.BALANCED:
                rows += [Row(GAIN, BELIEF, world, seed, metric, at, -1, 200.0 - 0.01 * seed) for at in range(3)]
        rows += [Row(GAIN, BELIEF, world, seed, "return", -1, -1, 200.0) for world in results.BALANCED]
    return Results.of(rows, Row)


def test_verdicts_follow_the_numbers():
    good = {(verdict.claim, verdict.reading): verdict.outcome for verdict in results.verdicts(by_hand(belief=0.34))}
    bad = {(verdict.claim, verdict.reading): verdict.outcome for verdict in results.verdicts(by_hand(belief=0.0))}
    kept = "The belief agent keeps the wanted share of the oracle's advantage over waiting."
    assert good[kept, "schedule, 82%"] == "holds"
    assert bad[kept, "schedule, 82%"] == "does not hold"
    balances = "The belief agent balances the pole with every gain, in every phase."
    assert good[balances, "outside the set, 190"] == "holds"


def test_worlds_that_were_not_run_are_not_judged():
    part = by_hand().where(world=("schedule", "stationary 0.005", "stationary 0.3"))
    claims = {verdict.reading for verdict in results.verdicts(part)}
    assert {"schedule, 82%", "stationary 0.005, 97%"} <= claims
    assert "slow schedule, 88%" not in claims


def test_the_quick_scale_has_worlds_of_both_domains():
    for domain in worlds.DOMAINS.values():
        assert set(domain().worlds) & set(QUICK_WORLDS)
    assert set(QUICK_WORLDS) <= {world for domain in worlds.DOMAINS.values() for world in domain().worlds}


def test_the_chapter_draws_what_there_is():
    sections = figures.sections(by_hand())
    assert sections[0].title == "Verdicts"
    tables = [table for section in sections for table in section.tables]
    assert any("Relative regret" in table.title for table in tables)


def test_cells_and_choices():
    quick = CHAPTER.cells["quick"]
    assert {cell.seed for cell in quick if cell.agent == BELIEF} == {0, 1}
    assert len({cell.name for cell in CHAPTER.cells["paper"]}) == len(CHAPTER.cells["paper"])
    chosen = CHAPTER.chosen("quick", Selection(agents=(BELIEF,), seeds=3))
    assert {cell.agent for cell in chosen} == {BELIEF, ORACLE, NOMINAL, ROBUST}
    assert all(agent in CHAPTER.agents for known in AGENTS.values() for agent in known)
