"""A room that is heated: an environment as users write them, which knows nothing of urbe.

The room gains what the heater gives and loses heat to the outside; the heater, off, half or full, is set every quarter
of an hour. The reward of a step is 1 at 21 degrees, falls with the distance, and pays for the heat:

    T' = T + leak (outside - T) + power action / 2 + noise        r = max(-1, 1 - |T' - 21| / 4) - 0.05 action

Below an outside temperature that the heater can make up for, whatever one does is too little: with the default leak of
0.1 and power of 1.5 the warmest the room can be is outside + 15 degrees.
"""

import gymnasium
import numpy as np


class Thermostat(gymnasium.Env):
    """Observations are (temperature - 21) / 10 and the share of the day that is over.

    Args:
      outside: the outside temperature.
      leak: the share of the difference to the outside that the room loses in a step.
      power: degrees that full heat adds in a step.
      noise: deviation of what else warms or cools the room in a step.
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
