"""Given policies over finite horizons, against the stationary evaluation of a model whose states contain the step."""

import numpy as np
import pytest

import urbe

HORIZON = 4
SETS = (
    None,
    urbe.L1Ball(0.3),
    urbe.KLBall(0.1),
    urbe.SRectangular(urbe.L1Ball(0.4)),
    urbe.Optimistic(urbe.L1Ball(0.2)),
)


@pytest.fixture(scope="module")
def mdp():
    names = [f"s{s}" for s in range(5)]
    return urbe.library.garnet(5, 3, 3, seed=2, discount=0.9).with_labels(states=names, actions=["x", "y", "z"])


def unrolled(mdp):
    """Every state at every step; the process ends after the last."""
    rows, n = mdp.rows, mdp.n_states
    state, action = mdp.row_state[rows.entry_row], mdp.action[rows.entry_row]
    pays = mdp.rows.entry_reward if rows.rewards_successors else rows.reward[rows.entry_row]
    steps = np.repeat(np.arange(HORIZON), rows.n_entries)

    def each(x):
        return np.tile(x, HORIZON)

    ends = HORIZON * n + np.arange(n)
    return urbe.MDP.from_transitions(
        steps * n + each(state), each(action), (steps + 1) * n + each(rows.successor), each(rows.probability),
        each(pays), discount=mdp.discount, terminal=ends,
    )  # fmt: skip


def policies(mdp, randomised):
    rng = np.random.default_rng(7)
    if randomised:
        return rng.dirichlet(np.ones(mdp.n_actions), size=(HORIZON, mdp.n_states))
    return rng.integers(0, mdp.n_actions, size=(HORIZON, mdp.n_states))


@pytest.mark.parametrize("nature", SETS, ids=str)
@pytest.mark.parametrize("randomised", [False, True])
def test_values_are_those_of_the_unrolled_model(mdp, nature, randomised):
    given = policies(mdp, randomised)
    flat = given.reshape(-1, mdp.n_actions) if randomised else given.ravel()
    ends = np.zeros((mdp.n_states, mdp.n_actions)) if randomised else np.full(mdp.n_states, -1)
    wanted = urbe.evaluate_policy(unrolled(mdp), np.concatenate([flat, ends]), nature)
    found = urbe.evaluate_policy(mdp, given, nature, urbe.BackwardInduction(HORIZON))
    assert found.value.ravel() == pytest.approx(wanted.value, abs=1e-5)
    assert (found.lower.ravel() <= wanted.upper).all()
    assert (found.upper.ravel() >= wanted.lower).all()
    assert found.gap < 1e-9
    assert not found.optimal
    np.testing.assert_allclose(found.policy, given, rtol=0, atol=1e-15)
    assert urbe.certify(found).holds


def test_the_best_policy_has_the_best_value(mdp):
    best = urbe.solve(mdp, urbe.L1Ball(0.3), urbe.BackwardInduction(HORIZON))
    again = urbe.evaluate_policy(mdp, best.policy, urbe.L1Ball(0.3), urbe.BackwardInduction(HORIZON))
    np.testing.assert_allclose(again.value, best.value, rtol=0, atol=1e-12)
    np.testing.assert_allclose(again.q, best.q, rtol=0, atol=1e-12)


def test_one_policy_for_all_steps_by_label(mdp):
    always = dict.fromkeys(mdp.labels.states, "y")
    method = urbe.BackwardInduction(HORIZON)
    ids = np.ones((HORIZON, mdp.n_states), dtype=int)
    wanted = urbe.evaluate_policy(mdp, ids, None, method).value
    for given in (always, ["y"] * mdp.n_states, [always] * HORIZON, [["y"] * mdp.n_states] * HORIZON, ids[0]):
        np.testing.assert_array_equal(urbe.evaluate_policy(mdp, given, None, method).value, wanted)
    halves = np.tile([0.0, 0.5, 0.5], (mdp.n_states, 1))
    whole = np.tile([0, 1, 0], (mdp.n_states, 1))
    np.testing.assert_array_equal(urbe.evaluate_policy(mdp, whole, None, method).value, wanted)
    assert urbe.evaluate_policy(mdp, whole).value.shape == (mdp.n_states,)
    mixed = urbe.evaluate_policy(mdp, halves, None, method)
    assert mixed.policy.shape == (HORIZON, mdp.n_states, mdp.n_actions)


def test_errors_name_the_step(mdp):
    given = policies(mdp, randomised=False)
    with pytest.raises(ValueError, match=r"policy has 3 steps, expected 4, as many as the horizon"):
        urbe.evaluate_policy(mdp, given[:3], None, urbe.BackwardInduction(HORIZON))
    given[2, 1] = 9
    with pytest.raises(ValueError, match=r"At step 2: policy\[1\] is 9"):
        urbe.evaluate_policy(mdp, given, None, urbe.BackwardInduction(HORIZON))
    with pytest.raises(ValueError, match=r"For a policy of each step give method=BackwardInduction\(4\)"):
        urbe.evaluate_policy(mdp, given, None)


@pytest.fixture(scope="module")
def uneven():
    """Action a of a state has 1, 2, 3 or 6 successors."""
    rng = np.random.default_rng(3)
    probability = np.zeros((6, 4, 6))
    for state in range(6):
        for action, n in enumerate((1, 2, 3, 6)):
            probability[state, action, rng.choice(6, n, replace=False)] = rng.dirichlet(np.ones(n))
    return urbe.MDP.from_dense(probability, rng.normal(size=(6, 4)), discount=0.9)


@pytest.mark.parametrize(
    "nature",
    [
        urbe.L1Ball(0.8),
        urbe.L1Ball(0.2, support="all"),
        urbe.L2Ball(0.3),
        urbe.LInfBall(0.2),
        urbe.KLBall(0.3),
        urbe.WassersteinBall(1.0, np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))),
        urbe.SRectangular(urbe.L1Ball(0.8)),
        urbe.SRectangular(urbe.KLBall(0.3)),
    ],
    ids=str,
)
@pytest.mark.parametrize("randomised", [False, True])
def test_steps_whose_policies_take_rows_of_other_lengths(uneven, nature, randomised):
    """What a step learned about its rows must not serve the next one, which takes others."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        given = rng.integers(4, size=(HORIZON, 6))
        if randomised:
            given = rng.dirichlet(np.ones(4), size=(HORIZON, 6)) * (rng.random((HORIZON, 6, 4)) < 0.6)
            given[..., 0] += given.sum(axis=-1) == 0.0
            given /= given.sum(axis=-1, keepdims=True)
        found = urbe.evaluate_policy(uneven, given, nature, urbe.BackwardInduction(HORIZON))
        operator, v = nature.operator(uneven), np.zeros(6)
        for step in range(HORIZON - 1, -1, -1):
            v, _ = operator.against(found.policies[step])[0].apply(v)
            assert found.value[step] == pytest.approx(v, abs=1e-9)
        assert urbe.certify(found).holds
