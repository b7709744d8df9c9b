"""The adaptive agents by name.

                      | learns values of             | acts on
bayes_adaptive_dqn    | pairs of state and belief    | the belief
thompson_dqn          | states under each member     | a member drawn from the belief, once per episode
adaptive_dqn          | states under each member     | nature over the belief, over the members' values
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from urbe.belief.state import Watch
from urbe.belief.switching import Switching
from urbe.deep.adaptive.agent import AdaptiveAgent
from urbe.deep.adaptive.model import BeliefModel
from urbe.deep.adaptive.natures import BeliefMean, BeliefNature, CredibleWorst
from urbe.deep.adaptive.rules import ActingRule, OnBelief, OnMembers, Thompson
from urbe.deep.adaptive.settings import AdaptiveSettings
from urbe.gym.env_simulator import EnvSimulator
from urbe.gym.kinds import SINGLE, Env
from urbe.gym.members.copies import EnvMembers
from urbe.simulators import Simulator, UncertaintySet

DEFAULT = AdaptiveSettings()
PREDICTING = Watch(limit=50.0)
"""Where members predict: ten times the tolerated error in one entry. The nearest member still serves up to there."""
MEAN = BeliefMean()
CREDIBLE = CredibleWorst()


def bayes_adaptive_dqn(
    env: Simulator | Env,
    uncertainty_set: UncertaintySet | EnvMembers,
    *,
    switching: Switching,
    caution: BeliefNature = MEAN,
    seed: int,
    settings: AdaptiveSettings = DEFAULT,
    watch: Watch | None = None,
    floor: float = 1e-3,
    flip: float = 0.05,
    **changes: Any,
) -> AdaptiveAgent:
    """A Bayes-adaptive agent: Q-values of pairs of observation and belief, so that finding out has its worth.

    Args:
      env: a simulator of `urbe.simulators`, or a Gymnasium environment whose state and parameters can be set, which
        is then simulated by copies of it (`urbe.gym.EnvSimulator`). Deployed, the agent may act in others.
      uncertainty_set: the members that the belief is over; of a Gymnasium environment, its `EnvMembers`.
      switching: what is assumed of how the true member changes: prior and hazard, per step or per episode.
      caution: how members count for a decision: `BeliefMean()`, `BeliefCVaR(level)`, `EpisodeCVaR(level)`,
        `CredibleWorst(alpha)`; `BeliefCVaR(0.0)` is the worst member that is possible at all.
      seed: what all random numbers follow from.
      settings: everything else there is to choose about learning.
      watch: when a deployment admits that no member explains what happens; None for `Watch()` where outcomes are
        known, and a limit of 50 nats where members predict.
      floor, flip: of likelihoods where members predict: errors up to `floor` times the usual size of an observation's
        entry say nothing about members, and members are wrong about the end of an episode with probability `flip`.
      changes: fields of `settings` to change, by name.

    >>> from urbe.belief import Switching
    >>> from urbe.simulators import CartPole, UncertaintySet
    >>> gains = UncertaintySet.grid(CartPole(), include_nominal=False, force=(-10.0, 10.0))
    >>> agent = bayes_adaptive_dqn(
    ...     CartPole(), gains, switching=Switching(hazard=1e-3), seed=0, lives=4, length=8, minibatches=1
    ... )
    >>> agent.learn(100).step
    128
    >>> session = agent.deploy()
    >>> session.act([0.0, 0.0, 0.05, 0.0]) in (0, 1)
    True
    """
    return _agent(
        "bayes-adaptive-dqn", env, uncertainty_set, switching, OnBelief(), seed, settings, watch, floor, flip,
        {"nature": caution} | changes,
    )  # fmt: skip


def thompson_dqn(
    env: Simulator | Env,
    uncertainty_set: UncertaintySet | EnvMembers,
    *,
    switching: Switching,
    seed: int,
    settings: AdaptiveSettings = DEFAULT,
    watch: Watch | None = None,
    floor: float = 1e-3,
    flip: float = 0.05,
    **changes: Any,
) -> AdaptiveAgent:
    """Thompson sampling: draws a member from the belief for each episode, and acts as if it were the true one.

    All arguments as for `bayes_adaptive_dqn`. Values are learned for each member, for one episode alone.
    """
    informed: dict[str, Any] = {"informed": True, "boundary": 0.0}
    return _agent(
        "thompson-dqn", env, uncertainty_set, switching, Thompson(), seed, settings, watch, floor, flip,
        informed | changes,
    )  # fmt: skip


def adaptive_dqn(
    env: Simulator | Env,
    uncertainty_set: UncertaintySet | EnvMembers,
    *,
    switching: Switching,
    caution: BeliefNature = CREDIBLE,
    seed: int,
    settings: AdaptiveSettings = DEFAULT,
    watch: Watch | None = None,
    floor: float = 1e-3,
    flip: float = 0.05,
    **changes: Any,
) -> AdaptiveAgent:
    """The set adapts, the policy is not conditioned on it: acts on the worst value over the credible members.

    All arguments as for `bayes_adaptive_dqn`; `caution` weighs the values under the members, which are learned for each
    of them alone. Finding out has no worth for it: where waiting says nothing, it may wait for ever.
    """
    informed: dict[str, Any] = {"informed": True, "boundary": 0.0}
    return _agent(
        "adaptive-dqn", env, uncertainty_set, switching, OnMembers(caution), seed, settings, watch, floor, flip,
        informed | changes,
    )  # fmt: skip


def _agent(
    name: str,
    env: Simulator | Env,
    uncertainty_set: UncertaintySet | EnvMembers,
    switching: Switching,
    rule: ActingRule,
    seed: int,
    settings: AdaptiveSettings,
    watch: Watch | None,
    floor: float,
    flip: float,
    changes: dict[str, Any],
) -> AdaptiveAgent:
    simulator, members = simulated(env, uncertainty_set)
    model = BeliefModel.of(simulator, members, switching, floor=floor, flip=flip)
    watched = watch if watch is not None else Watch() if model.shared else PREDICTING
    return AdaptiveAgent(name, model, members, replace(settings, **changes), rule, watched, seed)


def simulated(env: Simulator | Env, members: UncertaintySet | EnvMembers) -> tuple[Simulator, UncertaintySet]:
    """What lives are simulated in, and its parameters."""
    if isinstance(env, SINGLE) and isinstance(members, EnvMembers):
        simulator = EnvSimulator(env, members.adapter)
        told = members.describe()
        return simulator, UncertaintySet.from_description(
            simulator, {key: told[key] for key in ("parameters", "nominal")}
        )
    if isinstance(env, Simulator) and isinstance(members, UncertaintySet):
        return env, members
    raise ValueError(
        f"env is {env!r:.100} and uncertainty_set of type {type(members).__name__}, expected a simulator of "
        "urbe.simulators with its UncertaintySet, or a Gymnasium environment with its EnvMembers, such as "
        "EnvMembers.grid(env, ...): beliefs are learned over simulated lives."
    )
