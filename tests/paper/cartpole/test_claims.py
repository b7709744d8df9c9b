"""Verdicts on CartPole from made-up numbers, each rule in each outcome."""

import numpy as np
import pytest

from urbe.paper.cartpole import LENGTHS, NOMINAL, PAPER, Row
from urbe.paper.cartpole.claims import LONGER, after_change, over_lengths, over_states, verdicts
from urbe.paper.cartpole.results import level, scores, seeds_of
from urbe.paper.results import Results
from urbe.statistics.estimates import paired_difference

SEEDS = tuple(range(101, 109))
LUCK = dict(zip(SEEDS, np.linspace(-3.0, 3.0, len(SEEDS)), strict=True))
"""What a seed brings to all agents: it cancels in differences of pairs."""

CONTROL = "robust-dqn-epsilon"


def own_luck(agent, seed):
    """What a seed brings to one agent, at most a half."""
    return 0.5 * np.sin(1.0 + 7.0 * seed + 3.0 * len(agent))


def rows_of(
    agent, *, nominal=150.0, longer=100.0, noisy=None, span=1.0, seeds=SEEDS, windows=None, shaken=0.0, inputs="raw"
):
    """Rows of one agent: returns with the nominal pole and with longer ones, spans, and windows of changes."""
    made = []
    for seed in seeds:
        luck = LUCK.get(seed, 0.0) + own_luck(agent, seed)

        def row(change, acting, metric, at, value, seed=seed):
            made.append(Row(inputs, agent, seed, change, acting, metric, at, 0.0, value))

        row(0.0, "training", "steps", 0.0, 1000.0)
        for acting, shift in (("greedy", 0.0), ("noisy", noisy)):
            if shift is None:
                continue
            for length in LENGTHS:
                row(0.0, acting, "return", length, (longer if length > NOMINAL else nominal) + shift + luck)
            row(0.0, acting, "span", 0.0, span * np.exp(0.01 * own_luck(agent, seed) + shift / 100.0))
        for change, (before, early, late, after) in (windows or {}).items():
            expected = {"before": before, "early": early + shaken * (-1) ** seed, "late": late, "after": after}
            for metric, value in expected.items():
                row(change, "training", metric, 0.0, value + luck)
    return made


def found(**agents):
    """Of the paper's agents alike, but for what is said of some (with underscores for dashes)."""
    expected = {agent: {} for agent in PAPER} | {name.replace("_", "-"): of for name, of in agents.items()}
    return Results.of([row for agent, of in expected.items() if of is not None for row in rows_of(agent, **of)], Row)


def outcomes(expected):
    return {verdict.claim.split(":")[0].rstrip("."): verdict.outcome for verdict in expected}


CONSERVATIVE = "Robust DQN is over-conservative"
SENSITIVE = "DQN-UBE is the most sensitive"
NOMINAL_BEST = "DQN-URBE earns the most with the nominal pole"
LONGER_BEST = "DQN-URBE earns the most with longer poles"


@pytest.mark.parametrize(("robust", "outcome"), [(120.0, "holds"), (150.0, "undecided"), (180.0, "does not hold")])
def test_robust_dqn_is_conservative_when_dqn_earns_more_with_the_nominal_pole(robust, outcome):
    expected = over_lengths(found(robust_dqn={"nominal": robust}))
    assert outcomes(expected)[CONSERVATIVE] == outcome
    assert {verdict.source for verdict in expected} == {"Fig. 5"}
    assert {verdict.reading for verdict in expected} == {"raw inputs, greedy tests"}


@pytest.mark.parametrize(
    ("ube", "robust", "outcome"),
    [
        (60.0, 100.0, "holds"),
        (100.0, 100.0, "does not hold"),
        (60.0, 60.0, "does not hold"),
        (60.0, 20.0, "does not hold"),
    ],
)
def test_dqn_ube_is_most_sensitive_when_it_loses_more_than_every_other(ube, robust, outcome):
    expected = over_lengths(found(dqn_ube={"longer": ube}, robust_dqn={"longer": robust}))
    assert outcomes(expected)[SENSITIVE] == outcome


