"""Train an adaptive agent in a folder: killed at any moment and resumed, it ends with the same bytes.

    log.csv           a row per round, columns `urbe.deep.adaptive.agent.LOG`
    checkpoints/      the agent, at fixed intervals and at the end
    finished.json     the final step of the run

`urbe.runs.directory` describes the folder.
"""

from __future__ import annotations

import os

import numpy as np

from urbe import checks
from urbe.deep.adaptive.agent import LOG, AdaptiveAgent
from urbe.progress import progress as shown_progress
from urbe.runs.directory import RunDirectory
from urbe.runs.row_log import RowLog


def train_adaptive(
    agent: AdaptiveAgent,
    folder: str | os.PathLike[str],
    steps: int,
    *,
    checkpoint_every: int = 10_000,
    keep: int = 2,
    progress: bool = False,
) -> AdaptiveAgent:
    """Trains in a folder until `steps` steps have been requested in all, rounded up to whole rounds.

    The same call starts a run, resumes it after an interruption, and returns at once when it is done; more steps extend
    it. If `folder` holds a checkpoint, `agent` is overwritten with it. The result does not depend on interruptions or
    on `checkpoint_every`, not in one bit.

    Args:
      agent: a new agent, made in the same way as that of the run.
      folder: a new or empty folder, or that of the same run.
      steps: steps of simulated experience in all.
      checkpoint_every: steps between checkpoints.
      keep: number of newest checkpoints to keep.
      progress: show progress: a bar on a terminal, otherwise an occasional line on standard error.

    Raises:
      RunLocked: another process works in the folder.
      CheckpointError: the folder belongs to another run, is not that of a run, or is damaged.
      NotFinite: a loss was not finite; the checkpoints are from before.
      NotEnoughMemory: learning needs more memory than is available.

    >>> import tempfile
    >>> from urbe.belief import Switching
    >>> from urbe.deep import bayes_adaptive_dqn, load_adaptive
    >>> from urbe.simulators import CartPole, UncertaintySet
    >>> gains = UncertaintySet.grid(CartPole(), include_nominal=False, force=(-10.0, 10.0))
    >>> agent = bayes_adaptive_dqn(
    ...     CartPole(), gains, switching=Switching(hazard=1e-3), seed=0, lives=4, length=8, minibatches=1
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train_adaptive(agent, folder, 100).step, load_adaptive(folder).step
    (128, 128)
    """
    checks.kind("agent", agent, isinstance(agent, AdaptiveAgent), "an adaptive agent such as bayes_adaptive_dqn(...)")
    checks.file_path("folder", folder)
    checks.whole_number("steps", steps, 0)
    checks.whole_number("checkpoint_every", checkpoint_every, 1)
    with RunDirectory(folder, agent.about(), keep=keep) as run:
        newest = run.latest()
        if newest is not None:
            agent.load_tensors(newest.tensors, run.path)
        log = run.log("log.csv", list(LOG))
        if newest is None:
            _write(log, agent, 0)  # rows from before the run, usually none
            run.save(agent.step, agent.tensors(), agent.about())
        with shown_progress(agent.name, steps, start=min(agent.step, steps), unit="steps", shown=progress) as show:
            while agent.asked < steps:
                until = min((agent.asked // checkpoint_every + 1) * checkpoint_every, steps)
                written = len(agent.log["step"])
                try:
                    agent.learn(until - agent.asked)
                finally:
                    _write(log, agent, written)
                run.save(agent.step, agent.tensors(), agent.about())
                show(min(agent.step, steps), _latest(agent))
        if run.finished() != (done := {"step": agent.step}):
            run.finish(done)
    return agent


def _write(log: RowLog, agent: AdaptiveAgent, first: int) -> None:
    log.extend({column: rows[first:] for column, rows in agent.log.items()})


def _latest(agent: AdaptiveAgent) -> str:
    """The mean return of the last round in which an episode ended."""
    returns = agent.log["episode_return"]
    known = returns[~np.isnan(returns)]
    return f"return {known[-1]:.4g}" if len(known) else ""
