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
from urbe.deep.adaptive.rules import ActingRule, OnBelief, OnMembers, Thompson
from urbe.deep.adaptive.settings import AdaptiveSettings
from urbe.simulators import Simulator, UncertaintySet

DEFAULT = AdaptiveSettings()
PREDICTING = Watch(limit=50.0)
"""Where members predict: ten times the tolerated error in one entry. The nearest member still serves up to there."""
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
    """A Bayes-adaptive agent: Q-values of pairs of observation and belief, so that finding out has its worth.

    Args:
      env: a simulator of `urbe.simulators`; deployed, the agent may act in others.
      uncertainty_set: the members that the belief is over.
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
    """Thompson sampling: draws a member from the belief for each episode, and acts as if it were the true one.

    All arguments as for `bayes_adaptive_dqn`. Values are learned for each member, for one episode alone.
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
    return AdaptiveAgent(
        name,
        model,
        uncertainty_set,
        checks.changed(settings, "settings", "AdaptiveSettings(...)", changes),
        rule,
        watched,
        seed,
    )
