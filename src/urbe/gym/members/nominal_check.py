"""Check that the nominal member behaves like the environment.

Robust targets compare the outcomes under all members from one state of the environment. If a copy is not in that state,
because an adapter omits a variable or a wrapper has a memory of its own, the targets are wrong without any other sign.
So the environment plays episodes with random actions, in parallel with a copy that has the same parameters:

    for each step:   copy <- state of the environment,   copy.step(a) == env.step(a),   to the last bit

In between, the copy is sometimes moved elsewhere (reset and a few actions), so that it does not agree merely because of
a common past, and sometimes not set at all, so that it must stay in the same state by itself.
"""

from __future__ import annotations

from copy import deepcopy
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from urbe import checks
from urbe.gym.changing_params import ChangingParams
from urbe.gym.kinds import Env, innermost
from urbe.gym.members.base import Members
from urbe.gym.members.copies import EnvMembers, Where
from urbe.gym.members.differences import first_difference
from urbe.gym.rows import Happened, host_env, step_env
from urbe.gym.wrapping import differing_attributes, keeps_state, wrappers

STEPS = 128
"""Number of steps that are compared before training starts."""

EPISODES = 4
"""At least this many episodes begin: one that exceeds its share of the steps is truncated."""

ROUNDING = 1e-5
"""Tolerance for members other than copies, relative to one or to the number: they are computed differently."""

_APART, _SYNCED, _ALONE = range(3)  # treatment of a copy before a compared step
_AWAY = 3  # largest number of actions of a copy that is moved elsewhere


class _Step(NamedTuple):
    """The outcome of an action."""

    obs: Float[np.ndarray, " D"]
    reward: float
    terminated: bool


def check_nominal(env: Env, members: Members, rng: np.random.Generator, *, steps: int = STEPS) -> int:
    """Compares an environment and its nominal member step by step, through whole episodes and resets.

    Without a nominal member, one of the copies temporarily gets the environment's parameters. Members of other kinds
    are compared if one of them is nominal, while the environment has its parameters; if it lists several outcomes, one
    must be the observed one.

    Args:
      env: a single environment, which is reset and stepped; give one that is not in use.
      members: its members.
      rng: generator of the random actions.
      steps: number of steps to compare; an episode is truncated after a quarter of them.

    Returns:
      the number of compared steps: 0 if there is nothing to compare.

    Raises:
      ValueError: naming the first entry that differs, and what to do.
    """
    checks.whole_number("steps", steps, 1)
    if isinstance(members, EnvMembers):
        mine, theirs = (type(innermost(each)).__name__ for each in (env, members.copies[0]))
        if mine != theirs:
            raise ValueError(
                f"The members are copies of {theirs}, but the environment is {mine}. Make them from the environment "
                "that you train on: EnvMembers.grid(env, ...)."
            )
        if not members.shared_noise:
            return 0
        with _Alongside(env, members, rng) as twin:
            return _walk(env, twin, rng, steps)
    if members.nominal is None:
        return 0
    return _walk(env, _Listed(env, members), rng, steps)


