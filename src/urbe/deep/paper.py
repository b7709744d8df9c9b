"""The published experiments' settings [Derman2019] (appendix), and our assumptions if they are incomplete.

The tables state networks, discount, learning rates, mu, beta, mini-batch, final epsilon, a target interval of 10
(without a unit; episodes here), numbers of episodes, 15 sampled members, and nominal parameters. Everything else is an
assumption, and a field of `Settings`, of the simulator or of the functions here. Gradients are not clipped and learning
rates are constant: the paper mentions neither, and its listing takes plain gradient steps.
"""

from __future__ import annotations

from urbe.deep.core.last_layer import LastLayer
from urbe.deep.settings import CopyEvery, Epsilon, Network, Settings
from urbe.simulators import CartPole, CartPoleParams, MarsRover, Normal, UncertaintySet, Uniform

CARTPOLE_EPISODES, CARTPOLE_CHANGING_EPISODES, MARS_ROVER_EPISODES, TEST_EPISODES = 4_000, 5_000, 3_000, 200
MEMBERS = 15

CARTPOLE = Settings(
    network=Network(hidden=(128, 128, 128)),
    variance=LastLayer(beta=0.5, mu=1e-2, hidden=(100,), learning_rate=1e-4),
    discount=0.9,
    learning_rate=1e-4,
    batch=256,
    capacity=10_000,
    warm_up=1_000,
    copy=CopyEvery(episodes=10),
    epsilon=Epsilon(first=1.0, last=1e-5, steps=20_000),
    clip_norm=None,
)
"""CartPole: three layers of 128; raw observations, replay of 10000 and epsilon's decay are our assumptions."""

MARS_ROVER = Settings(
    network=Network(hidden=(10, 10)),
    variance=LastLayer(beta=0.5, mu=1e-2, hidden=(15,), learning_rate=1e-4),
    discount=0.9,
    learning_rate=1e-4,
    batch=100,
    capacity=10_000,
    warm_up=1_000,
    copy=CopyEvery(episodes=10),
    epsilon=Epsilon(first=1.0, last=1e-3, steps=20_000),
    clip_norm=None,
)
"""Mars Rover: two layers of 10; replay of 10000 and epsilon's decay are our assumptions."""


def cartpole() -> CartPole:
    """A pole of half length 0.75, 200 steps, no reward on falling.

    The paper's "Length = 0.75, Mass = 1" is read as Gymnasium's `length`, half of the pole's, and `masscart`.
    """
    return CartPole(time_limit=200, terminal_reward=0.0, nominal_params=CartPoleParams(half_length=0.75))


def cartpole_set(seed: int) -> UncertaintySet:
    """The nominal pole and 15 half lengths drawn from N(0.75, 0.25^2), above 0.1; the deviation is an assumption."""
    return UncertaintySet.samples(cartpole(), seed, count=MEMBERS, half_length=Normal(0.75, 0.25, low=0.1))


def mars_rover() -> MarsRover:
    """Ten by ten cells, nominal failure probability 0.005, 200 steps; rewards are the assumptions of `MarsRover`."""
    return MarsRover()


def mars_rover_set(seed: int) -> UncertaintySet:
    """The nominal probability and 15 drawn uniformly from (0, 1)."""
    return UncertaintySet.samples(mars_rover(), seed, count=MEMBERS, failure=Uniform(0.0, 1.0))
