"""Adaptation: cells of exact agents against exact performance, verdicts and figures from made-up rows."""

from pathlib import Path

import numpy as np
import pytest

from urbe.paper.adaptation import (
    AGENTS,
    BELIEF,
    CAR,
    CHAPTER,
    DRAWN,
    GAIN,
    LEARNING,
    LENGTH,
    NOMINAL,
    ORACLE,
    PENDULUM,
    PLANNED,
    QUICK_WORLDS,
    RANDOMISED,
    ROBUST,
    ROVER,
    STATES,
    THOMPSON,
    URBE,
    AdaptationCell,
    Row,
    agents,
    claims,
    domains,
    figures,
    results,
    tuning,
    worlds,
)
from urbe.paper.adaptation.journeys import Journeys
from urbe.paper.adaptation.members import MEMBERS
from urbe.paper.adaptation.run import run
from urbe.paper.choice import Selection
from urbe.paper.results import Results


def of_rows(rows, **wanted):
    return {row.world: row.value for row in rows if all(getattr(row, name) == is_ for name, is_ in wanted.items())}


@pytest.fixture(scope="module")
def planned():
    """Of planned agents in the worlds of the quick scale."""
    return {agent: run(AdaptationCell(ROVER, agent, 2, brief=True), Path()) for agent in (ORACLE, NOMINAL, ROBUST)}


def test_the_oracle_is_exact_and_nobody_beats_it_where_nothing_changes(planned):
    """Numbers computed independently: 0.831 at 0.005, 0.435 at 0.02, waiting above 0.054."""
    oracle = of_rows(planned[ORACLE], metric="return")
    assert oracle["stationary 0.005"] == pytest.approx(0.831, abs=5e-4)
    assert oracle["stationary 0.3"] == pytest.approx(-0.2, abs=1e-6)
    assert oracle["schedule"] == pytest.approx((2 * 0.831 + 0.6875 - 0.4) / 5, abs=2e-3)
    np.testing.assert_allclose(Journeys().best(np.array([0.02, 0.08, 0.9])), [0.435, -0.2, -0.2], atol=5e-4)


def test_the_robust_policy_waits_and_the_nominal_one_travels(planned):
    waits = of_rows(planned[ROBUST], metric="return")
    assert np.allclose(list(waits.values()), -0.2, atol=1e-5)
    travels = of_rows(planned[NOMINAL], metric="return")
    assert travels["stationary 0.3"] == pytest.approx(-1.0, abs=0.02)
    assert travels.keys() == waits.keys() == set(QUICK_WORLDS) & set(domains.rover().worlds)
    assert travels["stationary 0.005"] > 0.5


def test_agents_that_learn_run_and_report_one_life(monkeypatch):
    monkeypatch.setattr(agents, "STEPS", {GAIN: 4_096})
    monkeypatch.setattr(domains, "SHORT", 2)
    rows = run(AdaptationCell(GAIN, BELIEF, 2, brief=True), Path())
    assert {row.world for row in rows} == set(domains.gain().worlds) & set(QUICK_WORLDS)
    belief = [row for row in rows if row.metric == "belief"]
    by_episode = {}
    for row in belief:
        by_episode.setdefault(row.at, []).append(row.value)
    assert len(by_episode) == domains.gain().worlds["schedule"].episodes
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
            for world in claims.BALANCED:
                rows += [Row(GAIN, BELIEF, world, seed, metric, at, -1, 200.0 - 0.01 * seed) for at in range(3)]
        rows += [Row(GAIN, BELIEF, world, seed, "return", -1, -1, 200.0) for world in claims.BALANCED]
    return Results.of(rows, Row)


