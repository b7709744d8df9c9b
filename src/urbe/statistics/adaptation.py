"""Measure how well deployments adapt, from the returns `(N, E)` of N lives of E episodes under changing dynamics.

Phases are given by their lengths in episodes; dynamics change where one phase ends and the next begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.statistics.estimates import cvar
from urbe.types import FloatArray, IntArray


def phase_means(returns: ArrayLike, phases: Sequence[int]) -> FloatArray:
    """`(P,)` the mean return of each phase.

    >>> phase_means([[1.0, 3.0, 0.0], [1.0, 1.0, 0.5]], phases=(2, 1))
    array([1.5 , 0.25])
    """
    return np.array([part.mean() for part in _split(returns, phases)])


def first_episodes(returns: ArrayLike, phases: Sequence[int]) -> FloatArray:
    """`(P,)` the mean return of the first episode of each phase, before an agent can adapt."""
    return np.array([part[:, 0].mean() for part in _split(returns, phases)])


def recovery_times(returns: ArrayLike, phases: Sequence[int], targets: ArrayLike, window: int = 1) -> IntArray:
    """`(N, P)` episodes of each phase before the return reaches its target.

    A life has recovered at episode i of the phase when the mean of the episodes i .. i + window - 1 is at least the
    target. Without recovery, the whole length of the phase counts.

    Args:
      returns: `(N, E)`.
      phases: lengths in episodes.
      targets: `(P,)` the return to reach in each phase.
      window: episodes that are averaged; 1 where single returns are informative.

    >>> recovery_times([[0.0, 0.2, 0.9, 1.0]], phases=(4,), targets=[0.9])
    array([[2]])
    """
    checks.whole_number("window", window, 1)
    wanted = checks.float_array("targets", targets, 1)
    parts = _split(returns, phases)
    if len(wanted) != len(parts):
        raise ValueError(f"targets has {len(wanted)} entries, expected {len(parts)}, one per phase.")
    times = []
    for part, target in zip(parts, wanted, strict=True):
        size = min(window, part.shape[1])
        running = np.lib.stride_tricks.sliding_window_view(part, size, axis=1).mean(axis=-1)
        reached = running >= target
        times.append(np.where(reached.any(axis=1), reached.argmax(axis=1), part.shape[1]))
    return np.stack(times, axis=1)


def worst_lives(returns: ArrayLike, share: float = 0.05) -> float:
    """The mean return of the worst `share` of the lives."""
    return float(cvar(_lives(returns).mean(axis=1), share))


def advantage_share(agent: ArrayLike, oracle: ArrayLike, waiting: ArrayLike) -> float:
    """The agent's share of the oracle's advantage over waiting: 1 is the oracle, 0 is waiting.

        (agent - waiting) / (oracle - waiting),   each the mean over lives and episodes

    Raises:
      ValueError: the oracle earns no more than waiting, so there is no advantage. Use `relative_regret`.

    >>> round(advantage_share([[0.5]], [[0.8]], [[-0.2]]), 3)
    0.7
    """
    earned, most, least = (_lives(each).mean() for each in (agent, oracle, waiting))
    if not most > least:
        raise ValueError(
            f"oracle earns {most:g} and waiting {least:g}, expected the oracle to earn more; where waiting is best, "
            "use relative_regret."
        )
    return float((earned - least) / (most - least))


def relative_regret(agents: Mapping[str, ArrayLike], oracle: ArrayLike) -> dict[str, FloatArray]:
    """The regret of each agent against the oracle in each world, relative to the range of the agents there.

        (oracle_w - agent_w) / (best agent_w - worst agent_w)

    It is also defined if waiting is best. If all agents and the oracle earn the same, it is 0.

    Args:
      agents: `(W,)` mean returns in W worlds, by name; at least two agents.
      oracle: `(W,)` its mean returns.

    >>> relative_regret({"brave": [0.8, -1.0], "waits": [-0.2, -0.2]}, [0.8, -0.2])
    {'brave': array([0., 1.]), 'waits': array([1., 0.])}
    """
    best = checks.float_array("oracle", oracle, 1)
    if len(agents) < 2:
        raise ValueError(
            f"agents has {len(agents)} entries, expected at least two: the range between them is the unit."
        )
    earned = np.stack([checks.float_array(f"agents[{name!r}]", each, 1) for name, each in agents.items()])
    if earned.shape[1] != len(best):
        raise ValueError(f"agents have {earned.shape[1]} worlds, expected {len(best)}, as oracle has.")
    width = earned.max(axis=0) - earned.min(axis=0)
    missed = best - earned
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(missed == 0.0, 0.0, missed / width)
    return dict(zip(agents, shares, strict=True))


def _lives(returns: ArrayLike) -> FloatArray:
    return checks.float_array("returns", returns, 2)


def _split(returns: ArrayLike, phases: Sequence[int]) -> list[FloatArray]:
    """The returns of each phase, `(N, length)`."""
    lives = _lives(returns)
    lengths = [checks.whole_number(f"phases[{k}]", length, 1) for k, length in enumerate(phases)]
    if sum(lengths) != lives.shape[1]:
        raise ValueError(
            f"phases add up to {sum(lengths)} episodes, expected {lives.shape[1]}, as many as returns has columns."
        )
    return np.split(lives, np.cumsum(lengths)[:-1], axis=1)
