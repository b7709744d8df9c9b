"""Small Gymnasium environments whose every step can be told in advance."""

from dataclasses import replace

import gymnasium
import numpy as np

from urbe.deep.natures import Worst
from urbe.deep.settings import CopyEvery, Decay, Network, Settings

SMALL = Settings(network=Network(hidden=(8,)), batch=8, capacity=256, warm_up=16, discount=0.9)
"""DQN that compiles and learns quickly; its replay keeps every transition of a short run."""

ROBUST = replace(
    SMALL,
    nature=Worst(),
    clip_norm=0.5,
    decay=Decay(0.1, 100, cosine=True),
    copy=CopyEvery(updates=2, tau=0.1),
    train_every=3,
    gradient_steps=4,
)
"""Its robust sister, with every choice there is about gradient steps."""


class Clock(gymnasium.Env):
    """Sees (start, time, sum of actions, 0); ends by the action taken, and runs out of time by itself.

    It has as many numbers and actions as CartPole, so that both share what is compiled. `start` is drawn from the
    generator, so that two episodes are told apart. With `one_array` every observation is the same array, written
    anew.
    """

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)

    def __init__(self, limit=5, bad=None, one_array=False):
        self.action_space = gymnasium.spaces.Discrete(2, start=5)
        self.limit, self.bad, self.total = limit, bad or {}, 0
        self.seen, self.one_array = np.zeros(4, np.float32), one_array

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        super().reset(seed=seed)
        self.seen = self.seen if self.one_array else self.seen.copy()
        self.seen[:] = [self.np_random.random(), 0.0, 0.0, 0.0]
        return self.seen, {}

    def step(self, action):
        assert action in (5, 6)
        self.total += 1
        self.seen += np.float32([0.0, 1.0, action - 5.5, 0.0])
        terminated = bool(action == 6 and self.seen[1] >= 3)
        reward = float(self.seen[2] + self.seen[0])
        if self.total in self.bad:
            what, number = self.bad[self.total]
            reward = number if what == "reward" else reward
            self.seen[1] = number if what == "observation" else self.seen[1]
        return self.seen, reward, terminated, bool(self.seen[1] >= self.limit), {}


class Remembering(gymnasium.Wrapper):
    """A wrapper nobody knows."""
