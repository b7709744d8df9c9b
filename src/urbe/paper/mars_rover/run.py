"""Runs one cell of the Mars Rover comparison: plans, or trains and computes the returns of the test policies."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from urbe.deep.paper import MARS_ROVER
from urbe.deep.training.train import train
from urbe.deep.training.who_decides import OneMemberDecides
from urbe.evaluation.robustness import evaluate
from urbe.paper.mars_rover import (
    CHANGED,
    EPSILON,
    EXACT_ROBUST,
    GRID,
    MAIN,
    NOMINAL,
    OPTIMUM,
    WORLDS,
    MarsCell,
    Row,
)
from urbe.paper.mars_rover.agents import make, members_of, rover_of
from urbe.paper.mars_rover.policies import Acting, one_hot, table
from urbe.simulators import MarsRover, MarsRoverParams, performance, scenarios, to_mdp
from urbe.solvers import BackwardInduction, solve
from urbe.types import FloatArray


def run(cell: MarsCell, folder: Path) -> list[Row]:
    """Plans, or trains in the folder and computes the returns of the test policies."""
    if cell.agent == OPTIMUM:
        return list(_optimum(cell))
    if cell.agent == EXACT_ROBUST:
        return list(_exact_robust(cell))
    return list(_learned(cell, folder))


def _learned(cell: MarsCell, folder: Path) -> Iterator[Row]:
    world = WORLDS[cell.world]
    rover = rover_of(world)
    agent = make(cell.agent, world, cell.members, cell.seed, cell.settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneMemberDecides)  # expected here: see the exact robust policy
        train(agent, folder / "run", cell.steps)
    yield _row(cell, "", "steps", agent.step)
    yield _row(cell, "", "episodes", int(agent.trainer.learner.episodes))
    policy = agent.policy
    ways: tuple[Acting, Acting] = ("greedy", "noisy" if policy.is_noisy else "epsilon")
    best = table(policy, rover, "greedy", EPSILON)
    for acting in ways:
        yield from _fared(cell, acting, rover, table(policy, rover, acting, EPSILON), best)
    if policy.is_noisy:
        # the same episodes for all agents of a seed
        played = evaluate(agent, {"failure": GRID}, episodes=cell.episodes, seed=cell.seed, acting="noisy").noisy
        assert played is not None
        for p, returns in zip(GRID, played.returns, strict=True):
            yield _row(cell, "noisy", "sampled", float(returns.mean()), p)
            yield _row(cell, "noisy", "sampled error", float(returns.std(ddof=1) / np.sqrt(len(returns))), p)


def _fared(cell: MarsCell, acting: str, rover: MarsRover, policy: FloatArray, best: FloatArray) -> Iterator[Row]:
    """The returns and visits of a test policy."""
    for p in GRID:
        there = performance(rover, MarsRoverParams(p), policy, discount=0.0)
        yield _row(cell, acting, "return", there.total, p)
        yield _row(cell, acting, "goal", float(there.visits[rover.goal]), p)
        if p in (NOMINAL, CHANGED) and cell.agent in MAIN and acting != "epsilon":  # only these are drawn
            for state in np.flatnonzero(there.visits).tolist():
                yield _row(cell, acting, "visits", float(there.visits[state]), p, state)
        if p == NOMINAL:
            inside = there.visits[: rover.goal]
            other = 1.0 - (policy * best).sum(axis=1)[: rover.goal]
            yield _row(cell, acting, "flipped", float(inside @ other / inside.sum()))


def _optimum(cell: MarsCell) -> Iterator[Row]:
    """The best return and goal probability of all policies, also time-dependent ones, for each failure probability."""
    rover = rover_of(WORLDS[cell.world])
    counting = replace(rover, success=1.0, fail=0.0, step_reward=0.0)
    for p in GRID:
        for metric, paid in (("return", rover), ("goal", counting)):
            mdp = to_mdp(paid, MarsRoverParams(p), discount=1.0)
            value = solve(mdp, method=BackwardInduction(rover.time_limit)).value[0]
            yield _row(cell, "greedy", metric, float(mdp.initial @ value), p)


def _exact_robust(cell: MarsCell) -> Iterator[Row]:
    """The policy that exact robust planning finds for the agents' set, with their discount."""
    world = WORLDS[cell.world]
    rover, members = rover_of(world), members_of(world, cell.members, cell.seed)
    policy = solve(*scenarios(rover, members, discount=MARS_ROVER.discount)).policy
    probabilities = one_hot(np.asarray(policy, dtype=np.int32), rover.n_actions)
    yield _row(cell, "", "largest", float(np.max(members.params.failure)))
    yield from _fared(cell, "greedy", rover, probabilities, probabilities)


def _row(cell: MarsCell, acting: str, metric: str, value: float, at: float = -1.0, state: int = -1) -> Row:
    return Row(cell.world, cell.members, cell.agent, acting, cell.seed, metric, float(at), state, float(value))
