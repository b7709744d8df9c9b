"""Settings of an agent that learns over beliefs."""

from __future__ import annotations

from dataclasses import dataclass, field

from urbe import checks
from urbe.deep.adaptive.natures import BeliefMean, BeliefNature
from urbe.deep.core.dueling import DuelingNetwork
from urbe.deep.core.networks import QNetwork
from urbe.deep.core.optimisers import Adam, Optimiser
from urbe.deep.core.schedules import Decay, Epsilon


@dataclass(frozen=True)
class AdaptiveSettings:
    """Settings of replay-free Q(lambda) over parallel lives.

    Args:
      nature: combines the members' values.
      informed: whether training gives the network the true member in place of the belief: it then learns the values
        under each member, without the value of information.
      network: the Q-network; its inputs are observation and belief (`urbe.deep.adaptive.inputs`).
      discount: from step to step within an episode. Below 1, waiting also discounts all later episodes.
      boundary: the discount from the end of an episode to the start of the next one, below 1.
      trace: lambda, how far returns look ahead before bootstrapping.
      gap: in [0, 1): lowers the targets of inferior actions by this share of their disadvantage; differences between
        actions grow by 1 / (1 - gap), while the best action and its value do not change [Bellemare2016].
      lives: number of lives simulated in parallel.
      length: steps of each life between two rounds of gradient steps.
      minibatches: gradient steps per round, each on its share of the lives.
      learning_rate, decay, optimiser, clip_norm: options of the gradient steps.
      average: the share of the averaged weights that a round keeps; the averaged weights act after training.
      epsilon: the share of steps at which a random action begins.
      hold: the most steps a random action is repeated for.
      between: the share of true parameters that are drawn between two neighbouring members.
      tempers: exponents of the likelihoods; each life has one of them, so that training includes softer beliefs.
      restart: the probability that a life restarts, with the prior as its belief, at the end of an episode.
      repeat: whether an action that changes neither state nor belief counts as repeated until the time limit, as a
        greedy policy does; see `urbe.deep.adaptive.lookahead`. False is the usual one-step target.
      reward_scale: rewards are divided by it, so that values have a moderate size.
    """

    nature: BeliefNature = field(default_factory=BeliefMean)
    informed: bool = False
    network: QNetwork = field(default_factory=DuelingNetwork)
    discount: float = 1.0
    boundary: float = 0.97
    trace: float = 0.98
    gap: float = 0.5
    lives: int = 64
    length: int = 32
    minibatches: int = 4
    learning_rate: float = 1e-3
    decay: Decay = field(default_factory=lambda: Decay(last=0.02, steps=2_000_000))
    optimiser: Optimiser = field(default_factory=Adam)
    clip_norm: float | None = 5.0
    average: float = 0.98
    epsilon: Epsilon = field(default_factory=lambda: Epsilon(first=0.3, last=0.02, steps=1_000_000))
    hold: int = 8
    between: float = 0.0
    tempers: tuple[float, ...] = (1.0,)
    restart: float = 0.02
    repeat: bool = True
    reward_scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "tempers", tuple(float(temper) for temper in self.tempers))
        for name, kind, such in (
            ("nature", BeliefNature, "one such as BeliefMean()"),
            ("network", QNetwork, "a DuelingNetwork(...)"),
            ("decay", Decay, "a Decay(...)"),
            ("optimiser", Optimiser, "an Adam(...)"),
            ("epsilon", Epsilon, "an Epsilon(...)"),
        ):
            value = getattr(self, name)
            if isinstance(value, type) or not isinstance(value, kind):
                raise ValueError(f"{name} is {value!r}, expected {such}.")
        checks.discount(self.discount)
        for name in ("boundary", "gap"):
            if checks.number(name, getattr(self, name), 0.0, 1.0) == 1.0:
                raise ValueError(f"{name} is 1, expected a number of at least 0 and below 1.")
        for name in ("trace", "average", "between", "restart"):
            checks.number(name, getattr(self, name), 0.0, 1.0)
        for name in ("lives", "length", "minibatches", "hold"):
            checks.whole_number(name, getattr(self, name), 1)
        if self.lives % self.minibatches:
            raise ValueError(f"minibatches is {self.minibatches}, expected a divisor of lives, {self.lives}.")
        checks.positive("learning_rate", self.learning_rate)
        checks.positive("reward_scale", self.reward_scale)
        if self.clip_norm is not None:
            checks.positive("clip_norm", self.clip_norm)
        if not self.tempers:
            raise ValueError("tempers is empty, expected at least one exponent: (1.0,).")
        for i, temper in enumerate(self.tempers):
            checks.positive(f"tempers[{i}]", temper)

    @property
    def round(self) -> int:
        """Steps of experience per round of gradient steps."""
        return self.lives * self.length
