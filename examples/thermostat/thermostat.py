"""A heated room: an environment as users write them, which does not import urbe.

The heater warms the room, which loses heat to the outside; the heater is set to off, half or full every quarter of an
hour. The reward of a step is 1 at 21 degrees, falls with the distance, and includes the cost of heating:

    T' = T + leak (outside - T) + power action / 2 + noise        r = max(-1, 1 - |T' - 21| / 4) - 0.05 action

If it is too cold outside, the heater is too weak: with the default leak of 0.1 and power of 1.5, the room reaches at
most 15 degrees more than outside.
"""

import gymnasium
import numpy as np


class Thermostat(gymnasium.Env):
    """Observations are (temperature - 21) / 10 and the elapsed share of the day.

    Args:
      outside: the outside temperature.
      leak: share of the temperature difference to the outside that the room loses per step.
      power: degrees that full heat adds per step.
      noise: standard deviation of random changes of the temperature per step.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, outside=10.0, leak=0.1, power=1.5, noise=0.1):
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(3)
        self.outside, self.leak, self.power, self.noise = outside, leak, power, noise
        self.temperature, self.clock = 21.0, 0

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        super().reset(seed=seed)
        self.temperature, self.clock = float(self.np_random.uniform(15.0, 24.0)), 0
        return self._observation(), {}

    def step(self, action):
        heat = self.power * float(action) / 2.0
        drift = self.leak * (self.outside - self.temperature)
        self.temperature += drift + heat + self.noise * float(self.np_random.normal())
        self.clock += 1
        reward = max(-1.0, 1.0 - abs(self.temperature - 21.0) / 4.0) - 0.05 * float(action)
        return self._observation(), reward, False, self.clock >= 96, {}

    def get_state(self):
        return {"temperature": self.temperature, "clock": self.clock}

    def set_state(self, state):
        self.temperature, self.clock = state["temperature"], state["clock"]

    def get_params(self):
        return {"outside": self.outside, "leak": self.leak, "power": self.power, "noise": self.noise}

    def set_params(self, **params):
        for name, value in params.items():
            setattr(self, name, value)

    def _observation(self):
        return np.array([(self.temperature - 21.0) / 10.0, self.clock / 96.0], np.float32)
