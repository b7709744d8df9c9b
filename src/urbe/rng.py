"""Random numbers: one root seed, and streams that follow from it by name.

A stream depends on its names alone, never on what else was drawn or in which order: adding an agent, a cell or a
replicate changes no other.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from urbe import checks
from urbe.types import BoolArray, FloatArray, IntArray


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """The generator of a named stream.

    >>> stream(7, "noise", 3).random() == stream(7, "noise", 3).random()
    True
    >>> stream(7, "noise", 3).random() == stream(7, "noise", 4).random()
    False
    """
    root = checks.whole_number("seed", seed, 0)
    text = "\x1f".join(f"{type(name).__name__}:{name}" for name in names)
    words = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype=np.uint32)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([root, *words.tolist()])))


def streams(seed: int, name: str, replicates: IntArray) -> list[np.random.Generator]:
    """One stream per replicate; replicate k draws the same whoever runs beside it."""
    return [stream(seed, name, int(k)) for k in replicates]


class Draws:
    """Numbers drawn ahead for many replicates at once, each from its own generator.

    `values[b, at[b]:]` are the numbers replicate b has not used yet; compiled loops read them and advance `at`.

    Args:
      generators: one per replicate.
      kind: "uniform" on [0, 1) or "normal".
      ahead: how many to keep for each replicate.
    """

    def __init__(self, generators: list[np.random.Generator], kind: str, ahead: int = 512) -> None:
        self._generators = generators
        self._kind = checks.one_of("kind", kind, ("uniform", "normal"))
        self.values: FloatArray = np.empty((len(generators), ahead))
        self.at: IntArray = np.full(len(generators), ahead, dtype=np.int64)

    def need(self, most: int) -> Draws:
        """Makes sure that every replicate has `most` numbers left."""
        ahead = self.values.shape[1]
        if most > ahead:
            grown = np.empty((len(self.values), 2 * most))
            grown[:, 2 * most - ahead :] = self.values
            self.values, self.at = grown, self.at + (2 * most - ahead)
            ahead = 2 * most
        short: BoolArray = self.at + most > ahead
        for b in np.flatnonzero(short):
            left = ahead - self.at[b]
            self.values[b, :left] = self.values[b, self.at[b] :]
            draw = self._generators[b].random if self._kind == "uniform" else self._generators[b].standard_normal
            self.values[b, left:] = draw(ahead - left)
            self.at[b] = 0
        return self

    def state(self) -> dict[str, Any]:
        """What is left, to be saved with the generators."""
        return {"values": self.values.copy(), "at": self.at.copy()}

    def load(self, state: dict[str, Any]) -> None:
        """Takes up what `state` gave."""
        self.values, self.at = np.array(state["values"]), np.array(state["at"])
