"""The agents by name: each is a choice of nature and of variance.

          | no variance       | last layer
observed  | dqn               | dqn_ube
worst     | robust_dqn        | dqn_urbe
          | deep_rok          |
average   | soft_robust_dqn   |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from urbe import checks
from urbe.deep.agent import DQNAgent
from urbe.deep.core.kalman import KalmanLastLayer
from urbe.deep.core.last_layer import LastLayer
from urbe.deep.core.natures import Average, MemberNature, Soft, Worst
from urbe.deep.core.settings import Settings
from urbe.deep.core.variances import NoVariance, Variance
from urbe.deep.loops.make import Environment, Uncertain, make_trainer, require_set
from urbe.simulators import Schedule

DEFAULT = Settings()
LOG_EVERY = 1_000


def dqn(
    env: Environment,
    *,
    seed: int,
    settings: Settings = DEFAULT,
    schedule: Schedule | None = None,
    log_every: int = LOG_EVERY,
    **changes: Any,
) -> DQNAgent:
    """Makes a deep Q-learning agent [Mnih2015].

    Args:
      env: a simulator of `urbe.simulators`, or a Gymnasium environment with discrete actions, or a vector of them.
      seed: seed of all random numbers.
      settings: all other options; `urbe.deep.paper` has the published ones.
      schedule: the changes of a simulator's parameters from episode to episode; None keeps the nominal ones.
      log_every: steps per row of the log.
      changes: fields of `settings` to change, by name.

    >>> from urbe.simulators import CartPole
    >>> agent = dqn(CartPole(), seed=0, capacity=500, warm_up=100, batch=16)
    >>> agent.learn(200).step
    200
    """
    return _agent("dqn", env, None, Average(), NoVariance(), seed, settings, schedule, log_every, changes)


def robust_dqn(
    env: Environment,
    uncertainty_set: Uncertain,
    *,
    seed: int,
    settings: Settings = DEFAULT,
    schedule: Schedule | None = None,
    log_every: int = LOG_EVERY,
    keep_states: bool = False,
    **changes: Any,
) -> DQNAgent:
    """Makes a robust DQN agent [Shashua2017], with worst-case targets over an uncertainty set.

    Args:
      env: as for `dqn`, like all other arguments.
      uncertainty_set: parameters of the simulator; for a Gymnasium environment its `Members`.
      keep_states: whether to store states, so that `agent.set_members` may change the members during training.
    """
    require_set(env, uncertainty_set)
    return _agent(
        "robust-dqn", env, uncertainty_set, Worst(), NoVariance(), seed, settings, schedule, log_every, changes,
        keep_states,
    )  # fmt: skip


def deep_rok(
    env: Environment,
    uncertainty_set: Uncertain,
    *,
    seed: int,
    settings: Settings = DEFAULT,
    schedule: Schedule | None = None,
    log_every: int = LOG_EVERY,
    keep_states: bool = False,
    **changes: Any,
) -> DQNAgent:
    """Makes a deep robust Kalman filter agent [Shashua2017]: robust targets, and a last layer that filters them.

    All arguments as for `robust_dqn`; `optimiser=KalmanLastLayer(...)` sets those of the filter.

    >>> from urbe.simulators import CartPole, UncertaintySet
    >>> poles = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0))
    >>> deep_rok(CartPole(), poles, seed=0, capacity=500, warm_up=100, batch=16).learn(200).step
    200
    """
    require_set(env, uncertainty_set)
    changes = {"optimiser": KalmanLastLayer(), **changes}
    return _agent(
        "deep-rok", env, uncertainty_set, Worst(), NoVariance(), seed, settings, schedule, log_every, changes,
        keep_states,
    )  # fmt: skip


def soft_robust_dqn(
    env: Environment,
    uncertainty_set: Uncertain,
    shares: Sequence[float] | None = None,
    *,
    seed: int,
    settings: Settings = DEFAULT,
    schedule: Schedule | None = None,
    log_every: int = LOG_EVERY,
    keep_states: bool = False,
    **changes: Any,
) -> DQNAgent:
    """Makes a soft-robust DQN agent [Derman2018], whose targets are a weighted mean over the set.

    Args:
      env: as for `robust_dqn`, like all other arguments.
      uncertainty_set: see there.
      shares: the weight of each member, summing to one; None means equal weights.
    """
    nature: MemberNature = Average()
    require_set(env, uncertainty_set)
    if shares is not None:
        checks.distribution("shares", shares, len(uncertainty_set))
        # members of weight 0 are not simulated
        counting = [k for k, share in enumerate(shares) if share > 0.0]
        uncertainty_set = uncertainty_set.only(counting)
        nature = Soft(tuple(shares[k] for k in counting))
    return _agent(
        "soft-robust-dqn", env, uncertainty_set, nature, NoVariance(), seed, settings, schedule, log_every, changes,
        keep_states,
    )  # fmt: skip


def dqn_ube(
    env: Environment,
    *,
    seed: int,
    settings: Settings = DEFAULT,
    schedule: Schedule | None = None,
    log_every: int = LOG_EVERY,
    **changes: Any,
) -> DQNAgent:
    """Makes a DQN agent that explores by the variance of its Q-values [ODonoghue2018]. All arguments as for `dqn`."""
    return _agent("dqn-ube", env, None, Average(), _head(settings), seed, settings, schedule, log_every, changes)


def dqn_urbe(
    env: Environment,
    uncertainty_set: Uncertain,
    *,
    seed: int,
    settings: Settings = DEFAULT,
    schedule: Schedule | None = None,
    log_every: int = LOG_EVERY,
    keep_states: bool = False,
    **changes: Any,
) -> DQNAgent:
    """Makes a DQN-URBE agent [Derman2019]: robust targets, and exploration by the variance of robust Q-values.

    All arguments as for `robust_dqn`. `variance=calibrated()` gives the noise a scale, see `urbe.deep.calibrated`.

    >>> from urbe.simulators import CartPole, UncertaintySet
    >>> poles = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0))
    >>> agent = dqn_urbe(CartPole(), poles, seed=0, capacity=500, warm_up=100, batch=16).learn(200)
    >>> agent.predict([0.0, 0.0, 0.1, 0.0]) in (0, 1)
    True
    """
    require_set(env, uncertainty_set)
    return _agent(
        "dqn-urbe", env, uncertainty_set, Worst(), _head(settings), seed, settings, schedule, log_every, changes,
        keep_states,
    )  # fmt: skip


def _head(settings: Settings) -> Variance:
    """The head of the settings, or the published one if they have none."""
    return LastLayer() if settings.variance == NoVariance() else settings.variance


def _agent(
    name: str,
    env: Environment,
    uncertain: Uncertain | None,
    nature: MemberNature,
    variance: Variance,
    seed: int,
    settings: Settings,
    schedule: Schedule | None,
    log_every: int,
    changes: dict[str, Any],
    keep_states: bool = False,
) -> DQNAgent:
    parts: dict[str, Any] = {"nature": nature, "variance": variance}
    chosen = checks.changed(settings, "settings", "Settings(...)", parts | changes)
    return DQNAgent(name, make_trainer(env, uncertain, chosen, schedule, seed, log_every, keep_states), seed, log_every)
