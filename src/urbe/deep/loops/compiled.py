"""The compiled loop: a simulator of urbe and the learner in one compiled program.

The loop runs for the given number of steps and stops at a number that is not finite; progress, logs and checkpoints
happen between calls. Splitting a run into calls does not change one bit of it.

The members of the uncertainty set are an argument of every call, so they may change between two calls without another
compilation. The replay holds outcomes under the old members; a run that stores the states of its transitions can
compute them again for the new members (`relabelled`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial, wraps
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int32

from urbe.deep.core.finite import FiniteCheck, check_finite, init_finite_check
from urbe.deep.core.learner import LearnerState, begin, init_learner, observe
from urbe.deep.core.replay import Successors, Transition
from urbe.deep.core.settings import Settings
from urbe.deep.loops.meters import FinishedEpisodes, Meters, add, init_episodes, init_meters, record
from urbe.simulators.base import Arrival, Key, Params, Simulator, State, members, observation_size, step
from urbe.simulators.limits import restart
from urbe.simulators.schedules import Constant, Schedule

_WORLD, _LEARNER = range(2)
_STEP, _START, _SCHEDULE = range(3)  # streams of the world


class EpisodeState(NamedTuple):
    """The state of the simulator, and the next action."""

    state: State
    schedule: Any
    elapsed: Int32[Array, ""]
    episode_return: Float[Array, ""]
    action: Int32[Array, ""]
    key: jax.Array


class CompiledRun(NamedTuple):
    """The complete state of a run: saved and restored, it resumes bit for bit."""

    learner: LearnerState
    world: EpisodeState
    meters: Meters
    episodes: FinishedEpisodes
    finite: FiniteCheck
    states: State | None = None  # first states of the transitions in the replay, in its order; None if not stored


Loop = Callable[[CompiledRun, Params | None, Array], CompiledRun]
Begin = Callable[[jax.Array, Params | None], CompiledRun]


class Dynamics(Protocol):
    """Chooses the outcome of an action, in place of the simulator's own randomness; hashable."""

    def arrive(
        self,
        settings: Settings,
        q: Any,
        simulator: Simulator,
        key: Key,
        state: State,
        action: Int32[Array, ""],
        params: Params,
        uncertain: Params | None,
    ) -> Arrival:
        """Returns the outcome of the action. The key is consumed.

        Args:
          q: the weights of the agent's network, on which the choice may depend.
          uncertain: `(K,)` parameters of the members to choose from; targets then use the observed outcome.
        """


Make = TypeVar("Make", bound=Callable[..., Any])


def shared(make: Make) -> Make:
    """Makes compiled programs once for equal arguments; each time for a simulator of the user's own without a hash."""
    kept = lru_cache(maxsize=32)(make)

    @wraps(kept)
    def call(*given: Any, **named: Any) -> Any:
        try:
            hash((*given, *named.values()))
        except TypeError:
            return make(*given, **named)
        return kept(*given, **named)

    return cast(Make, call)


def init_run(
    settings: Settings,
    simulator: Simulator,
    uncertain: Params | None,
    schedule: Schedule,
    key: jax.Array,
    buffer: int,
    keep_states: bool = False,
) -> CompiledRun:
    """Makes a run before its first step. The key is consumed.

    Args:
      settings: settings of the agent.
      simulator: the environment.
      uncertain: `(K,)` parameters of the members in its targets, or None for the observed outcome.
      schedule: the changes of the simulator's parameters from episode to episode.
      key: key of all random numbers of the run.
      buffer: the largest number of steps between two reads of the records.
      keep_states: whether members will change: states are then stored, too.
    """
    world = start_world(simulator, schedule, key)
    state, plan = world.state, world.schedule
    k, j = 1, 1
    if uncertain is not None:
        found = jax.eval_shape(lambda: simulator.outcomes(state, jnp.int32(0), schedule.params(plan)))
        k, j = members(uncertain), found.probability.shape[0]
    learner = init_learner(
        settings, jax.random.fold_in(key, _LEARNER), observation_size(simulator), simulator.n_actions, k, j
    )
    world = world._replace(action=begin(settings, learner, simulator.observe(state)[None])[0])
    states = None
    if keep_states:
        states = jax.tree.map(lambda leaf: jnp.zeros((settings.capacity, *jnp.shape(leaf)), leaf.dtype), state)
    return CompiledRun(learner, world, init_meters(k), init_episodes(buffer), init_finite_check(), states)


