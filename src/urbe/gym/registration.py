"""Environments by their names in Gymnasium's registry, where our simulators have names too."""

from __future__ import annotations

from typing import Any

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


def make(name: str, **params: Any) -> Any:
    """The environment that `gymnasium.make` makes.

    Raises:
      ValueError: there is none of that name, or it does not take these parameters.
    """
    try:
        return gymnasium.make(name, **params)
    except (gymnasium.error.Error, TypeError) as error:
        given = ", ".join(f"{key}={value:g}" for key, value in params.items())
        raise ValueError(f"{name} cannot be made{' with ' if given else ''}{given}: {error}") from None
