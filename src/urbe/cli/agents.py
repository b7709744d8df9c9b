"""The agents of `urbe train` by name, made from its options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import field, make_dataclass, replace
from inspect import signature
from typing import Any, get_type_hints

from urbe import memory, overrides
from urbe.cli import adaptive, worlds

FAMILY = ("dqn", "robust-dqn", "soft-robust-dqn", "dqn-ube", "dqn-urbe", "deep-rok")
RANDOMISED = ("domain-randomised-dqn", "stacked-dqn", "recurrent-dqn")
BASELINES = (*RANDOMISED, "ewok-dqn", "iwocs-dqn")
AGENTS = (*FAMILY, *BASELINES, *adaptive.AGENTS)
ROBUST = ("robust-dqn", "soft-robust-dqn", "dqn-urbe", "deep-rok", *RANDOMISED, "iwocs-dqn")
EXPLORING = ("dqn-ube", "dqn-urbe")
MAY_HAVE_SET = (*ROBUST, "ewok-dqn")


def make_agent(options: argparse.Namespace) -> Any:
    """Makes the agent that the options describe."""
    if options.agent in adaptive.AGENTS:
        return adaptive.make_agent(options)
    make = _maker(options.agent)
    own, rest = _own_options(make, options.set) if options.agent in BASELINES else ({}, options.set)
    options = argparse.Namespace(**{**vars(options), "set": rest})
    env, members, settings = parts(options)
    given = () if members is None else (members,)
    with memory.advising("Use a smaller replay, --set capacity=N, or fewer members."):
        return make(
            env,
            *given,
            seed=options.seed,
            settings=settings,
            log_every=options.log_every,
            **own,
            **_parts_set(options, settings),
        )


def _maker(agent: str) -> Callable[..., Any]:
    """Returns the function that makes agents of that name."""
    from urbe.deep import baselines, presets

    makers: dict[str, Callable[..., Any]] = {
        "dqn": presets.dqn,
        "robust-dqn": presets.robust_dqn,
        "soft-robust-dqn": presets.soft_robust_dqn,
        "dqn-ube": presets.dqn_ube,
        "dqn-urbe": presets.dqn_urbe,
        "deep-rok": presets.deep_rok,
        "domain-randomised-dqn": baselines.domain_randomised_dqn,
        "stacked-dqn": baselines.stacked_dqn,
        "recurrent-dqn": baselines.recurrent_dqn,
        "ewok-dqn": baselines.ewok_dqn,
        "iwocs-dqn": baselines.iwocs_dqn,
    }
    return makers[agent]


def _own_options(make: Callable[..., Any], assignments: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Splits `--set` into arguments of the function, such as kappa, and assignments to settings."""
    hints = get_type_hints(make)
    arguments = [
        (name, hints[name], field(default=argument.default))
        for name, argument in signature(make).parameters.items()
        if (name != "log_every" and isinstance(argument.default, (int, float))) or name == "memory"
    ]
    defaults = make_dataclass("Options", arguments, frozen=True)()
    names = [name for name, _, _ in arguments]
    own = [each for each in assignments if each.partition("=")[0].partition(".")[0] in names]
    changed = overrides.override(defaults, own)
    return {name: getattr(changed, name) for name in names}, [each for each in assignments if each not in own]


def _parts_set(options: argparse.Namespace, settings: Any) -> dict[str, Any]:
    """Returns the parts that `--set` names; the agent's own would replace them otherwise."""
    return {
        name: getattr(settings, name)
        for name in ("nature", "variance", "optimiser")
        if any(s.startswith(f"{name}=") for s in options.set)
    }


def parts(options: argparse.Namespace) -> tuple[Any, Any, Any]:
    """Returns environment, uncertainty set (None for agents without one) and settings."""
    from urbe.deep import LastLayer, NoVariance, paper
    from urbe.deep.settings import Settings

    published = {"cartpole": paper.CARTPOLE, "mars-rover": paper.MARS_ROVER}
    env = worlds.world(options.env, options.paper)
    if options.adapter is not None and options.env in worlds.SIMULATORS:
        raise ValueError(f"--adapter is for Gymnasium environments; {options.env} has named parameters of its own.")
    settings = published[options.env] if options.paper else Settings()
    if options.agent not in EXPLORING:
        settings = replace(settings, variance=NoVariance())
    elif settings.variance == NoVariance():
        settings = replace(settings, variance=LastLayer())
    settings = overrides.override(settings, options.set)
    if options.agent in ROBUST or (options.agent in MAY_HAVE_SET and options.over):
        adapter = worlds.adapter_named(options.adapter)
        members = worlds.uncertainty_set(options.env, env, options.over, options.members, options.over_seed, adapter)
        return env, members, settings
    if options.over:
        raise ValueError(f"--over is for {', '.join(MAY_HAVE_SET)}; {options.agent} learns only from observations.")
    return env, None, settings
