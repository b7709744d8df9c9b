"""Logs from Gymnasium environments with finitely many states and actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.gym.kinds import numbered
from urbe.mdp.model import MDP
from urbe.mdp.transitions import Transitions
from urbe.rng import stream
from urbe.types import BoolArray

Policy = Callable[[np.random.Generator, int], int]
"""The action in a state; random choices use the generator."""


def record(
    env: Any,
    policy: Policy | ArrayLike | None = None,
    *,
    episodes: int,
    seed: int,
    most_steps: int = 10_000,
) -> Transitions:
    """Plays some episodes and logs every transition.

    States are numbered as in `MDP.from_gymnasium`: an episode that terminates in a state which is elsewhere passed
    through (Taxi) ends in one extra state, the last. The environment's table `P` says whether there is one, or,
    without a table, by what the log shows. An episode that is truncated just stops: its last transition is not marked
    `terminated`.

    Args:
      env: a Gymnasium environment whose observations and actions are `Discrete`. It is left open.
      policy: `policy(rng, state)` gives an action; or an array, `(S,)` actions or `(S, A)` probabilities; None chooses
        uniformly.
      episodes: how many to play.
      seed: of the environment and of the policy; the same seed gives the same log.
      most_steps: episodes are cut off after so many steps, if the environment's own limit does not come first.

    Returns:
      the log, with the columns terminated, episode and step.

    >>> import gymnasium
    >>> with gymnasium.make("FrozenLake-v1") as env:
    ...     log = record(env, episodes=3, seed=0)
    >>> log.episode[-1], int(log.terminated.sum())
    (np.int64(2), 3)
    """
    n_states, first_state = discrete("observation_space", env.observation_space)
    n_actions, first_action = discrete("action_space", env.action_space)
    choose = _chooser(policy, n_states, n_actions)
    checks.whole_number("episodes", episodes, 1)
    checks.whole_number("most_steps", most_steps, 1)
    rng = stream(seed, "policy")
    start = int(stream(seed, "environment").integers(2**31))
    rows: list[tuple[int, int, float, int, bool, int, int]] = []
    started: set[int] = set()
    for episode in range(episodes):
        # seeded once: the environment's own generator then goes on from episode to episode
        observation, _ = env.reset(seed=start if episode == 0 else None)
        state = int(observation) - first_state
        started.add(state)
        for step in range(most_steps):
            action = int(choose(rng, state))
            if not 0 <= action < n_actions:
                raise ValueError(f"policy gives action {action} in state {state}, expected one below {n_actions}.")
            observation, reward, terminated, truncated, _ = env.step(action + first_action)
            following = int(observation) - first_state
            rows.append((state, action, float(reward), following, bool(terminated), episode, step))
            state = following
            if terminated or truncated:
                break
    names = ("state", "action", "reward", "next_state", "terminated", "episode", "step")
    log = Transitions.from_tuples(rows, names)
    ended: BoolArray = np.array([row[4] for row in rows])
    if _needs_extra_state(env, log, ended, n_states, started):
        log = replace(log, next_state=np.where(ended, n_states, log.next_state))
    return log


def discrete(name: str, space: Any) -> tuple[int, int]:
    """Size and first value of a discrete space."""
    if (found := numbered(space)) is None:
        raise ValueError(
            f"{name} is {space}, expected Discrete(n): a log of finitely many states and actions. Wrap the environment "
            "so that each state and each action is a whole number."
        )
    return found


def has_table(env: Any) -> bool:
    """Whether an environment tells its dynamics in a table `P`."""
    return isinstance(getattr(env.unwrapped, "P", None), Mapping)


def _chooser(policy: Policy | ArrayLike | None, n_states: int, n_actions: int) -> Policy:
    if policy is None:
        return lambda rng, _: int(rng.integers(n_actions))
    if callable(policy):
        return policy
    table = checks.float_array("policy", policy)
    sizes = (n_states, n_states + 1)  # a model's policy has an entry for the extra state too
    if table.ndim == 1 and len(table) in sizes:
        actions = checks.int_array("policy", table, -1, n_actions, "action")
        return lambda _, state: int(actions[state])
    if table.ndim == 2 and table.shape[0] in sizes and table.shape[1] == n_actions:
        checks.non_negative("policy", table)

        def draw(rng: np.random.Generator, state: int) -> int:
            return int(rng.choice(n_actions, p=checks.distribution(f"policy[{state}]", table[state], n_actions)))

        return draw
    raise ValueError(
        f"policy has shape {table.shape}, expected ({n_states},) actions, ({n_states}, {n_actions}) probabilities, a "
        "function policy(rng, state), or None."
    )


def _needs_extra_state(env: Any, log: Transitions, ended: BoolArray, n_states: int, started: set[int]) -> bool:
    """Whether episodes terminate in states that are also passed through, or begun in."""
    if has_table(env):
        return MDP.from_gymnasium(env, discount=1.0).n_states > n_states
    passed = np.zeros(n_states, dtype=bool)
    passed[log.next_state[~ended]] = True
    passed[sorted(started)] = True
    return bool(passed[log.next_state[ended]].any())
