"""Verdicts on Mars Rover from made-up rows with known outcomes: every rule in every outcome."""

import pytest

from fixtures.mars_rows import results_of, rows, travels, waits
from urbe.paper.mars_rover import GRID, SMALL, WIDE
from urbe.paper.mars_rover.claims import verdicts

NEVER = "Robust DQN never"
STABLE = "The return of robust DQN is stable"
DQN_GOOD, UBE_GOOD = "DQN performs well", "DQN-UBE performs well"
HIGH = "DQN-URBE reaches a high return"
LESS_CONSERVATIVE = "DQN-URBE is less conservative"
SENSITIVE_DQN = "DQN-URBE is less sensitive to increasing failure probabilities than DQN."
SENSITIVE_UBE = "DQN-URBE is less sensitive to increasing failure probabilities than DQN-UBE."
CROSSING = "DQN-UBE returns more than robust DQN"
MOST = "On the nominal model DQN-URBE"
MORE_OFTEN = "At a failure probability of 0.2"
CONTROL = "DQN-URBE returns more on the nominal model than robust DQN with"

PAPER = {"dqn": travels(), "robust-dqn": waits(), "dqn-ube": travels(), "dqn-urbe": travels()}


def outcomes(claim, agents, *, sets=(WIDE,), acting="greedy", **made):
    """Outcome for each set, under one test policy."""
    found = [v for v in verdicts(results_of(rows(agents, sets=sets, **made))) if v.claim.startswith(claim)]
    assert found, claim
    return [v.outcome for v in found if v.reading.endswith(acting)]


def outcome(claim, agents, **made):
    (only,) = outcomes(claim, agents, **made)
    return only


def sometimes(seed):
    """Travels with every second seed."""
    return travels() if seed % 2 else waits()


def thirds(seed):
    """Travels with two of three seeds."""
    return travels() if seed % 3 else waits()


def rarely(seed):
    """Travels with one seed of ten."""
    return travels() if seed % 10 == 0 else waits()


def mostly(seed):
    """Waits with one seed of ten."""
    return waits() if seed % 10 == 0 else travels()


def safer(share=1.0, lost=0.5):
    """Travels, and loses only a part of what failures cost."""
    returns, goal = travels()
    kept = returns[GRID.index(0.005)]
    return kept + lost * (returns - kept), share * goal


def test_robust_agents_that_never_arrive():
    assert outcome(NEVER, {"robust-dqn": waits()}) == "holds"
    assert outcome(NEVER, {"robust-dqn": travels()}) == "does not hold"
    assert outcome(NEVER, {"robust-dqn": rarely}) == "undecided"


def test_robust_agents_whose_return_is_stable():
    assert outcome(STABLE, {"robust-dqn": waits()}) == "holds"
    assert outcome(STABLE, {"robust-dqn": travels()}) == "does not hold"
    assert outcome(STABLE, {"robust-dqn": rarely}) == "undecided"


@pytest.mark.parametrize(("claim", "agent"), [(DQN_GOOD, "dqn"), (UBE_GOOD, "dqn-ube")])
def test_good_is_within_five_percent_of_the_exact_optimum(claim, agent):
    def off(share):
        returns, goal = travels()
        return returns - (1.0 - share) * returns[GRID.index(0.005)], goal

    assert outcome(claim, {agent: off(1.0)}) == "holds"
    assert outcome(claim, {agent: off(0.96)}) == "holds"
    assert outcome(claim, {agent: off(0.94)}) == "does not hold"
    assert outcome(claim, {agent: mostly}) == "undecided"


def test_high_is_beyond_the_middle_between_waiting_and_the_optimum():
    assert outcome(HIGH, {"dqn-urbe": travels(share=0.55)}) == "holds"
    assert outcome(HIGH, {"dqn-urbe": travels(share=0.45)}) == "does not hold"
    assert outcome(HIGH, {"dqn-urbe": sometimes}) == "undecided"


def test_less_conservative_is_a_paired_difference():
    assert outcome(LESS_CONSERVATIVE, PAPER) == "holds"
    assert outcome(LESS_CONSERVATIVE, PAPER | {"robust-dqn": travels(), "dqn-urbe": waits()}) == "does not hold"
    assert outcome(LESS_CONSERVATIVE, PAPER | {"dqn-urbe": waits()}, noise=0.0) == "does not hold"  # nor is a tie
    assert outcome(LESS_CONSERVATIVE, PAPER | {"dqn-urbe": mostly, "robust-dqn": mostly}) == "undecided"

    def shared(gain):  # seeds differ by far more than agents, but pairs do not
        return lambda seed: (travels()[0] - 0.3 * (seed % 3) + gain, travels()[1])

    assert outcome(LESS_CONSERVATIVE, {"robust-dqn": shared(0.0), "dqn-urbe": shared(0.01)}) == "holds"


