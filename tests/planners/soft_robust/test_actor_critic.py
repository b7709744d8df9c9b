"""Soft-robust actor-critic: the one-step example, convergence to the mean model, both ways of drawing."""

import numpy as np
import pytest

import urbe
from urbe.mdp.library import BET_CHANCES, BET_SHARES, bets
from urbe.planners import (
    ActorCriticRates,
    SoftRobustActorCritic,
    average_reward,
    soft_robust_model,
    soft_robust_value,
)

BETS = [bets(p) for p in BET_CHANCES]


def random_models(seed, n_models=3, n_states=3, n_actions=2, discount=0.9):
    rng = np.random.default_rng(seed)
    reward = rng.random((n_states, n_actions))
    return [
        urbe.MDP.from_dense(
            rng.dirichlet(np.ones(n_states), (n_states, n_actions)), reward, discount=discount,
            initial=np.eye(n_states)[0],
        )
        for _ in range(n_models)
    ], rng.dirichlet(np.ones(n_models))  # fmt: skip


def best_gain(model):
    from itertools import product

    return max(average_reward(model, p) for p in product(range(model.n_actions), repeat=model.n_states))


def values(model):
    return urbe.solve(model).q[0]


def test_numbers_of_the_single_step():
    """Mean chance .368: nominal 60000 by action 0, soft-robust 1524 by action 1, robust 200 by action 2."""
    nominal, soft = bets(0.8), soft_robust_model(BETS, BET_SHARES)
    robust = urbe.solve(nominal, urbe.Scenarios(BETS))
    assert values(nominal)[0] == pytest.approx(60_000.0)
    assert values(soft) == pytest.approx([-26_400.0, 1_524.0, 736.0])
    assert robust.q[0] == pytest.approx([-80_000.0, 50.0, 200.0])
    assert [int(np.argmax(q)) for q in (values(nominal), values(soft), robust.q[0])] == [0, 1, 2]


@pytest.mark.parametrize(("shares", "best"), [([0, 0, 1, 0, 0], 0), (BET_SHARES, 1), ([1, 0, 0, 0, 0], 2)])
@pytest.mark.parametrize("criterion", ["average", "discounted"])
@pytest.mark.parametrize("draw", ["step", "episode"])
def test_the_actor_chooses_as_the_numbers_say(shares, best, criterion, draw):
    """Bets of 100,000 beside 2,000: rewards are scaled by the largest, so that small differences need patience."""
    rates = ActorCriticRates(critic=0.05, actor=0.2, delay=1e6, gain=1.0)
    learner = SoftRobustActorCritic(BETS, shares, criterion=criterion, draw=draw, rates=rates, seed=0).learn(1_000_000)
    assert learner.policy[0, best] > 0.9


