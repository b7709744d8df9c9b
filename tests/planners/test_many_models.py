"""Values under many models at once against one sparse LU each."""

import numpy as np
import pytest

import urbe
from urbe.mdp.evaluate import policy_value
from urbe.mdp.rows import Rows
from urbe.planners import many_models
from urbe.planners.many_models import values_under_models
from urbe.posteriors import Posterior


def slowly(mdp, policy, probability, reward=None):
    """One model after the other, in dense algebra."""
    out = []
    for m, p in enumerate(probability):
        r = mdp.rows.reward if reward is None else reward[m]
        drawn = mdp.with_rows(Rows(mdp.n_states, mdp.rows.entry_start, mdp.rows.successor, p, r))
        transition, expected = drawn.to_dense()
        taken = np.where(mdp.terminal, 0, policy)
        s = np.arange(mdp.n_states)
        kernel, gain = transition[s, taken], expected[s, taken]
        kernel[mdp.terminal], gain[mdp.terminal] = 0.0, 0.0
        out.append(np.linalg.solve(np.eye(mdp.n_states) - mdp.discount * kernel, gain))
    return np.array(out)


MODELS = {
    "small": urbe.library.machine_replacement(10, discount=0.9),
    "mixing": urbe.library.garnet(120, 3, 6, seed=2, discount=0.97),
    "slow": urbe.library.riverswim(120, discount=0.99),
    "terminal": urbe.library.grid_world(9, 9, 0.2, discount=0.95),
    "small_terminal": urbe.library.grid_world(3, 4, 0.2, discount=0.95),
}


@pytest.mark.parametrize("name", MODELS)
def test_values_are_those_of_each_model_alone(name):
    mdp, rng = MODELS[name], np.random.default_rng(3)
    policy = urbe.solve(mdp).policy
    probability = Posterior.before(mdp, 2.0).draws(rng, 7)
    expected = slowly(mdp, policy, probability)
    found = values_under_models(mdp, policy, probability)
    assert np.abs(found - expected).max() <= 1e-9 * np.abs(expected).max()
    reward = rng.normal(size=(7, mdp.n_rows))
    expected = slowly(mdp, policy, probability, reward)
    found = values_under_models(mdp, policy, probability, reward)
    assert np.abs(found - expected).max() <= 1e-9 * np.abs(expected).max()


def test_large_models_are_swept_where_they_mix_and_eliminated_where_they_do_not(monkeypatch):
    calls = []

    def counting(mdp, policy):
        calls.append(mdp)
        return policy_value(mdp, policy)

    monkeypatch.setattr(many_models, "policy_value", counting)
    for name, alone in (("small", 0), ("mixing", 0), ("slow", 5)):
        calls.clear()
        mdp = MODELS[name]
        values_under_models(mdp, urbe.solve(mdp).policy, Posterior.before(mdp).draws(np.random.default_rng(0), 5))
        assert len(calls) == alone, name


def test_rewards_of_successors_and_zero_entries():
    rng = np.random.default_rng(1)
    transition = rng.dirichlet(np.ones(4), (4, 2))
    mdp = urbe.MDP.from_dense(transition, rng.normal(size=(4, 2, 4)), discount=0.8, terminal=[3], keep_zeros=True)
    alpha = np.where(np.arange(mdp.rows.n_entries) % 4 == 1, 0.0, 1.0)
    probability = Posterior.before(mdp, alpha).draws(rng, 6)
    policy = np.array([1, 0, 1, -1])
    assert values_under_models(mdp, policy, probability) == pytest.approx(slowly(mdp, policy, probability), rel=1e-12)


def test_without_discount_each_model_must_end():
    mdp = urbe.library.grid_world(3, 3, 0.2, discount=1.0)
    policy = np.array([2, 2, 2, 2, 2, 2, 1, 1, -1])  # down, then right
    probability = Posterior.before(mdp).draws(np.random.default_rng(1), 4)
    assert values_under_models(mdp, policy, probability) == pytest.approx(slowly(mdp, policy, probability), rel=1e-10)
    with pytest.raises(ValueError, match="must reach a terminal state"):
        values_under_models(mdp, np.array([0, 0, 0, 0, 0, 0, 0, 0, -1]), probability[:, :])


def test_one_state_discount_zero_and_only_terminal_states():
    mdp = urbe.MDP.from_dense([[[1.0]]], [[3.0]], discount=0.5)
    assert values_under_models(mdp, np.array([0]), np.ones((2, 1))).tolist() == [[6.0], [6.0]]
    mdp = urbe.MDP.from_dense([[[1.0]]], [[3.0]], discount=0.0)
    assert values_under_models(mdp, np.array([0]), np.ones((1, 1))).tolist() == [[3.0]]
    mdp = urbe.MDP.from_dense(np.zeros((2, 1, 2)), 0.0, discount=0.5, terminal=[0, 1])
    assert values_under_models(mdp, np.array([-1, -1]), np.empty((3, 0))).tolist() == [[0.0, 0.0]] * 3
