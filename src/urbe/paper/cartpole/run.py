"""Runs one cell of the CartPole comparison: train, test, record states, change the pole, train further.

    metric      acting      at, also          value ("a way": greedy or noisy)
    return      a way       half length       mean return of the test episodes; with a change, after training further
    span        a way                         see `states`
    spread-x    a way                         standard deviation of the positions in tests, metres
    spread-theta  a way                       standard deviation of the angles in tests, degrees
    visits-0    a way       x, theta          how often action 0 was taken in that cell; visits-1 likewise
    curve       training    steps             mean return of the episodes that ended in the 1000 steps before `at`
    episodes    training    episodes          mean return of a group of episodes that ends with number `at`
    before, early, late, after  training      mean return in the windows of a change, see `windows`
    recovery    training                      steps until returns were nearly as high as before, see `recovery`
    steps       training                      steps of training before any change
    ended       training                      episodes that ended in these steps

Curves count steps and episodes from the change, or without a change from the beginning of training; numbers before the
change are negative. The episode during which the pole changes keeps its pole and belongs to neither side. Trained
agents are in the folder of the cell, which resumes after an interruption bit for bit; tests are played again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from urbe.deep import DQNAgent, load, train
from urbe.deep.paper import cartpole
from urbe.evaluation.policies import WAYS
from urbe.evaluation.robustness import evaluate
from urbe.evaluation.trace import trace
from urbe.paper.cartpole import LENGTHS, NOMINAL, PICTURED, CartPoleCell, Row
from urbe.paper.cartpole.agents import changed, in_tests, make
from urbe.paper.cartpole.states import DRAWN, FINE, LEAN, TRACK, count_states, middles, span
from urbe.types import FloatArray

BIN = 1_000
"""Steps per point of a curve; at least four episodes end in each."""

GROUPS = 20
"""Points of a curve over episodes, on each side of the change."""

PART = 10_000
"""Steps between two counts of the episodes, if training is measured in episodes."""

RECOVERED, RECENT = 0.9, 10
"""Recovery: the mean return of this many episodes is at least this share of the return before."""


def run(cell: CartPoleCell, folder: Path) -> list[Row]:
    """All numbers of a cell."""
    agent = trained(make(cell), folder / "run", cell, 0)
    at, before = agent.step, agent.history.episodes
    rows = [_row(cell, 0.0, "training", "steps", 0.0, at), _row(cell, 0.0, "training", "ended", 0.0, _ended(agent))]
    rows += _tests(cell, agent, 0.0, LENGTHS)
    rows += [_row(cell, 0.0, "training", "curve", x, y) for x, y in curve(before["step"], before["return"], at)]
    rows += _states(cell, agent)
    for length in cell.changes:
        agent = load(folder / "run", env=cartpole(), schedule=changed(length))
        agent = trained(agent, folder / f"changed-{length:g}", cell, at)
        rows += _after_change(cell, agent, at, length)
        rows += _tests(cell, agent, length, (length,))
    return rows


def trained(agent: DQNAgent, folder: Path, cell: CartPoleCell, begun: int) -> DQNAgent:
    """Trains the agent for all steps or episodes; resumes from the files in the folder.

    Args:
      agent: the agent after `begun` steps.
      folder: folder of the run, within that of the cell.
      cell: the cell, with the number of steps.
      begun: 0 for the training at the nominal pole.
    """
    wanted = cell.after if begun else cell.training
    had = (begun if cell.unit == "steps" else _ended(agent)) if begun else 0
    train(agent, folder, begun, checkpoint_every=PART, keep=1)  # loads what was saved there, if anything
    while (done := (agent.step if cell.unit == "steps" else _ended(agent)) - had) < wanted:
        steps = min(PART, wanted - done) if cell.unit == "steps" else PART
        train(agent, folder, agent.step + steps, checkpoint_every=PART, keep=1)
    return agent


def _ended(agent: DQNAgent) -> int:
    return len(agent.history.episodes["step"])


def curve(ended: FloatArray, returns: FloatArray, until: int, begin: int = 0) -> list[tuple[float, float]]:
    """Returns (step, mean return of the episodes that ended in the `BIN` steps before), from `begin` on.

    Args:
      ended: `(n,)` steps at which episodes ended, increasing.
      returns: `(n,)` their returns.
      until: the last step.
      begin: the step to count from.
    """
    points = []
    for at in range(begin + BIN, until + 1, BIN):
        here = returns[(ended > at - BIN) & (ended <= at)]
        if len(here):
            points.append((float(at - begin), float(here.mean())))
    return points


def windows(
    ended: FloatArray, returns: FloatArray, change: int, until: int
) -> tuple[dict[str, float], FloatArray, FloatArray]:
    """Computes mean returns before and after a change, in quarters of the time since then.

    Args:
      ended, returns: `(n,)` last steps and returns of all episodes.
      change: the step at which the pole changed.
      until: the last step.

    Returns:
      mean returns "before" (in a quarter of the time, up to the change), "early" (in the first quarter after it),
      "late" (in the last) and "after" (in all four); and steps since the change and returns of the episodes that
      began after it.
    """
    quarter = (until - change) // 4
    after = np.flatnonzero(ended > change)[1:]
    since, earned = ended[after] - change, returns[after]
    parts = {
        "before": returns[(ended > change - quarter) & (ended <= change)],
        "early": earned[since <= quarter],
        "late": earned[since > until - change - quarter],
        "after": earned,
    }
    return {name: float(part.mean()) for name, part in parts.items()}, since, earned


def recovery(before: float, since: FloatArray, earned: FloatArray) -> float:
    """Steps until the last `RECENT` episodes first returned `RECOVERED` of the return before; inf if never."""
    if len(earned) < RECENT:
        return float("inf")
    means = np.convolve(earned, np.full(RECENT, 1.0 / RECENT), "valid")
    there = np.flatnonzero(means >= RECOVERED * before - 1e-9)
    return float(since[there[0] + RECENT - 1]) if len(there) else float("inf")


def _after_change(cell: CartPoleCell, agent: DQNAgent, change: int, length: float) -> list[Row]:
    episodes = agent.history.episodes
    measured, since, earned = windows(episodes["step"], episodes["return"], change, agent.step)
    measured["recovery"] = recovery(measured["before"], since, earned)
    rows = [_row(cell, length, "training", metric, 0.0, value) for metric, value in measured.items()]
    rows += [_row(cell, length, "training", "curve", x, y) for x, y in curve(since, earned, agent.step - change)]
    most = cell.after if cell.unit == "episodes" else cell.after // cartpole().time_limit
    size = max(most // GROUPS, 1)
    old = episodes["return"][episodes["step"] <= change]
    for k in range(min(len(earned), most) // size):
        rows.append(
            _row(cell, length, "training", "episodes", (k + 1.0) * size, earned[k * size : (k + 1) * size].mean())
        )
    for k in range(min(len(old), most) // size):
        end = len(old) - k * size
        rows.append(_row(cell, length, "training", "episodes", -float(k * size), old[end - size : end].mean()))
    return rows


def _tests(cell: CartPoleCell, agent: DQNAgent, change: float, lengths: tuple[float, ...]) -> list[Row]:
    found = evaluate(
        in_tests(cell, agent), {"half_length": lengths}, env=cartpole(), episodes=cell.test_episodes, seed=cell.seed
    )
    return [
        _row(cell, change, way, "return", length, mean)
        for way, episodes in found.played.items()
        for length, mean in zip(lengths, episodes.returns.mean(axis=1).tolist(), strict=True)
    ]


def _states(cell: CartPoleCell, agent: DQNAgent) -> list[Row]:
    """Counts the visited states in the test episodes at the nominal pole."""
    policy: Any = in_tests(cell, agent)
    noisy = agent.policy.is_noisy or policy is not agent
    rows = []
    for way in WAYS if noisy else WAYS[:1]:
        seen = trace(
            policy, cartpole(), {"half_length": NOMINAL}, episodes=cell.test_episodes, seed=cell.seed, acting=way
        )
        states, actions = seen.observation[:, :-1][seen.alive], seen.action[seen.alive]
        x, degrees = states[:, 0].astype(np.float64), np.degrees(states[:, 2].astype(np.float64))
        rows += [
            _row(cell, 0.0, way, "span", 0.0, span(count_states(x, degrees, actions, FINE).sum(axis=0))),
            _row(cell, 0.0, way, "spread-x", 0.0, float(x.std())),
            _row(cell, 0.0, way, "spread-theta", 0.0, float(degrees.std())),
        ]
        if cell.agent in PICTURED:
            counts = count_states(x, degrees, actions, DRAWN)
            across, up = middles(DRAWN, TRACK).tolist(), middles(DRAWN, LEAN).tolist()
            rows += [
                _row(cell, 0.0, way, f"visits-{a}", across[i], float(counts[a, i, j]), up[j])
                for a, i, j in np.argwhere(counts).tolist()
            ]
    return rows


def _row(
    cell: CartPoleCell, change: float, acting: str, metric: str, at: float, value: float, also: float = 0.0
) -> Row:
    return Row(cell.inputs, cell.agent, cell.seed, change, acting, metric, at, also, float(value))
