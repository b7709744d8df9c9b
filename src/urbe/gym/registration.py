"""Register urbe's simulators with Gymnasium, and find environments by name."""

from __future__ import annotations

import gymnasium

ENVIRONMENTS: dict[str, tuple[str, int | None]] = {
    "urbe/Acrobot-v0": ("urbe.simulators.acrobot:Acrobot", 500),
    "urbe/CartPole-v0": ("urbe.simulators.cartpole:CartPole", 500),
    "urbe/DeepSea-v0": ("urbe.simulators.deep_sea:DeepSea", None),  # terminates for any size
    "urbe/MarsRover-v0": ("urbe.simulators.mars_rover:MarsRover", 200),
    "urbe/MountainCar-v0": ("urbe.simulators.mountain_car:MountainCar", 200),
    "urbe/SevenStates-v0": ("urbe.simulators.seven_states:SevenStates", 4),
}
"""The module of each simulator, and the steps after which Gymnasium truncates its episodes."""


def register() -> None:
    """Registers all simulators; each is imported when an environment is made. Calling this twice is harmless."""
    for name, (simulator, steps) in ENVIRONMENTS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="urbe.gym.simulator_env:make",
                max_episode_steps=steps,
                kwargs={"simulator": simulator},
            )
