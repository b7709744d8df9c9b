"""Runs one cell of the comparison.

Metrics of "plans", from the start: `nominal`, `worst`, `held_out`, `held_low` (the 10 % quantile), `true` values of the
policy, `stated` by the system (NaN if it states none), `optimum` and `uniform` under the true model (of the best and
of the uniform policy). `refused` is 1 if the system rejects the model; the others are then missing.

Metrics of "change": `before`, `after` (mean reward of the last hundred episodes of each phase), `kept` (the same after
the change, of the plan from before it), `revisions` (episodes after the change in which they earn different rewards).

Metrics of "grid", for the two kinds of sets: `optimum` (the best return), `true` (the return of the policy in the true
grid), `own` (its return against its own nature), all over 2N steps.

Metrics of "scale": `seconds` for each repeat and number of states; `solved`, the largest number within the limit, and
`limit` itself; `rejected` is 1 if the system rejects the next size. Sizes grow until a plan exceeds the limit, or until
the next one, after three at least, would take twice the limit if time grew as much as from the last size to this one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.event import install_recorder

from urbe.agents import Agent, AgentConfig, Steps, Streams, Task
from urbe.agents.run import run as run_agent
from urbe.ambiguity.l1 import L1Ball
from urbe.envs.finite import FiniteEnv, Phase
from urbe.mdp import library
from urbe.mdp.evaluate import policy_value, start_weights
from urbe.mdp.model import MDP
from urbe.paper.models import MODELS
from urbe.paper.table_one import (
    EACH,
    HELD_OUT,
    NAME,
    SIZES,
    AnyCell,
    ChangeCell,
    GridCell,
    PlanCell,
    Row,
    ScaleCell,
)
from urbe.paper.table_one.grid_study import grid_study
from urbe.paper.table_one.systems import (
    CONDITIONED,
    DELTA,
    OFFLINE_BELIEF,
    ONLINE_BELIEF,
    REFERENCE,
    SYSTEMS,
    Batch,
    Plan,
    System,
)
from urbe.planners.l1_balls import ball_around
from urbe.posteriors.dirichlet import Posterior
from urbe.posteriors.radius import weissman
from urbe.rng import stream
from urbe.solvers import evaluate_policy, solve
from urbe.types import FloatArray, IntArray

HORIZON = 20
"""Horizon of learners in models that never end."""

SHORT, REPEATS = 0.5, 3
"""Timings up to this many seconds are made this often; the least counts."""

OVERRUN, LEAST = 2.0, 3
"""Sizes beyond this number of sizes are not tried if they would take this many times the limit."""

ODDS, EPISODES, LAST = (0.8, 0.1), 300, 100
"""The gamble's odds before and after the change, episodes of each phase, and number of averaged last episodes."""


def run(cell: AnyCell, _: Path) -> list[Row]:
    """Computes the rows of a cell."""
    if isinstance(cell, PlanCell):
        return _plans(cell)
    if isinstance(cell, GridCell):
        return _grid(cell)
    return _change(cell) if isinstance(cell, ChangeCell) else _scale(cell)


def _plans(cell: PlanCell) -> list[Row]:
    truth = _world(cell.world)
    rows: list[Row] = []
    for k in range(cell.first, cell.first + cell.batches):
        batch = batch_of(truth, EACH, stream(cell.seed, NAME, cell.world, k, "batch"), cell.seed + k)
        draws = batch.posterior.draws(stream(cell.seed, NAME, cell.world, k, "held out"), HELD_OUT)
        models = [batch.posterior.model_with(p) for p in draws]
        for name, system in SYSTEMS.items():
            found = _values(truth, batch, models, _plan(system, batch, truth.discount))
            rows += [Row("plans", cell.world, name, k, metric, 0, value) for metric, value in found.items()]
    return rows


def _plan(system: System, batch: Batch, discount: float) -> Plan | None:
    if system.plan is not None:
        return system.plan(batch)
    assert system.agent is not None
    horizon = HORIZON if discount < 1.0 else batch.model.n_states
    policy = learnt_policy(system.agent(OFFLINE_BELIEF), batch, horizon)
    return Plan(policy, np.full(batch.model.n_states, np.nan))


