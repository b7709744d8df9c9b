"""Train in a folder: a run that is killed at any moment and resumed ends with the same bytes as an uninterrupted one.

    log.csv           a row per `log_every` steps and one at the end, columns `urbe.deep.training.history.LOG`
    episodes.csv      a row per episode, columns `urbe.deep.training.history.EPISODES`
    members.csv       a row per row of the log, the share of targets that each member decided; only if there are several
    evaluation.csv    a row per measurement of a callback, in a file of its name
    checkpoints/      the agent, at fixed intervals, whenever it is the best so far, and at the end
    best.safetensors  the best agent by a callback's measure, as `DQNAgent.save` writes it
    finished.json     the final step of the run, and the reason if a callback stopped it

The history of the agent is only in the logs; a checkpoint stores how much of each belongs to it.
`urbe.runs.directory` describes the folder.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from urbe import checks
from urbe.deep.agent import DQNAgent
from urbe.deep.saving.saved import past
from urbe.deep.saving.upgrade import as_begun, renamed
from urbe.deep.training.best import keep_best, settle_best
from urbe.deep.training.callbacks import AnyCallback, watchers
from urbe.deep.training.endless import warn_of_endless
from urbe.deep.training.history import LogRows, pending
from urbe.deep.training.progress import learning
from urbe.deep.training.recording import Recorded, learn_and_record
from urbe.deep.training.tensorboard import Events
from urbe.deep.training.who_decides import warn_of_one
from urbe.runs.directory import RunDirectory
from urbe.runs.row_log import RowLog

EVENTS = "tensorboard"
"""The subfolder of TensorBoard's files."""


def train(
    agent: DQNAgent,
    folder: str | os.PathLike[str],
    steps: int,
    *,
    callbacks: Sequence[AnyCallback] = (),
    checkpoint_every: int = 10_000,
    keep: int = 2,
    progress: bool = False,
    tensorboard: bool = False,
) -> DQNAgent:
    """Trains in a folder until the agent has taken `steps` environment steps in all, and saves everything there.

    The same call starts a run, resumes it after an interruption, and returns at once when it is done; more steps extend
    it. Weights and logs do not depend on interruptions or on `checkpoint_every`, not in one bit. If `folder` holds a
    checkpoint, `agent` is overwritten with it. A log that differs from its state at the checkpoint is rejected.

    A run that a callback has stopped returns at once, and `agent.stopped` says why; it continues if the callback has
    another rule, such as a higher `stop_at`. The measurements of callbacks must be the same as at the start of the run.

    Nothing is saved on Ctrl-C or on an error: steps since the last checkpoint are repeated.

    Args:
      agent: a new agent, made in the same way as that of the run.
      folder: a new or empty folder, or that of the same run.
      steps: environment steps in all.
      callbacks: see `DQNAgent.learn`. The best agent by a callback's measure is saved in `best.safetensors`. After a
        kill, functions receive the rows since the newest checkpoint again.
      checkpoint_every: steps between checkpoints.
      keep: number of newest checkpoints to keep.
      progress: show progress: a bar on a terminal, otherwise an occasional line on standard error.
      tensorboard: also write the log for TensorBoard, into `folder/tensorboard`; needs the extra `urbe[tensorboard]`.

    Returns:
      `agent`.

    Raises:
      RunLocked: another process works in the folder.
      CheckpointError: the folder belongs to another run, is not that of a run, or is damaged.
      NotFinite: a number was not finite; the checkpoints are from before.
      OSError: writing failed, for instance because the disk is full; the previous checkpoint is complete.

    Warns:
      OneMemberDecides: one member of the uncertainty set decided nearly all targets.
      NoEpisodeEnded: none has ended in 10000 steps or more.

    >>> import tempfile
    >>> from urbe.deep.presets import dqn
    >>> from urbe.simulators import CartPole
    >>> folder = tempfile.TemporaryDirectory()
    >>> agent = dqn(CartPole(), seed=0, log_every=100, capacity=500, warm_up=100, batch=16)
    >>> train(agent, folder.name, 300).step
    300
    >>> folder.cleanup()
    """
    checks.kind(
        "agent",
        agent,
        isinstance(agent, DQNAgent),
        "an agent such as dqn(env, seed=0), and the folder second; train_adaptive trains adaptive agents",
    )
    checks.file_path("folder", folder)
    checks.whole_number("steps", steps, 0)
    checks.whole_number("checkpoint_every", checkpoint_every, 1)
    watched = watchers(callbacks, agent)
    about = agent.about()
    measures = {each.name: each.describe(agent) for each in watched.measuring}
    config = as_begun(folder, about | ({"callbacks": measures} if measures else {}))
    with RunDirectory(folder, config, keep=keep) as run:
        newest = run.latest()
        if newest is not None:
            agent.load_tensors(renamed(newest.about, newest.tensors), run.path, past(run.path, newest))
            watchers(callbacks, agent)  # the tables of the history that was loaded
        logs = {name: run.log(name, list(rows)) for name, rows in agent.history.files().items()}
        if newest is None:
            for name, rows in agent.history.files().items():
                logs[name].extend(rows)  # rows from before the run, usually none
        saved = None if newest is None else agent.step

        def save(events: Events | None = None) -> None:
            nonlocal saved
            if events is not None:
                events.sync()  # a run that is resumed from this checkpoint does not write them again
            if saved != agent.step:
                run.save(agent.step, agent.trainer_tensors(), agent.saved_about())
                saved = agent.step

        save()
        settle_best(agent, run.path, watched.measuring)
        agent.stopped = watched.stop(agent)
        end = steps if agent.stopped is None else agent.step
        with (
            _events(agent, run.path, tensorboard) as events,
            learning(agent, end, shown=progress) as show,
        ):
            while agent.step < end and agent.stopped is None:
                until = min((agent.step // checkpoint_every + 1) * checkpoint_every, end)
                for recorded in learn_and_record(agent, until, watched.measuring):
                    _write(recorded, logs)
                    if events is not None:
                        events.write(recorded)
                    watched.give(*recorded.rows())
                    show(recorded.rows())
                    agent.stopped = recorded.stop
                    for best in recorded.best:
                        save(events)  # before the copy, so that a run resumed here makes the copy again
                        keep_best(agent, run.path, best)
                save(events)
        if agent.step % agent.log_every:  # behind the checkpoint's part of the logs: a longer run replaces these rows
            _write_rows(pending(agent.trainer), logs)
        done = {"step": agent.step} | ({} if agent.stopped is None else {"stopped": agent.stopped})
        if run.finished() != done:
            run.finish(done)
    warn_of_endless(agent)
    warn_of_one(agent)
    return agent


def _write(recorded: Recorded, logs: dict[str, RowLog]) -> None:
    if recorded.logged is not None:
        _write_rows(recorded.logged, logs)
    for name, row in recorded.measured.items():
        logs[f"{name}.csv"].append(row)


def _write_rows(rows: LogRows, logs: dict[str, RowLog]) -> None:
    logs["log.csv"].append(rows.row)
    logs["episodes.csv"].extend(rows.episodes)
    if rows.members is not None:
        logs["members.csv"].append(rows.members)


def _events(agent: DQNAgent, folder: Path, wanted: bool) -> AbstractContextManager[Events | None]:
    return Events(folder / EVENTS, agent.history) if wanted else nullcontext()
