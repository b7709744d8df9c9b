"""Tabular agents: the cost of a plan, from scratch and after an episode, and the number of episodes per second."""

from __future__ import annotations

import numpy as np

import urbe
from benchmarks import naive
from benchmarks.measures import Line
from benchmarks.timing import Task, best_of, task
from urbe.agents import URBE, Form, run
from urbe.agents import Task as AgentTask
from urbe.agents.l1_plan import CALIBRATED, COUNT, L1Plan, LocalUncertainty
from urbe.envs import FiniteEnv

HORIZON, RADIUS, SCALE, REPLICATES = 200, 0.3, 0.1, 100


def agents(repeats: int) -> list[Line]:
    """Measures plans of URBE and complete runs, against plain NumPy."""
    return [
        *_plans(5, repeats),
        *_plans(100, repeats),
        _run("seven states", urbe.library.seven_states(0.8), 2, repeats),
        _run("river of 6", urbe.library.riverswim(6, discount=1.0), 20, repeats),
    ]


def _plans(successors: int, repeats: int) -> list[Line]:
    mdp = urbe.library.garnet(100, 4, successors, seed=0, discount=0.99)
    rng = np.random.default_rng(0)
    alpha = 1.0 + rng.integers(0, 20, (1, 1, mdp.rows.n_entries))
    spread = np.full((1, mdp.n_rows), RADIUS)
    every, seen = np.ones((1, mdp.n_rows), dtype=bool), np.zeros((1, mdp.n_rows), dtype=bool)
    rows = rng.choice(mdp.n_rows, 25, replace=False)
    seen[0, rows] = True
    plan, one = L1Plan(mdp, HORIZON, 1), np.zeros(1, dtype=int)

    def update(touched: np.ndarray, form: int | None) -> None:
        total = mdp.rows.row_sums(alpha[0, 0])[None, None]
        local = None if form is None else LocalUncertainty(form, np.full(1, SCALE))
        plan.update(one, alpha, total, mdp.rows.reward[None], spread, touched, local=local)

    def anew() -> None:
        plan.made[:] = False

    def visit() -> None:
        alpha[0, 0, mdp.rows.entry_start[rng.choice(rows, 25)]] += 1.0

    successor, reward, _ = naive.padded(mdp)
    tasks = {
        "values": Task(anew, lambda _: update(every, None)),
        "count": Task(anew, lambda _: update(every, COUNT)),
        "calibrated": Task(anew, lambda _: update(every, CALIBRATED)),
        "naive": task(
            lambda: naive.plan(mdp, successor, reward, alpha[0, 0].reshape(successor.shape), HORIZON, RADIUS, SCALE)
        ),
    }
    cpu = {name: timing.cpu for name, timing in best_of(tasks, repeats).items()}
    update(every, CALIBRATED)
    again = best_of({"again": Task(visit, lambda _: update(seen, CALIBRATED))}, repeats)["again"].cpu
    what = f"URBE plan, 100 states x 4 x {successors}, horizon {HORIZON}"
    detail = f"without variance {1e3 * cpu['values']:.2f} ms, count form {1e3 * cpu['count']:.2f} ms"
    return [
        Line(f"{what}, ms", 1e3 * cpu["calibrated"], "<= 20", detail),
        Line(f"{what}: NumPy / urbe, count form", cpu["naive"] / cpu["count"], ">= 5", f"{1e3 * cpu['naive']:.1f} ms"),
        Line(f"{what}: with variance / without", cpu["calibrated"] / cpu["values"], "<= 2", ""),
        Line(
            f"{what}: after one episode / from scratch",
            again / cpu["calibrated"],
            "",
            f"{1e3 * again:.2f} ms; 25 pairs seen",
        ),
    ]


def _run(name: str, mdp: urbe.MDP, horizon: int, repeats: int) -> Line:
    env, agent_task = FiniteEnv.of(mdp), AgentTask(urbe.Posterior.before(mdp), horizon)
    kind, ours, theirs = URBE(RADIUS, SCALE, Form.COUNT), 100, 20
    tasks = {
        "urbe": task(lambda: run(kind, env, agent_task, episodes=ours, seed=0, replicates=REPLICATES)),
        "naive": task(lambda: naive.episodes(mdp, theirs, horizon, RADIUS, SCALE, np.random.default_rng(0))),
    }
    timings = best_of(tasks, max(1, repeats // 3))
    fast, slow = ours * REPLICATES / timings["urbe"].cpu, theirs / timings["naive"].cpu
    detail = f"{fast:.0f} episodes per second, {1e6 / fast:.1f} us each; NumPy, one at a time: {slow:.0f}"
    return Line(f"URBE runs, {name}, {REPLICATES} replicates: urbe / NumPy", fast / slow, ">= 20", detail)
