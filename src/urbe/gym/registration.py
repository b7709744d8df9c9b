"""Environments by their names in Gymnasium's registry, where our simulators have names too."""

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
"""Where each simulator is, and the steps after which Gymnasium cuts its episodes off."""


def register() -> None:
    """Tells Gymnasium of all simulators; nothing is imported before an environment is made. Twice does no harm."""
    for name, (simulator, steps) in ENVIRONMENTS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="urbe.gym.simulator_env:make",
                max_episode_steps=steps,
                kwargs={"simulator": simulator},
            )