def test_verdicts_follow_the_numbers():
    good = {(verdict.claim, verdict.reading): verdict.outcome for verdict in claims.verdicts(by_hand(belief=0.34))}
    bad = {(verdict.claim, verdict.reading): verdict.outcome for verdict in claims.verdicts(by_hand(belief=0.0))}
    kept = "The belief agent keeps the required share of the oracle's advantage over waiting."
    assert good[kept, "schedule, 82\xa0%"] == "holds"
    assert good["Every training seed's share is within 10\xa0% of the median.", "schedule"] == "holds"
    assert bad[kept, "schedule, 82\xa0%"] == "does not hold"
    balances = "The belief agent balances the pole with every gain, in every phase."
    assert good[balances, "outside the set, 190"] == "holds"


def test_the_claims_of_the_paper_are_restated_for_every_domain_there_is():
    """An agent that is the oracle by the end of every phase, and one that never is."""

    def rows(late):
        found = []
        for agent, early, last in ((ORACLE, 0.8, 0.8), (NOMINAL, 0.0, 0.1), (ROBUST, -0.2, -0.2), (BELIEF, 0.5, late)):
            for seed in range(3 if agent == BELIEF else 1):
                off = 0.001 * seed
                found += [Row(ROVER, agent, "schedule", seed, "early", at, -1, early + off) for at in range(3)]
                found += [Row(ROVER, agent, "schedule", seed, "late", at, -1, last + off) for at in range(3)]
                for world in ("schedule", "stationary 0.005", "stationary 0.3"):
                    found.append(Row(ROVER, agent, world, seed, "return", -1, -1, last + off))
        return Results.of(found, Row)

    good, bad = ({each.claim: each.outcome for each in claims.verdicts(rows(late))} for late in (0.79, 0.3))
    assert good["The belief agent recovers faster after a change than nominal and robust agents."] == "holds"
    assert good["The belief agent reaches the highest return again in every phase."] == "holds"
    assert bad["The belief agent reaches the highest return again in every phase."] == "does not hold"
    assert good["The belief agent is less conservative than the robust agent."] == "holds"
    assert good["With nominal parameters the belief agent is within 3\xa0% of nominal DQN."] == "holds"


def test_agents_that_keep_on_learning_have_claims_of_their_own_and_no_regrets():
    def rows(learning):
        found = []
        for agent, late in ((ORACLE, 0.8), (NOMINAL, 0.1), (ROBUST, -0.2), (BELIEF, 0.7), (LEARNING, learning)):
            for seed in range(3 if agent in (BELIEF, LEARNING) else 1):
                for metric in ("early", "late", "return"):
                    found += [
                        Row(ROVER, agent, "schedule", seed, metric, at, -1, late - 0.001 * seed)
                        for at in ((-1,) if metric == "return" else range(3))
                    ]
                if agent != LEARNING:
                    found.append(Row(ROVER, agent, "stationary 0.3", seed, "return", -1, -1, -0.2))
        return Results.of(found, Row)

    outcomes = [{each.claim: each.outcome for each in claims.verdicts(rows(late))} for late in (0.1, 0.79)]
    faster = "The belief agent recovers faster than a DQN that keeps on learning."
    again = "A DQN that keeps on learning reaches the highest return again in every phase."
    assert [found[faster] for found in outcomes] == ["holds", "does not hold"]
    assert [found[again] for found in outcomes] == ["does not hold", "holds"]
    assert LEARNING not in results.regrets(rows(0.1))
    assert figures.sections(rows(0.1))[1].tables[0].head[-1] == LEARNING