def _walk(env: Env, other: _Alongside | _Listed, rng: np.random.Generator, steps: int) -> int:
    one, longest = host_env(env), max(steps // EPISODES, 1)
    obs = one.reset([int(rng.integers(2**31))])[0]
    episode = at = 0
    for _ in range(steps):
        action = int(rng.integers(one.n_actions))
        other.act(obs, action + one.start, first=at == 0)
        step = one.step([action], [False])[0]
        assert isinstance(step, Happened)
        assert step.first is not None  # a single environment always knows
        other.compare(_Step(step.reached, step.reward, step.terminated), f"episode {episode}, step {at}")
        obs, at = step.first, at + 1
        if step.terminated or step.truncated:
            episode, at = episode + 1, 0
        elif at >= longest:
            obs, episode, at = one.reset([int(rng.integers(2**31))])[0], episode + 1, 0
    return steps


class _Listed:
    """Members that list outcomes: those of the member with the environment's parameters are compared."""

    def __init__(self, env: Env, members: Members) -> None:
        self._env, self._members = env, members

    def act(self, obs: Float[np.ndarray, " D"], action: int, first: bool) -> None:
        """Gets the outcomes before the environment acts."""
        self._place, self._found = self._members.in_force(self._env), self._members.successors(self._env, obs, action)

    def compare(self, expected: _Step, where: str) -> None:
        """Raises if no outcome of that member is the observed one."""
        k, found = self._place, self._found
        if k is None:
            return
        outcomes = [
            _Step(found.obs[k, j], float(found.reward[k, j]), bool(found.terminated[k, j]))
            for j in np.flatnonzero(found.probability[k] > 0.0)
        ]
        differences = [_difference(outcome, expected, ROUNDING) for outcome in outcomes]
        if None in differences:
            return
        wrong = differences[0] if len(outcomes) == 1 else f"none of its {len(outcomes)} outcomes is the observed one"
        raise ValueError(
            f"Member {k} has the environment's parameters, but does not do what it does: {where}: {wrong}. Correct "
            "the dynamics of that member, or name another one, or none (None), as nominal."
        )


class _Alongside:
    """A copy with the environment's parameters, set to its state before it acts."""

    def __init__(self, env: Env, members: EnvMembers, rng: np.random.Generator) -> None:
        self._env, self._members, self._adapter, self._rng = env, members, members.adapter, rng
        self._copy, self._host, self._how = members.copies[members.nominal or 0], host_env(env), _SYNCED
        self._own = self._adapter.get_params(self._copy)

    def __enter__(self) -> _Alongside:
        changing = any(isinstance(each, ChangingParams) for each in wrappers(self._env))
        if self._members.nominal is not None and not changing:
            _same_params(self._adapter.get_params(self._env), self._own, self._members.nominal)
        self._adapter.set_params(self._copy, self._own)
        _same_after_set(self._own, self._adapter.get_params(self._copy))
        return self

    def __exit__(self, *_: object) -> None:
        self._set_params(self._own)

    def act(self, obs: Float[np.ndarray, " D"], action: int, first: bool) -> None:
        """Steps the copy, before the environment acts."""
        self._how = int(self._rng.integers(2 if first else 3))
        if self._how == _APART:
            self._send_away()
        if self._how == _ALONE:
            self._found = self._step(action, self._members.where(self._env))
            return
        self._set_params(self._adapter.get_params(self._env))
        self._found = self._sync_and_step(action)

    def compare(self, expected: _Step, where: str) -> None:
        """Raises if the copy did not behave like the environment."""
        wrong = _difference(self._found, expected, 0.0)
        if wrong is not None:
            raise ValueError(
                f"The copies do not do what the environment does: {where}, {_HOW[self._how]}: {wrong}. "
                f"{self._what_to_do()}"
            )

    def _set_params(self, params: dict[str, float]) -> None:
        if self._adapter.get_params(self._copy) != params:
            self._adapter.set_params(self._copy, params)

    def _sync_and_step(self, action: int) -> _Step:
        here = self._members.where(self._env)
        kept = deepcopy(here.state)
        self._members.bring(self._copy, here)
        if at := first_difference(kept, self._adapter.get_state(self._copy)):
            raise ValueError(
                f"set_state does not set all that get_state gives: state{at}, in the environment and in a copy that "
                "was set to its state, expected the same."
            )
        step = self._step(action, here)
        if at := first_difference(kept, self._adapter.get_state(self._env)):
            raise ValueError(
                f"A step of a copy changed the environment: its state{at}, before and after. get_state gives the "
                "environment's own array or set_state keeps the one it is given, expected copies: use np.array(...)."
            )
        if at := first_difference(kept, here.state):
            raise ValueError(
                f"A step of a copy changed the state it was set to: state{at}, before and after; the next copy "
                "would start from there. set_state keeps the array it is given, expected a copy: use np.array(...)."
            )
        return step

    def _step(self, action: int, at: Where) -> _Step:
        obs, reward, terminated = self._members.step(self._copy, action, at)
        return _Step(self._host.observations.row(obs), reward, terminated)

    def _send_away(self) -> None:
        """Moves the copy elsewhere, with other random numbers, so that variables omitted by the adapter differ."""
        self._copy.reset(seed=int(self._rng.integers(2**31)))
        for _ in range(int(self._rng.integers(1, _AWAY + 1))):
            action = int(self._rng.integers(self._host.n_actions)) + self._host.start
            _, _, terminated, truncated = step_env(self._copy, action)
            if terminated or truncated:
                return

    def _what_to_do(self) -> str:
        """Finds the cause: an attribute that was not set, a wrapper, randomness."""
        self._host.reset([int(self._rng.integers(2**31))])
        self._send_away()
        self._members.bring(self._copy, self._members.where(self._env))
        left = differing_attributes(self._env, self._copy)
        forgotten = f" After set_state, {checks.listing(left)} of a copy and of the environment differ." if left else ""
        memory = keeps_state(self._env, across_episodes=False)
        if memory is not None:
            return (
                f"The wrapper {memory} may have a memory: get and set it in the adapter, or leave the wrapper out."
                f"{forgotten}"
            )
        if left:
            return f"Get and set in the adapter everything that a step depends on.{forgotten}"
        return (
            "No attribute of the environment explains it. Either it draws random numbers from a generator other than "
            "env.unwrapped.np_random: get and set its state in the adapter; if that is impossible, "
            "EnvMembers(env, params, shared_noise=False) lets each copy draw numbers of its own, unchecked. Or "
            "the adapter omits something else that a step depends on: get and set that too."
        )


_HOW = {
    _APART: "after the copy was moved elsewhere and set to the environment's state",
    _SYNCED: "after the copy was set to the environment's state",
    _ALONE: "after the copy was set to the environment's state and stepped in parallel",
}


def _same_params(expected: dict[str, float], found: dict[str, float], nominal: int) -> None:
    for name, value in expected.items():
        if found.get(name) != value:
            raise ValueError(
                f"Member {nominal} is nominal, but its {name} is {found.get(name)}, expected {value} as in the "
                "environment. Either set_params does not set what it is given, or the environment was changed after "
                "the members were made: make them again."
            )


def _same_after_set(expected: dict[str, float], found: dict[str, float]) -> None:
    for name, value in expected.items():
        if found.get(name) != value:
            raise ValueError(
                f"set_params was given {name} {value}, and get_params then gives {found.get(name)}, expected the same."
            )


def _difference(found: _Step, expected: _Step, rounding: float) -> str | None:
    """Describes the first entry that differs; None if all are equal."""
    if found.obs.shape != expected.obs.shape:
        return f"the observation has {found.obs.size} numbers, expected {expected.obs.size}"
    wrong = ~np.isclose(found.obs, expected.obs, rtol=rounding, atol=rounding, equal_nan=True)
    if wrong.any():
        i = int(np.argmax(wrong))
        differ = checks.some(int(wrong.sum()), wrong.size, "entry", "entries")
        return f"observation[{i}] is {found.obs[i]}, expected {expected.obs[i]} ({differ} different)"
    if not np.isclose(found.reward, expected.reward, rtol=rounding, atol=rounding, equal_nan=True):
        return f"the reward is {found.reward}, expected {expected.reward}"
    if found.terminated != expected.terminated:
        return f"terminated is {found.terminated}, expected {expected.terminated}"
    return None


def spare(env: Env) -> Env:
    """A copy of an environment for the comparison; the environment itself if it cannot be copied."""
    try:
        return deepcopy(env)
    except Exception:  # any error of parts of an environment that cannot be copied
        return env
