"""Long training on finite simulators reaches exact robust value iteration; one-hot features count visits."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import urbe
from fixtures.deep_runs import RISKS, ROVER, Rig
from urbe.deep.core.gram import inverse_count
from urbe.deep.core.last_layer import LastLayer
from urbe.deep.core.natures import Average, Worst
from urbe.deep.core.networks import Layer, q_values
from urbe.deep.core.precision import double
from urbe.deep.settings import CopyEvery, Epsilon, Network, Settings
from urbe.simulators import SevenStates, UncertaintySet, scenarios

SETTINGS = Settings(
    network=Network((32,)),
    discount=0.9,
    learning_rate=2e-3,
    batch=64,
    capacity=2000,
    warm_up=100,
    copy=CopyEvery(updates=50),
    epsilon=Epsilon(1.0, 1.0, 1),  # all pairs are seen, whatever is learned
)
NEAR = 1e-2


def learned(settings, simulator, members, steps):
    rig = Rig(settings, simulator, members)
    run = rig.start(0)
    for _ in range(steps // 1000):
        run = rig.advance(run, 1000)
        run = run._replace(episodes=run.episodes._replace(ended=jnp.int32(0)))
    assert int(run.finite.kind) == 0
    return run.learner


def table(simulator, learner):
    states = jnp.arange(simulator.n_states, dtype=jnp.int32)
    return np.asarray(q_values(SETTINGS.network, learner.q, jax.vmap(simulator.observe)(states)))


@pytest.mark.parametrize("robust", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_mars_rover_ends_at_exact_robust_values(robust):
    """Targets of members are exact expectations, so nothing is left but the optimiser's last step."""
    members = RISKS if robust else UncertaintySet.single(ROVER)
    settings = replace(SETTINGS, nature=Worst() if robust else Average())
    q = table(ROVER, learned(settings, ROVER, members, 6000))
    exact = urbe.solve(*scenarios(ROVER, members, discount=0.9), urbe.ValueIteration(tolerance=1e-8))
    live = range(ROVER.goal)
    np.testing.assert_allclose(q.max(axis=-1)[live], exact.value[live], atol=NEAR)
    # where another action is clearly worse, the greedy one is among the best
    values = np.asarray(exact.value)
    assert (values[live] > 0).any()
    gap = np.sort(q, axis=-1)[:, -1] - np.sort(q, axis=-1)[:, -2]
    sure = [s for s in live if gap[s] > 2 * NEAR]
    assert sure
    assert all(q[s].argmax() == exact.policy[s] for s in sure)


def test_robust_and_nominal_values_differ_enough_to_be_distinguished():
    nominal, robust = (
        urbe.solve(*scenarios(ROVER, members, discount=0.9)).value for members in (UncertaintySet.single(ROVER), RISKS)
    )
    assert np.abs(np.asarray(nominal) - np.asarray(robust)).max() > 10 * NEAR


@pytest.mark.slow
def test_one_hot_features_count_visits():
    """With an identity for a trunk phi is the state, and the inverse counts of a run are those of a table."""
    variance = LastLayer(beta=0.0, mu=0.5, hidden=(), learning_rate=1e-9)
    d = ROVER.size**2
    settings = replace(SETTINGS, network=Network((d,)), variance=variance, learning_rate=1e-12, capacity=400)
    rig = Rig(settings, ROVER)
    run = rig.start(0)
    identity = Layer(jnp.eye(d, dtype=jnp.float32), jnp.zeros(d, jnp.float32))
    run = run._replace(learner=run.learner._replace(q=(identity, *run.learner.q[1:])))
    run = rig.advance(run, 400)
    counts = np.zeros((d, 4))
    cells = np.asarray(run.learner.replay.obs).argmax(axis=-1)
    np.add.at(counts, (cells, np.asarray(run.learner.replay.action)), 1)
    assert counts.max() > 20
    with double():
        ask = jax.jit(jax.vmap(inverse_count, (None, None, 0)))
        for a in range(4):
            found = ask(run.learner.head.gram, jnp.int32(a), jnp.eye(d, dtype=jnp.float32))
            np.testing.assert_allclose(found, 0.5 / (1 + 0.5 * counts[:, a]), rtol=1e-6)


@pytest.mark.slow
def test_seven_states_end_at_exact_robust_values():
    seven = SevenStates()
    members = UncertaintySet.grid(seven, **{seven.nominal()._fields[0]: (0.05, 0.3)})
    q = table(seven, learned(replace(SETTINGS, nature=Worst()), seven, members, 8000))
    exact = urbe.solve(*scenarios(seven, members, discount=0.9))
    start = int(np.asarray(seven.start_distribution(seven.nominal())).argmax())
    assert q[start].max() == pytest.approx(exact.value[start], abs=NEAR)
