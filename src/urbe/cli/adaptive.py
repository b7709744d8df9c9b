"""The adaptive agents of `urbe train`: their options, and how they are made, trained and summarised."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from urbe import overrides
from urbe.cli import worlds

AGENTS = ("bayes-adaptive-dqn", "thompson-dqn", "adaptive-dqn")

HELP = """\
adaptive agents (a belief over the members of --over tracks the true one, without gradient steps in deployment)
  bayes-adaptive-dqn  values of pairs of observation and belief: information is worth what it earns later
  thompson-dqn        values under each member; acts for a member drawn from the belief, once per episode
  adaptive-dqn        values under each member; acts on the worst credible one, or on --set nature=...
They learn in simulated lives (--set lives=64 length=32) and need more --steps: a million take 10 to 30 CPU seconds on
simulators of urbe, and far longer on Gymnasium environments, which step once for every member.
--set also changes what they assume: hazard (probability that the true member changes; several with commas if it is
unknown), per (step or episode), temper, floor, flip, and level (caution of bayes-adaptive-dqn: 1 is the mean over the
belief, 0 its worst member); other natures as nature=module:attribute. log.csv has a row per round of lives x length.
urbe evaluate plays each test episode from the prior belief; docs/belief.md deploys them over many episodes.
"""


@dataclass(frozen=True)
class Assumed:
    """Options of `--set` that are not settings: the assumed changes of the true member, likelihoods and caution."""

    hazard: tuple[float, ...] = (0.0,)
    per: Literal["step", "episode"] = "step"
    temper: float = 1.0
    floor: float = 1e-3
    flip: float = 0.05
    level: float = 1.0


def make_agent(options: argparse.Namespace) -> Any:
    """Makes the agent that the options describe."""
    from urbe.belief import Switching
    from urbe.deep import AdaptiveSettings, BeliefCVaR
    from urbe.deep.adaptive import presets

    _refuse_unused(options)
    names = [each.name for each in fields(Assumed)]
    own = [each for each in options.set if each.partition("=")[0] in names]
    assumed = overrides.override(Assumed(), own)
    changes = {} if options.agent == "bayes-adaptive-dqn" else presets.INFORMED
    rest = [each for each in options.set if each not in own]
    settings = overrides.override(replace(AdaptiveSettings(), **changes), rest)
    caution = {"caution": settings.nature} if any(each.startswith("nature=") for each in rest) else {}
    if any(each.startswith("level=") for each in own):
        if options.agent != "bayes-adaptive-dqn" or caution:
            raise ValueError("--set level is the caution of bayes-adaptive-dqn, and cannot be combined with nature=.")
        caution = {"caution": BeliefCVaR(assumed.level)}
    if caution and options.agent == "thompson-dqn":
        raise ValueError("--set nature has no effect on thompson-dqn, which acts for one member at a time.")
    env = worlds.world(options.env, paper=False)
    adapter = worlds.adapter_named(options.adapter)
    members = worlds.uncertainty_set(options.env, env, options.over, options.members, options.over_seed, adapter)
    hazard = assumed.hazard[0] if len(assumed.hazard) == 1 else assumed.hazard
    make: Any = {
        "bayes-adaptive-dqn": presets.bayes_adaptive_dqn,
        "thompson-dqn": presets.thompson_dqn,
        "adaptive-dqn": presets.adaptive_dqn,
    }[options.agent]
    return make(
        env,
        members,
        switching=Switching(hazard, assumed.per, temper=assumed.temper),
        seed=options.seed,
        settings=settings,
        floor=assumed.floor,
        flip=assumed.flip,
        **{name: getattr(settings, name) for name in changes},
        **caution,
    )


def _refuse_unused(options: argparse.Namespace) -> None:
    """Raises if options are given that only the other agents have."""
    given = {
        "--paper": options.paper,
        "--evaluate-every": options.evaluate_every is not None,
        "--tensorboard": options.tensorboard,
    }
    for name, is_given in given.items():
        if is_given:
            raise ValueError(f"{name} is for agents of the DQN family; {options.agent} has no such option.")
    if options.adapter is not None and options.env in worlds.SIMULATORS:
        raise ValueError(f"--adapter is for Gymnasium environments; {options.env} has named parameters of its own.")


def train(agent: Any, options: argparse.Namespace) -> None:
    """Trains the agent in the folder."""
    from urbe.deep import train_adaptive

    train_adaptive(
        agent,
        options.out,
        options.steps,
        checkpoint_every=options.checkpoint_every,
        progress=not options.quiet,
    )


def summary(agent: Any, options: argparse.Namespace, seconds: float, further: str) -> str:
    """Describes the trained agent, and names the next command."""
    ended, returns = agent.log["episodes"], agent.log["episode_return"]
    last = np.arange(len(ended)) >= len(ended) // 2
    some = last & (ended > 0)
    mean = np.average(returns[some], weights=ended[some]) if some.any() else np.nan
    returned = "" if np.isnan(mean) else f", mean return in the second half: {mean:.4g}"
    names = [name for name in ("log.csv", "checkpoints") if Path(options.out, name).exists()]
    return (
        f"{agent.step} steps of simulated lives, {ended.sum():.0f} episodes{returned}. {seconds:.3g} s.\n"
        f"{agent.model.n_members} members, {agent.model.switching}.\n"
        f"In {options.out}: {', '.join(names)}.\nNext: urbe evaluate {options.out}{further}"
    )
