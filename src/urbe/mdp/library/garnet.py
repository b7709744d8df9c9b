"""Random models: Garnets, and Garnets with local transitions.

Rows are drawn in blocks, straight into the model's own arrays: ten million states need little more memory than the
finished model.
"""

from __future__ import annotations

import numpy as np

from urbe import checks, memory
from urbe.mdp.build import ROW_BYTES, from_rows
from urbe.mdp.model import MDP
from urbe.types import IntArray

_BLOCK = 2**20
"""Entries drawn at a time; changing it changes the model of a seed."""

_BLOCK_BYTES = 32.0
"""Peak bytes of an entry while its block is drawn."""


def garnet(
    n_states: int,
    n_actions: int,
    n_successors: int,
    *,
    seed: int | np.random.Generator,
    discount: float = 0.99,
) -> MDP:
    """A random model: Generic Average Reward Non-stationary Environment Test-bed, stationary [Archibald1995].

    Independently for every state and action: a uniformly random set of `n_successors` distinct successors, their
    probabilities uniform on the simplex (Dirichlet(1, ..., 1)), and a reward r(s, a) uniform in [0, 1].

    Args:
      n_states, n_actions: size; every action exists everywhere.
      n_successors: number of successors of each row, at most `n_states`.
      seed: an integer, or a generator, which is advanced. Equal seeds give equal bits.
      discount: in [0, 1].

    >>> garnet(100, 4, 3, seed=0)
    MDP(100 states, 400 rows, 1200 entries, discount 0.99)
    """
    n = checks.whole_number("n_states", n_states, 1)
    k = checks.whole_number("n_successors", n_successors, 1)
    if k > n:
        raise ValueError(f"n_successors is {k}, expected at most the number of states, {n}.")
    return _random_model(n, n_actions, k, None, seed, discount)


def banded_garnet(
    n_states: int,
    n_actions: int,
    n_successors: int,
    *,
    width: int = 15,
    seed: int | np.random.Generator,
    discount: float = 0.99,
) -> MDP:
    """A Garnet whose successors lie within `width` states of the current one: it mixes slowly.

    As `garnet`, but the successors of state s are drawn from the 2 width + 1 states around s; near the ends this window
    stops at the first or last state, it does not wrap.

    Args:
      n_states, n_actions: size; every action exists everywhere.
      n_successors: number of successors of each row, at most `2 width + 1` and `n_states`.
      width: largest distance of a successor, away from the ends.
      seed: an integer, or a generator, which is advanced. Equal seeds give equal bits.
      discount: in [0, 1].

    >>> banded_garnet(100, 4, 3, seed=0)
    MDP(100 states, 400 rows, 1200 entries, discount 0.99)
    """
    n = checks.whole_number("n_states", n_states, 1)
    k = checks.whole_number("n_successors", n_successors, 1)
    reach = checks.whole_number("width", width, 0)
    window = min(n, 2 * reach + 1)
    if k > window:
        raise ValueError(f"n_successors is {k}, but a window of width {reach} has only {window} states.")
    return _random_model(n, n_actions, k, reach, seed, discount)


def _random_model(
    n: int, n_actions: int, k: int, reach: int | None, seed: int | np.random.Generator, discount: float
) -> MDP:
    a = checks.whole_number("n_actions", n_actions, 1)
    gamma = checks.discount(discount)
    if not isinstance(seed, np.random.Generator):
        seed = checks.whole_number("seed", seed, 0)
    if n >= 2**31:
        raise ValueError(f"n_states is {n}, expected below {2**31}.")
    rng = np.random.default_rng(seed)
    n_rows = n * a
    memory.require(
        {
            f"a model of {n_rows * k} successors": 12.0 * n_rows * k,
            f"checks of {n_rows} rows": ROW_BYTES * n_rows,
            "successors drawn at a time": _BLOCK_BYTES * min(n_rows * k, _BLOCK),
        },
        "Use fewer states, actions or successors.",
    )
    successor = np.empty((n_rows, k), dtype=np.int32)
    probability = np.empty((n_rows, k))
    block = max(1, _BLOCK // k)
    for first in range(0, n_rows, block):
        last = min(first + block, n_rows)
        if reach is None:
            successor[first:last] = _subsets(rng, last - first, n, k)
        else:
            state = np.arange(first, last) // a
            window = min(n, 2 * reach + 1)
            low = np.clip(state - reach, 0, n - window)
            successor[first:last] = low[:, None] + _subsets(rng, last - first, window, k)
        rng.standard_exponential(out=probability[first:last])
        probability[first:last] /= probability[first:last].sum(axis=1, keepdims=True)
    return from_rows(
        state=np.repeat(np.arange(n, dtype=np.int32), a),
        action=np.tile(np.arange(a, dtype=np.int32), n),
        length=np.full(n_rows, k, dtype=np.int32),
        successor=successor.reshape(-1),
        probability=probability.reshape(-1),
        row_reward=rng.random(n_rows),
        entry_reward=None,
        n_states=n,
        discount=gamma,
    )


def _subsets(rng: np.random.Generator, n_sets: int, n: int, k: int) -> IntArray:
    """`(n_sets, k)` uniformly random k-subsets of 0, ..., n - 1, each increasing."""
    if 2 * k <= n:
        return _distinct(rng, n_sets, n, k)
    inside = np.ones((n_sets, n), dtype=bool)
    np.put_along_axis(inside, _distinct(rng, n_sets, n, n - k), False, axis=1)
    members: IntArray = np.nonzero(inside)[1].reshape(n_sets, k)
    return members


def _distinct(rng: np.random.Generator, n_sets: int, n: int, k: int) -> IntArray:
    """`(n_sets, k)` increasing distinct numbers below n.

    Repeats are drawn again until there are none: each line is the first k distinct values of a sequence of
    independent uniform draws, hence a uniformly random subset.
    """
    drawn = np.sort(rng.integers(0, n, size=(n_sets, k), dtype=np.int32), axis=1)
    redo = np.arange(n_sets)
    while len(redo):
        lines = drawn[redo]
        repeat = np.zeros(lines.shape, dtype=bool)
        np.equal(lines[:, 1:], lines[:, :-1], out=repeat[:, 1:])
        again = repeat.any(axis=1)
        redo, lines, repeat = redo[again], lines[again], repeat[again]
        lines[repeat] = rng.integers(0, n, size=int(repeat.sum()), dtype=np.int32)
        drawn[redo] = np.sort(lines, axis=1)
    return drawn