def test_regrets_lengths_and_nominal_returns_are_judged_on_every_domain_there_is():
    """The belief agent is 3 below the oracle; where all agents earn the same, there is no unit of regret."""

    def rows(domain, randomised):
        found = []
        earned = {ORACLE: 100.0, NOMINAL: 97.2, ROBUST: 40.0, RANDOMISED: randomised, BELIEF: 97.0}
        for agent, value in earned.items():
            for seed in range(1 if agent in PLANNED[domain] else 3):
                for world in ("schedule", "drift", "nominal"):
                    off = 0.01 * seed * (agent == BELIEF)
                    found.append(Row(domain, agent, world, seed, "return", -1, -1, value - off))
                found.append(Row(domain, agent, "jumps", seed, "return", -1, -1, 100.0 * (agent == ORACLE)))
        return found

    found = claims.verdicts(Results.of([*rows(LENGTH, 97.5), *rows(PENDULUM, 99.0), *rows(CAR, 80.0)], Row))
    outcomes = {(each.claim, each.reading): each.outcome for each in found}
    one_policy = "If one policy may suit all members, the belief agent earns no less than domain randomisation."
    assert {key[1]: outcome for key, outcome in outcomes.items() if key[0] == one_policy} == {
        f"{domain}, {world}": outcome
        for domain, outcome in ((LENGTH, "holds"), (PENDULUM, "does not hold"))
        for world in ("schedule", "drift")
    }
    for claim, on_car in (
        ("With nominal parameters the belief agent is within 3\xa0% of nominal DQN.", "holds"),
        ("Every other agent has a larger mean regret.", "does not hold"),
    ):
        readings = {key[1]: outcome for key, outcome in outcomes.items() if key[0] == claim}
        assert {reading.partition(",")[0] for reading in readings} == {LENGTH, PENDULUM, CAR}
        assert next(outcome for reading, outcome in readings.items() if reading.startswith(CAR)) == on_car
    assert any(reading == f"{CAR}, 3 environments" for _, reading in outcomes)


def test_worlds_that_were_not_run_are_not_judged():
    part = by_hand().where(world=("schedule", "stationary 0.005", "stationary 0.3"))
    readings = {verdict.reading for verdict in claims.verdicts(part)}
    assert {"schedule, 82\xa0%", "stationary 0.005, 97\xa0%"} <= readings
    assert "slow schedule, 88\xa0%" not in readings


def test_the_quick_scale_has_worlds_of_both_domains():
    made = {name: make() for name, make in domains.DOMAINS.items()}
    assert made.keys() == AGENTS.keys() == MEMBERS.keys()
    for name, domain in made.items():
        assert set(domain.worlds) & set(QUICK_WORLDS)
        assert set(DRAWN) <= set(domain.worlds)
        assert next(iter(domain.worlds)) == "schedule"
        assert len(domain.members) == len(MEMBERS[name])
        held = getattr(domain.members.params, domain.parameter[0])
        np.testing.assert_allclose(np.asarray(held) / domain.unit, MEMBERS[name], rtol=1e-6)
    assert set(QUICK_WORLDS) <= {world for domain in made.values() for world in domain.worlds}


def test_drawn_schedules_are_none_of_those_that_settings_were_chosen_on():
    """Their own stream, other ranges for every prior, and no name that tuning has."""
    rover = domains.rover().worlds
    drawn = [rover[name].schedule for name in DRAWN]
    laws = {(each.distributions["failure"].low, each.distributions["failure"].high, each.hazard) for each in drawn}
    assert len(laws) == len(DRAWN)
    for schedule in drawn:
        law = schedule.distributions["failure"]
        assert 0.001 <= law.low <= law.high / 2.0 <= 0.45
        assert 0.004 <= schedule.hazard <= 0.4
    assert not set(rover) & set(tuning.SCHEDULES)
    assert worlds.PRIORS_SEED not in (tuning.SEED, tuning.SEED + 1)


def test_the_seven_states_are_one_decision_per_episode(monkeypatch):
    """What planned agents earn is what the table's probabilities say, and the learner in the tables comes close."""
    monkeypatch.setattr("urbe.paper.adaptation.run.REPEATS", 1)
    cells = {agent: run(AdaptationCell(STATES, agent, 8, brief=True), Path()) for agent in PLANNED[STATES]}
    earned = {agent: of_rows(rows, metric="return") for agent, rows in cells.items()}
    assert earned[ORACLE]["schedule"] == pytest.approx((0.14 + 0.8 + 0.14 + 0.9) / 4)
    assert earned[ROBUST]["schedule"] == pytest.approx(0.14)
    assert earned[NOMINAL]["schedule"] == pytest.approx((0.001 + 0.8 + 0.1 + 0.9) / 4, abs=0.03)
    assert earned[ORACLE]["adverse schedule"] == pytest.approx((3 * 0.14 + 0.8 + 3 * 0.14 + 0.9) / 8)
    assert earned[THOMPSON]["schedule"] > earned[RANDOMISED]["schedule"]
    assert earned[BELIEF]["schedule"] > earned[URBE]["schedule"] - 0.01 > earned[RANDOMISED]["schedule"]


