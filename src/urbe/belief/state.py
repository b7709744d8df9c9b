"""The state of a belief and its updates: pure functions, for NumPy and JAX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from urbe import checks
from urbe.belief.arrays import namespace
from urbe.belief.likelihoods import Evidence
from urbe.belief.switching import Switching, of_members


class BeliefState(NamedTuple):
    """The state of a belief; arrays may have leading axes, for several beliefs.

    Attributes:
      log_b: `(..., H, K)` logarithms of the filter's probabilities.
      noise: `(..., D)` running mean square of unpredicted residuals; D is 0 if likelihoods are known.
      count: `(...)` observations so far.
      surprise: `(...)` running mean of the surprise, in nats.
    """

    log_b: Any
    noise: Any
    count: Any
    surprise: Any


@dataclass(frozen=True)
class Watch:
    """The rule that widens a belief if no member explains the observations.

        used = (1 - u) b + u prior,   u = (surprise - limit) / limit, within [0, 1]

    The filter itself does not change; only the belief for decisions is widened.

    Args:
      limit: nats of mean surprise above which the belief is widened; twice that, and decisions are based on the prior.
      memory: observations over which surprise and noise are averaged.
    """

    limit: float = 3.0
    memory: int = 20

    def __post_init__(self) -> None:
        checks.positive("limit", self.limit)
        checks.whole_number("memory", self.memory, 1)


def begin(switching: Switching, n_members: int, n_entries: int = 0) -> BeliefState:
    """The state before the first observation, as NumPy arrays.

    Args:
      switching: the assumption about changes.
      n_members: K.
      n_entries: D, entries of a prediction whose noise is learned.
    """
    return BeliefState(switching.begin(n_members), np.zeros(n_entries), np.zeros((), np.int32), np.zeros(()))


def new_episode(switching: Switching, state: BeliefState) -> BeliefState:
    """The state after the end of an episode, when the member may change."""
    return state._replace(log_b=switching.jump(state.log_b)) if switching.per == "episode" else state


def observe(
    switching: Switching, watch: Watch, state: BeliefState, evidence: Evidence, square: Any = None
) -> tuple[BeliefState, Any]:
    """Updates the state by one observation.

    Args:
      switching: the assumption about changes.
      watch: the number of observations to average over.
      state: the belief before the step.
      evidence: the evidence of the step.
      square: `(..., K, D)` squared residuals of the members' predictions, to learn the noise from.

    Returns:
      the belief after the step, and its surprise in nats.
    """
    xp = namespace(state.log_b)
    before = switching.jump(state.log_b) if switching.per == "step" else state.log_b
    log_b, _ = switching.update(before, evidence.log_likelihood)
    b = of_members(log_b)
    # an observation that a member rules out has the largest finite surprise
    surprise = xp.sum(b * xp.where(xp.isfinite(evidence.surprise), evidence.surprise, 100.0), axis=-1)
    count = state.count + 1
    rate = xp.maximum(1.0 / count, 1.0 / watch.memory)
    noise = state.noise
    if square is not None:
        noise = noise + rate[..., None] * (xp.sum(b[..., None] * square, axis=-2) - noise)
    mean = state.surprise + rate * (surprise - state.surprise)
    return BeliefState(log_b, noise, count, mean), surprise


def used(switching: Switching, watch: Watch, state: BeliefState) -> Any:
    """`(..., K)` the belief for decisions: the filter's, widened if no member explains the observations."""
    xp = namespace(state.log_b)
    b = of_members(state.log_b)
    prior = xp.exp(xp.asarray(switching.log_prior(b.shape[-1]), dtype=b.dtype))
    share = xp.clip((state.surprise - watch.limit) / watch.limit, 0.0, 1.0)[..., None]
    return (1.0 - share) * b + share * prior