def start_world(simulator: Simulator, schedule: Schedule, key: jax.Array) -> EpisodeState:
    """Starts the first episode, without an action yet. Only the environment's stream of the key is consumed."""
    own = jax.random.fold_in(key, _WORLD)
    plan = schedule.begin(jax.random.fold_in(jax.random.fold_in(own, _SCHEDULE), 0))
    state = simulator.start(jax.random.fold_in(jax.random.fold_in(own, _START), 0), schedule.params(plan))
    return EpisodeState(state, plan, jnp.int32(0), jnp.float32(0.0), jnp.int32(0), own)


def relabelled(settings: Settings, simulator: Simulator, run: CompiledRun, uncertain: Params) -> CompiledRun:
    """Computes the outcomes in the replay again for other members, from the stored states.

    Stored targets become outdated. The outcome of the current member is simulated, too, and equals the observed one up
    to rounding.
    """
    assert run.states is not None
    replay = run.learner.replay
    successors = jax.lax.map(
        lambda pair: _simulated(settings, simulator, uncertain, *pair), (run.states, replay.action), batch_size=256
    )
    fresh = replay._replace(successors=successors, stamp=jnp.full_like(replay.stamp, -1))
    return run._replace(learner=run.learner._replace(replay=fresh))


@shared
def make_begin(
    settings: Settings, simulator: Simulator, given: Schedule | None, buffer: int, keep_states: bool = False
) -> Begin:
    """The compiled `init_run`: `(key, uncertain) -> run`. It is shared like the loop: see `make_advance`."""
    schedule = schedule_of(simulator, given)
    return jax.jit(lambda key, uncertain: init_run(settings, simulator, uncertain, schedule, key, buffer, keep_states))


@shared
def make_advance(
    settings: Settings, simulator: Simulator, given: Schedule | None, dynamics: Dynamics | None = None
) -> Loop:
    """The compiled loop: `(run, uncertain, steps) -> run`; it consumes the run it is given.

    Agents that differ only in their seeds or members share it: it is compiled once. A schedule of None keeps the
    nominal parameters, dynamics of None are the simulator's own.
    """
    schedule = schedule_of(simulator, given)

    def one(run: CompiledRun, uncertain: Params | None) -> CompiledRun:
        world, now = run.world, run.learner.step
        params = schedule.params(world.schedule)
        key = step_key(world, now)
        if dynamics is None:
            arrival = step(simulator, key, world.state, world.action, params)
        else:
            arrival = dynamics.arrive(
                settings, run.learner.q, simulator, key, world.state, world.action, params, uncertain
            )
            uncertain = None
        successors, last = observed(settings, simulator, arrival), is_last(simulator, world, arrival)
        if uncertain is not None:
            simulated = _simulated(settings, simulator, uncertain, world.state, world.action)
            successors = _as_observed(simulated, successors, uncertain, params)
        following = after(simulator, schedule, world, arrival, last, now)
        transition = Transition(simulator.observe(world.state)[None], world.action[None], _one(successors), last[None])
        acting_obs = simulator.observe(following.state)[None]
        states = None if run.states is None else _put(run.states, world.state, run.learner.replay.inserted)
        learner, action, progress = observe(settings, run.learner, transition, acting_obs)
        return CompiledRun(
            learner,
            following._replace(action=action[0]),
            add(run.meters, progress),
            record(run.episodes, last, learner.step, world.episode_return + arrival.reward, world.elapsed + 1),
            check_finite(run.finite, learner.step, acting_obs, arrival.reward, successors, progress.loss, progress.w),
            states,
        )

    @partial(jax.jit, donate_argnums=0)
    def advance(run: CompiledRun, uncertain: Params | None, steps: Int32[Array, ""]) -> CompiledRun:
        until = run.learner.step + steps
        return jax.lax.while_loop(
            lambda r: (r.learner.step < until) & (r.finite.kind == 0), lambda r: one(r, uncertain), run
        )

    return advance


