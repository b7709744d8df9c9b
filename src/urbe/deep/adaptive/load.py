"""Adaptive agents from what was saved of them: they go on bit for bit."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from urbe.deep.adaptive.agent import VERSION, AdaptiveAgent
from urbe.deep.adaptive.model import BeliefModel
from urbe.deep.describe import build
from urbe.runs.errors import CheckpointError, refused
from urbe.runs.tensors import load_tensors
from urbe.simulators import UncertaintySet
from urbe.simulators.base import observation_size


def load_adaptive(path: str | os.PathLike[str]) -> AdaptiveAgent:
    """An agent that `AdaptiveAgent.save` wrote, with its lives, optimiser and random numbers.

    Only kinds that urbe knows are built, each from its own fields; no code in a file runs.

    Raises:
      CheckpointError: there is no such agent, or what there is cannot be read: damaged, of something else, or newer.
    """
    tensors, about = load_tensors(path)
    if about.get("family") != "adaptive":
        raise CheckpointError(path, "is not of an adaptive agent; others are loaded with urbe.deep.load.")
    if about.get("version") not in range(1, VERSION + 1):
        raise CheckpointError(path, f"is of version {about.get('version')!r}, expected at most {VERSION}.")
    with refused(path, "an agent"):
        agent = _built(about)
    agent.load_tensors(tensors, path)
    return agent


def _built(about: dict[str, Any]) -> AdaptiveAgent:
    parts = {name: build(name, about[name]) for name in ("settings", "rule", "watch", "simulator", "switching")}
    uncertainty_set = UncertaintySet.from_description(parts["simulator"], about["uncertain"])
    unscaled = np.ones(observation_size(parts["simulator"]))  # agents of version 1 saw observations as they are
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
