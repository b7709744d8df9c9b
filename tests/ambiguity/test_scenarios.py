"""Finite sets of models, their quantiles and tails."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import worst_case as lp
from urbe.ambiguity.scenarios import ConditionalValueAtRisk, Scenarios, ValueAtRisk
from urbe.mdp.model import MDP
from urbe.testing import check_ambiguity_set

SURE = np.zeros((4, 4, 1, 4))  # scenario k leads to state k
SURE[np.arange(4), :, :, np.arange(4)] = 1.0
VALUES, WEIGHTS = np.array([0.0, 1.0, 2.0, 10.0]), [0.1, 0.2, 0.3, 0.4]


@pytest.fixture
def mdp():
    return MDP.from_dense(np.full((4, 1, 4), 0.25), 0.0, discount=1.0)


@pytest.mark.parametrize(("level", "value"), [(0.0, 0.0), (0.1, 0.0), (0.3, 2 / 3), (0.5, 1.2), (1.0, 4.8)])
def test_tail_numbers_of_the_specification(mdp, level, value):
    nature = ConditionalValueAtRisk(SURE, level, WEIGHTS).bind(mdp)
    assert nature.values(VALUES) == pytest.approx([value] * 4, abs=1e-14)
    assert nature.dual_bound(VALUES) == pytest.approx([value] * 4, abs=1e-14)
    assert nature.worst_case(VALUES).value == pytest.approx([value] * 4, abs=1e-14)


@pytest.mark.parametrize(
    ("level", "value"), [(0.0, 0.0), (0.1, 0.0), (0.11, 1.0), (0.3, 1.0), (0.6, 2.0), (0.61, 10.0), (1.0, 10.0)]
)
def test_quantiles_by_hand(mdp, level, value):
    nature = ValueAtRisk(SURE, level, WEIGHTS).bind(mdp)
    worst = nature.worst_case(VALUES)
    assert nature.values(VALUES) == pytest.approx([value] * 4, abs=0)
    assert nature.dual_bound(VALUES) == pytest.approx([value] * 4, abs=0)
    state = int(np.flatnonzero(value == VALUES)[0])
    assert np.array_equal(worst.rows.probability.reshape(4, 4)[:, state], np.ones(4))


def test_levels_are_reached_in_spite_of_rounding(mdp):
    ten = np.repeat(SURE[:1], 10, axis=0)
    ten[8:] = SURE[3]
    assert np.cumsum(np.full(8, 0.1))[-1] < 0.8  # what makes this worth a test
    assert ValueAtRisk(ten, 0.8, np.full(10, 0.1)).bind(mdp).values(VALUES)[0] == 0.0


def test_the_lowest_scenario_row_by_row(mdp):
    rng = np.random.default_rng(0)
    kernels = rng.dirichlet(np.ones(4), size=(6, 4, 1))
    v = rng.normal(size=4)
    expected = (kernels @ v).min(axis=0)[:, 0]
    nature = Scenarios(kernels).bind(mdp)
    assert nature.values(v) == pytest.approx(expected, abs=1e-15)
    chosen = nature.worst_case(v).rows.probability.reshape(4, 4)
    best = (kernels @ v).argmin(axis=0)[:, 0]
    assert chosen == pytest.approx(kernels[best, np.arange(4), 0], abs=1e-15)
    assert not nature.worst_case(v).sensitivity.any()


def test_ties_go_to_the_first_scenario_whatever_the_row_before(mdp):
    v = np.array([1.0, 1.0, 2.0, 1.0])
    kernels = SURE.copy()
    kernels[:, 0] = kernels[::-1, 0]  # state 0 ranks the scenarios the other way round
    chosen = Scenarios(kernels).bind(mdp).worst_case(v).rows.probability.reshape(4, 4)
    assert np.array_equal(chosen, kernels[0, :, 0])


def test_rows_nearly_one_are_rescaled(mdp):
    off = SURE * (1 + 5e-10)
    assert Scenarios(off[1:]).bind(mdp).values(VALUES + 1e6)[0] == 1e6 + 1.0


def test_nominal_rows_stay_the_models_own():
    p = np.array([[[0.5, 0.0, 0.5]], [[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]])
    mdp = MDP.from_dense(p, 0.0, discount=0.9)
    nature = Scenarios(np.full((2, 3, 1, 3), 1 / 3)).bind(mdp)
    assert np.array_equal(mdp.with_rows(nature.rows).to_dense()[0], p)


def some_weights(n, rng):
    weights = rng.integers(0, 4, size=n).astype(float)
    weights[rng.integers(n)] += 1
    return weights / weights.sum()


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 8),
    level=st.one_of(st.sampled_from([0.0, 1e-12, 0.25, 0.5, 1.0]), st.floats(1e-3, 1.0)),
)
@settings(deadline=None)
def test_risk_agrees_with_other_means(seed, n, level):
    rng = np.random.default_rng(seed)
    mdp = MDP.from_dense(rng.dirichlet(np.ones(3), size=(3, 2)), rng.normal(size=(3, 2)), discount=0.7)
    kernels = rng.dirichlet(np.ones(3), size=(n, 3, 2))
    weights = some_weights(n, rng)
    v = rng.integers(-2, 3, size=3).astype(float)
    x = mdp.to_dense()[1] + 0.7 * kernels @ v  # (K, S, A)
    tail = ConditionalValueAtRisk(kernels, level, weights).bind(mdp).values(v).reshape(3, 2)
    quantile = ValueAtRisk(kernels, level, weights).bind(mdp).values(v).reshape(3, 2)
    for s in range(3):
        for a in range(2):
            counted = x[weights > 0, s, a]
            if level >= 1e-3:  # smaller levels are outside the solver's own tolerance
                program = lp.cvar(x[:, s, a], weights, level)
                assert tail[s, a] == pytest.approx(program, abs=lp.LP_TOLERANCE / level)
            else:
                assert tail[s, a] == pytest.approx(counted.min(), abs=1e-14)
            # the definition: below the quantile there is less than the level, up to it at least the level
            mass_below = weights[x[:, s, a] < quantile[s, a] - 1e-12].sum()
            mass_up_to = weights[x[:, s, a] <= quantile[s, a] + 1e-12].sum()
            assert mass_up_to >= level - 1e-11
            assert mass_below <= level + 1e-11 if level > 0 else mass_below == 0
            assert np.abs(counted - quantile[s, a]).min() <= 1e-14


def draws(mdp, n=5):
    rng = np.random.default_rng(7)
    return rng.dirichlet(np.full(mdp.n_states, 0.5), size=(n, mdp.n_states, mdp.n_actions))


@pytest.mark.parametrize("weights", [None, [0.4, 0.0, 0.3, 0.2, 0.1]])
@pytest.mark.parametrize("level", [0.0, 0.35, 1.0])
def test_contract(level, weights):
    check_ambiguity_set(lambda mdp: ConditionalValueAtRisk(draws(mdp), level, weights))
    check_ambiguity_set(lambda mdp: ValueAtRisk(draws(mdp), level, weights), convex=False)
    check_ambiguity_set(lambda mdp: Scenarios(draws(mdp)))


def test_value_at_risk_is_not_concave():
    """Why the contract has a flag for it."""
    with pytest.raises(AssertionError, match="Q is concave in v"):
        check_ambiguity_set(lambda mdp: ValueAtRisk(draws(mdp, 9), 0.7), center_moves=False)


def test_kernels_in_every_accepted_form():
    rng = np.random.default_rng(3)
    p = np.array([[[0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]]])
    mdp = MDP.from_dense(p, [1.0, 2.0, 3.0], discount=0.9)
    other = np.array([[[0.1, 0.2, 0.7]], [[0.0, 0.5, 0.5]], [[0.3, 0.3, 0.4]]])
    v = rng.normal(size=3)
    expected = np.array([1.0, 2.0, 3.0]) + 0.9 * np.minimum(p @ v, other @ v)[:, 0]
    models = [MDP.from_dense(each, 0.0, discount=0.1) for each in (p, other)]
    for kernels in (np.stack([p, other]), [p, other], models):
        assert Scenarios(kernels).bind(mdp).values(v) == pytest.approx(expected, abs=1e-15)
    listed = MDP.from_dense(p, [1.0, 2.0, 3.0], discount=0.9, keep_zeros=True)
    per_entry = np.stack([p.ravel(), other.ravel()], axis=1)
    assert Scenarios(per_entry).bind(listed).values(v) == pytest.approx(expected, abs=1e-15)


def test_rewards_of_successors():
    rng = np.random.default_rng(5)
    p, reward = rng.dirichlet(np.ones(3), size=(3, 1)), rng.normal(size=(3, 1, 3))
    mdp = MDP.from_dense(p, reward, discount=0.5)
    kernels, v = rng.dirichlet(np.ones(3), size=(4, 3, 1)), rng.normal(size=3)
    expected = (kernels * (reward + 0.5 * v)).sum(-1).min(0)[:, 0]
    assert Scenarios(kernels).bind(mdp).values(v) == pytest.approx(expected, abs=1e-14)


def test_membership_of_the_tail_is_that_of_its_mixtures(mdp):
    nature = ConditionalValueAtRisk(SURE, 0.5, WEIGHTS).bind(mdp)  # q_k <= weight_k / 0.5

    def excess(q):
        return nature.excess(replace(nature.rows, probability=np.tile(q, 4)))

    assert excess([0.2, 0.4, 0.4, 0.0]) == pytest.approx(np.zeros(4), abs=1e-12)
    assert excess([0.0, 0.0, 0.2, 0.8]) == pytest.approx(np.zeros(4), abs=1e-12)
    assert (excess([0.3, 0.3, 0.4, 0.0]) > 0.01).all()
    assert Scenarios(SURE).bind(mdp).excess(replace(nature.rows, probability=np.full(16, 0.25))) == pytest.approx(
        np.full(4, 1.5)
    )


@pytest.mark.parametrize("level", [1e-3, 1e-16, 1e-300])
def test_scenarios_too_rare_for_a_small_level_are_outside_the_tail(mdp, level):
    nature = ConditionalValueAtRisk(SURE, level, [1.0 - 1.25 * level, level / 4, level, 1e-310]).bind(mdp)

    def excess(q):
        return nature.excess(replace(nature.rows, probability=np.tile(q, 4)))

    assert excess([0.75, 0.25, 0.0, 0.0]) == pytest.approx(np.zeros(4), abs=1e-12)
    assert (excess([0.74, 0.26, 0.0, 0.0]) > 1e-3).all()
    assert (excess([0.0, 0.0, 0.0, 1.0]) > 0.1).all()


def test_the_tail_of_level_one_is_the_mean_alone(mdp):
    nature = ConditionalValueAtRisk(SURE, 1.0, WEIGHTS).bind(mdp)
    assert nature.excess(replace(nature.rows, probability=np.tile(WEIGHTS, 4))) == pytest.approx(np.zeros(4), abs=1e-15)
    # least squares find the weights (1.1, 0.2, 0.3, 0.4) / 2 nearest, which exceed that of the first scenario
    assert (nature.excess(replace(nature.rows, probability=np.tile([1.0, 0.0, 0.0, 0.0], 4))) > 0.1).all()


def test_a_scenario_is_inside_the_tail_beside_another_almost_equal():
    twins = np.array([[1.0, 9e-211, 5e-119], [1.0 - 8e-15, 8e-15, 9e-17], [0.0, 1.0, 0.0], [0.6, 0.16, 0.24]])
    mdp = MDP.from_dense(np.tile(twins[3], (3, 1, 1)), 0.0, discount=1.0)
    kernels = np.tile(twins[:, None, None], (1, 3, 1, 1))
    nature = ConditionalValueAtRisk(kernels, 0.0, np.full(4, 0.25)).bind(mdp)
    assert (nature.excess(replace(nature.rows, probability=np.tile(twins[0], 3))) < 1e-14).all()


@pytest.mark.parametrize(
    ("scenarios", "message"),
    [
        (
            Scenarios(np.ones((2, 3))),
            r"kernels has shape \(2, 3\), expected.*\(scenarios, 4, 1, 4\).*\(16, scenarios\)",
        ),
        (Scenarios(np.zeros((0, 4, 1, 4))), r"kernels has shape \(0, 4, 1, 4\)"),
        (Scenarios(0.5 * SURE), r"In scenario 0, the probabilities of state 0, action 0 sum to 0\.5.*16 of 16 rows"),
        (Scenarios(np.concatenate([SURE, 2 * SURE[:1] - SURE[1:2]])), r"In scenario 4, .* the smallest is -1"),
        (Scenarios([MDP.from_dense([[[1.0]]], 0.0, discount=0.9)]), r"kernels\[0\] is MDP\(1 states.*same states"),
        (ValueAtRisk(SURE, 1.2), r"level is 1\.2 for state 0, action 0"),
        (ValueAtRisk(SURE, 0.5, [0.5, 0.5]), "weights has 2 entries, expected 4"),
        (ConditionalValueAtRisk(SURE, 0.5, [0.5, 0.6, 0.0, 0.0]), r"weights sums to 1\.1, expected 1"),
    ],
)
def test_errors_name_what_is_wrong(mdp, scenarios, message):
    with pytest.raises(ValueError, match=message):
        scenarios.bind(mdp)


def test_a_new_successor_needs_a_reward():
    mdp = MDP.from_dense([[[0.0, 1.0]], [[0.5, 0.5]]], np.arange(4.0).reshape(2, 1, 2), discount=0.9)
    with pytest.raises(ValueError, match=r"allows successor 0 in state 0, action 0.*keep_zeros=True"):
        Scenarios(np.full((1, 2, 1, 2), 0.5)).bind(mdp)
