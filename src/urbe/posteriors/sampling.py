"""Draw many Dirichlet rows at once, for concentrations of any size; for one model, or for many replicates.

    p_j = G_j / sum_k G_k,    G_j ~ Gamma(alpha_j) independent

If alpha_j is small, G_j underflows; then log G(alpha) = log G(alpha + 1) - X / alpha, X ~ Exponential(1), is drawn
and rows are normalised in logarithms. As all concentrations of a row vanish, its draws become vertices.

Replicates draw from random numbers of their own, compiled, by squeezed rejection [MarsagliaTsang2000]: with
d = alpha - 1/3, x ~ Normal(0, 1), y = (1 + x / sqrt(9 d))^3 and u ~ Uniform(0, 1), G = d y is taken when y > 0 and
log u < x^2 / 2 + d (1 - y + log y). Below alpha = 1 it is G(alpha + 1) u^(1 / alpha). The draws of a replicate depend
only on its own random numbers and concentrations, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import njit

from urbe import memory
from urbe.progress import Report, silent
from urbe.rng import Draws
from urbe.types import FloatArray, IntArray

SMALL = 0.1
"""Gamma draws may underflow for smaller concentrations."""

BLOCK = 1 << 20
"""Numbers drawn between two reports of the progress."""

LEAST = 1e-290
"""Smaller positive concentrations are replaced by this one, since their logarithms would overflow."""


def dirichlet_draws(
    rng: np.random.Generator,
    concentration: FloatArray,
    entry_start: IntArray,
    size: int,
    report: Report = silent,
) -> FloatArray:
    """`(size, E)` probabilities; successors of concentration 0 have probability 0.

    Args:
      concentration: `(E,)`, at least 0, positive somewhere in each row.
      entry_start: `(R + 1,)` first entry of each row.
      size: number of draws.
      report: reports the progress.
    """
    if len(entry_start) < 2:
        return np.zeros((size, 0))
    n_numbers = size * len(concentration)
    small = concentration < SMALL
    arrays = max(2.0, 1.0 + 3.0 * small.mean())  # draws and normalisers; three more for small ones
    memory.require(
        {f"{size} draws of {len(concentration)} probabilities": arrays * 8.0 * n_numbers},
        "Use fewer draws, or a model with fewer successors.",
    )
    first, length = entry_start[:-1], np.diff(entry_start)
    shape, gamma = np.where(small, concentration + 1.0, concentration), np.empty((size, len(concentration)))
    step = max(BLOCK // len(concentration), 1)
    for at in range(0, size, step):
        block = gamma[at : at + step]
        rng.standard_gamma(shape, block.shape, out=block)
        report("posterior draws", min(at + step, size), size)
    if small.any():
        log = np.log(gamma, out=gamma)
        chosen = concentration[small]
        log[:, small] -= rng.standard_exponential((size, len(chosen))) / np.maximum(chosen, LEAST)
        log[:, concentration == 0.0] = -np.inf
        largest = np.maximum.reduceat(log, first, axis=1)
        log -= np.repeat(largest, length, axis=1)
        gamma = np.exp(log, out=log)
    gamma /= np.repeat(np.add.reduceat(gamma, first, axis=1), length, axis=1)
    return gamma


class ManyDirichlet:
    """Draws for B replicates.

    Args:
      normals, uniforms: generators, one of each per replicate, not used elsewhere.
      entry_start: `(R + 1,)` first entry of each row.
    """

    def __init__(
        self, normals: list[np.random.Generator], uniforms: list[np.random.Generator], entry_start: IntArray
    ) -> None:
        ahead = max(512, 4 * int(entry_start[-1]))
        self._normal, self._uniform = Draws(normals, "normal", ahead), Draws(uniforms, "uniform", ahead)
        self._entry_start, self._half = entry_start, ahead // 2

    def draw(self, which: IntArray, concentration: FloatArray) -> FloatArray:
        """`(K, L, E)` probabilities of the replicates `which`; `concentration` is `(B, L, E)`.

        Concentrations are at least 0 and positive somewhere in each row; successors of 0 have probability 0.
        """
        out = np.empty((len(which), *concentration.shape[1:]))
        at, most = (0, 0, 0), self._half
        while True:
            # always request as many as the buffers hold for certain, so that both are checked each time
            normal, uniform = self._normal.need(most), self._uniform.need(most)
            at = _draw(
                which, self._entry_start, concentration, normal.values, normal.at, uniform.values, uniform.at, *at, out
            )
            if at[0] == len(which):
                return out
            most = max(most, len(self._normal.values[0]) // 2) + 1

    def state(self) -> dict[str, Any]:
        """Everything needed to resume bit for bit."""
        return {"normal": self._normal.state(), "uniform": self._uniform.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores the result of `state`."""
        self._normal.load(state["normal"])
        self._uniform.load(state["uniform"])


@njit(cache=True, nogil=True)
def _draw(which, entry_start, alpha, normal, normal_at, uniform, uniform_at, first_k, first_layer, first_row, out):
    """Continues at a row of a replicate; returns where numbers ran out, with those of that row given back."""
    n_layers, n_rows = alpha.shape[1], len(entry_start) - 1
    for k in range(first_k, len(which)):
        b = which[k]
        for layer in range(first_layer if k == first_k else 0, n_layers):
            for row in range(first_row if k == first_k and layer == first_layer else 0, n_rows):
                a = alpha[b, layer, entry_start[row] : entry_start[row + 1]]
                g = out[k, layer, entry_start[row] : entry_start[row + 1]]
                if len(a) == 1:
                    g[0] = 1.0
                    continue
                used, used_uniform = gammas(a, normal[b], normal_at[b], uniform[b], uniform_at[b], g)
                if used < 0:
                    return k, layer, row
                normal_at[b], uniform_at[b] = used, used_uniform
                total = 0.0
                for j in range(len(g)):
                    total += g[j]
                for j in range(len(g)):
                    g[j] /= total
    return len(which), 0, 0


@njit(cache=True, nogil=True)
def gammas(a, normal, at, uniform, uniform_at, g):
    """Fills g with gamma draws up to a common factor; returns where used numbers end, or -1 if there are too few."""
    in_logs, largest = a.min() < SMALL, -np.inf
    for j in range(len(a)):
        if a[j] == 0.0:
            g[j] = -np.inf if in_logs else 0.0
            continue
        d = a[j] - 1.0 / 3.0 if a[j] >= 1.0 else a[j] + 2.0 / 3.0
        c, y = 1.0 / np.sqrt(9.0 * d), 0.0
        while True:
            if at == len(normal) or uniform_at + 2 > len(uniform):
                return -1, -1
            x, u = normal[at], 1.0 - uniform[uniform_at]
            at, uniform_at = at + 1, uniform_at + 1
            y = (1.0 + c * x) ** 3
            if y > 0.0 and (
                u < 1.0 - 0.0331 * (x * x) * (x * x) or np.log(u) < 0.5 * x * x + d * (1.0 - y + np.log(y))
            ):
                break
        g[j] = np.log(d * y) if in_logs else d * y
        if a[j] < 1.0:
            shrink = np.log(1.0 - uniform[uniform_at]) / max(a[j], LEAST)
            uniform_at += 1
            g[j] = g[j] + shrink if in_logs else g[j] * np.exp(shrink)
        largest = max(largest, g[j])
    if in_logs:
        for j in range(len(a)):
            g[j] = np.exp(g[j] - largest)
    return at, uniform_at