def test_a_loss_is_counted_from_the_nominal_pole():
    low = found(dqn_ube={"nominal": 50.0, "longer": 10.0})  # low everywhere, but it loses less than the others
    assert outcomes(over_lengths(low))[SENSITIVE] == "does not hold"


@pytest.mark.parametrize("where", ["nominal", "longer"])
@pytest.mark.parametrize(
    ("urbe", "rival", "outcome"),
    [(190.0, {}, "holds"), (190.0, 190.0, "undecided"), (190.0, 200.0, "does not hold")],
)
def test_the_best_beats_every_other(where, urbe, rival, outcome):
    agents = {"dqn_urbe": {where: urbe}} | ({"dqn": {where: rival}} if rival else {})
    expected = outcomes(over_lengths(found(**agents)))
    assert expected[NOMINAL_BEST if where == "nominal" else LONGER_BEST] == outcome


def test_tests_with_noise_are_a_reading_of_their_own_and_agents_without_act_greedily_there():
    numbers = found(dqn_urbe={"noisy": 40.0}, dqn_ube={"noisy": -20.0})
    for acting, outcome in (("greedy", "undecided"), ("noisy", "holds")):
        expected = [verdict for verdict in over_lengths(numbers) if verdict.reading == f"raw inputs, {acting} tests"]
        assert outcomes(expected)[NOMINAL_BEST] == outcome
    assert {v.reading for v in verdicts(numbers)} == {"raw inputs, greedy tests", "raw inputs, noisy tests"}


@pytest.mark.parametrize(("urbe", "outcome"), [(160.0, "holds"), (150.0, "undecided"), (140.0, "does not hold")])
def test_controls_are_compared_apart_and_are_no_claims_of_the_paper(urbe, outcome):
    numbers = found(dqn_urbe={"nominal": urbe, "longer": urbe - 50.0}, robust_dqn_epsilon={}, dqn_epsilon={})
    own = [verdict for verdict in over_lengths(numbers) if not verdict.source]
    assert [verdict.claim.split(",")[0] for verdict in own] == [
        "dqn-urbe earns more than robust-dqn-epsilon",
        "dqn-ube earns more than dqn-epsilon",
    ]
    assert [verdict.outcome for verdict in own] == [outcome, "undecided"]


@pytest.mark.parametrize(("span", "outcome"), [(2.0, "holds"), (1.0, "undecided"), (0.5, "does not hold")])
def test_spans_are_compared_as_ratios(span, outcome):
    (expected,) = over_states(found(dqn_urbe={"span": span}))
    assert (expected.outcome, expected.source, expected.reading) == (outcome, "Fig. 6a-b", "raw inputs, greedy tests")
    assert f"dqn-urbe / robust-dqn is {span:.1f}" in expected.evidence


def test_the_ratio_of_spans_is_student_s_in_logarithms():
    numbers = found(dqn_urbe={"span": 1.3})
    logs = [np.log(scores(numbers, a, "span", "greedy", seeds=SEEDS)) for a in ("dqn-urbe", "robust-dqn")]
    ends = np.exp(paired_difference(*logs))
    (expected,) = over_states(numbers)
    assert f"{ends[0]:.4f} [{ends[1]:.4f}, {ends[2]:.4f}]" in expected.evidence


FASTER = "DQN-URBE recovers faster than robust DQN from a change of the pole"
STAYS = "Robust DQN does not recover from a change of the pole"
HIGHEST = "DQN-URBE reaches the highest return again after a change of the pole"


def changed(urbe, robust, **others):
    agents = {"dqn_urbe": urbe, "robust_dqn": robust} | others
    return found(**{name: {"windows": {3.0: windows}} for name, windows in agents.items()})