def test_regrets_of_seeds_are_those_of_their_means_where_there_is_one_seed():
    part = by_hand(seeds=1).where(domain=ROVER)
    means, seeds = results.regrets(part), results.regrets_of_seeds(part)
    assert means.keys() == seeds.keys()
    for agent, shares in means.items():
        np.testing.assert_allclose(seeds[agent], shares[None])
    many = results.regrets_of_seeds(by_hand(seeds=3).where(domain=ROVER))
    assert many[BELIEF].shape == (3, 4)
    np.testing.assert_allclose(many[BELIEF].mean(axis=0), results.regrets(by_hand(seeds=3).where(domain=ROVER))[BELIEF])
    width = 0.301 + 0.2  # from waiting to the mean of the belief agent
    np.testing.assert_allclose(many[BELIEF][:, 0], (0.39 - np.array([0.3, 0.301, 0.302])) / width)


def test_the_chapter_draws_what_there_is():
    sections = figures.sections(by_hand())
    assert sections[0].title == "Verdicts"
    tables = [table for section in sections for table in section.tables]
    assert any("Relative regret" in table.title for table in tables)


def test_cells_and_choices():
    quick = CHAPTER.cells["quick"]
    assert {cell.seed for cell in quick if cell.agent == BELIEF} == set(range(5))
    assert len({cell.name for cell in CHAPTER.cells["paper"]}) == len(CHAPTER.cells["paper"])
    chosen = CHAPTER.chosen("quick", Selection(agents=(BELIEF,), seeds=3))
    assert {cell.agent for cell in chosen} == {BELIEF, ORACLE, NOMINAL, ROBUST}
    assert all(agent in CHAPTER.agents for known in AGENTS.values() for agent in known)


def test_recovery_is_counted_from_each_change_to_the_level_of_the_oracle():
    rows = []
    for agent, level, slow in ((ORACLE, 1.0, 0), (BELIEF, 1.0, 2), (ROBUST, 0.0, 0)):
        for seed in range(1 if agent == ORACLE else 2):
            curve = np.full(30, level)
            for change in (10, 20):
                curve[change : change + slow + seed] = 0.0
            rows += [Row(GAIN, agent, "schedule", seed, "curve", at, -1, x) for at, x in enumerate(curve)]
            rows += [Row(GAIN, agent, "schedule", seed, "late", at, -1, level) for at in range(3)]
    found = results.recovered_at(Results.of(rows, Row))
    np.testing.assert_array_equal(found[ORACLE], [[0.0], [0.0]])
    np.testing.assert_array_equal(found[BELIEF], [[2.0, 3.0], [2.0, 3.0]])
    np.testing.assert_array_equal(found[ROBUST], [[10.0, 10.0], [10.0, 10.0]])


SLOWER = [pytest.param(agent, marks=pytest.mark.slow) for agent in ("EWoK", "recurrent memory", "soft-robust")]


@pytest.mark.parametrize("agent", ["IWOCS", "adaptive set", *SLOWER])
def test_agents_of_practice_are_made_and_deployed(monkeypatch, agent):
    monkeypatch.setattr(agents, "STEPS", {GAIN: 4_096})
    monkeypatch.setattr(agents, "DQN_STEPS", 300)
    monkeypatch.setattr(agents, "ROUND", 150)
    monkeypatch.setattr(domains, "SHORT", 2)
    rows = run(AdaptationCell(GAIN, agent, 2, brief=True), Path())
    assert {row.world for row in rows} == set(domains.gain().worlds) & set(QUICK_WORLDS)
    assert len([row for row in rows if row.metric == "curve"]) == 8
