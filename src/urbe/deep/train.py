"""Training in a folder: killed at any moment and started again, a run ends with the bytes of one that never stopped.

    log.csv         a row per `log_every` steps, columns `urbe.deep.history.LOG`
    episodes.csv    a row per episode, columns `urbe.deep.history.EPISODES`
    checkpoints/    the whole agent, every so many steps and at the end
    finished.json   the step at which the run was done

Everything else about the folder is in `urbe.io.runs`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np

from urbe import checks
from urbe.deep.agent import Agent
from urbe.deep.history import EPISODES, LOG
from urbe.deep.progress import bar
from urbe.deep.tensorboard import Events
from urbe.io.runs import RunDirectory

EVENTS = "tensorboard"
"""Where in the folder TensorBoard's files are."""

_COUNTS = ("step", "updates", "episodes", "length")  # columns of whole numbers


def train(
    agent: Agent,
    folder: str | os.PathLike[str],
    steps: int,
    *,
    checkpoint_every: int = 10_000,
    keep: int = 2,
    progress: bool = False,
    tensorboard: bool = False,
) -> Agent:
    """Learns in a folder until the agent has seen `steps` steps in all, and keeps everything there.

    The same call starts a run, goes on with it after an interruption, and returns at once when it is done; more steps
    extend it. Weights and logs do not depend on interruptions or on `checkpoint_every`, not in one bit. The folder's
    newest checkpoint is the truth: the agent given becomes the one saved there, whatever it knew.

    Nothing is saved on Ctrl-C or on an error: what was learned since the last checkpoint is learned again.

    Args:
      agent: a new one, made as the run's was.
      folder: new, empty, or of the same run.
      steps: of experience in all.
      checkpoint_every: steps between checkpoints.
      keep: how many of the newest checkpoints stay.
      progress: show a bar with what is being learned.
      tensorboard: also write the log for TensorBoard, into `folder/tensorboard`; needs the extra `urbe[tensorboard]`.

    Returns:
      `agent`.

    Raises:
      RunLocked: another process works in the folder.
      CheckpointError: the folder is of another run, of something else, or damaged.
      NotFinite: a number was not finite; the checkpoints are of before.
      OSError: the disk is full, for instance; the checkpoint before is whole.

    >>> import tempfile
    >>> from urbe.deep.presets import dqn
    >>> from urbe.simulators import CartPole
    >>> folder = tempfile.TemporaryDirectory()
    >>> agent = dqn(CartPole(), seed=0, log_every=100, capacity=500, warm_up=100, batch=16)
    >>> train(agent, folder.name, 300).step
    300
    >>> folder.cleanup()
    """
    checks.whole_number("steps", steps, 0)
    checks.whole_number("checkpoint_every", checkpoint_every, 1)
    about = agent.about()
    with RunDirectory(folder, about, keep=keep) as run:
        log, episodes = run.log("log.csv", LOG), run.log("episodes.csv", EPISODES)
        newest = run.latest()
        if newest is not None:
            agent.load_tensors(newest.tensors, run.path)
        else:
            log.extend(_typed(agent.history.log))  # what it learned elsewhere, usually nothing
            episodes.extend(_typed(agent.history.episodes))
            run.save(agent.step, agent.tensors(), agent.saved_about())
        with (
            _events(agent, run.path, tensorboard) as events,
            bar(agent.name, agent.step, steps, shown=progress) as show,
        ):

            def on_record(row: Mapping[str, float], ended: Mapping[str, np.ndarray]) -> None:
                log.append(row)
                episodes.extend(ended)
                if events is not None:
                    events.write(row, ended)
                show(agent.step, row)

            while agent.step < steps:
                until = min((agent.step // checkpoint_every + 1) * checkpoint_every, steps)
                agent.learn(until - agent.step, on_record=on_record)
                if events is not None:
                    events.sync()
                run.save(agent.step, agent.tensors(), agent.saved_about())
        done = {"step": agent.step}
        if run.finished() != done:
            run.finish(done)
    return agent


def _typed(table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A table of the history, with whole numbers where they are counts."""
    return {name: column.astype(np.int64) if name in _COUNTS else column for name, column in table.items()}


def _events(agent: Agent, folder: Path, wanted: bool) -> AbstractContextManager[Events | None]:
    if not wanted:
        return nullcontext()
    rows = agent.history.log["step"]
    return Events(folder / EVENTS, done=int(rows[-1]) if len(rows) else 0)
