"""Read the files of saved agents and of runs, of this version or an earlier one."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from urbe import checks
from urbe.deep.agent import VERSION
from urbe.deep.saving.upgrade import renamed, upgraded
from urbe.deep.training.history import History
from urbe.runs import upgrade
from urbe.runs.directory import CHECKPOINTS, CONFIG, Checkpoint, read_checkpoint, read_checkpoint_file, read_logs
from urbe.runs.errors import CheckpointError, LogDamaged, refused
from urbe.runs.tensors import load_tensors

LEARNER = "trainer/learner/"
"""The common prefix of the names of the learner's tensors."""


Path_ = str | os.PathLike[str]
_WORLDS = ("simulator", "gymnasium", "none")
_PARTS = {"agent": str, "seed": int, "log_every": int, "settings": dict, "world": dict}


def past(folder: Path, checkpoint: Checkpoint) -> History | None:
    """The history of an agent at a checkpoint of a run, from its logs; None if urbe 0.1.0 saved it with the agent.

    Raises:
      CheckpointError: a log is missing or damaged.
    """
    if any(name.startswith("history/") for name in checkpoint.tensors):
        return None
    return History.of_files(read_logs(folder, checkpoint), folder)


def _past_or_nothing(folder: Path, checkpoint: Checkpoint) -> History | None:
    """The same; empty, with a warning, if a log is lost, since the agent does not need it."""
    try:
        return past(folder, checkpoint)
    except CheckpointError as error:
        warnings.warn(f"{error} The agent is complete, but its history is left out.", LogDamaged, stacklevel=4)
        return History()


class Saved(NamedTuple):
    """The content of a file."""

    path: Path_
    tensors: dict[str, np.ndarray]
    history: History | None
    spaces: dict[str, Any] | None
    name: str
    seed: int
    log_every: int
    settings: dict[str, Any]
    world: dict[str, Any]


class Sizes(NamedTuple):
    """Sizes that an environment and a set of members share with an agent's tensors."""

    obs_size: int
    n_actions: int
    members: int
    outcomes: int


def read_saved(path: Path_) -> Saved:
    """Reads an agent, and checks what the file says of it.

    Raises:
      CheckpointError: the file is missing, damaged, of another kind, or newer.
    """
    tensors, about, run = read_any(Path(checks.file_path("path", path)))
    version = about.get("version")
    if type(version) is not int or version < 1 or not about.keys() >= _PARTS.keys():
        if about.get("family") == "adaptive":
            raise CheckpointError(path, "is an adaptive agent; load it with urbe.deep.load_adaptive.")
        raise CheckpointError(path, f"is not an agent: it contains {checks.listing(sorted(about)) or 'nothing'}.")
    if version > VERSION:
        raise CheckpointError(
            path, f"holds an agent of version {version}, expected at most {VERSION}; read it with a newer urbe."
        )
    for part, kind in _PARTS.items():
        if type(about[part]) is not kind:
            raise CheckpointError(path, f"has the {part} {about[part]!r:.100}, expected one of type {kind.__name__}.")
    if about["world"].get("kind") not in _WORLDS:
        raise CheckpointError(
            path, f"has a world of the kind {about['world'].get('kind')!r:.100}, expected one of {', '.join(_WORLDS)}."
        )
    with refused(path, "an agent"):
        checks.whole_number("seed", about["seed"], 0)
        checks.whole_number("log_every", about["log_every"], 1)
    spaces = about.get("spaces")  # missing in files of urbe 0.1
    if spaces is not None and type(spaces) is not dict:
        raise CheckpointError(path, f"has the spaces {spaces!r:.100}, expected one of type dict.")
    tensors, about = renamed(about, tensors), upgraded(about)
    history = None if run is None else _past_or_nothing(*run)
    return Saved(path, tensors, history, spaces, *(about[part] for part in _PARTS))


def read_any(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any], tuple[Path, Checkpoint] | None]:
    """Reads a run's folder, a checkpoint of a run, or a saved agent; also returns the run, if there is one."""
    if os.path.lexists(path / CONFIG):
        newest = read_checkpoint(path)
        return newest.tensors, newest.about, (path, newest)
    if os.path.lexists(path.parent.parent / CONFIG) and path.parent.name == CHECKPOINTS:
        one = read_checkpoint_file(path)
        return one.tensors, one.about, (path.parent.parent, one)
    tensors, about = upgrade.read_folder_checkpoint(path) if path.is_dir() else load_tensors(path)
    return tensors, about, None


def named(saved: Saved, start: str) -> dict[str, np.ndarray]:
    """The tensors whose names begin with `start`."""
    return {name: array for name, array in saved.tensors.items() if name.startswith(start)}


def sizes_of_tensors(saved: Saved) -> Sizes:
    """The sizes in the tensors."""
    with refused(saved.path, "an agent"):
        _, obs_size = saved.tensors[f"{LEARNER}replay/obs"].shape
        _, members, outcomes = saved.tensors[f"{LEARNER}replay/successors/weight"].shape
        if saved.spaces is None:  # files of urbe 0.1, whose networks were all of layers
            depth = sum(name.startswith(f"{LEARNER}q/") and name.endswith("/bias") for name in saved.tensors)
            (n_actions,) = saved.tensors[f"{LEARNER}q/{depth - 1}/bias"].shape
        else:
            n_actions = checks.whole_number("n_actions", saved.spaces["n_actions"], 1)
    return Sizes(obs_size, n_actions, members, outcomes)
