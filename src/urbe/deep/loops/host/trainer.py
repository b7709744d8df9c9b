"""Train on any Gymnasium environment: it acts on the host, while a program on the device learns and chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from urbe.deep.core.finite import raise_not_finite
from urbe.deep.core.keys import key_data, root_key, with_keys
from urbe.deep.core.learner import LearnerState
from urbe.deep.core.precision import double
from urbe.deep.core.replay import Successors
from urbe.deep.core.settings import Settings
from urbe.deep.loops.host.callback import CallbackSession
from urbe.deep.loops.host.kept_states import KeptStates
from urbe.deep.loops.host.program import (
    NO_ACTION,
    CarryTree,
    Columns,
    ProgramCarry,
    ProgramShape,
    make_feed,
    make_first,
    make_start,
)
from urbe.deep.loops.meters import decided_by_member, means, restarted
from urbe.deep.loops.trainer import TrainingRecord, unchangeable
from urbe.gym.adapters import adapter_of
from urbe.gym.kinds import AnyEnv, Env, innermost
from urbe.gym.members.base import NOBODY, MemberOutcomes, Members
from urbe.gym.members.copies import copy_of
from urbe.gym.members.fitting import fitting_members
from urbe.gym.members.nominal_check import check_nominal, spare
from urbe.gym.rows import Happened, host_env
from urbe.gym.spaces import Spaces
from urbe.gym.states import env_states
from urbe.gym.wrapping import randomised
from urbe.rng import stream
from urbe.simulators import UncertaintySet

RESTARTED_STEPS = 1_000
"""After a late reply, the program is started separately for this many transitions."""


class HostRows(NamedTuple):
    """The state of n environments between calls.

    Attributes:
      rows: transitions, in the form of `urbe.deep.loops.host.program`.
      ready: whether the row is complete and not used for learning yet.
      waiting: whether the row's episode has ended, and its next one has not begun.
      obs, action: observation and next action of each.
      episode_return, length: return and length of the episode so far.
    """

    rows: np.ndarray
    ready: np.ndarray
    waiting: np.ndarray
    obs: np.ndarray
    action: np.ndarray
    episode_return: np.ndarray
    length: np.ndarray


class Ended(NamedTuple):
    """Episodes that ended since the last read: the first `found` entries."""

    step: np.ndarray
    episode_return: np.ndarray
    length: np.ndarray
    found: np.ndarray


class HostTrainer:
    """A learner on the device and a Gymnasium environment on the host.

    The trainer owns the environment from here on: it is reset now and stepped by `advance`.

    Args:
      settings: settings of the agent.
      env: a single environment, or a vector in any autoreset mode.
      members: the members in its targets; None learns from observed outcomes.
      seed: seed of all random numbers, including the environment's.
      record_every: the largest number of steps between two calls of `collect`.
      keep_states: whether `set_members` will be called: states are then stored, too.

    Raises:
      ValueError: in a short trial on a copy, the nominal member did not behave like the environment; or states cannot
        be stored.
    """

    def __init__(
        self,
        settings: Settings,
        env: AnyEnv,
        members: Members | None,
        seed: int,
        record_every: int,
        keep_states: bool = False,
    ) -> None:
        self.settings, self.members, self.seed = settings, members, seed
        self._env = host_env(env)
        self.spaces = Spaces(self._env.observations.space, self._env.n_actions, self._env.start)
        self.shape = ProgramShape(
            self._env.observations.size,
            self._env.n_actions,
            1 if members is None else len(members),
            1 if members is None else members.outcomes,
        )
        self._tree, self._feed = CarryTree(settings, self.shape), make_feed(settings, self.shape)
        with double():
            self._leaves = make_start(settings, self.shape)(root_key(seed))
        self._columns = Columns(self.shape, self._env.count)
        self._columns.present[:] = 1.0
        self._ended = Ended(
            np.zeros(record_every, np.int64),
            np.zeros(record_every, np.float64),
            np.zeros(record_every, np.int64),
            np.zeros(1, np.int64),
        )
        self._step = self._restart_until = 0
        if members is not None and (behind := self._env.behind()):
            check_nominal(spare(behind[0]), members, stream(seed, "nominal member"))
        self._begin()
        self._states = env_states(self._env)
        self._kept = KeptStates(self._env, settings.capacity) if keep_states else None

    def acts_in(self, env: Env) -> bool:
        """Whether it steps this environment, or one that shares its state."""
        return any(innermost(env) is innermost(each) for each in self._env.behind() or [])

    @property
    def environments(self) -> list[Env]:
        """Its environments, with all wrappers, if they are in this process."""
        return self._env.behind() or []

    @property
    def learner(self) -> LearnerState:
        """The learner."""
        return self._carry().learner

    @property
    def step(self) -> int:
        """Transitions seen."""
        return self._step

    @property
    def deciders(self) -> int:
        """The number of members that decide targets; 1 if targets use the observed outcome."""
        return self.shape.members

    def advance(self, steps: int) -> None:
        """Acts and learns for this number of steps, counted over all environments.

        Raises:
          NotFinite: a number was not finite; learning stopped at that step.
        """
        end = self._step + steps
        while self._step < end:
            while not any(self._ready):
                self._act()
            self._learn(end)

    def _act(self) -> None:
        """Steps all environments; a transition is ready for learning when its next observation is known."""
        all_outcomes = self._all_outcomes()
        if self._kept is not None:
            self._kept.before_step(self._waiting)
        for i, result in enumerate(self._env.step(self._action, self._waiting)):
            if isinstance(result, Happened):
                self._put(i, result, all_outcomes[i])
            if result.first is not None:
                self._columns.acting_obs[i] = result.first
            self._ready[i], self._waiting[i] = result.first is not None, result.first is None

    def _put(self, i: int, result: Happened, outcomes: MemberOutcomes | None) -> None:
        """Fills in a row, except for its next observation."""
        c = self._columns
        c.reward[i], c.last[i], c.action[i] = result.reward, result.terminated or result.truncated, self._action[i]
        c.obs[i] = self._obs[i]
        in_force = 0
        if outcomes is not None:
            c.gain[i], c.weight[i], c.reached[i] = self._successors(outcomes)
            in_force = outcomes.in_force
        if in_force != NOBODY:
            c.gain[i, in_force], c.reached[i, in_force, 0] = result.reward, result.reached
            c.weight[i, in_force, 0] = 0.0 if result.terminated else self.settings.discount
        self._episode_return[i] += result.reward
        self._length[i] += 1

    def _successors(self, outcomes: MemberOutcomes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The outcomes of one transition, in the form of `Successors`."""
        gain = (outcomes.probability * outcomes.reward).sum(axis=-1, dtype=np.float32)
        weight = np.float32(self.settings.discount) * outcomes.probability * ~outcomes.terminated
        return gain, weight, outcomes.obs

    def set_members(self, uncertain: UncertaintySet | Members) -> None:
        """Continues with other members: all outcomes in the replay are computed again, from the stored states.

        Stored targets become outdated. The outcome of the current member is computed, too, and equals the observed one
        up to rounding.

        Raises:
          ValueError: there were no members, their number differs, or states were not stored.
        """
        if self.members is None or self._kept is None:
            raise ValueError(unchangeable(self.members is None))
        members = fitting_members(self._env.env, uncertain)
        if (len(members), members.outcomes) != (self.shape.members, self.shape.outcomes):
            raise ValueError(
                f"uncertain has {len(members)} members with {members.outcomes} outcomes each, expected "
                f"{self.shape.members} with {self.shape.outcomes}: the replay has room for this number."
            )
        if behind := self._env.behind():
            check_nominal(copy_of(behind[0]), members, stream(self.seed, "nominal member", self._step))
        carry, c, start = self._carry(), self._columns, self._env.start
        replay, fresh = carry.learner.replay, jax.device_get(carry.learner.replay)
        places = range(min(int(fresh.inserted), self.settings.capacity))
        pending = [i for i in range(self._env.count) if self._ready[i] or self._waiting[i]]
        asked = [(place, fresh.obs[place], int(fresh.action[place]) + start) for place in places]
        asked += [(self._kept.place_of(i), c.obs[i], int(c.action[i]) + start) for i in pending]
        found = [self._successors(each) for each in self._kept.outcomes(members, asked)]
        rings = [np.array(ring) for ring in fresh.successors]
        for place, one in zip(places, found, strict=False):
            for ring, leaf in zip(rings, one, strict=True):
                ring[place] = leaf
        for i, one in zip(pending, found[len(places) :], strict=True):
            c.gain[i], c.weight[i], c.reached[i] = one
        with double():
            again = Successors(*map(jnp.asarray, rings))
            replay = replay._replace(successors=again, stamp=jnp.full_like(replay.stamp, -1))
            self._leaves = self._tree.flatten(carry._replace(learner=carry.learner._replace(replay=replay)))
        self.members = members

    def _all_outcomes(self) -> list[MemberOutcomes | None]:
        """The outcomes under all members from the current states, before the environments act."""
        if self.members is None:
            return [None] * self._env.count
        behind: Sequence[Env | None] = self._env.behind() or [None] * self._env.count
        return [
            None if waits else self.members.successors(env, self._obs[i], action + self._env.start)
            for i, (env, action, waits) in enumerate(zip(behind, self._action, self._waiting, strict=True))
        ]

    def _learn(self, end: int) -> None:
        """Lets the program learn from ready rows, and acts for as long as it makes requests."""
        with CallbackSession() as program:
            with double():
                self._leaves = self._feed(self._leaves, self._hand_out(end), program.ticket)
            try:
                while (bad := self._take_back(program.wait_for_request(self._has_ended))) is None:
                    if not self._restart_until <= self._step < end:
                        break
                    while not any(self._ready):
                        self._act()
                    if not program.reply(self._hand_out(end)):
                        break
            except BaseException:  # keeps what the program has learned so far
                program.reply(None)
                jax.block_until_ready(self._leaves)
                if (late := program.wait_for_request(lambda: True)) is not None:
                    self._take_back(late)
                raise
        if program.timed_out:
            self._restart_until = self._step + RESTARTED_STEPS
        if bad is not None:
            raise_not_finite(jax.device_get(self._carry().finite), self.members is None, bad)
            raise RuntimeError("The learning program ended without a request. Load the last checkpoint and resume.")

    def _has_ended(self) -> bool:
        return bool(self._leaves[0].is_ready())  # type: ignore[attr-defined]

    def _hand_out(self, end: int) -> Float[np.ndarray, "n W"]:
        """The ready rows in order, at most as many as there are steps left."""
        self._handed_out = [i for i, ready in enumerate(self._ready) if ready][: end - self._step]
        rows = self._columns.rows
        if len(self._handed_out) < len(rows):
            rows = np.zeros_like(rows)
            rows[: len(self._handed_out)] = self._columns.rows[self._handed_out]
        return rows

    def _take_back(self, chosen: list[int] | None) -> int | None:
        """Sets the next actions of the learned rows; returns the row with a number that is not finite, if any."""
        if chosen is None:  # there was one before
            return self._handed_out[0]
        for i, action in zip(self._handed_out, chosen, strict=False):
            if action == NO_ACTION:
                return i
            if self._kept is not None:
                self._kept.learned(i, self._step)
            self._step += 1
            self._ready[i], self._action[i], self._obs[i] = False, action, self._columns.acting_obs[i]
            if self._columns.last[i]:
                self._note(i, self._step)
        return None

    def _note(self, row: int, step: int) -> None:
        """Records the end of an episode."""
        at, e = int(self._ended.found[0]), self._ended
        e.step[at], e.episode_return[at], e.length[at] = step, self._episode_return[row], self._length[row]
        e.found[0] = at + 1
        self._episode_return[row], self._length[row] = 0.0, 0

    def _begin(self, *again: int) -> None:
        """Begins an episode in all environments, and drops rows that were not used for learning."""
        seeds = [int(stream(self.seed, "environment", i, *again).integers(2**31)) for i in range(self._env.count)]
        self._obs = self._env.reset(seeds)
        with double():
            chosen = make_first(self.settings)(self.learner, self._obs)
        n = self._env.count
        self._action: list[int] = np.asarray(chosen).tolist()
        self._ready, self._waiting = [False] * n, [False] * n
        self._episode_return, self._length = [0.0] * n, [0] * n

    def collect(self, restart: bool = True) -> TrainingRecord:
        """The record since the last restart; the next one begins here if `restart`."""
        carry, ended = self._carry(), self._ended
        with double():
            meters = jax.device_get(carry.meters)
            if restart:
                self._leaves = self._tree.flatten(carry._replace(meters=restarted(meters)))
        n = int(ended.found[0])
        columns = {"step": ended.step, "return": ended.episode_return, "length": ended.length}
        finished = {name: column[:n].copy() for name, column in columns.items()}
        if restart:
            ended.found[0] = 0
        return TrainingRecord(means(meters), finished, decided_by_member(meters))

    def state(self) -> Any:
        """Everything needed to resume, bit for bit if the environment's state is accessible, as NumPy arrays."""
        rows = HostRows(
            np.array(self._columns.rows),
            np.array(self._ready),
            np.array(self._waiting),
            np.array(self._obs),
            np.array(self._action, np.int64),
            np.array(self._episode_return),
            np.array(self._length, np.int64),
        )
        kept: dict[str, Any] = jax.device_get(key_data(self._carry()))._asdict()
        kept |= {"rows": rows, "ended": jax.tree.map(np.array, self._ended)}
        states = None if self._kept is None else self._kept.state()
        return kept | {"states": states, "env": None if self._states is None else self._states.get(self._waiting)}

    def load(self, state: Any) -> None:
        """Restores the result of `state`; with a new episode if the environment's state was not accessible."""
        parts = ProgramCarry(*(state[name] for name in ProgramCarry._fields))
        with double():
            self._leaves = self._tree.flatten(with_keys(jax.tree.map(jnp.asarray, parts), self._carry()))
        self._step = int(parts.learner.step)
        self._ended = Ended(*map(np.array, state["ended"]))
        if self._kept is not None:
            self._kept.load(state["states"])
        if self._states is None:
            self._begin(self._step)
            return
        rows = HostRows(*state["rows"])
        self._columns.rows[:], self._obs = rows.rows, np.array(rows.obs)
        self._ready, self._waiting, self._action = rows.ready.tolist(), rows.waiting.tolist(), rows.action.tolist()
        self._episode_return, self._length = rows.episode_return.tolist(), rows.length.tolist()
        self._states.set(state["env"], self._waiting)

    def describe(self) -> dict[str, Any]:
        """Describes the training environment as plain data."""
        env, behind = self._env.env, self._env.behind()
        adapter = None if behind is None else adapter_of(behind[0])
        params: Any = None if adapter is None or behind is None else adapter.get_params(behind[0])
        if behind is not None and (drawn := randomised(behind[0])):
            params = drawn[0].describe_draws()  # current parameters are irrelevant
        return {
            "kind": "gymnasium",
            "environment": str(env) if behind is None else str(behind[0]),
            "parameters": params,
            "count": None if self._env.mode is None else self._env.count,
            "autoreset": None if self._env.mode is None else self._env.mode.name,
            "resumes": "with a new episode" if self._states is None else "exactly",
            "uncertain": None if self.members is None else self.members.describe(),
            "shape": self.shape._asdict(),
        }

    def _carry(self) -> ProgramCarry:
        with double():
            return self._tree.unflatten(self._leaves)
