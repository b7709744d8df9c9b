"""Settings of the neural soft-robust actor-critic."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from urbe import checks
from urbe.deep.core.networks import Network


@dataclass(frozen=True)
class ActorCriticSettings:
    """Step sizes are critic_rate / (1 + t / delay)^critic_power after t updates, and the same for the actor.

    Args:
      criterion: "discounted" rewards, or "average" reward, in which a new episode is a restart.
      draw: whether a member is drawn in every "step", or once per "episode".
      actor, critic: networks; the critic has a single output.
      discount: discount of rewards.
      lanes, rollout: number of parallel episodes, and steps of each between two updates.
      critic_rate, actor_rate: initial learning rates of Adam.
      critic_power, actor_power, delay: decay of the rates; the actor's is faster, so that the critic tracks it.
      gain_rate: learning rate of the average reward, per update.
      entropy: bonus on the entropy of the policy, at least 0.
      reward_scale: rewards are divided by it.
    """

    criterion: Literal["discounted", "average"] = "discounted"
    draw: Literal["step", "episode"] = "step"
    actor: Network = field(default_factory=lambda: Network(hidden=(64, 64)))
    critic: Network = field(default_factory=lambda: Network(hidden=(64, 64)))
    discount: float = 0.99
    lanes: int = 16
    rollout: int = 16
    critic_rate: float = 3e-3
    actor_rate: float = 1e-3
    critic_power: float = 0.1
    actor_power: float = 0.3
    delay: float = 1000.0
    gain_rate: float = 0.01
    entropy: float = 0.0
    reward_scale: float = 1.0

    def __post_init__(self) -> None:
        checks.one_of("criterion", self.criterion, ("discounted", "average"))
        checks.one_of("draw", self.draw, ("step", "episode"))
        checks.number("discount", self.discount, 0.0, 1.0)
        checks.whole_number("lanes", self.lanes, 1)
        checks.whole_number("rollout", self.rollout, 1)
        for name in ("critic_rate", "actor_rate", "delay", "gain_rate", "reward_scale"):
            checks.positive(name, getattr(self, name))
        for name in ("critic_power", "actor_power", "entropy"):
            checks.number(name, getattr(self, name), 0.0, float("inf"), closed=False)
        if self.actor_power <= self.critic_power:
            raise ValueError(
                f"actor_power is {self.actor_power:g}, expected more than critic_power, {self.critic_power:g}: the "
                "steps of the actor must become small compared with those of the critic."
            )
