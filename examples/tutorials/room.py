"""A heated room as a Gymnasium environment: the simulator of the tutorial `practice`, which does not import urbe.

Every hour the heater is off, at half power or at full power. People are present from 7 to 19 o'clock and want at least
20 degrees; energy costs money. The air warms quickly, the walls slowly, and the air loses heat to the outside.
"""

import gymnasium
import numpy as np

COMFORT, HOURS = 20.0, 48


class Room(gymnasium.Env):
    """Rewards are minus costs: 1 per degree and hour below 20 while people are present, 0.5 per hour at full power.

    Args:
      leak: share of the temperature difference to the outside that the air loses per hour.
      power: degrees per hour at full power.
    """

    def __init__(self, leak: float = 0.12, power: float = 6.0) -> None:
        self.observation_space = gymnasium.spaces.Box(-10.0, 10.0, (5,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(3)
        self.leak, self.power = leak, power
        self.hour, self.air, self.wall, self.cold = 0, 15.0, 15.0, 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.hour = 0
        self.air, self.wall = self.np_random.uniform(13.0, 17.0, 2)
        self.cold = float(self.np_random.uniform(-6.0, 4.0))  # how cold these two days are
        return self._seen(), {}

    def step(self, action):
        for _ in range(4):  # quarters of an hour
            heat = self.power * action / 2.0
            flow = 0.5 * (self.wall - self.air) + self.leak * (self._outside() - self.air)
            self.wall += 0.25 * 0.08 * (self.air - self.wall)
            self.air += 0.25 * (heat + flow)
        self.hour += 1
        short = max(COMFORT - self.air, 0.0) if self.occupied else 0.0
        cost = short + 0.5 * action / 2.0
        return self._seen(), -cost, False, self.hour == HOURS, {"short": short}

    @property
    def occupied(self) -> bool:
        """Whether people were present in the last hour."""
        return 7 <= (self.hour - 1) % 24 < 19

    def get_state(self):
        """Returns everything that the next step depends on, except parameters and the random generator."""
        return np.array([self.hour, self.air, self.wall, self.cold])

    def set_state(self, state):
        """Restores a state from `get_state`."""
        self.hour, self.air, self.wall, self.cold = int(state[0]), *map(float, state[1:])

    def get_params(self):
        """Returns the parameters by name."""
        return {"leak": self.leak, "power": self.power}

    def set_params(self, params):
        """Changes some of the parameters."""
        self.leak, self.power = params.get("leak", self.leak), params.get("power", self.power)

    def _outside(self) -> float:
        return self.cold + 4.0 * np.sin(2.0 * np.pi * (self.hour - 9) / 24.0)

    def _seen(self):
        angle = 2.0 * np.pi * self.hour / 24.0
        now = [(self.air - 20.0) / 5.0, (self.wall - 20.0) / 5.0, self._outside() / 5.0, np.sin(angle), np.cos(angle)]
        return np.array(now, np.float32)