def schedule_of(simulator: Simulator, given: Schedule | None) -> Schedule:
    """The given schedule, or constant nominal parameters."""
    return Constant(simulator.nominal()) if given is None else given


def observed(settings: Settings, simulator: Simulator, arrival: Arrival) -> Successors:
    """The observed outcome, as a single member with one outcome."""
    weight = jnp.where(arrival.terminated, jnp.float32(0.0), jnp.float32(settings.discount))
    return Successors(arrival.reward[None], weight[None, None], simulator.observe(arrival.state)[None, None])


def _simulated(
    settings: Settings, simulator: Simulator, uncertain: Params, state: State, action: Int32[Array, ""]
) -> Successors:
    """All outcomes under every member."""
    found = jax.vmap(lambda params: simulator.outcomes(state, action, params))(uncertain)
    gain = (found.probability * found.reward).sum(axis=-1)
    weight = jnp.float32(settings.discount) * found.probability * jnp.where(found.terminated, 0.0, jnp.float32(1.0))
    return Successors(gain, weight, jax.vmap(jax.vmap(simulator.observe))(found.state))


def _as_observed(simulated: Successors, observed: Successors, uncertain: Params, params: Params) -> Successors:
    """Without randomness, replaces the outcome of the current member by the observed one, exact to the last bit."""
    if simulated.weight.shape[-1] > 1:
        return simulated
    in_force = jnp.stack([member == now for member, now in zip(uncertain, params, strict=True)]).all(axis=0)

    def pick(of_members: Array, seen: Array) -> Array:
        return jnp.where(in_force.reshape(-1, *[1] * (of_members.ndim - 1)), seen, of_members)

    return Successors(*(pick(*pair) for pair in zip(simulated, observed, strict=True)))


def is_last(simulator: Simulator, world: EpisodeState, arrival: Arrival) -> Array:
    """Whether the episode ends with a step."""
    return arrival.terminated | (world.elapsed + 1 >= simulator.time_limit)


def after(
    simulator: Simulator, schedule: Schedule, world: EpisodeState, arrival: Arrival, last: Array, now: Array
) -> EpisodeState:
    """Returns the state in which to act next: of a new episode after a last step. The next action is not yet chosen."""
    plan = schedule.next(world.schedule, _key(world, _SCHEDULE, now + 1))
    first = restart(simulator, _key(world, _START, now + 1), schedule.params(plan), arrival.state)
    state, plan = jax.tree.map(partial(jnp.where, last), (first, plan), (arrival.state, world.schedule))
    elapsed = jnp.where(last, 0, world.elapsed + 1)
    episode_return = jnp.where(last, jnp.float32(0.0), world.episode_return + arrival.reward)
    return world._replace(state=state, schedule=plan, elapsed=elapsed, episode_return=episode_return)


def _put(states: State, state: State, inserted: Int32[Array, ""]) -> State:
    """Stores the state at the place of the transition in the replay."""
    put: State = jax.tree.map(
        lambda ring, leaf: jax.lax.dynamic_update_index_in_dim(ring, leaf, inserted % len(ring), 0), states, state
    )
    return put


def step_key(world: EpisodeState, now: Array) -> jax.Array:
    """The key for the outcome of the step after `now` steps."""
    return _key(world, _STEP, now)


def _key(world: EpisodeState, name: int, index: Array) -> jax.Array:
    return jax.random.fold_in(jax.random.fold_in(world.key, name), index)


def _one(tree: Successors) -> Successors:
    return Successors(*(leaf[None] for leaf in tree))
