"""Runs one cell of the adaptation study: trains or plans an agent, and deploys it in every world of its domain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from urbe.paper.adaptation import (
    BELIEF,
    IDEAL,
    LEARNERS,
    LEARNERS_WORLDS,
    NOMINAL,
    ORACLE,
    PLANNED,
    QUICK_WORLDS,
    RANDOMISED,
    ROBUST,
    SCHEDULE,
    SOFT,
    THOMPSON,
    URBE,
    AdaptationCell,
    Row,
)
from urbe.paper.adaptation.journeys import Decision, Journeys, live, plan, settled, thompson
from urbe.paper.adaptation.members import MEMBERS
from urbe.paper.adaptation.tuning import BOUNDARY
from urbe.statistics import first_episodes, phase_means, worst_lives
from urbe.types import FloatArray

if TYPE_CHECKING:
    from urbe.paper.adaptation.worlds import Domain, World

WORLD_SEED = 880001
"""Seed of the parameters and outcomes of all lives: the same for every agent and training seed."""


REPEATS = 16
"""Number of repetitions of each life for agents that decide exactly: cheap, each with new random numbers."""


def run(cell: AdaptationCell, _: Path) -> list[Row]:
    """Trains or plans an agent, then deploys it."""
    from urbe.paper.adaptation.domains import DOMAINS

    domain = DOMAINS[cell.domain]()
    if cell.agent not in PLANNED[cell.domain]:
        return list(_deployed(cell, domain))
    if cell.agent == ORACLE:
        return list(_oracle(cell, domain))
    return list((_in_tables if cell.agent == URBE else _decided)(cell, domain))


def _deployed(cell: AdaptationCell, domain: Domain) -> Iterator[Row]:
    import jax
    import jax.numpy as jnp

    from urbe.evaluation.adaptation import deploy_lives
    from urbe.paper.adaptation.agents import policy_of

    policy = policy_of(cell.domain, cell.agent, domain, cell.seed)
    for k, name, world in _worlds(cell, domain):
        held = paths(world, cell.lives)
        if cell.agent == ORACLE:
            assert domain.mirrored  # it reverses its actions if the motor is reversed, so all motors are equal for it
            held = jax.tree.map(jnp.abs, held)
        found = deploy_lives(
            policy,
            domain.simulator,
            held,
            seed=WORLD_SEED + k,
            observation_noise=world.noise,
            in_turn=cell.agent in LEARNERS,
        )
        yield from _measured(cell, name, world, found.episode_return)
        yield _row(cell, name, "ended", float(found.terminated.mean()))
        if k == 0 and cell.seed == 0 and cell.agent == BELIEF:
            yield from _one_life(cell, name, domain, found)


def _worlds(cell: AdaptationCell, domain: Domain) -> Iterator[tuple[int, str, World]]:
    """Number, name and description of the worlds of a cell."""
    for k, (name, world) in enumerate(domain.worlds.items()):
        if name in (LEARNERS_WORLDS if cell.agent in LEARNERS else QUICK_WORLDS if cell.brief else domain.worlds):
            yield k, name, world


def paths(world: World, lives: int) -> Any:
    """The parameters of every episode of every life."""
    from urbe.evaluation.adaptation import parameter_paths
    from urbe.simulators import StepChange

    if not isinstance(world.schedule, StepChange):
        return parameter_paths(world.schedule, lives=lives, episodes=world.episodes, seed=WORLD_SEED)
    lengths, held = zip(*world.schedule.phases, strict=True)  # without chance, there is nothing to compile

    def path(*values: Any) -> FloatArray:
        each = np.repeat(np.array(values, np.float32), lengths)
        return np.broadcast_to(each, (lives, world.episodes))

    return type(held[0])(*map(path, *held))


def _oracle(cell: AdaptationCell, domain: Domain) -> Iterator[Row]:
    """Expected return of an agent that knows the parameters of every episode.

    It is exact if an episode is one decision. On CartPole, it is balancing until the time limit, which is possible with
    every gain and length.
    """
    for _, name, world in _worlds(cell, domain):
        held = paths(world, cell.lives)
        returns = np.full(np.shape(held[0]), float(domain.simulator.time_limit))
        if domain.journeys is not None:
            returns = domain.journeys.best(_failures(domain, held))
        yield from _measured(cell, name, world, returns)


def _failures(domain: Domain, held: Any) -> FloatArray:
    """`(N, E)` failure probabilities of journeys."""
    values = np.asarray(held._asdict()[domain.parameter[0]], np.float64)
    return 1.0 - values if domain.of_success else values


def _decided(cell: AdaptationCell, domain: Domain) -> Iterator[Row]:
    """Plays exact decisions, one per episode, with other random numbers than those of agents in the simulator."""
    assert domain.journeys is not None
    members = np.array(MEMBERS[cell.domain])
    failures = tuple((1.0 - members if domain.of_success else members).tolist())
    decides = _decision(cell.agent, domain, domain.journeys, failures)
    for k, name, world in _worlds(cell, domain):
        held = np.repeat(_failures(domain, paths(world, cell.lives)), REPEATS, axis=0)
        returns = live(domain.journeys, failures, domain.switching, decides, held, WORLD_SEED + k)
        yield from _measured(cell, name, world, returns)


def _decision(agent: str, domain: Domain, journeys: Journeys, failures: tuple[float, ...]) -> Decision:
    """Returns the decision rule of a planned agent."""
    if agent == THOMPSON:
        return thompson(journeys, failures)
    if agent in (IDEAL, BELIEF):
        return plan(journeys, failures, domain.switching, BOUNDARY).travels
    each = journeys.travelling(np.array(failures))
    nominal = _failures(domain, domain.simulator.nominal())
    worth = {
        NOMINAL: journeys.travelling(nominal),
        ROBUST: each.min(axis=1),
        SOFT: journeys.travelling(np.array(np.mean(failures))),
        RANDOMISED: each.mean(axis=1),
    }
    return settled(journeys, worth[agent])


def _in_tables(cell: AdaptationCell, domain: Domain) -> Iterator[Row]:
    """Runs URBE over finitely many models, in the seven states themselves."""
    from urbe import agents
    from urbe.envs.finite import FiniteEnv, Phase
    from urbe.mdp.library.goals import seven_states
    from urbe.posteriors.dirichlet import Posterior

    models = [seven_states(odds, "direct") for odds in MEMBERS[cell.domain]]
    agent = agents.BeliefURBE(models, domain.switching)
    for k, name, world in _worlds(cell, domain):
        odds = 1.0 - _failures(domain, paths(world, 1))[0]
        firsts = np.cumsum((0, *world.phases[:-1]))
        env = FiniteEnv(
            tuple(Phase(seven_states(p, "direct"), n) for p, n in zip(odds[firsts].tolist(), world.phases, strict=True))
        )
        task = agents.Task(Posterior.before(env.feasible), domain.simulator.time_limit)
        found = agents.run(agent, env, task, episodes=world.episodes, seed=WORLD_SEED + k, replicates=cell.lives)
        yield from _measured(cell, name, world, found.reward)


def _measured(cell: AdaptationCell, name: str, world: World, returns: FloatArray) -> Iterator[Row]:
    yield _row(cell, name, "return", float(returns.mean()))
    yield _row(cell, name, "worst", worst_lives(returns))
    if name == SCHEDULE:
        for at, mean in enumerate(returns.mean(axis=0)):
            yield _row(cell, name, "curve", float(mean), at)
    if world.phases:
        parts = np.split(returns, np.cumsum(world.phases)[:-1], axis=1)
        fifths = [-(-part.shape[1] // 5) for part in parts]
        for metric, means in (
            ("phase", phase_means(returns, world.phases)),
            ("first", first_episodes(returns, world.phases)),
            ("early", [part[:, :n].mean() for part, n in zip(parts, fifths, strict=True)]),
            ("late", [part[:, -n:].mean() for part, n in zip(parts, fifths, strict=True)]),
        ):
            for at, mean in enumerate(means):
                yield _row(cell, name, metric, float(mean), at)


def _one_life(cell: AdaptationCell, name: str, domain: Domain, found: Any) -> Iterator[Row]:
    """Rows that describe the first life in detail."""
    held = found.params._asdict()[domain.parameter[0]][0] / domain.unit
    for at, (value, parameter) in enumerate(zip(found.episode_return[0].tolist(), held.tolist(), strict=True)):
        yield _row(cell, name, "episode", value, at)
        yield _row(cell, name, "true", float(parameter), at)
        for member, share in enumerate(found.reports["belief"][0, at].tolist()):
            yield _row(cell, name, "belief", share, at, member)


def _row(cell: AdaptationCell, world: str, metric: str, value: float, at: int = -1, member: int = -1) -> Row:
    return Row(cell.domain, cell.agent, world, cell.seed, metric, at, member, value)
