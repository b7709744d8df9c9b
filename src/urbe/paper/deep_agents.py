"""The agents of the deep chapters, made from their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from urbe.deep import DQNAgent, Settings, dqn, dqn_ube, dqn_urbe, robust_dqn
from urbe.paper.choice import is_own, load_own

PRESETS: dict[str, Callable[..., DQNAgent]] = {
    "dqn": dqn,
    "dqn-ube": dqn_ube,
    "robust-dqn": robust_dqn,
    "dqn-urbe": dqn_urbe,
}
"""The names of the paper's agents."""

ROBUST = ("robust-dqn", "dqn-urbe")


def explores(agent: str) -> bool:
    """Whether an agent is a control that takes random actions to the end."""
    return agent.endswith("-epsilon")


def make_agent(
    name: str,
    env: Any,
    members: Any,
    *,
    seed: int,
    settings: Settings,
    epsilon: float,
    variants: Mapping[str, Callable[[Any], Any]],
    **options: Any,
) -> DQNAgent:
    """A new agent.

    Args:
      name: one of `PRESETS`; the same with "-epsilon" for a control that never stops exploring; a variant of DQN-URBE;
        or `module:attribute` for one of your own, called like the presets.
      env, members: the environment, and the uncertainty set, which agents without robust targets do not use.
      seed: seed of all its random numbers.
      settings: the settings of the chapter.
      epsilon: the last share of random actions of controls.
      variants: by name, a function from the variance of the settings to that of a variant of DQN-URBE.
      options: other arguments of the presets.
    """
    if is_own(name):
        own: DQNAgent = load_own(name)(env, members, seed=seed, settings=settings)
        return own
    if explores(name):
        settings = replace(settings, epsilon=replace(settings.epsilon, last=epsilon))
    if name in variants:
        settings = replace(settings, variance=variants[name](settings.variance))
    preset = "dqn-urbe" if name in variants else name.removesuffix("-epsilon")
    given = (members,) if preset in ROBUST else ()
    return PRESETS[preset](env, *given, seed=seed, settings=settings, **options)