@pytest.mark.parametrize(("claim", "other"), [(SENSITIVE_DQN, "dqn"), (SENSITIVE_UBE, "dqn-ube")])
def test_sensitivity_is_asked_only_of_agents_that_travel(claim, other):
    assert outcome(claim, PAPER | {"dqn-urbe": safer()}) == "holds"
    assert outcome(claim, PAPER | {other: safer()}) == "does not hold"
    assert outcome(claim, PAPER) == "undecided"
    assert outcome(claim, PAPER | {"dqn-urbe": waits()}) == "not testable"
    assert outcome(claim, PAPER | {"dqn-urbe": sometimes}) == "undecided"  # whether it travels is


def test_curves_cross_when_both_sides_say_so():
    assert outcome(CROSSING, PAPER) == "holds"
    assert outcome(CROSSING, PAPER | {"dqn-ube": safer()}) == "does not hold"  # above on both sides
    assert outcome(CROSSING, PAPER | {"dqn-ube": (waits()[0] - 0.1, waits()[1])}) == "does not hold"  # below on both
    assert outcome(CROSSING, PAPER | {"robust-dqn": travels()}) == "undecided"
    assert outcome(CROSSING, PAPER | {"dqn-ube": sometimes}) == "undecided"


def test_most_episodes_are_more_than_half():
    assert outcome(MOST, {"dqn-urbe": travels(share=0.6)}) == "holds"
    assert outcome(MOST, {"dqn-urbe": travels(share=0.4)}) == "does not hold"
    assert outcome(MOST, {"dqn-urbe": sometimes}) == "undecided"


def test_more_often_is_a_difference_of_probabilities():
    assert outcome(MORE_OFTEN, PAPER | {"dqn-ube": travels(share=0.5)}) == "holds"
    assert outcome(MORE_OFTEN, PAPER | {"dqn-urbe": waits()}) == "does not hold"
    assert outcome(MORE_OFTEN, PAPER) == "does not hold"  # both are as good as any policy can be
    assert outcome(MORE_OFTEN, PAPER | {"dqn-ube": sometimes, "dqn-urbe": thirds}) == "undecided"


def test_the_control_decides_whether_any_noise_would_do():
    control = {"dqn-urbe": travels(), "robust-dqn-epsilon": travels()}
    assert outcome(CONTROL, control, acting="noisy") == "undecided"
    assert outcome(CONTROL, control | {"robust-dqn-epsilon": waits()}, acting="noisy") == "holds"
    assert outcome(CONTROL, control | {"dqn-urbe": waits()}, acting="noisy") == "does not hold"
    apart = {("robust-dqn-epsilon", "greedy"): waits(), ("robust-dqn-epsilon", "epsilon"): travels()}
    assert outcome(CONTROL, {"dqn-urbe": travels()} | apart, acting="noisy") == "undecided"  # random actions count


def test_test_policies_are_distinguished():
    agents = {("dqn-urbe", "greedy"): waits(), ("dqn-urbe", "noisy"): travels(), "robust-dqn": waits()}
    assert outcome(HIGH, agents, acting="greedy") == "does not hold"
    assert outcome(HIGH, agents, acting="noisy") == "holds"
    assert outcome(LESS_CONSERVATIVE, agents, acting="noisy") == "holds"  # robust DQN acts greedily there


def test_sets_are_readings_of_one_claim():
    assert outcomes(NEVER, {"robust-dqn": waits()}, sets=(WIDE, SMALL)) == ["holds", "holds"]
    found = verdicts(results_of(rows(PAPER, worlds=("harsh", "mild"))))
    for claim in {(v.source, v.claim) for v in found}:
        readings = [v.reading for v in found if (v.source, v.claim) == claim]
        assert len(set(readings)) == len(readings), claim
    assert {v.source for v in found} == {"Fig. 3", "Fig. 4"}


def test_one_seed_decides_nothing():
    assert outcome(LESS_CONSERVATIVE, PAPER, seeds=[100]) == "not testable"


def test_pairs_are_made_of_common_seeds():
    made = rows({"dqn-urbe": travels()}, seeds=(100, 101, 103), sets=(WIDE,))
    made += rows({"robust-dqn": waits()}, seeds=(101, 102, 103), sets=(WIDE,))
    found = [v for v in verdicts(results_of(made)) if v.claim.startswith(LESS_CONSERVATIVE)]
    assert all("2 seeds" in v.evidence for v in found)


def test_what_was_not_run_is_not_judged():
    found = verdicts(results_of(rows({"dqn": travels()})))
    assert {v.claim for v in found} == {"DQN performs well on the nominal model."}


def test_rows_without_the_optimum_are_refused():
    made = [row for row in rows({"dqn": travels()}) if row.agent != "optimum"]
    with pytest.raises(ValueError, match="nothing on the optimum of the world 'harsh'"):
        verdicts(results_of(made))
