"""Runs one cell of the adaptation study: trains or plans an agent, and deploys it in every world of its domain."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from urbe.paper.adaptation import BELIEF, DECIDED, IDEAL, ORACLE, QUICK_WORLDS, ROVER, AdaptationCell, Row
from urbe.statistics import first_episodes, phase_means, worst_lives
from urbe.types import FloatArray

if TYPE_CHECKING:
    from urbe.paper.adaptation.worlds import Domain, World

WORLD_SEED = 880001
"""Of the parameters of all lives and of their luck: the same for every agent and training seed."""


REPEATS = 16
"""How often agents that decide exactly live each life: it costs next to nothing, and their luck is their own."""


def run(cell: AdaptationCell, _: Path) -> list[Row]:
    """Trains or plans, then deploys."""
    from urbe.paper.adaptation.worlds import DOMAINS

    domain = DOMAINS[cell.domain]()
    if cell.agent == ORACLE:
        return list(_oracle(cell, domain))
    return list((_decided if cell.domain == ROVER and cell.agent in DECIDED else _deployed)(cell, domain))


def _deployed(cell: AdaptationCell, domain: Domain) -> Iterator[Row]:
    from urbe.evaluation.adaptation import deploy_lives
    from urbe.paper.adaptation.agents import policy_of

    policy = policy_of(cell.domain, cell.agent, domain, cell.seed)
    for k, name, world in _worlds(cell, domain):
        found = deploy_lives(
            policy,
            domain.simulator,
            paths(world, cell.lives),
            seed=WORLD_SEED + k,
            observation_noise=world.noise,
        )
        yield from _measured(cell, name, world, found.episode_return)
        yield _row(cell, name, "ended", float(found.terminated.mean()))
        if k == 0 and cell.seed == 0 and cell.agent == BELIEF:
            yield from _one_life(cell, name, domain, found)


def _worlds(cell: AdaptationCell, domain: Domain) -> Iterator[tuple[int, str, World]]:
    """Number, name and description of the worlds of a cell."""
    for k, (name, world) in enumerate(domain.worlds.items()):
        if name in QUICK_WORLDS or not cell.brief:
            yield k, name, world


def paths(world: World, lives: int) -> Any:
    """The parameters of every episode of every life."""
    from urbe.evaluation.adaptation import parameter_paths

    return parameter_paths(world.schedule, lives=lives, episodes=world.episodes, seed=WORLD_SEED)


def _oracle(cell: AdaptationCell, domain: Domain) -> Iterator[Row]:
    """What an agent that knows the parameters of every episode earns in expectation.

    Exact on Mars Rover. On CartPole, balancing until the time limit, which is possible with every gain.
    """
    parameter = domain.parameter[0]
    for _, name, world in _worlds(cell, domain):
        held = np.asarray(paths(world, cell.lives)._asdict()[parameter], np.float64)
        returns = np.full(held.shape, float(domain.simulator.time_limit))
        if cell.domain == ROVER:
            values, place = np.unique(held, return_inverse=True)
            returns = np.array([_best_return(p) for p in values.tolist()])[place.reshape(held.shape)]
        yield from _measured(cell, name, world, returns)


def _decided(cell: AdaptationCell, domain: Domain) -> Iterator[Row]:
    """Exact decisions under the belief that agents have, one per episode; their luck is not that of the others."""
    from urbe.paper.adaptation.journeys import Journeys, live, plan, thompson
    from urbe.paper.adaptation.tuning import BOUNDARY, FAILURES

    journeys = Journeys()
    planned = plan(journeys, FAILURES, domain.switching, BOUNDARY).travels if cell.agent == IDEAL else None
    decides = planned or thompson(journeys, FAILURES)
    for k, name, world in _worlds(cell, domain):
        held = np.asarray(paths(world, cell.lives)._asdict()[domain.parameter[0]], np.float64)
        held = np.repeat(held, REPEATS, axis=0)
        returns = live(journeys, FAILURES, domain.switching, decides, held, WORLD_SEED + k)
        yield from _measured(cell, name, world, returns)


@cache
def _best_return(failure: float) -> float:
    from urbe.paper.adaptation.worlds import rover
    from urbe.simulators import MarsRoverParams, to_mdp
    from urbe.solvers import BackwardInduction, solve

    simulator = rover().simulator
    mdp = to_mdp(simulator, MarsRoverParams(failure), discount=1.0)
    return float(mdp.initial @ solve(mdp, method=BackwardInduction(simulator.time_limit)).value[0])


def _measured(cell: AdaptationCell, name: str, world: World, returns: FloatArray) -> Iterator[Row]:
    yield _row(cell, name, "return", float(returns.mean()))
    yield _row(cell, name, "worst", worst_lives(returns))
    if world.phases:
        for metric, means in (("phase", phase_means(returns, world.phases)),
                              ("first", first_episodes(returns, world.phases))):  # fmt: skip
            for at, mean in enumerate(means.tolist()):
                yield _row(cell, name, metric, mean, at)


def _one_life(cell: AdaptationCell, name: str, domain: Domain, found: Any) -> Iterator[Row]:
    """The first life in detail."""
    held = found.params._asdict()[domain.parameter[0]][0] / domain.unit
    for at, (value, parameter) in enumerate(zip(found.episode_return[0].tolist(), held.tolist(), strict=True)):
        yield _row(cell, name, "episode", value, at)
        yield _row(cell, name, "true", float(parameter), at)
        for member, share in enumerate(found.reports["belief"][0, at].tolist()):
            yield _row(cell, name, "belief", share, at, member)


def _row(cell: AdaptationCell, world: str, metric: str, value: float, at: int = -1, member: int = -1) -> Row:
    return Row(cell.domain, cell.agent, world, cell.seed, metric, at, member, value)
