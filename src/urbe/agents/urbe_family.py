"""The uncertainty robust Bellman equation as an agent, and its special cases.

                    | noise of the posterior's size | plan followed as it is
mean trusted        | UBE                           | CertaintyEquivalent
sets around it      | URBE                          | Robust
drawn model         |                               | PSRL

URBE plans, before each episode, the robust Q of an ambiguity set around the posterior mean and its variance u
(`urbe.agents.set_plan`; L1 balls, the paper's, by `urbe.agents.l1_plan`, KL and chi-square balls by
`urbe.agents.ball_plan`). Each step takes
argmax_a Q_h(s, a) + zeta sqrt(u_h(s, a)) with zeta ~ Normal(0, 1) [Derman2019] Algorithm 1.

Departure: the listing plans before each step and the text before each episode; the text is the default. The listing's
"sample MDP" is `Centre.SAMPLE`; around the mean, the default, plans depend only on the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.agents.base import Streams, Task
from urbe.agents.choose import Noise
from urbe.agents.learner import ModelBasedAgent
from urbe.agents.robust_plans import Centre, Form, Replan, RobustPlans
from urbe.ambiguity.operator import AmbiguitySet, check_set
from urbe.posteriors.beliefs import PosteriorConfig, Stationary
from urbe.types import FloatArray

RADIUS = 0.3
"""The default radius."""

SetOfRadius = Callable[[float], AmbiguitySet]
"""From a radius to a set, such as `KLBall`."""


@dataclass(frozen=True)
class URBE:
    """The agent's parameters; numbers may be given one per replicate.

    Args:
      radius: psi of every ball: at most 2 for L1 balls; not used if `set` is one set.
      scale: beta of the paper, or the number of posterior standard deviations (`Form.CALIBRATED`).
      form: local uncertainty.
      belief: how the posterior follows the data.
      noise: when zeta is drawn.
      replan: when plans are made.
      per_step: whether every step of an episode has its own transition counts.
      centre: the centre of sets.
      set: the ambiguity set around the centre, in place of L1 balls: a set such as `KLBall(0.05)`, or a function from
        `radius` to one, such as `KLBall`.

    >>> import urbe
    >>> from urbe.agents import Task, run
    >>> from urbe.envs.finite import FiniteEnv
    >>> env = FiniteEnv.of(urbe.library.seven_states(0.8))
    >>> record = run(URBE(radius=0.3), env, Task(urbe.Posterior.before(env.feasible), horizon=3), episodes=50, seed=0)
    >>> bool(record.reward[0, -25:].mean() > 0.5)
    True
    """

    radius: ArrayLike = RADIUS
    scale: ArrayLike = 1.0
    form: Form = Form.CALIBRATED
    belief: PosteriorConfig = field(default_factory=Stationary)
    noise: Noise = Noise.STEP
    replan: Replan = Replan.EPISODE
    per_step: bool = False
    centre: Centre = Centre.MEAN
    set: AmbiguitySet | SetOfRadius | None = None

    def start(self, task: Task, streams: Streams) -> ModelBasedAgent:
        n = len(streams.replicates)
        nature = chosen_set(self.radius, self.set, n)
        scale = checks.per_replicate("scale", self.scale, n, 0.0, np.inf)
        strategy = RobustPlans(task, streams, nature, scale, self.form, self.replan, self.centre)
        return ModelBasedAgent(task, streams, self.belief, strategy, self.noise, task.horizon if self.per_step else 1)


@dataclass(frozen=True)
class UBE:
    """The uncertainty Bellman equation [ODonoghue2018]: plans with the posterior mean, URBE without balls.

    Args:
      scale, form, belief, noise, replan, per_step: as for `URBE`.
      set: what nature may do; None trusts the mean, and with a set this is `URBE`.
    """

    scale: ArrayLike = 1.0
    form: Form = Form.CALIBRATED
    belief: PosteriorConfig = field(default_factory=Stationary)
    noise: Noise = Noise.STEP
    replan: Replan = Replan.EPISODE
    per_step: bool = False
    set: AmbiguitySet | None = None

    def start(self, task: Task, streams: Streams) -> ModelBasedAgent:
        radius = _radius_with(self.set)
        same = URBE(radius, self.scale, self.form, self.belief, self.noise, self.replan, self.per_step, set=self.set)
        return same.start(task, streams)


@dataclass(frozen=True)
class PSRL:
    """Posterior sampling [Osband2013]: each episode follows the best policy of a model drawn from the posterior.

    With an ambiguity set, the best one against the worst case around the drawn model: robust posterior sampling.

    Args:
      belief: how the posterior follows the data.
      per_step: whether every step of an episode has transition counts of its own.
      set: what nature may do around the drawn model; None trusts it.
    """

    belief: PosteriorConfig = field(default_factory=Stationary)
    per_step: bool = False
    set: AmbiguitySet | None = None

    def start(self, task: Task, streams: Streams) -> ModelBasedAgent:
        same = URBE(
            _radius_with(self.set), 0.0, belief=self.belief, noise=Noise.NONE, per_step=self.per_step,
            centre=Centre.SAMPLE, set=self.set,
        )  # fmt: skip
        return same.start(task, streams)


@dataclass(frozen=True)
class Robust:
    """Takes the best action against the worst case of an ambiguity set around the posterior mean.

    Args:
      radius, belief, replan, per_step, set: as for `URBE`.
    """

    radius: ArrayLike = RADIUS
    belief: PosteriorConfig = field(default_factory=Stationary)
    replan: Replan = Replan.EPISODE
    per_step: bool = False
    set: AmbiguitySet | SetOfRadius | None = None

    def start(self, task: Task, streams: Streams) -> ModelBasedAgent:
        same = URBE(
            self.radius, 0.0, belief=self.belief, noise=Noise.NONE, replan=self.replan, per_step=self.per_step,
            set=self.set,
        )  # fmt: skip
        return same.start(task, streams)


@dataclass(frozen=True)
class CertaintyEquivalent:
    """Takes the best action of the posterior mean, as if that were the truth.

    Args:
      belief, replan, per_step: as for `URBE`.
    """

    belief: PosteriorConfig = field(default_factory=Stationary)
    replan: Replan = Replan.EPISODE
    per_step: bool = False

    def start(self, task: Task, streams: Streams) -> ModelBasedAgent:
        return Robust(0.0, self.belief, self.replan, self.per_step).start(task, streams)


def _radius_with(set_: AmbiguitySet | None) -> float:
    """The default radius: zero, or None if a set is given."""
    if set_ is None:
        return 0.0
    check_set("set", set_)
    return RADIUS


def chosen_set(
    radius: ArrayLike, set_: AmbiguitySet | SetOfRadius | None, replicates: int
) -> FloatArray | list[AmbiguitySet]:
    """Returns `(B,)` radii of L1 balls, or the set of each replicate."""
    if set_ is None:
        return checks.per_replicate("radius", radius, replicates, 0.0, 2.0)
    if isinstance(set_, type) or (callable(set_) and not hasattr(set_, "operator")):
        radii = checks.per_replicate("radius", radius, replicates, 0.0, np.inf)
        made = {each: set_(each) for each in radii.tolist()}
        for each, ball in made.items():
            check_set(f"set({each:g})", ball)
        return [made[each] for each in radii.tolist()]
    check_set("set", set_)
    if np.ndim(radius) or radius != RADIUS:
        raise ValueError(
            f"radius is {radius!r} and set is {checks.shown(set_)}: give one, or a set for every radius, such as "
            "the class itself (set=KLBall)."
        )
    return [cast("AmbiguitySet", set_)] * replicates
