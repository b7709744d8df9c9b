"""Q(lambda) over beliefs: returns against a plain loop, and a game solved exactly."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import urbe
from urbe.belief import Switching
from urbe.deep import Adam, DuelingNetwork, Epsilon, bayes_adaptive_dqn
from urbe.deep.adaptive.learner import _learn, gradient_step, learned_values, traced_returns
from urbe.deep.adaptive.lives import Experience
from urbe.deep.adaptive.settings import AdaptiveSettings
from urbe.deep.core.networks import q_values
from urbe.deep.settings import Decay
from urbe.planners import solve_belief
from urbe.simulators import Outcomes, UncertaintySet


def test_returns_follow_the_trace_back():
    rng = np.random.default_rng(0)
    y, ratio, v = rng.normal(size=(3, 6, 4)).astype(np.float32)
    greedy = rng.random((6, 4)) < 0.6
    found = traced_returns(0.8, *map(jnp.asarray, (y, ratio, v, greedy)))
    for life in range(4):
        wanted = y[-1, life]
        assert found[-1, life] == wanted
        for t in range(4, -1, -1):
            more = 0.8 * ratio[t, life] * (wanted - v[t, life]) if greedy[t + 1, life] else 0.0
            wanted = y[t, life] + more
            np.testing.assert_allclose(found[t, life], wanted, rtol=1e-5)


def test_the_targets_of_inferior_actions_are_lowered_by_their_disadvantage():
    shape = (2, 3)
    zero, target = jnp.zeros(shape), jnp.ones(shape)
    shortfall = jnp.asarray([[0.0, 2.0, 0.0], [0.5, 0.0, 0.0]])
    seen = Experience(zero, zero, shortfall == 0.0, shortfall, target, zero, zero, zero, zero, zero)
    np.testing.assert_array_equal(learned_values(AdaptiveSettings(gap=0.5), seen), [[1.0, 0.0, 1.0], [0.75, 1.0, 1.0]])


def test_every_gradient_step_learns_from_all_steps_of_its_share_of_the_lives():
    """Two shares of two lives, one after the other: the second begins from the weights of the first."""
    settings = AdaptiveSettings(
        lives=4, length=3, minibatches=2, network=DuelingNetwork((5,)), clip_norm=None, optimiser=Adam()
    )
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(3, 4, 2)), jnp.float32)
    action = jnp.asarray(rng.integers(0, 3, (3, 4)), jnp.int32)
    wanted = jnp.asarray(rng.normal(size=(3, 4)), jnp.float32)
    q = settings.network.init(jax.random.key(0), 2, 3)
    optimiser, rate = settings.optimiser.init(q), jnp.float32(0.1)
    found, after, loss = _learn(settings, q, optimiser, rate, x, action, wanted)
    losses = []
    for lives in ([0, 1], [2, 3]):
        rows = [(x[t, life], action[t, life], wanted[t, life]) for life in lives for t in range(3)]
        batch = [jnp.stack(part) for part in zip(*rows, strict=True)]
        values = q_values(settings.network, q, batch[0])
        losses.append(np.mean((np.asarray(batch[2]) - np.asarray(values)[np.arange(6), batch[1]]) ** 2))
        q, optimiser, _ = gradient_step(settings, q, optimiser, rate, *batch)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5), found, q)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5), after, optimiser)
    np.testing.assert_allclose(loss, np.mean(losses), rtol=1e-4)


class Odds(NamedTuple):
    win: float = 0.9


@dataclass(frozen=True)
class Bets:
    """In state 0 bet (action 0) or keep out (action 1); state 1 pays 1, state 2 costs 1, and both lead back."""

    n_actions: int = 2
    time_limit: int = 1_000_000
    n_states: int = 3

    def nominal(self):
        return Odds(jnp.float32(0.9))

    def start(self, key, params):  # noqa: ARG002
        return jnp.int32(0)

    def outcomes(self, state, action, params):
        bets = (state == 0) & (action == 0)
        win = jnp.where(bets, params.win, 1.0)
        reward = jnp.asarray([0.0, 1.0, -1.0])[state]
        after = jnp.where(bets, jnp.asarray([1, 2]), jnp.asarray([0, 0]))
        never = jnp.zeros(2, bool)
        return Outcomes(jnp.stack([win, 1.0 - win]), after, jnp.stack([reward, reward]), never)

    def observe(self, state):
        return (jnp.arange(3) == state).astype(jnp.float32)


def game(win):
    back = [[1.0, 0.0, 0.0]] * 2
    bet_or_not = [[0.0, win, 1.0 - win], [1.0, 0.0, 0.0]]
    return urbe.MDP.from_dense([bet_or_not, back, back], [[0, 0], [1, 1], [-1, -1]], discount=0.9)


def test_a_game_is_learned_to_its_exact_value():
    switching = Switching(hazard=0.1)
    plan = solve_belief([game(0.9), game(0.2)], start=0, switching=switching, tolerance=0.01)
    members = UncertaintySet.grid(Bets(), include_nominal=False, win=(0.9, 0.2))
    agent = bayes_adaptive_dqn(
        Bets(), members, switching=switching, seed=0, discount=0.9, trace=0.5, gap=0.0, lives=32, length=16,
        minibatches=2, average=0.98, epsilon=Epsilon(0.5, 0.2, 50_000), hold=1, decay=Decay(0.02, 100_000),
    ).learn(100_000)  # fmt: skip
    policy, beliefs = agent.policy, np.array([[0.5, 0.5], [0.1, 0.9], [0.9, 0.1]], np.float32)
    q = policy._values(policy.start(jax.random.key(0)), jnp.asarray([1.0, 0.0, 0.0]), jnp.asarray(beliefs))
    assert [int(row.argmax()) for row in q] == [plan.act(0, belief) for belief in beliefs]
    assert plan.lower - 0.05 < float(q[0].max()) < plan.upper + 0.05
