"""An environment with all that an adapter can forget, and adapters that forget one thing each."""

import gymnasium
import numpy as np

LUCK = np.random.default_rng(0)
"""A generator that no environment holds."""


class Swing(gymnasium.Env):
    """A weight on a spring, in wind, pushed; its arrays are written in place.

    The next observation depends on the position (seen), the velocity and the wind (hidden), the time, and a generator.

    Args:
      chance: where random numbers come from: "gymnasium", "own" (an attribute), or "global".
      lives: how many steps beyond 1 end an episode; counted by the environment.
      one_array: whether every observation is the array of its position itself, written in place later.
    """

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)

    def __init__(self, gravity=9.8, chance="gymnasium", lives=3, one_array=False):
        self.action_space = gymnasium.spaces.Discrete(3, start=1)
        self.gravity, self.mass, self.chance, self.lives = gravity, 2.0, chance, lives
        self.one_array = one_array
        self.weight = self.gravity * self.mass
        self.position, self.velocity = np.zeros(2), np.zeros(2)
        self.wind, self.time, self.left = 0.0, 0, lives

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        super().reset(seed=seed)
        if self.chance == "own" and (seed is not None or not hasattr(self, "own")):
            self.own = np.random.default_rng(seed)
        self.position[:] = self.np_random.normal(size=2)
        self.velocity[:] = self.np_random.normal(size=2)
        self.wind, self.time, self.left = float(self.np_random.normal()), 0, self.lives
        return self._seen(), {}

    def step(self, action):
        luck = {"gymnasium": self.np_random, "own": getattr(self, "own", None), "global": LUCK}[self.chance]
        self.time += 1
        self.wind = 0.9 * self.wind + 0.1 * luck.normal()
        push = np.array([self.wind + np.cos(self.time), action - 2.0 - 0.01 * self.weight])
        self.velocity += 0.1 * (push - self.position) / self.mass
        self.position += 0.1 * self.velocity
        self.left -= int(np.abs(self.position).max() > 1.0)
        return self._seen(), float(-(self.position**2).sum()), self.left <= 0, False, {}

    def _seen(self):
        return self.position if self.one_array else self.position.copy()


class SwingAdapter:
    """Gets and sets everything."""

    arrays, numbers = ("position", "velocity"), ("wind", "time", "left")

    def get_state(self, env):
        inner = env.unwrapped
        found = {name: getattr(inner, name).copy() for name in self.arrays}
        return found | {name: getattr(inner, name) for name in self.numbers}

    def set_state(self, env, state):
        inner = env.unwrapped
        for name in self.arrays:
            getattr(inner, name)[:] = state[name]
        for name in self.numbers:
            setattr(inner, name, state[name])

    def get_params(self, env):
        return {"gravity": env.unwrapped.gravity, "mass": env.unwrapped.mass}

    def set_params(self, env, params):
        inner = env.unwrapped
        for name, value in params.items():
            setattr(inner, name, value)
        inner.weight = inner.gravity * inner.mass


class DoesNothing(SwingAdapter):
    def set_state(self, env, state):
        pass


class SetsNoWind(SwingAdapter):
    def set_state(self, env, state):
        super().set_state(env, state | {"wind": env.unwrapped.wind})


class NoVelocity(SwingAdapter):
    arrays = ("position",)


class NoTime(SwingAdapter):
    numbers = ("wind", "left")


class NoLives(SwingAdapter):
    numbers = ("wind", "time")


class GivesItsOwnArray(SwingAdapter):
    def get_state(self, env):
        return super().get_state(env) | {"velocity": env.unwrapped.velocity}

    def set_state(self, env, state):
        super().set_state(env, state)
        env.unwrapped.velocity = state["velocity"]


class KeepsTheArrayGiven(SwingAdapter):
    def set_state(self, env, state):
        super().set_state(env, state)
        env.unwrapped.velocity = state["velocity"]


class ForgetsParameters(SwingAdapter):
    """What it is not given becomes what it is by default."""

    def set_params(self, env, params):
        super().set_params(env, {"gravity": 9.8, "mass": 2.0} | dict(params))


class SetsInOtherUnits(SwingAdapter):
    def set_params(self, env, params):
        super().set_params(env, {name: 1000.0 * value for name, value in params.items()})


class DerivesWrongly(SwingAdapter):
    def set_params(self, env, params):
        super().set_params(env, params)
        env.unwrapped.weight = 0.0


class KeepsOwnGenerator(SwingAdapter):
    def get_state(self, env):
        return super().get_state(env) | {"own": env.unwrapped.own.bit_generator.state}

    def set_state(self, env, state):
        super().set_state(env, state)
        env.unwrapped.own.bit_generator.state = state["own"]


class KeepsFrames(SwingAdapter):
    """For `FrameStackObservation` around it."""

    def get_state(self, env):
        return super().get_state(env) | {"frames": [np.array(frame) for frame in env.obs_queue]}

    def set_state(self, env, state):
        super().set_state(env, state)
        env.obs_queue.clear()
        env.obs_queue.extend(np.array(frame) for frame in state["frames"])