@pytest.mark.parametrize("seed", range(4))
def test_it_converges_to_the_best_gain_of_the_mean_model(seed):
    models, shares = random_models(seed)
    mean = soft_robust_model(models, shares)
    learner = SoftRobustActorCritic(models, shares, seed=seed).learn(1_000_000)
    best = best_gain(mean)
    reached = average_reward(mean, learner.policy)
    assert best >= reached > 0.99 * best
    assert learner.gain == pytest.approx(reached, rel=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_discounted_it_converges_to_the_best_value_of_the_mean_model(seed):
    models, shares = random_models(seed)
    mean = soft_robust_model(models, shares)
    learner = SoftRobustActorCritic(models, shares, criterion="discounted", horizon=50, seed=seed).learn(1_000_000)
    best = urbe.solve(mean).value[0]
    reached = soft_robust_value(models, shares, learner.policy)
    assert best + 1e-9 >= reached > 0.98 * best
    exact = urbe.evaluate_policy(mean, learner.policy).value
    assert learner.value == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize("draw", ["step", "episode"])
def test_one_model_alone_is_the_ordinary_algorithm_bit_for_bit(draw):
    models, _ = random_models(0)
    one = SoftRobustActorCritic(models, [0.0, 1.0, 0.0], draw=draw, horizon=20, seed=3).learn(5000)
    ordinary = SoftRobustActorCritic(
        [models[1]], [1.0], draw=draw, horizon=20, seed=3
    ).learn(5000)  # fmt: skip
    assert np.array_equal(one.policy, ordinary.policy)
    assert one.gain == ordinary.gain


def test_in_one_step_the_soft_value_is_between_the_worst_and_the_best():
    rng = np.random.default_rng(0)
    for _ in range(20):
        policy = np.zeros((3, 3))
        policy[0] = rng.dirichlet(np.ones(3))
        shares = rng.dirichlet(np.ones(5))
        each = [soft_robust_value([model], [1.0], policy) for model in BETS]
        soft = soft_robust_value(BETS, shares, policy)
        assert min(each) <= soft <= max(each)
        assert soft == pytest.approx(soft_robust_value(BETS, shares, policy, draw="episode"))


def sticky(stays):
    """From state 0 action 0 leads to state 1, which pays 1 and lasts with a chance that is in doubt; action 1 pays."""
    p = [[[0.0, 1.0], [1.0, 0.0]], [[1.0 - stays, stays], [1.0 - stays, stays]]]
    return urbe.MDP.from_dense(p, [[0.0, 0.66], [1.0, 1.0]], discount=0.95, initial=[1.0, 0.0])


def test_drawing_once_for_an_episode_is_another_problem():
    """Where states recur the mean of values is not the value of the mean; the actor follows the one it is given."""
    models, shares = [sticky(0.0), sticky(0.98)], [0.5, 0.5]
    stay, go = [1, 0], [0, 0]
    step = [soft_robust_value(models, shares, policy) for policy in (stay, go)]
    episode = [soft_robust_value(models, shares, policy, draw="episode") for policy in (stay, go)]
    assert np.argmax(step) != np.argmax(episode)
    for draw, exact in (("step", step), ("episode", episode)):
        learner = SoftRobustActorCritic(
            models, shares, criterion="discounted", draw=draw, horizon=200, seed=0,
            rates=ActorCriticRates(actor=0.05, delay=1e4),
        ).learn(1_000_000)  # fmt: skip
        assert learner.policy[0].argmax() == [1, 0][int(np.argmax(exact))]


def test_linear_features_that_are_indicators_change_nothing():
    models, shares = random_models(1)
    plain = SoftRobustActorCritic(models, shares, seed=0).learn(2000)
    linear = SoftRobustActorCritic(models, shares, state_features=np.eye(3), pair_features=np.eye(6), seed=0).learn(
        2000
    )
    assert np.array_equal(plain.policy, linear.policy)
    shared = SoftRobustActorCritic(models, shares, pair_features=np.tile(np.eye(2), (3, 1)), seed=0).learn(2000)
    assert np.allclose(shared.policy, shared.policy[0])


def test_a_killed_run_goes_on_bit_for_bit(tmp_path):
    models, shares = random_models(2)
    make = lambda: SoftRobustActorCritic(models, shares, draw="episode", horizon=30, seed=5)  # noqa: E731
    whole, part, again = make().learn(3000), make().learn(1234), make()
    urbe.save_agent(tmp_path / "learner.safetensors", part)
    urbe.load_agent(tmp_path / "learner.safetensors", again)
    again.learn(3000 - 1234)
    assert np.array_equal(again.policy, whole.policy)
    assert (again.gain, again.steps) == (whole.gain, 3000)
    with pytest.raises(urbe.AgentFileError, match="seed"):
        urbe.load_agent(
            tmp_path / "learner.safetensors",
            SoftRobustActorCritic(models, shares, draw="episode", horizon=30, seed=6),
        )


def test_the_mean_model_has_the_mean_rows():
    models, shares = random_models(3)
    p, r = soft_robust_model(models, shares).to_dense()
    each = [model.to_dense() for model in models]
    assert p == pytest.approx(sum(w * q for w, (q, _) in zip(shares, each, strict=True)))
    assert r == pytest.approx(each[0][1])


def test_refusals():
    models, shares = random_models(0)
    with pytest.raises(ValueError, match="episodes of these models never end"):
        SoftRobustActorCritic(models, shares, draw="episode", seed=0)
    with pytest.raises(ValueError, match=r"models\[1\] is .* expected the same states and actions as"):
        soft_robust_model([models[0], BETS[0]], [0.5, 0.5])
    with pytest.raises(ValueError, match=r"actor_power is 0\.6, expected more than critic_power"):
        ActorCriticRates(critic_power=0.6, actor_power=0.6)
    with pytest.raises(ValueError, match="state_features has 2 rows, expected 3"):
        SoftRobustActorCritic(models, shares, state_features=np.eye(2), seed=0)
    with pytest.raises(ValueError, match="several recurrent classes of states"):
        average_reward(urbe.MDP.from_dense(np.eye(2)[:, None], [[0.0], [1.0]], discount=0.9), [0, 0])
