"""Record logs of Gymnasium environments with finitely many states and actions, or with discretised observations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.gym.cells import Cells
from urbe.gym.kinds import numbered
from urbe.gym.steps import Episode, log_of_episodes
from urbe.mdp.model import MDP
from urbe.mdp.transitions import Transitions
from urbe.rng import stream

Policy = Callable[[np.random.Generator, int], int]
"""The action in a state; random choices use the generator."""


def record(
    env: Any,
    policy: Policy | ArrayLike | None = None,
    *,
    episodes: int,
    seed: int,
    most_steps: int = 10_000,
    cells: Cells | None = None,
) -> Transitions:
    """Plays episodes and logs every transition.

    States are numbered as in `MDP.from_gymnasium`: if an episode terminates in a state that is also passed through
    (Taxi), it ends in one extra state, the last. The environment's table `P`, or without a table the log, determines
    whether there is one. A truncated episode just stops: its last transition is not marked `terminated`.

    Args:
      env: a Gymnasium environment with `Discrete` actions, and observations that are `Discrete` or discretised by
        `cells`. It is left open.
      policy: `policy(rng, state)` returns an action; or an array, `(S,)` actions or `(S, A)` probabilities; None
        chooses uniformly.
      episodes: number of episodes to play.
      seed: seed of the environment and of the policy; the same seed gives the same log.
      most_steps: episodes are truncated after this many steps, or at the environment's own limit if it is lower.
      cells: discretises continuous observations; a policy is then None or `policy(rng, observation)`. States are the
        cells that occur, and the log's notes state the error.

    Returns:
      the log, with the columns terminated, episode and step.

    >>> import gymnasium
    >>> with gymnasium.make("FrozenLake-v1") as env:
    ...     log = record(env, episodes=3, seed=0)
    >>> log.episode[-1], int(log.terminated.sum())
    (np.int64(2), 3)
    """
    n_actions, first_action = discrete("action_space", env.action_space)
    checks.whole_number("episodes", episodes, 1)
    checks.whole_number("most_steps", most_steps, 1)
    rng = stream(seed, "policy")
    start = int(stream(seed, "environment").integers(2**31))
    if cells is not None:
        free, vector = _free_chooser(policy, n_actions), lambda x: np.array(x, dtype=np.float64)
        played = [
            _episode(env, free, vector, rng, n_actions, first_action, most_steps, first)
            for first in (start, *[None] * (episodes - 1))
        ]
        return log_of_episodes(played, cells=cells)
    n_states, first_state = discrete("observation_space", env.observation_space)
    pick = _chooser(policy, n_states, n_actions)
    played = [
        _episode(env, pick, lambda x: int(x) - first_state, rng, n_actions, first_action, most_steps, first)
        for first in (start, *[None] * (episodes - 1))
    ]
    # a table is more complete than a log
    end = MDP.from_gymnasium(env, discount=1.0).n_states > n_states if has_table(env) else None
    return log_of_episodes(played, n_states=n_states, end=end)


def _episode(
    env: Any, choose: Callable[[np.random.Generator, Any], int], seen: Callable[[Any], Any], rng: np.random.Generator,
    n_actions: int, first_action: int, most_steps: int, seed: int | None,
) -> Episode:  # fmt: skip
    """Plays one episode; the environment is seeded once, and its generator continues across episodes."""
    observation, _ = env.reset(seed=seed)
    observations, actions, rewards, terminated = [seen(observation)], [], [], False
    for _ in range(most_steps):
        action = int(choose(rng, observations[-1]))
        if not 0 <= action < n_actions:
            where = observations[-1]
            raise ValueError(f"policy gives action {action} in state {where}, expected one below {n_actions}.")
        observation, reward, terminated, truncated, _ = env.step(action + first_action)
        observations.append(seen(observation))
        actions.append(action)
        rewards.append(float(reward))
        if terminated or truncated:
            break
    return Episode(observations, actions, rewards, bool(terminated))


def discrete(name: str, space: Any) -> tuple[int, int]:
    """Size and first value of a discrete space."""
    if (found := numbered(space)) is None:
        raise ValueError(
            f"{name} is {space}, expected Discrete(n): a log of finitely many states and actions. Wrap the environment "
            "so that each state and each action is a whole number."
        )
    return found


def has_table(env: Any) -> bool:
    """Whether an environment has its dynamics in a table `P`."""
    return isinstance(getattr(env.unwrapped, "P", None), Mapping)


def _chooser(policy: Policy | ArrayLike | None, n_states: int, n_actions: int) -> Policy:
    if policy is None:
        return lambda rng, _: int(rng.integers(n_actions))
    if callable(policy):
        return policy
    table = checks.float_array("policy", policy)
    sizes = (n_states, n_states + 1)  # a policy of the model has an entry for the extra state, too
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


def _free_chooser(policy: Policy | ArrayLike | None, n_actions: int) -> Callable[[np.random.Generator, Any], int]:
    """Returns a policy for observations that are not numbered."""
    if policy is None:
        return lambda rng, _: int(rng.integers(n_actions))
    if not callable(policy):
        raise ValueError("policy is an array, expected None or a function policy(rng, observation) with cells.")
    return policy
