"""The compiled loop of a recurrent agent, whose hidden state is part of the run's state."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int32

from urbe.deep.core.explore import ExploringChoice
from urbe.deep.core.finite import FiniteCheck, check_finite, init_finite_check
from urbe.deep.core.learner import Progress
from urbe.deep.core.recurrent import (
    Memory,
    RecurrentLearner,
    WindowLosses,
    choose_recurrent,
    init_recurrent,
    learn,
    remembered,
)
from urbe.deep.core.sequences import RecurrentStep
from urbe.deep.core.settings import Settings
from urbe.deep.core.variances import NoVariance
from urbe.deep.loops.compiled import EpisodeState, after, is_last, observed, schedule_of, shared, start_world, step_key
from urbe.deep.loops.meters import FinishedEpisodes, Meters, add, init_episodes, init_meters, record
from urbe.simulators.base import Simulator, observation_size, step
from urbe.simulators.schedules import Schedule

_LEARNER = 1  # the stream of DQN's learner


@dataclass(frozen=True)
class RecurrentTraining:
    """Deep recurrent Q-learning in place of DQN.

    Args:
      memory: settings of the hidden state and its training.
    """

    memory: Memory = field(default_factory=Memory)

    def programs(
        self, settings: Settings, simulator: Simulator, schedule: Schedule | None, record_every: int
    ) -> tuple[Any, Any]:
        """Compiled programs, shared by agents that differ only in their seeds.

        Raises:
          ValueError: the settings have an uncertainty head, or a replay shorter than a window.
        """
        if settings.variance != NoVariance():
            raise ValueError(
                f"variance is {settings.variance!r}, expected NoVariance(): recurrent agents have no head."
            )
        if settings.capacity < self.memory.window:
            raise ValueError(
                f"capacity is {settings.capacity}, expected at least burn_in + length, {self.memory.window} steps."
            )
        return _programs(settings, self.memory, simulator, schedule, record_every)


class RecurrentRun(NamedTuple):
    """The complete state of a run: saved and restored, it resumes bit for bit."""

    learner: RecurrentLearner
    world: EpisodeState
    hidden: Float[Array, " H"]
    meters: Meters
    episodes: FinishedEpisodes
    finite: FiniteCheck


@shared
def _programs(
    settings: Settings, memory: Memory, simulator: Simulator, given: Schedule | None, record_every: int
) -> tuple[Any, Any]:
    schedule, n_actions = schedule_of(simulator, given), simulator.n_actions

    @jax.jit
    def begin(key: jax.Array, uncertain: None) -> RecurrentRun:  # noqa: ARG001
        learner = init_recurrent(
            settings, memory, jax.random.fold_in(key, _LEARNER), observation_size(simulator), n_actions
        )
        world = start_world(simulator, schedule, key)
        hidden = jnp.zeros(memory.units, jnp.float32)
        choice = choose_recurrent(settings, learner, hidden, simulator.observe(world.state), jnp.int32(-1))
        return RecurrentRun(
            learner,
            world._replace(action=choice.action[0]),
            hidden,
            init_meters(),
            init_episodes(record_every),
            init_finite_check(),
        )

    def one(run: RecurrentRun) -> RecurrentRun:
        world, now = run.world, run.learner.step
        arrival = step(simulator, step_key(world, now), world.state, world.action, schedule.params(world.schedule))
        successors, last = observed(settings, simulator, arrival), is_last(simulator, world, arrival)
        taken = RecurrentStep(
            simulator.observe(world.state),
            world.action,
            arrival.reward,
            successors.weight[0, 0],
            successors.obs[0, 0],
            last,
            run.hidden,
        )
        hidden = remembered(memory, run.learner.q, taken, n_actions)
        following = after(simulator, schedule, world, arrival, last, now)
        obs = simulator.observe(following.state)
        # as in DQN, the next action is chosen before learning
        choice = choose_recurrent(settings, run.learner, hidden, obs, now)
        learner, learned = learn(settings, memory, run.learner, taken, n_actions)
        return RecurrentRun(
            learner,
            following._replace(action=choice.action[0]),
            hidden,
            add(run.meters, _progress(learner.updates - run.learner.updates, learned, choice, hidden)),
            record(run.episodes, last, learner.step, world.episode_return + arrival.reward, world.elapsed + 1),
            check_finite(
                run.finite, learner.step, obs[None], arrival.reward, successors, learned.loss, jnp.float32(0.0)
            ),
        )

    @partial(jax.jit, donate_argnums=0)
    def advance(run: RecurrentRun, uncertain: None, steps: Int32[Array, ""]) -> RecurrentRun:  # noqa: ARG001
        until = run.learner.step + steps
        return jax.lax.while_loop(lambda r: (r.learner.step < until) & (r.finite.kind == 0), one, run)

    return begin, advance


def _progress(updates: Array, learned: WindowLosses, choice: ExploringChoice, hidden: Float[Array, " H"]) -> Progress:
    """Diagnostics for the log: zeros for the uncertainty head, and the norm of the hidden state as `feature_norm`."""
    zero = jnp.float32(0.0)
    return Progress(
        loss=learned.loss,
        td_error=learned.td_error,
        updates=updates,
        epsilon=choice.epsilon,
        flipped=zero,
        nu=jnp.float64(0.0),
        w=zero,
        negative_w=zero,
        feature_norm=jnp.sqrt((hidden * hidden).sum()),
    )