def _values(truth: MDP, batch: Batch, models: list[MDP], plan: Plan | None) -> dict[str, float]:
    if plan is None:
        return {"refused": 1.0}
    start = start_weights(truth)
    held = np.array([start @ policy_value(model, plan.policy) for model in models])
    live = ~truth.terminal[truth.row_state]
    share = live / np.maximum(np.bincount(truth.row_state, minlength=truth.n_states), 1)[truth.row_state]
    uniform = truth.by_action(share, fill=0.0)
    worst = evaluate_policy(batch.model, plan.policy, L1Ball(batch.radius)).lower
    return {
        "refused": 0.0,
        "nominal": float(start @ policy_value(batch.posterior.mean(), plan.policy)),
        "worst": float(start @ worst),
        "held_out": float(held.mean()),
        "held_low": float(np.quantile(held, DELTA)),
        "true": float(start @ policy_value(truth, plan.policy)),
        "stated": float(start @ plan.stated),
        "optimum": float(start @ solve(truth).value),
        "uniform": float(start @ policy_value(truth, uniform)),
    }


def batch_of(truth: MDP, each: int, rng: np.random.Generator, seed: int) -> Batch:
    """Draws `each` transitions of every pair; returns the posterior after them and the reference set.

    Args:
      truth: the true model; all successors it lists are feasible.
      each: number of transitions of every pair.
      rng: generator of the transitions.
      seed: seed of the plans.
    """
    rows = truth.rows
    counts = np.zeros(rows.n_entries)
    for row in range(rows.n_rows):
        a, b = rows.entry_start[row], rows.entry_start[row + 1]
        counts[a:b] = rng.multinomial(each, rows.probability[a:b] / rows.probability[a:b].sum())
    return batch_after(Posterior.before(truth).with_counts(counts), counts, seed)


def batch_after(posterior: Posterior, counts: FloatArray, seed: int) -> Batch:
    """The batch of some counts."""
    rows = posterior.model.rows
    frequencies = counts / rows.row_sums(counts)[rows.entry_row]
    model, ball = ball_around(posterior, frequencies, weissman(posterior, 1.0 - DELTA))
    return Batch(posterior, counts, model, ball.radius, seed)


def learnt_policy(kind: AgentConfig, batch: Batch, horizon: int) -> IntArray:
    """Returns the actions of a learner in every state, after it observed the batch one transition at a time."""
    model = batch.posterior.model
    agent = kind.start(Task(Posterior.before(model), horizon), Streams(batch.seed, np.zeros(1, dtype=np.int64)))
    rows, first = model.rows, np.zeros(1, dtype=np.int64)
    agent.act(first, np.flatnonzero(~model.terminal)[:1], 0)  # some learners compare with a first plan
    for entry in np.repeat(np.arange(rows.n_entries), batch.counts.astype(np.int64)):
        row = int(rows.entry_row[entry])
        reward = rows.reward[entry if rows.rewards_successors else row]
        agent.observe(_step(int(model.row_state[row]), int(model.action[row]), reward, int(rows.successor[entry]),
                            bool(model.terminal[rows.successor[entry]])), 0)  # fmt: skip
    agent.end_episode()
    policy = np.full(model.n_states, -1, dtype=np.int64)
    for state in np.flatnonzero(~model.terminal):
        policy[state] = agent.act(first, np.array([state]), 0)[0]
    return policy


def _step(state: int, action: int, reward: float, following: int, ended: bool) -> Steps:
    one = np.zeros(1, dtype=np.int64)
    flags = np.array([ended]), np.array([False])
    return Steps(one, one + state, one + action, np.array([reward]), one + following, *flags)


def _change(cell: ChangeCell) -> list[Row]:
    system = SYSTEMS[cell.system]
    good, bad = (library.seven_states(odds) for odds in ODDS)
    env = FiniteEnv((Phase(good, EPISODES), Phase(bad, EPISODES)))
    task = Task(Posterior.before(env.feasible), 2)
    rows: list[Row] = []
    who = np.arange(cell.replicates)
    if system.agent is None:
        for k in range(cell.replicates):
            counted = batch_of(good, EACH, stream(cell.seed, NAME, "change", k), cell.seed + k)
            plan = system.plan(counted) if system.plan is not None else None
            if plan is None:
                rows.append(Row("change", "seven_states", cell.system, k, "refused", 0, 1.0))
                continue
            values = [float(start_weights(good) @ policy_value(model, plan.policy)) for model in (good, bad)]
            found = {"refused": 0.0, "before": values[0], "after": values[1], "kept": values[1], "revisions": 0.0}
            rows += [Row("change", "seven_states", cell.system, k, name, 0, value) for name, value in found.items()]
        return rows
    kind = Watched(system.agent(ONLINE_BELIEF), EPISODES)
    going = run_agent(kind, env, task, episodes=2 * EPISODES, seed=cell.seed, replicates=cell.replicates)
    kept = run_agent(
        Watched(system.agent(ONLINE_BELIEF), EPISODES, frozen=True), env, task,
        episodes=2 * EPISODES, seed=cell.seed, replicates=cell.replicates,
    )  # fmt: skip
    moved = (going.reward[:, EPISODES:] != kept.reward[:, EPISODES:]).sum(axis=1)
    for life in who.tolist():
        found = {
            "refused": 0.0,
            "before": going.reward[life, EPISODES - LAST : EPISODES].mean(),
            "after": going.reward[life, -LAST:].mean(),
            "kept": kept.reward[life, -LAST:].mean(),
            "revisions": float(moved[life]),
        }
        rows += [Row("change", "seven_states", cell.system, life, name, 0, float(x)) for name, x in found.items()]
    return rows


