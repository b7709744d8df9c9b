"""Save the best agent of a run in a separate file.

The run's checkpoint of that step is written first, then the copy. If a run is killed between the two, it writes the
copy when it is resumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from urbe.deep.agent import DQNAgent
from urbe.deep.training.callbacks import Callback
from urbe.runs import upgrade
from urbe.runs.errors import CheckpointError
from urbe.runs.tensors import SUFFIX, read_header, save_tensors


def keep_best(agent: DQNAgent, folder: Path, callback: Callback) -> None:
    """Saves the agent as the best by the callback's measure, if the callback keeps one."""
    if callback.keep is not None:
        metadata = {**agent.saved_about(), "step": agent.step}
        save_tensors(folder / f"{callback.keep}{SUFFIX}", agent.tensors(), metadata)
        upgrade.delete_folder_checkpoint(folder / callback.keep)


def settle_best(agent: DQNAgent, folder: Path, callbacks: Sequence[Callback]) -> None:
    """Restores the files of the best agents to their state at the agent's checkpoint.

    Raises:
      CheckpointError: a file holds another agent than the best one.
    """
    for each in callbacks:
        if each.keep is None:
            continue
        path = _best_file(folder, each.keep)
        kept = _step(path) if path.exists() else None
        rows = agent.history.measured[each.name]
        best = each.verdict(rows).best
        expected = None if best is None else int(rows["step"][best])
        if expected == agent.step and kept != expected:
            keep_best(agent, folder, each)
        elif expected is not None and kept is not None and kept != expected and kept <= agent.step:
            raise CheckpointError(
                path,
                f"holds the agent of step {kept}, expected that of step {expected}, the best. Put it back; or delete "
                "it, and the next agent that is better will be kept there.",
            )


def _best_file(folder: Path, name: str) -> Path:
    """The path of the best agent; a folder for urbe 0.1.0."""
    old = folder / name
    return old if upgrade.is_folder_checkpoint(old) else folder / f"{name}{SUFFIX}"


def _step(path: Path) -> int:
    metadata = upgrade.read_folder_manifest(path)["about"] if path.is_dir() else read_header(path).about
    found = metadata.get("step")
    if type(found) is not int:
        raise CheckpointError(path, f"has the step {found!r}, expected a number: it is not the best agent of a run.")
    return found
