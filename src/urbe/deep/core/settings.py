"""The settings of an agent of the family.

These fields, the environment, the set and the seed determine acting and learning. Fields that the paper leaves open say
so.
"""

from __future__ import annotations

from dataclasses import dataclass, field, is_dataclass

from urbe import checks
from urbe.deep.core.natures import Average, MemberNature
from urbe.deep.core.networks import Network, QNetwork
from urbe.deep.core.optimisers import Adam, Optimiser
from urbe.deep.core.schedules import CopyEvery as CopyEvery
from urbe.deep.core.schedules import Decay as Decay
from urbe.deep.core.schedules import Epsilon as Epsilon
from urbe.deep.core.variances import NoVariance, Variance


@dataclass(frozen=True)
class Settings:
    """Settings of DQN, robust DQN, DQN-UBE, DQN-URBE, soft-robust DQN and their combinations.

    Args:
      nature: combines the members' targets.
      variance: the uncertainty head, which perturbs actions.
      network: the Q-network.
      double: choose the next action with the weights and value it with the target network [Hasselt2016].
      discount: gamma.
      learning_rate: learning rate of the Q-network.
      batch: transitions per gradient step.
      capacity: transitions kept for replay. Not in the paper.
      warm_up: transitions before the first gradient step. Not in the paper.
      train_every: transitions between rounds of gradient steps. Not in the paper; one.
      gradient_steps: gradient steps in each round. Not in the paper; one.
      copy: updates of the target network.
      epsilon: the schedule of random actions.
      huber: the TD error beyond which the loss grows linearly; None is the squared loss. Not in the paper.
      optimiser: the optimiser of both heads.
      clip_norm: the largest Euclidean norm of a network's gradient, over all its layers; larger ones are scaled down to
        it. None never clips. Not in the paper.
      decay: the decay of the learning rates of both heads. Not in the paper; constant.
    """

    nature: MemberNature = field(default_factory=Average)
    variance: Variance = field(default_factory=NoVariance)
    network: QNetwork = field(default_factory=Network)
    double: bool = False
    discount: float = 0.9
    learning_rate: float = 1e-4
    batch: int = 256
    capacity: int = 50_000
    warm_up: int = 1_000
    train_every: int = 1
    gradient_steps: int = 1
    copy: CopyEvery = field(default_factory=lambda: CopyEvery(episodes=10))
    epsilon: Epsilon = field(default_factory=Epsilon)
    huber: float | None = None
    optimiser: Optimiser = field(default_factory=Adam)
    clip_norm: float | None = 10.0
    decay: Decay = field(default_factory=Decay)

    def __post_init__(self) -> None:
        for name, kind, such in (
            ("nature", MemberNature, "one such as Worst()"),
            ("variance", Variance, "NoVariance() or LastLayer(...)"),
            ("network", QNetwork, "a Network(...)"),
            ("copy", CopyEvery, "a CopyEvery(...)"),
            ("epsilon", Epsilon, "an Epsilon(...)"),
            ("optimiser", Optimiser, "an Adam(...), or Transformation(pair) for an optimiser of Optax"),
            ("decay", Decay, "a Decay(...)"),
        ):
            value = getattr(self, name)
            if isinstance(value, type) or not (isinstance(value, kind) and is_dataclass(value)):
                raise ValueError(f"{name} is {value!r}, expected {such}.")
        checks.discount(self.discount)
        checks.positive("learning_rate", self.learning_rate)
        for name in ("batch", "capacity", "warm_up", "train_every", "gradient_steps"):
            checks.whole_number(name, getattr(self, name), 1)
        if self.warm_up > self.capacity:
            raise ValueError(
                f"warm_up is {self.warm_up}, expected at most capacity, {self.capacity}: learning would never begin."
            )
        for name in ("huber", "clip_norm"):
            if getattr(self, name) is not None:
                checks.positive(name, getattr(self, name))
