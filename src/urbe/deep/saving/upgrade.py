"""Convert descriptions of agents from older versions of urbe.

Settings that did not exist then get values with the old behaviour, whatever the current defaults are, so that an old
agent continues unchanged. Version 1 did not clip gradients.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from urbe.runs.directory import CONFIG, read_config
from urbe.runs.errors import CheckpointError

_ADDED: dict[int, dict[str, Any]] = {
    1: {
        "network": {"initial": "he"},
        "gradient_steps": 1,
        "copy": {"tau": 1.0},
        "clip_norm": None,
        "decay": {"kind": "Decay", "last": 1.0, "steps": 100_000, "cosine": False},
    },
    2: {},
}
"""By version: the settings that the next one added, with their effective values before."""


_SEGMENTS = {"trouble": "finite", "gathered": "episode_return", "moments": "optimiser"}
"""Parts of names of tensors up to version 2, and their current names."""


_NAMES = {"Saw": "Sawtooth", "Redrawn": "DomainRandomisation", "usual": "nominal_params"}
"""Kinds and fields of simulators and schedules up to version 2, and their current names."""


def upgraded(about: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a description `about` from an older version to that of the current `DQNAgent.about`."""
    version, settings = about["version"], about["settings"]
    for old, added in _ADDED.items():
        if version == old:
            version = old + 1
            settings = settings if "why" in settings else _filled(settings, added)
    world = _translated(about["world"], _NAMES) if about["version"] in _ADDED else about["world"]
    return {**about, "version": version, "settings": settings, "world": world}


def renamed(about: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The tensors of the agent described by `about`, with current names and with new ones added."""
    if about.get("version") not in _ADDED:
        return _with_meters(dict(tensors))
    return _with_meters(
        {
            "/".join(_SEGMENTS.get(part, part) for part in name.split("/"))
            if name.startswith("trainer/")
            else name: array
            for name, array in tensors.items()
        }
    )


def _with_meters(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Adds counts of deciding members, zero, to tensors from before they were counted."""
    successors = tensors.get("trainer/learner/replay/successors/gain")
    members = 1 if successors is None or successors.ndim != 2 else successors.shape[1]
    if members == 1 or "trainer/meters/steps" not in tensors or "trainer/meters/decided" in tensors:
        return tensors
    found: dict[str, np.ndarray] = {}
    for name, array in tensors.items():
        found[name] = array
        if name == "trainer/meters/sums":
            found["trainer/meters/decided"] = np.zeros(members)
    return found


def as_begun(folder: str | os.PathLike[str], about: dict[str, Any]) -> dict[str, Any]:
    """Converts `about` to the version that began the run in `folder`, if that is older.

    Raises:
      CheckpointError: an older version began the run with other settings.
    """
    path = Path(folder) / CONFIG
    if not os.path.lexists(path):
        return about
    begun = read_config(folder)
    if begun.get("version") not in _ADDED or not isinstance(begun.get("settings"), dict):
        return about
    added, then = _ADDED[begun["version"]], upgraded(begun)["settings"]
    given, before = _restricted(about["settings"], added), _restricted(then, added)
    for name, value in given.items():
        if before.get(name, value) != value:
            raise CheckpointError(
                path,
                f"settings.{name} is {value!r} as given, expected {before[name]!r}: an older urbe, without "
                "this setting, began this run. Give the expected value (with urbe train, --set), or another folder.",
            )
    return {
        **about,
        "version": begun["version"],
        "settings": _restricted(about["settings"], begun["settings"]),
        "world": _translated(about["world"], {today: old for old, today in _NAMES.items()}),
    }


def _translated(data: Any, names: Mapping[str, str]) -> Any:
    """Renames fields and kinds in plain data."""
    if isinstance(data, list):
        return [_translated(item, names) for item in data]
    if not isinstance(data, dict):
        return data
    return {
        names.get(key, key): names.get(value, value) if key == "kind" else _translated(value, names)
        for key, value in data.items()
    }


def _filled(settings: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """Adds missing entries to `settings`, also within parts."""
    found = dict(settings)
    for name, value in added.items():
        if isinstance(value, dict) and isinstance(found.get(name), dict):
            found[name] = _filled(found[name], value)
        else:
            found.setdefault(name, value)
    return found


def _restricted(settings: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `settings` that are known, and those of its parts."""
    return {
        name: _restricted(value, known[name]) if isinstance(value, dict) and isinstance(known[name], dict) else value
        for name, value in settings.items()
        if name in known
    }
