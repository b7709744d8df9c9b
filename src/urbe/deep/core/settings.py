"""Everything that can be chosen about an agent of the family, as values.

What an agent does when acting and learning is fixed by these fields, the environment, the set and the seed. Fields the
paper leaves open say so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from urbe import checks
from urbe.deep.core.natures import Average, Nature
from urbe.deep.core.variances import NoVariance, Variance


@dataclass(frozen=True)
class Network:
    """The Q-network: ReLU layers, then one linear output per action; its last hidden layer gives the features.

    Args:
      hidden: units of each hidden layer.
      scale: what observations are divided by before the first layer, one number per entry or one for all. The paper
        says nothing; raw observations (1) and scaled ones behave differently on CartPole.
      initial: how weights are drawn. "he": uniform with variance 2 / inputs, biases zero [He2015]. "torch": weights and
        biases uniform within 1 / sqrt(inputs), PyTorch's default, for which learning rates of other libraries were
        tuned. Not in the paper.
    """

    hidden: tuple[int, ...] = (128, 128, 128)
    scale: tuple[float, ...] = (1.0,)
    initial: Literal["he", "torch"] = "he"

    def __post_init__(self) -> None:
        for name in ("hidden", "scale"):  # settings are hashed, lists are not
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.hidden:
            raise ValueError("hidden is empty, expected at least one layer: its units are the features.")
        for i, units in enumerate(self.hidden):
            checks.whole_number(f"hidden[{i}]", units, 1)
        if not self.scale:
            raise ValueError("scale is empty, expected one number, or one per entry of an observation.")
        for i, divisor in enumerate(self.scale):
            checks.positive(f"scale[{i}]", divisor)
        checks.one_of("initial", self.initial, ("he", "torch"))


@dataclass(frozen=True)
class Epsilon:
    """Share of random actions: linear from `first` to `last` over `steps` steps, then constant.

    The paper gives the last value only.
    """

    first: float = 1.0
    last: float = 1e-5
    steps: int = 20_000

    def __post_init__(self) -> None:
        checks.number("first", self.first, 0.0, 1.0)
        checks.number("last", self.last, 0.0, 1.0)
        checks.whole_number("steps", self.steps, 1)


@dataclass(frozen=True)
class CopyEvery:
    """How the target network follows the weights: after so many episodes, or after so many gradient steps,

        target <- (1 - tau) target + tau weights

    The paper says 10 without a unit; we read episodes, since a target of ten gradient steps is close to none.

    Args:
      episodes: between updates of the target network.
      updates: gradient steps between them; exactly one of the two is given.
      tau: above 0 and at most 1. 1 copies the weights; `CopyEvery(updates=1, tau=0.005)` is Polyak averaging.
    """

    episodes: int | None = None
    updates: int | None = None
    tau: float = 1.0

    def __post_init__(self) -> None:
        given = [name for name in ("episodes", "updates") if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) if given else "neither"
            raise ValueError(f"CopyEvery was given {found}, expected exactly one of episodes and updates.")
        checks.whole_number(given[0], getattr(self, given[0]), 1)
        checks.number("tau", checks.positive("tau", self.tau), 0.0, 1.0)


@dataclass(frozen=True)
class Decay:
    """What learning rates are multiplied by: 1 at the first step, `last` after `steps` steps and from then on.

        1 + (last - 1) part                        linear, part = min(step / steps, 1)
        1 + (last - 1) (1 - cos(pi part)) / 2      cosine

    The default is constant, with which the last gradient steps move the weights as much as the first ones did.

    Args:
      last: the factor at the end, from 0 to 1.
      steps: of experience until then, usually all of a run's.
      cosine: slow at both ends, in place of linear.
    """

    last: float = 1.0
    steps: int = 100_000
    cosine: bool = False

    def __post_init__(self) -> None:
        checks.number("last", self.last, 0.0, 1.0)
        checks.whole_number("steps", self.steps, 1)
        if not isinstance(self.cosine, bool):
            raise ValueError(f"cosine is {self.cosine!r}, expected True or False.")


@dataclass(frozen=True)
class Adam:
    """The optimiser [Kingma2015], for both heads. The paper does not name one."""

    first_decay: float = 0.9
    second_decay: float = 0.999
    offset: float = 1e-8

    def __post_init__(self) -> None:
        checks.number("first_decay", self.first_decay, 0.0, 1.0, closed=False)
        checks.number("second_decay", self.second_decay, 0.0, 1.0, closed=False)
        checks.positive("offset", self.offset)


@dataclass(frozen=True)
class Settings:
    """One agent of the family: DQN, robust DQN, DQN-UBE, DQN-URBE, soft-robust DQN and what lies between.

    Args:
      nature: how the members' targets become one.
      variance: what the agent knows of its uncertainty, and how it explores with it.
      network: the Q-network.
      double: choose the next action with the weights and value it with the target network [Hasselt2016].
      discount: gamma.
      learning_rate: of the Q-network.
      batch: transitions per gradient step.
      capacity: transitions kept for replay. Not in the paper.
      warm_up: transitions before the first gradient step. Not in the paper.
      train_every: transitions between rounds of gradient steps. Not in the paper; one.
      gradient_steps: in each round. Not in the paper; one.
      copy: how the target network follows the weights.
      epsilon: random actions.
      huber: the TD error beyond which the loss grows linearly; None is the squared loss. Not in the paper.
      optimiser: moments of Adam.
      clip_norm: the largest Euclidean norm of a network's gradient, all its layers together; a longer one is scaled
        down to it. None never clips. Not in the paper.
      decay: what the learning rates of both heads are multiplied by in the course of time. Not in the paper; constant.
    """

    nature: Nature = field(default_factory=Average)
    variance: Variance = field(default_factory=NoVariance)
    network: Network = field(default_factory=Network)
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
    optimiser: Adam = field(default_factory=Adam)
    clip_norm: float | None = 10.0
    decay: Decay = field(default_factory=Decay)

    def __post_init__(self) -> None:
        for name, kind, such in (
            ("nature", Nature, "one such as Worst()"),
            ("variance", Variance, "NoVariance() or LastLayer(...)"),
            ("network", Network, "a Network(...)"),
            ("copy", CopyEvery, "a CopyEvery(...)"),
            ("epsilon", Epsilon, "an Epsilon(...)"),
            ("optimiser", Adam, "an Adam(...)"),
            ("decay", Decay, "a Decay(...)"),
        ):
            value = getattr(self, name)
            if isinstance(value, type) or not isinstance(value, kind):
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