@pytest.mark.parametrize(
    ("urbe", "robust", "expected"),
    [
        ((198, 100, 198, 170), (198, 80, 90, 85), ("holds", "holds", "holds")),
        ((198, 100, 150, 120), (198, 100, 195, 120), ("does not hold", "does not hold", "does not hold")),
        ((198, 60, 100, 80), (198, 100, 188, 170), ("does not hold", "does not hold", "does not hold")),
        ((198, 100, 195, 170), (150, 100, 130, 122), ("does not hold", "holds", "undecided")),  # both gain -28: a tie
    ],
)
def test_recovery(urbe, robust, expected):
    reported = after_change(changed(urbe, robust))
    assert tuple(outcomes(reported)[claim] for claim in (FASTER, STAYS, HIGHEST)) == expected
    assert {(verdict.source, verdict.reading) for verdict in reported} == {("Fig. 6c", "raw inputs, 0.75 to 3")}


def test_recovery_cannot_be_tested_when_no_agent_dips():
    still, small = (190, 188, 190, 189), (190, 182, 180, 181)  # less than 10, though it is sure
    expected = after_change(changed(still, small))
    assert {verdict.outcome for verdict in expected} == {"not testable"}
    assert "Its premise does not hold: The dip of dqn-urbe, before - early, is 2" in expected[0].evidence


def test_a_dip_that_is_unsure_leaves_recovery_undecided():
    windows = {3.0: (190, 160, 190, 180)}
    agents = {"dqn_urbe": {"windows": windows}, "robust_dqn": {"windows": windows}}
    assert "not testable" not in {v.outcome for v in after_change(found(**agents))}
    shaken = found(**{name: of | {"shaken": 60.0} for name, of in agents.items()})
    expected = after_change(shaken)
    assert {verdict.outcome for verdict in expected} == {"undecided"}
    assert all("Its premise is undecided" in verdict.evidence for verdict in expected)


def test_longer_poles_are_those_beyond_the_nominal_one():
    assert LONGER == (1.0, 1.25, 1.5, 2.0, 2.5, 3.0)
    numbers = found()
    mean = level(numbers, "dqn", "greedy", LONGER, SEEDS)
    np.testing.assert_allclose(mean, [100.0 + LUCK[seed] + own_luck("dqn", seed) for seed in SEEDS])


def test_robust_dqn_that_alone_does_not_dip_has_nothing_to_recover_from():
    expected = outcomes(after_change(changed((198, 100, 198, 170), (190, 189, 190, 190))))
    assert expected == {FASTER: "does not hold", STAYS: "not testable", HIGHEST: "holds"}


def test_the_control_and_the_variants_are_compared_after_a_change_too():
    numbers = changed(
        (198, 100, 198, 170),
        (198, 80, 90, 85),
        robust_dqn_epsilon=(190, 100, 190, 180),
        dqn_urbe_forgetting=(198, 150, 198, 190),
        calibrated_dqn_urbe=(198, 80, 100, 85),
    )
    own = {v.claim.split(" from")[0]: v.outcome for v in after_change(numbers) if not v.source}
    assert own == {
        "dqn-urbe recovers faster than robust-dqn-epsilon": "does not hold",
        "dqn-urbe-forgetting recovers faster than robust-dqn": "holds",
        "calibrated-dqn-urbe recovers faster than robust-dqn": "does not hold",
    }


def test_nothing_can_be_tested_without_agents_or_with_one_seed():
    alone = {agent.replace("-", "_"): {"seeds": SEEDS[:1], "windows": {3.0: (190, 90, 190, 150)}} for agent in PAPER}
    for numbers in (found(**alone), found(robust_dqn=None)):
        expected = verdicts(numbers)
        assert expected
        assert {verdict.outcome for verdict in expected if verdict.source == "Fig. 5"} == {"not testable"}
    assert {verdict.outcome for verdict in verdicts(found(**alone))} == {"not testable"}


def test_only_common_seeds_count():
    wild = (*SEEDS[:5], 900, 901)
    some = found(dqn={"seeds": wild}, robust_dqn={"nominal": 120.0})
    assert seeds_of(some, PAPER) == list(SEEDS[:5])
    assert outcomes(over_lengths(some))[CONSERVATIVE] == "holds"
