"""Compiled loops that several tests share: compiling takes seconds, running does not."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from urbe.deep.compiled import init_run, make_advance
from urbe.deep.keys import key_data, root_key
from urbe.deep.natures import Average, CVaR, Soft, Worst
from urbe.deep.precision import double
from urbe.deep.settings import CopyEvery, Epsilon, Network, Settings
from urbe.deep.variances import LastLayer
from urbe.simulators import CartPole, Constant, MarsRover, UncertaintySet
from urbe.simulators.mars_rover import one_hot

ROOM = 1000
"""The most steps between two looks."""


class Rig:
    """A compiled loop; runs of it differ in their seeds, and in their schedule's first state."""

    def __init__(self, settings, simulator, uncertain=None, schedule=None):
        self.settings, self.simulator = settings, simulator
        self.uncertain = None if uncertain is None else uncertain.params
        self.schedule = schedule or Constant(simulator.nominal())
        with double():
            self._advance = make_advance(settings, simulator, self.uncertain, schedule)

    def start(self, seed, schedule=None):
        with double():
            return init_run(
                self.settings, self.simulator, self.uncertain, schedule or self.schedule, root_key(seed), ROOM
            )

    def advance(self, run, steps):
        """As many steps; the run it is given may be used again."""
        with double():
            return self._advance(jax.tree.map(jnp.copy, run), jnp.int32(steps))

    def after(self, seed, steps):
        return self.advance(self.start(seed), steps)


def arrays(tree):
    """All leaves as NumPy arrays, keys as their words."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(jax.device_get(key_data(tree)))]


def same_bits(a, b):
    """Whether two trees are equal to the last bit."""
    pairs = list(zip(arrays(a), arrays(b), strict=True))
    return all(x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in pairs)


POLE = CartPole(time_limit=15)  # short enough that some episodes are cut and some end
POLES = UncertaintySet.grid(POLE, half_length=(0.2, 1.5))
ROVER = MarsRover(size=3, start_zone=(2, 2), time_limit=12, encoding=one_hot)
RISKS = UncertaintySet.grid(ROVER, failure=(0.1, 0.4))
SMALL = Settings(
    network=Network((16, 12)),
    learning_rate=1e-3,
    batch=12,
    capacity=96,
    warm_up=10,
    copy=CopyEvery(updates=9),
    epsilon=Epsilon(1.0, 0.1, 80),
)
HEAD = LastLayer(hidden=(6,), learning_rate=1e-3)
KINDS = {
    "observed": (SMALL, None),
    "single": (replace(SMALL, nature=Worst()), "single"),
    "robust": (replace(SMALL, nature=Worst()), "all"),
    "urbe": (replace(SMALL, nature=Worst(), variance=HEAD), "all"),
    "urbe without noise": (replace(SMALL, nature=Worst(), variance=replace(HEAD, beta=0.0)), "all"),
    "one-hot": (replace(SMALL, nature=Soft((1.0,))), "single"),  # what soft_robust_dqn makes of one-hot shares
    "one-hot of three": (replace(SMALL, nature=Soft((1.0, 0.0, 0.0))), "all"),
    "average": (replace(SMALL, nature=Average()), "all"),
    "cvar of all": (replace(SMALL, nature=CVaR(1.0)), "all"),
    "cvar of one": (replace(SMALL, nature=CVaR(1 / 3)), "all"),
    "double": (replace(SMALL, nature=Worst(), double=True), "all"),
}


@cache
def pole_rig(kind):
    """A loop on CartPole with three members, the nominal one first."""
    settings, members = KINDS[kind]
    return Rig(settings, POLE, {None: None, "single": UncertaintySet.single(POLE), "all": POLES}[members])


@cache
def rover_rig(kind):
    """The same on a Mars Rover of nine cells, whose moves may fail."""
    settings, members = KINDS[kind]
    return Rig(settings, ROVER, {None: None, "single": UncertaintySet.single(ROVER), "all": RISKS}[members])
