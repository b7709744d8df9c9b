"""Mars Rover: test returns over the failure probability, and where rovers go [Derman2019] Fig. 3, Fig. 4.

Agents learn at a failure probability of 0.005, with the paper's networks and hyper-parameters, and are tested at
others. Their test returns, chances and visits are computed, not played: the model has 101 states, and every test policy
is a table of probabilities (`mars_policies`). Greedy, noisy and epsilon-greedy test policies are told apart. Beside
them stand 200 played episodes of the noisy ones, as in the paper, and what exact planning says that nothing can beat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from urbe.experiments.base import Scale
from urbe.experiments.mars_readings import (
    CHANGED,
    EPSILON,
    EXACT_ROBUST,
    GRID,
    MAIN,
    NO_SET,
    NOMINAL,
    OPTIMUM,
    QUICK_SEEDS,
    REPORTED_SEEDS,
    STEPS,
    TEST_EPISODES,
    TUNING_SEEDS,
    WORLDS,
    contestants,
)
from urbe.experiments.mars_results import Result, results
from urbe.sweep.progress import tell
from urbe.types import FloatArray

if TYPE_CHECKING:
    from urbe.report.content import Section
    from urbe.simulators import MarsRover

NAME = "mars_rover"
TITLE = "Mars Rover"
PART = 10_000
"""Steps of training between two words on how far a cell has come."""


@dataclass(frozen=True)
class MarsCell:
    """One agent with one seed in one world.

    Attributes:
      world: key of `WORLDS`.
      members: the set, "wide", "small" or "none".
      agent: what learns, or what is planned ("optimum", "exact robust").
      seed: of everything random, the set included.
      steps: of training.
      episodes: played under each failure probability, by the noisy test policies.
      tuning_seeds: those looked at while steps and rules were chosen, for the record; see `mars_readings`.
    """

    world: str
    members: str
    agent: str
    seed: int
    steps: int
    episodes: int = TEST_EPISODES
    tuning_seeds: tuple[int, ...] = TUNING_SEEDS

    @property
    def name(self) -> str:
        """See `Cell`."""
        return f"{self.world}-{self.members}-{self.agent.replace(' ', '-')}-{self.steps}-seed{self.seed}"

    @property
    def cost(self) -> float:
        """See `urbe.experiments.base`: seconds, about."""
        if self.agent in (OPTIMUM, EXACT_ROBUST):
            return 1.0
        per_step = {"none": 5.5e-5, "wide": 7.5e-5, "small": 1.3e-4}[self.members]
        return 2.0 + per_step * self.steps


class Row(NamedTuple):
    """One number.

    Attributes:
      members, agent, seed: see `MarsCell`.
      acting: the test policy: "greedy", "noisy" (by the uncertainty head), "epsilon" (greedy but for a tenth of random
        actions); empty for what does not depend on it.
      metric: "return" (exact expectation of a test episode) and "goal" (exact chance of reaching it) at the failure
        probability `at`; "visits" (exact expectation) of the state `state` at the nominal and at the changed one,
        zeros left out, of what is drawn; "sampled" and "sampled error" (mean return of the played episodes, and its
        standard error); "flipped" (share of steps at the nominal probability at which the test policy does not do
        what is best by its own values); "steps" and "episodes" of training; "largest" member of the set.
      at: failure probability; -1 where there is none.
      state: number of the state; -1 where there is none.
    """

    world: str
    members: str
    agent: str
    acting: str
    seed: int
    metric: str
    at: float
    state: int
    value: float


def _cells(scale: Scale) -> tuple[MarsCell, ...]:
    seeds = QUICK_SEEDS if scale == "quick" else REPORTED_SEEDS
    chosen = contestants(scale)
    planned = [MarsCell(world, NO_SET, OPTIMUM, 0, 0) for world in dict.fromkeys(each[0] for each in chosen)]
    sets = dict.fromkeys(each[:2] for each in chosen if each[1] != NO_SET)
    planned += [MarsCell(*both, EXACT_ROBUST, seed, 0) for both in sets for seed in seeds]
    return (*planned, *(MarsCell(*each, seed, STEPS[scale]) for each in chosen for seed in seeds))


CELLS: dict[Scale, tuple[MarsCell, ...]] = {scale: _cells(scale) for scale in STEPS}


def run(cell: MarsCell, folder: Path) -> list[Row]:
    """Plans, or trains in the folder and computes what the test policies earn."""
    if cell.agent == OPTIMUM:
        return list(_optimum(cell))
    if cell.agent == EXACT_ROBUST:
        return list(_exact_robust(cell))
    return list(_learned(cell, folder))


def _learned(cell: MarsCell, folder: Path) -> Iterator[Row]:
    from urbe.deep.train import train
    from urbe.evaluation.robustness import evaluate
    from urbe.experiments.mars_agents import make, rover_of
    from urbe.experiments.mars_policies import Acting, table

    world = WORLDS[cell.world]
    rover = rover_of(world)
    agent = make(cell.agent, world, cell.members, cell.seed)
    for done in range(0, cell.steps, PART):
        tell(folder, done, cell.steps)
        train(agent, folder / "run", min(done + PART, cell.steps))
    yield _row(cell, "", "steps", agent.step)
    yield _row(cell, "", "episodes", len(agent.history.episodes["length"]))
    policy = agent.policy
    ways: tuple[Acting, Acting] = ("greedy", "noisy" if policy.is_noisy else "epsilon")
    best = table(policy, rover, "greedy", EPSILON)
    for acting in ways:
        yield from _fared(cell, acting, rover, table(policy, rover, acting, EPSILON), best)
    if policy.is_noisy:
        # episodes alike for all agents of a seed
        played = evaluate(agent, {"failure": GRID}, episodes=cell.episodes, seed=cell.seed, acting="noisy").noisy
        assert played is not None
        for p, returns in zip(GRID, played.returns, strict=True):
            yield _row(cell, "noisy", "sampled", float(returns.mean()), p)
            yield _row(cell, "noisy", "sampled error", float(returns.std(ddof=1) / np.sqrt(len(returns))), p)


def _fared(cell: MarsCell, acting: str, rover: MarsRover, policy: FloatArray, best: FloatArray) -> Iterator[Row]:
    """What a test policy earns, and where it goes."""
    from urbe.simulators import MarsRoverParams, performance

    for p in GRID:
        there = performance(rover, MarsRoverParams(p), policy, discount=0.0)
        yield _row(cell, acting, "return", there.total, p)
        yield _row(cell, acting, "goal", float(there.visits[rover.goal]), p)
        if p in (NOMINAL, CHANGED) and cell.agent in MAIN and acting != "epsilon":  # what is drawn
            for state in np.flatnonzero(there.visits).tolist():
                yield _row(cell, acting, "visits", float(there.visits[state]), p, state)
        if p == NOMINAL:
            inside = there.visits[: rover.goal]
            other = 1.0 - (policy * best).sum(axis=1)[: rover.goal]
            yield _row(cell, acting, "flipped", float(inside @ other / inside.sum()))


def _optimum(cell: MarsCell) -> Iterator[Row]:
    """For each failure probability, what no policy can beat, time-dependent ones included: return and chance."""
    from dataclasses import replace

    from urbe.experiments.mars_agents import rover_of
    from urbe.simulators import MarsRoverParams, to_mdp
    from urbe.solvers import BackwardInduction, solve

    rover = rover_of(WORLDS[cell.world])
    counting = replace(rover, success=1.0, fail=0.0, step_reward=0.0)
    for p in GRID:
        for metric, paid in (("return", rover), ("goal", counting)):
            mdp = to_mdp(paid, MarsRoverParams(p), discount=1.0)
            value = solve(mdp, method=BackwardInduction(rover.time_limit)).value[0]
            yield _row(cell, "greedy", metric, float(mdp.initial @ value), p)


def _exact_robust(cell: MarsCell) -> Iterator[Row]:
    """The policy that exact robust planning finds for the agents' set, with their discount."""
    from urbe.deep.paper import MARS_ROVER
    from urbe.experiments.mars_agents import members_of, rover_of
    from urbe.experiments.mars_policies import one_hot
    from urbe.simulators import scenarios
    from urbe.solvers import solve

    world = WORLDS[cell.world]
    rover, members = rover_of(world), members_of(world, cell.members, cell.seed)
    policy = solve(*scenarios(rover, members, discount=MARS_ROVER.discount)).policy
    probabilities = one_hot(np.asarray(policy, dtype=np.int32), rover.n_actions)
    yield _row(cell, "", "largest", float(np.max(members.params.failure)))
    yield from _fared(cell, "greedy", rover, probabilities, probabilities)


def _row(cell: MarsCell, acting: str, metric: str, value: float, at: float = -1.0, state: int = -1) -> Row:
    return Row(cell.world, cell.members, cell.agent, acting, cell.seed, metric, float(at), state, float(value))


def analyse(rows: Sequence[Row]) -> list[Result]:
    """A `Result` for each world, set, agent and test policy, in the order of the cells."""
    return results(rows)


def plot(found: Sequence[Result]) -> list[Section]:
    """Verdicts, then figures and tables of each reading."""
    from urbe.experiments import mars_plots

    return mars_plots.sections(found)
