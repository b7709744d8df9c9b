"""What older versions of urbe wrote about an agent, in today's terms.

Settings that did not exist then take the values that do what was done then, whatever today's defaults are, so that an
old agent goes on as it was. Version 1 did not clip gradients.
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
"""By version: the settings that the next one added, with what they were in effect before."""


_SEGMENTS = {"trouble": "finite", "gathered": "episode_return", "moments": "optimiser"}
"""Parts of names of tensors up to version 2, and what they are called today."""


_NAMES = {"Saw": "Sawtooth", "Redrawn": "DomainRandomisation", "usual": "nominal_params"}
"""Kinds and fields of simulators and schedules up to version 2, and what they are called today."""


def upgraded(about: Mapping[str, Any]) -> dict[str, Any]:
    """What `Agent.about` would return today for an agent that an older version described by `about`."""
    version, settings = about["version"], about["settings"]
    for old, added in _ADDED.items():
        if version == old:
            version = old + 1
            settings = settings if "why" in settings else _filled(settings, added)
    world = _translated(about["world"], _NAMES) if about["version"] in _ADDED else about["world"]
    return {**about, "version": version, "settings": settings, "world": world}


def renamed(about: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The tensors of an agent that `about` is of, by today's names and with those that are new."""
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
    """Tensors from before the loops counted which members decide: since the last row of the log, none has."""
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
    """`about` in the terms of the run in `folder`, if an older version began it; otherwise as it is.

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
                f"settings.{name} is {value!r} as given, expected {before[name]!r}: an older urbe, which did "
                "not know of it, began this run. Give the expected value (with urbe train, --set), or another folder.",
            )
    return {
        **about,
        "version": begun["version"],
        "settings": _restricted(about["settings"], begun["settings"]),
        "world": _translated(about["world"], {today: old for old, today in _NAMES.items()}),
    }


def _translated(data: Any, names: Mapping[str, str]) -> Any:
    """Plain data with other names of fields and kinds."""
    if isinstance(data, list):
        return [_translated(item, names) for item in data]
    if not isinstance(data, dict):
        return data
    return {
        names.get(key, key): names.get(value, value) if key == "kind" else _translated(value, names)
        for key, value in data.items()
    }


def _filled(settings: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` with what is missing there; the parts of a part that is there, too."""
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
