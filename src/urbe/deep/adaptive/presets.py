"""The adaptive agents by name.

                      | learns values of             | acts on
bayes_adaptive_dqn    | pairs of state and belief    | the belief
thompson_dqn          | states under each member     | a member drawn from the belief, once per episode
adaptive_dqn          | states under each member     | nature over the belief, over the members' values
"""

from __future__ import annotations

from typing import Any

from urbe import checks
from urbe.belief.state import Watch
from urbe.belief.switching import Switching
from urbe.deep.adaptive.agent import AdaptiveAgent
from urbe.deep.adaptive.model import BeliefModel
from urbe.deep.adaptive.natures import BeliefMean, BeliefNature, CredibleWorst
from urbe.deep.adaptive.rules import BeliefRule, OnBelief, OnMembers, Thompson
from urbe.deep.adaptive.settings import AdaptiveSettings
from urbe.gym.env_simulator import EnvSimulator
from urbe.gym.kinds import SINGLE, Env
from urbe.gym.members.copies import EnvMembers
from urbe.simulators import Simulator, UncertaintySet

DEFAULT = AdaptiveSettings()
INFORMED: dict[str, Any] = {"informed": True, "boundary": 0.0}
"""Changes for agents that learn values under each member, for single episodes."""
PREDICTING = Watch(limit=50.0)
"""If members predict: ten times the tolerated error in one entry; up to there the nearest member is good enough."""
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
    """Makes a Bayes-adaptive agent: Q-values of pairs of observation and belief include the value of information.

    Args:
      env: a simulator of `urbe.simulators`, or a Gymnasium environment whose state and parameters can be set, which
        is then simulated by copies of it (`urbe.gym.EnvSimulator`). Deployed, the agent may act in others.
      uncertainty_set: the members of the belief; the `EnvMembers` of a Gymnasium environment.
      switching: the assumed changes of the true member: prior and hazard, per step or per episode.
      caution: weights of members in a decision: `BeliefMean()`, `BeliefCVaR(level)`, `EpisodeCVaR(level)`,
        `CredibleWorst(alpha)`; `BeliefCVaR(0.0)` is the worst member with a positive belief.
      seed: seed of all random numbers.
      settings: all other options of learning.
      watch: decides in deployment when no member explains the observations; None for `Watch()` if outcomes are known,
        and a limit of 50 nats if members predict.
      floor, flip: for likelihoods of members that predict: errors up to `floor` times the usual magnitude of an entry
        are no evidence, and members are wrong about the end of an episode with probability `flip`.
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
    """Makes a Thompson sampling agent: it draws a member from the belief for each episode, and acts as if it were true.

    All arguments as for `bayes_adaptive_dqn`. Values are learned for each member, for a single episode.
    """
    return _agent(
        "thompson-dqn", env, uncertainty_set, switching, Thompson(), seed, settings, watch, floor, flip,
        INFORMED | changes,
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
    """Makes an agent that acts on the worst value over the credible members, without a policy over beliefs.

    All arguments as for `bayes_adaptive_dqn`; `caution` weights the values under the members, which are learned for
    each separately. It assigns no value to information: if waiting gives no evidence, it may wait forever.
    """
    return _agent(
        "adaptive-dqn", env, uncertainty_set, switching, OnMembers(caution), seed, settings, watch, floor, flip,
        INFORMED | changes,
    )  # fmt: skip


def _agent(
    name: str,
    env: Simulator | Env,
    uncertainty_set: UncertaintySet | EnvMembers,
    switching: Switching,
    rule: BeliefRule,
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
    return AdaptiveAgent(
        name,
        model,
        members,
        checks.changed(settings, "settings", "AdaptiveSettings(...)", changes),
        rule,
        watched,
        seed,
    )


def simulated(env: Simulator | Env, members: UncertaintySet | EnvMembers) -> tuple[Simulator, UncertaintySet]:
    """Returns the simulator of the lives, and its uncertainty set."""
    if isinstance(env, SINGLE) and isinstance(members, EnvMembers):
        simulator = EnvSimulator(env, members.adapter)
        described = members.describe()
        return simulator, UncertaintySet.from_description(
            simulator, {key: described[key] for key in ("parameters", "nominal")}
        )
    if isinstance(env, Simulator) and isinstance(members, UncertaintySet):
        return env, members
    raise ValueError(
        f"env is {env!r:.100} and uncertainty_set of type {type(members).__name__}, expected a simulator of "
        "urbe.simulators with its UncertaintySet, or a Gymnasium environment with its EnvMembers, such as "
        "EnvMembers.grid(env, ...): beliefs are learned over simulated lives."
    )
