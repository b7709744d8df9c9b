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
from urbe.simulators import Simulator, UncertaintySet

DEFAULT = AdaptiveSettings()
PREDICTING = Watch(limit=50.0)
"""If members predict: ten times the tolerated error in one entry; up to there the nearest member is good enough."""
MEAN = BeliefMean()
CREDIBLE = CredibleWorst()


def bayes_adaptive_dqn(
    env: Simulator,
    uncertainty_set: UncertaintySet,
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
      env: a simulator of `urbe.simulators`; deployed, the agent may act in others.
      uncertainty_set: the members of the belief.
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
    env: Simulator,
    uncertainty_set: UncertaintySet,
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
    informed: dict[str, Any] = {"informed": True, "boundary": 0.0}
    return _agent(
        "thompson-dqn", env, uncertainty_set, switching, Thompson(), seed, settings, watch, floor, flip,
        informed | changes,
    )  # fmt: skip


def adaptive_dqn(
    env: Simulator,
    uncertainty_set: UncertaintySet,
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
    informed: dict[str, Any] = {"informed": True, "boundary": 0.0}
    return _agent(
        "adaptive-dqn", env, uncertainty_set, switching, OnMembers(caution), seed, settings, watch, floor, flip,
        informed | changes,
    )  # fmt: skip


def _agent(
    name: str,
    env: Simulator,
    uncertainty_set: UncertaintySet,
    switching: Switching,
    rule: ActingRule,
    seed: int,
    settings: AdaptiveSettings,
    watch: Watch | None,
    floor: float,
    flip: float,
    changes: dict[str, Any],
) -> AdaptiveAgent:
    if not isinstance(env, Simulator):
        raise ValueError(
            f"env is {env!r:.100}, expected a simulator of urbe.simulators: beliefs are learned over simulated lives. "
            "The agent can then be deployed in a Gymnasium environment."
        )
    model = BeliefModel.of(env, uncertainty_set, switching, floor=floor, flip=flip)
    watched = watch if watch is not None else Watch() if model.shared else PREDICTING
    return AdaptiveAgent(name, model, uncertainty_set, replace(settings, **changes), rule, watched, seed)
