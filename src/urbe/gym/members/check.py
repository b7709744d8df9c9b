"""Check members: the nominal one behaves like the environment, and every two members differ."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from urbe import checks
from urbe.gym.kinds import Env
from urbe.gym.members.base import Members
from urbe.gym.members.nominal_check import check_nominal
from urbe.gym.rows import host_env


def check_members(
    env: Env, members: Members, rng: np.random.Generator, *, steps: int = 256, tolerance: float = 0.0
) -> Float[np.ndarray, "K K"]:
    """Tests that the nominal member behaves like the environment, and that every two members differ.

    First the environment and a copy with its parameters are stepped in parallel through whole episodes, including
    wrappers and resets, see `urbe.gym.members.nominal_check`; constructing a robust agent does this, too. Then every
    two members must differ in the outcome from some state.

    Args:
      env: an environment for random actions; it is reset, so give one that is not in use.
      members: its members.
      rng: generator of the random actions.
      steps: number of steps to compare, and of states to try.
      tolerance: differences between members up to this do not count.

    Returns:
      the largest difference in probability, observation, reward or termination between every two members.

    Raises:
      ValueError: naming the first entry in which the nominal member and the environment differ (episode, step, found,
        expected) and the likely cause; or members that never differ.
    """
    checks.whole_number("steps", steps, 1)
    checks.number("tolerance", tolerance, 0.0, np.inf, closed=False)
    one = host_env(env)
    if one.count != 1:
        raise ValueError(f"env is a vector of {one.count} environments, expected a single one.")
    check_nominal(env, members, rng, steps=steps)
    obs, apart = one.reset([int(rng.integers(2**31))])[0], np.zeros((len(members), len(members)))
    for _ in range(steps):
        action = int(rng.integers(one.n_actions))
        outcomes = members.successors(env, obs, action + one.start)
        for part in outcomes[:4]:
            flat = np.asarray(part, np.float64).reshape(len(members), -1)
            apart = np.maximum(apart, np.abs(flat[:, None] - flat[None]).max(axis=-1))
        first = one.step([action], [False])[0].first
        assert first is not None  # always known for a single environment
        obs = first
    alike = [(i, j) for i in range(len(members)) for j in range(i) if not apart[i, j] > tolerance]
    if alike:
        raise ValueError(_complaint(members, sorted((j, i) for i, j in alike), steps))
    return apart


def _complaint(members: Members, pairs: list[tuple[int, int]], steps: int) -> str:
    columns: dict[str, list[float]] = members.describe().get("parameters", {})

    def pair_text(i: int, j: int) -> str:
        names = [name for name, column in columns.items() if column[i] != column[j]]
        if not names:
            return f"{i} and {j}"
        return " and ".join(f"{k} ({', '.join(f'{name} {columns[name][k]}' for name in names)})" for k in (i, j))

    total = len(members) * (len(members) - 1) // 2
    return (
        f"{len(pairs)} of {total} pairs of members have equal outcomes in all of {steps} states, expected every two to "
        f"differ somewhere: {checks.listing([pair_text(i, j) for i, j in pairs])}. Either they are duplicates, or "
        "their difference never reaches the environment (or only its start, or only states not tried)."
    )
