"""Load saved adaptive agents, which resume bit for bit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from urbe import checks
from urbe.deep.adaptive.agent import VERSION, AdaptiveAgent
from urbe.deep.adaptive.model import BeliefModel
from urbe.deep.saving.describe import build
from urbe.deep.saving.saved import read_any
from urbe.gym.env_simulator import EnvSimulator
from urbe.gym.kinds import SINGLE, Env
from urbe.runs.errors import CheckpointError, refused
from urbe.simulators import Simulator, UncertaintySet
from urbe.simulators.base import observation_size


def load_adaptive(path: str | os.PathLike[str], env: Simulator | Env | None = None) -> AdaptiveAgent:
    """Loads an agent written by `AdaptiveAgent.save` or `train_adaptive`, with its lives, optimiser and random numbers.

    Only kinds that urbe knows are built, each from its own fields; no code in a file is executed.

    Args:
      path: a saved agent, a run's folder (its newest checkpoint), or one checkpoint of a run.
      env: the environment of training, if that was a Gymnasium environment or a simulator of your own; its
        parameters are those of the file.

    Raises:
      CheckpointError: the file is missing, damaged, of another kind, or newer.
    """
    tensors, about, _ = read_any(Path(checks.file_path("path", path)))
    if about.get("family") != "adaptive":
        raise CheckpointError(path, "is not an adaptive agent; other agents are loaded with urbe.deep.load.")
    if about.get("version") not in range(1, VERSION + 1):
        raise CheckpointError(path, f"is of version {about.get('version')!r}, expected at most {VERSION}.")
    with refused(path, "an agent"):
        agent = _built(about, env)
    agent.load_tensors(tensors, path)
    return agent


def is_adaptive(path: str | os.PathLike[str]) -> bool:
    """Whether a file or a run's folder holds an adaptive agent."""
    return bool(read_any(Path(path))[1].get("family") == "adaptive")


def environment_of(path: str | os.PathLike[str]) -> str | None:
    """The Gymnasium environment that an adaptive agent learned in, as text; None for a simulator."""
    found = read_any(Path(path))[1].get("environment")
    return found if isinstance(found, str) else None


def _built(about: dict[str, Any], env: Simulator | Env | None) -> AdaptiveAgent:
    parts = {name: build(name, about[name]) for name in ("settings", "rule", "watch", "switching")}
    parts["simulator"] = _simulator(about["simulator"], env)
    uncertainty_set = UncertaintySet.from_description(parts["simulator"], about["uncertain"])
    unscaled = np.ones(observation_size(parts["simulator"]))  # agents of version 1 had unscaled observations
    model = BeliefModel.of(
        parts["simulator"],
        uncertainty_set,
        parts["switching"],
        floor=about["floor"],
        flip=about["flip"],
        magnitude=np.array(about.get("magnitude", unscaled)),
    )
    return AdaptiveAgent(
        about["agent"], model, uncertainty_set, parts["settings"], parts["rule"], parts["watch"], about["seed"]
    )


def _simulator(about: dict[str, Any], env: Simulator | Env | None) -> Any:
    if "why" not in about:
        if env is not None:
            raise ValueError(f"env is {env}, expected None: the file describes its own environment, a {about['kind']}.")
        return build("simulator", about)
    if env is None:
        raise ValueError(f"{about['why']} Give it: load_adaptive(path, env).")
    return EnvSimulator(env) if isinstance(env, SINGLE) else env
