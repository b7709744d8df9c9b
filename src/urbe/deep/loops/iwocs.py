"""IWOCS: a robust policy from a sequence of ordinary problems, each with one member of the set [Zouitine2024].

    member k <- the nominal one
    repeat:  Q_k <- DQN under member k alone, for `round_steps` steps
             pi  <- argmax_a min over the members trained so far of Q_k(s, a)
             k   <- the member under which pi returns least, in test episodes under all members

Departures: a member that is the worst again is trained further, from its weights, whereas the paper stops, so that
training can have any length; and every Q_k is used everywhere, whereas the paper leaves one out at states that its
replay has not seen. The length of a round and the number of test episodes depend on the problem: they are fields.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32

from urbe import checks
from urbe.deep.core.finite import FiniteCheck
from urbe.deep.core.minimum import Minimum, MinimumWeights, at_place, placed
from urbe.deep.core.settings import Settings
from urbe.deep.loops.compiled import CompiledRun, init_run, make_advance, shared
from urbe.deep.loops.member_returns import member_returns
from urbe.deep.loops.meters import FinishedEpisodes, Meters
from urbe.simulators.base import Key, Params, Simulator
from urbe.simulators.schedules import Carry, Schedule

_ROUND, _TEST = 2, 3  # streams of random numbers besides those of a run


@dataclass(frozen=True)
class WorstCaseSearch:
    """The sequence of members in IWOCS.

    Args:
      round_steps: environment steps with one member, before the next worst one is chosen.
      episodes: test episodes under each member, to find the worst.
      first: the first member.
    """

    round_steps: int = 20_000
    episodes: int = 20
    first: int = 0

    def __post_init__(self) -> None:
        checks.whole_number("round_steps", self.round_steps, 1)
        checks.whole_number("episodes", self.episodes, 1)
        checks.whole_number("first", self.first, 0)

    def programs(
        self, settings: Settings, simulator: Simulator, schedule: Schedule | None, record_every: int
    ) -> tuple[Any, Any]:
        """Makes `begin(key, members) -> run` and `advance(run, members, steps) -> run` from compiled parts.

        Raises:
          ValueError: there is a schedule, or the settings' network is not a `Minimum`.
        """
        if schedule is not None:
            raise ValueError("schedule was given to IWOCS, expected None: it trains under one member after the other.")
        if not isinstance(settings.network, Minimum):
            raise ValueError(f"network is {settings.network!r}, expected Minimum(members, network): one per member.")
        return _programs(self, settings, simulator, record_every)


class SequenceLearner(NamedTuple):
    """The learners of all problems: Q_k of each member, and which of them are active."""

    q: MinimumWeights
    head: None
    step: Int32[Array, ""]
    updates: Int32[Array, ""]
    episodes: Int32[Array, ""]


class SequenceRun(NamedTuple):
    """A run over a sequence of problems; records are kept outside of the current one."""

    learner: SequenceLearner
    problem: CompiledRun
    member: Int32[Array, ""]  # of the current problem
    round: Int32[Array, ""]  # number of earlier problems
    returns: Array  # `(K,)` returns of the last search
    meters: Meters
    episodes: FinishedEpisodes
    finite: FiniteCheck
    key: jax.Array


@dataclass(frozen=True)
class _OneMember(Schedule):
    """Constant parameters from the first carry: one compiled loop serves all members."""

    member: Params = None

    def begin(self, key: Key) -> Carry:
        return Carry(jnp.int32(0), self.member)

    def next(self, carry: Carry, key: Key) -> Carry:
        return Carry(carry.episode + 1, carry.params)


@shared
def _programs(search: WorstCaseSearch, settings: Settings, simulator: Simulator, record_every: int) -> tuple[Any, Any]:
    assert isinstance(settings.network, Minimum)
    static, count = replace(settings, network=settings.network.network), settings.network.members
    loop = make_advance(static, simulator, _OneMember())

    def begin_problem(key: Key, uncertain: Params, member: Array) -> CompiledRun:
        params = jax.tree.map(lambda leaf: leaf[member], uncertain)
        return init_run(static, simulator, None, _OneMember(params), key, record_every)

    @jax.jit
    def begin(key: Key, uncertain: Params) -> SequenceRun:
        first = jnp.int32(search.first)
        problem = begin_problem(key, uncertain, first)
        zero = jnp.int32(0)
        stack = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), problem.learner.q)
        q = MinimumWeights(stack, _one_hot(first, count))
        return SequenceRun(
            SequenceLearner(q, None, zero, zero, zero),
            _without_records(problem),
            first,
            zero,
            jnp.full(count, jnp.nan, jnp.float32),
            problem.meters,
            problem.episodes,
            problem.finite,
            key,
        )

    @jax.jit
    def merged(run: SequenceRun, after: CompiledRun) -> SequenceRun:
        """Merges the run of the current problem into the run over all problems."""
        before, now = run.problem.learner, after.learner
        offset = run.round * search.round_steps
        place = jnp.arange(len(after.episodes.step))
        new = (place >= run.episodes.ended) & (place < after.episodes.ended)
        step = after.episodes.step + jnp.where(new, offset, 0)
        finite = after.finite._replace(step=jnp.where(after.finite.kind > 0, after.finite.step + offset, 0))
        # before the first problem is solved, its current network is the best available
        each = jax.tree.map(
            partial(jnp.where, run.round == 0),
            placed(run.learner.q.each, run.member, now.q),
            run.learner.q.each,
        )
        learner = run.learner._replace(
            q=run.learner.q._replace(each=each),
            step=run.learner.step + now.step - before.step,
            updates=run.learner.updates + now.updates - before.updates,
            episodes=run.learner.episodes + now.episodes - before.episodes,
        )
        return run._replace(
            learner=learner,
            problem=_without_records(after),
            meters=after.meters,
            episodes=after.episodes._replace(step=step),
            finite=finite,
        )

    @jax.jit
    def next_problem(run: SequenceRun, uncertain: Params) -> SequenceRun:
        """Stores the network of the current member, and begins with the new worst one."""
        known = run.learner.q
        q = MinimumWeights(
            placed(known.each, run.member, run.problem.learner.q),
            jnp.maximum(known.counts, _one_hot(run.member, count)),
        )
        index = run.round + 1
        test = jax.random.fold_in(jax.random.fold_in(run.key, _TEST), index)
        returns = member_returns(settings, q, simulator, uncertain, test, search.episodes)
        worst = returns.argmin().astype(jnp.int32)
        problem = begin_problem(jax.random.fold_in(jax.random.fold_in(run.key, _ROUND), index), uncertain, worst)
        fresh = problem.learner
        weights = jax.tree.map(
            lambda old, new: jnp.where(q.counts[worst] > 0.0, old, new), at_place(q.each, worst), fresh.q
        )
        problem = problem._replace(learner=fresh._replace(q=weights, target=jax.tree.map(jnp.copy, weights)))
        return run._replace(
            learner=run.learner._replace(q=q),
            problem=_without_records(problem),
            member=worst,
            round=index,
            returns=returns,
        )

    def advance(run: SequenceRun, uncertain: Params, steps: Int32[Array, ""]) -> SequenceRun:
        left = int(steps)
        while left and not int(run.finite.kind):
            now = min(left, search.round_steps - int(run.problem.learner.step))
            whole = run.problem._replace(meters=run.meters, episodes=run.episodes, finite=run.finite)
            run = merged(run, loop(jax.tree.map(jnp.copy, whole), None, jnp.int32(now)))
            left -= now
            if int(run.problem.learner.step) == search.round_steps and not int(run.finite.kind):
                run = next_problem(run, uncertain)
        return run

    return begin, advance


def _one_hot(place: Array, count: int) -> Array:
    return jax.nn.one_hot(place, count, dtype=jnp.float32)


def _without_records(problem: CompiledRun) -> CompiledRun:
    return problem._replace(meters=None, episodes=None, finite=None)  # type: ignore[arg-type]
