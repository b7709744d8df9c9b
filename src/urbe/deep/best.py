"""The best agent of a run, in a folder of its own.

The run's checkpoint of that step is written first, then the copy. A run that was killed between the two finds, when it
is resumed, that the agent in its newest checkpoint is the best and the folder is not of its step, and writes it then.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from urbe.deep.agent import Agent
from urbe.deep.callbacks import Callback
from urbe.runs.errors import CheckpointError
from urbe.runs.tensors import is_complete, read_manifest, save_tensors, sweep


def keep_best(agent: Agent, folder: Path, callback: Callback) -> None:
    """Saves the agent as the best by what the callback measures, if it keeps any."""
    if callback.keep is not None:
        save_tensors(folder / callback.keep, agent.tensors(), {**agent.saved_about(), "step": agent.step})


def settle_best(agent: Agent, folder: Path, callbacks: Sequence[Callback]) -> None:
    """Makes the folders of the best agents what they were when the agent's checkpoint was written.

    Raises:
      CheckpointError: the folder holds another agent than the best one.
    """
    for each in callbacks:
        if each.keep is None:
            continue
        path = folder / each.keep
        kept = _step(path) if is_complete(path) else None
        rows = agent.history.measured[each.name]
        best = each.verdict(rows).best
        expected = None if best is None else int(rows["step"][best])
        if expected == agent.step and kept != expected:
            keep_best(agent, folder, each)
        elif expected is not None and kept is not None and kept != expected and kept <= agent.step:
            raise CheckpointError(
                path,
                f"holds the agent of step {kept}, expected that of step {expected}, the best. Put it back; or delete "
                "the folder, and the next agent that is better will be kept there.",
            )
        if path.is_dir():
            sweep(path)  # what a crash left of the one before


def _step(path: Path) -> int:
    found = read_manifest(path).about.get("step")
    if type(found) is not int:
        raise CheckpointError(path, f"has the step {found!r}, expected a number: it is not the best agent of a run.")
    return found