@dataclass(frozen=True, eq=False)
class Watched:
    """An agent that stops learning after some episodes, if it is `frozen`, but continues to act."""

    kind: AgentConfig
    episodes: int
    frozen: bool = False

    def start(self, task: Task, streams: Streams) -> Frozen:
        return Frozen(self.kind.start(task, streams), self.episodes if self.frozen else None)


class Frozen:
    """An `Agent` that observes only the first episodes."""

    def __init__(self, agent: Agent, last: int | None) -> None:
        self._agent, self._last, self._episode = agent, last, 0

    def act(self, replicate: IntArray, state: IntArray, step: int) -> IntArray:
        return self._agent.act(replicate, state, step)

    def observe(self, steps: Steps, step: int) -> None:
        """Passes the observation on, up to the last episode of learning."""
        if self._last is None or self._episode < self._last:
            self._agent.observe(steps, step)

    def end_episode(self) -> None:
        """Ends the episode only while learning, so that a frozen belief does not forget."""
        if self._last is None or self._episode < self._last:
            self._agent.end_episode()
        self._episode += 1

    def state(self) -> dict[str, Any]:
        return {"agent": self._agent.state(), "episode": self._episode}

    def load(self, state: Mapping[str, Any]) -> None:
        self._agent.load(state["agent"])
        self._episode = int(state["episode"])


def _grid(cell: GridCell) -> list[Row]:
    rows: list[Row] = []
    for k in range(cell.logs):
        found = grid_study(cell.size, seed=k)
        values = {
            CONDITIONED: (found.conditioned, found.conditioned_expected),
            REFERENCE: (found.rectangular, found.rectangular_expected),
        }
        for name, (true, own) in values.items():
            each = {"optimum": found.optimal, "true": true, "own": own}
            rows += [Row("grid", "", name, k, metric, cell.size, value) for metric, value in each.items()]
    return rows


def _scale(cell: ScaleCell) -> list[Row]:
    system = SYSTEMS[cell.system]
    solved, rejected = 0, False
    times: dict[int, list[float]] = {}
    _seconds(system, SIZES[0], cell.seed)  # loads compiled code
    for size in SIZES:
        found = _timings(system, size, cell.seed)
        if found is None:
            rejected = True
            break
        times[size] = found
        if min(found) > cell.limit:
            break
        solved = size
        last = [min(each) for each in times.values()][-2:]
        if len(times) >= LEAST and last[1] * last[1] / last[0] > OVERRUN * cell.limit:
            break
    rows = [
        Row("scale", "", cell.system, k, "seconds", size, value)
        for size, each in times.items()
        for k, value in enumerate(each)
    ]
    facts = {"solved": float(solved), "limit": cell.limit, "rejected": float(rejected)}
    return rows + [Row("scale", "", cell.system, 0, metric, 0, value) for metric, value in facts.items()]


def _timings(system: System, size: int, seed: int) -> list[float] | None:
    """Timings of the same plan, without those in which code was compiled; None if the system rejects the model."""
    out: list[float] = []
    discards = REPEATS
    while not out or (max(out) <= SHORT and len(out) < REPEATS):
        with install_recorder("numba:compile") as compiled:
            seconds = _seconds(system, size, seed)
        if seconds is None:
            return None
        if compiled.buffer and discards:
            discards -= 1
        else:
            out.append(seconds)
    return out


def _seconds(system: System, size: int, seed: int) -> float | None:
    """Processor time from counts to a plan, on a sparse random model with twenty transitions of each pair."""
    truth = library.garnet(size, 4, 5, seed=seed, discount=0.9)
    counts = 20.0 * truth.rows.probability
    posterior = Posterior.before(truth).with_counts(counts)
    batch = batch_after(posterior, counts, seed)
    began = time.process_time()
    if system.plan is not None:
        if system.plan(batch) is None:
            return None
    elif system.agent is not None:
        agent = system.agent(OFFLINE_BELIEF).start(Task(posterior, HORIZON), Streams(seed, np.zeros(1, dtype=np.int64)))
        agent.act(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), 0)
    return time.process_time() - began


def _world(name: str) -> MDP:
    return library.seven_states(ODDS[0]) if name == "seven_states" else MODELS[name].build()
