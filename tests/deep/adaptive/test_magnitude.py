"""Units of observations: magnitudes under random actions, for simulators in any units."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.belief import Switching
from urbe.deep.adaptive.inputs import inputs
from urbe.deep.adaptive.magnitude import observation_magnitude
from urbe.deep.adaptive.model import BeliefModel
from urbe.simulators import CartPole, MarsRover, MountainCar, Outcomes, UncertaintySet
from urbe.simulators.base import step
from urbe.simulators.mars_rover import one_hot

CAR = MountainCar()
CARS = UncertaintySet.grid(CAR, include_nominal=False, force=(-0.001, 0.0005, 0.001))


def test_indicators_keep_their_values():
    rover = MarsRover(size=4, start_zone=(2, 2), encoding=one_hot, time_limit=12)
    rovers = UncertaintySet.grid(rover, include_nominal=False, failure=(0.02, 0.5))
    assert (observation_magnitude(rover, rovers.params) == 1.0).all()


def test_it_is_about_what_a_plain_loop_of_random_actions_meets():
    moves, draws, met = jax.jit(lambda *at: step(CAR, *at)), np.random.default_rng(0), []
    for member in range(len(CARS)):
        params = jax.tree.map(lambda leaf, k=member: leaf[k], CARS.params)
        for _ in range(3):
            state = CAR.start(jax.random.key(draws.integers(1 << 30)), params)
            action = draws.integers(3)
            for _ in range(200):
                action = draws.integers(3) if draws.random() < 0.1 else action
                arrived = moves(jax.random.key(0), state, int(action), params)
                state = arrived.state
                met.append(np.asarray(CAR.observe(state)))
                if arrived.terminated:
                    break
    size = np.sqrt((np.array(met) ** 2).mean(axis=0))
    found = observation_magnitude(CAR, CARS.params)
    assert (np.exp2(np.log2(found).round()) == found).all()
    assert (found / size > 0.5).all()
    assert (found / size < 2.0).all()


@pytest.mark.parametrize(("unit", "floor"), [(1.0, 1e-3), (2.0**-10, 1e-3), (2.0**10, 1e-3)])
def test_neither_inputs_nor_evidence_depend_on_the_units_of_a_simulator(unit, floor):
    pole = _Units(CartPole(), unit)
    poles = UncertaintySet.grid(CartPole(), include_nominal=False, force=(-10.0, 5.0, 10.0))
    model = BeliefModel.of(pole, poles, Switching(1e-3), floor=floor)
    plain = BeliefModel.of(CartPole(), poles, Switching(1e-3), floor=floor)
    state = jnp.array([0.1, -0.5, 0.05, 0.3], jnp.float32)
    log_b = jnp.log(jnp.full((1, 3), 1.0 / 3.0))
    assert jnp.array_equal(inputs(model, pole.observe(state), log_b), inputs(plain, state, log_b))
    says = []
    for one in (model, plain):
        found = one.outcomes(state, jnp.int32(1), one.params)
        seen = jax.vmap(jax.vmap(one.simulator.observe))(found.state)
        evidence, _ = one.evidence_of_observation(
            found.probability, seen, found.terminated, seen[2], found.terminated[2], jnp.zeros_like(seen[2])
        )
        says.append(np.asarray(evidence.log_likelihood[0]))
    np.testing.assert_allclose(says[0], says[1], rtol=1e-5)
    assert says[1][2] - says[1][0] > 5.0  # one push tells the directions apart


class _Units:
    """A simulator whose observations are in other units."""

    def __init__(self, simulator, unit):
        self.simulator, self.unit = simulator, unit

    def __getattr__(self, name):
        return getattr(self.simulator, name)

    def observe(self, state):
        return self.simulator.observe(state) * jnp.float32(self.unit)


class Size(NamedTuple):
    size: float = 2.0


@dataclass(frozen=True)
class Probe:
    """Counts steps, which end at 40, and actions 1 in a row; its other entries are known numbers."""

    n_actions: int = 2
    time_limit: int = 100

    def nominal(self):
        return Size(jnp.float32(2.0))

    def start(self, key, params):  # noqa: ARG002
        return jnp.int32(0), jnp.int32(-1), jnp.int32(0), params.size

    def outcomes(self, state, action, params):
        steps, last, run, _ = state
        after = (steps + 1, action, jnp.where(action == last, run + 1, 1), params.size)
        alone = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], after)
        return Outcomes(jnp.ones(1), alone, jnp.zeros(1), (steps + 1 == 40)[None])

    def observe(self, state):
        steps, last, run, size = state
        counts = steps.astype(jnp.float32), jnp.where(last == 1, run, 0).astype(jnp.float32)
        return jnp.stack([0.0 * size, 1e30 * size, 1e-30 * size, size, 0.9 * size, *counts])


def test_every_entry_has_the_nearest_power_of_two_over_members_steps_and_episodes():
    """Exactly: nothing, too much and too little are 1; sizes 2 and 8 have 5.8, and nine tenths of them 5.2.

    Steps from 1 to 40 have 23.5. Runs of one action are long, since a new one is drawn in a tenth of the steps.
    """
    found = observation_magnitude(Probe(), Size(jnp.float32([2.0, 8.0])))
    np.testing.assert_array_equal(found[:6], [1.0, 1.0, 1.0, 8.0, 4.0, 32.0])
    draws, held, square = np.random.default_rng(0), 0, []
    for _ in range(500):
        last, run = -1, 0
        for _ in range(40):
            held = draws.integers(2) if draws.random() < 0.1 else held
            run = run + 1 if held == last else 1
            last = held
            square += [run * run] * held
    assert found[6] == np.exp2(np.log2(np.sqrt(np.mean(square))).round())
