"""Derive named streams of random numbers from one root seed.

A stream depends only on the seed and its names, not on other draws or their order: adding an agent, a cell or a
replicate does not change the others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from urbe import checks
from urbe.types import BoolArray, FloatArray, IntArray

SEPARATOR = "\x1f"


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Returns the generator of a named stream.

    Args:
      seed: the root seed, a whole number of at least 0.
      names: words and whole numbers; `3` and `"3"` are different names.

    >>> stream(7, "noise", 3).random() == stream(7, "noise", 3).random()
    True
    >>> stream(7, "noise", 3).random() == stream(7, "noise", 4).random()
    False
    """
    root = checks.whole_number("seed", seed, 0)
    text = SEPARATOR.join(_name_text(name) for name in names)
    words = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype="<u4")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([root, *words.tolist()])))


def streams(seed: int, name: str, replicates: IntArray) -> list[np.random.Generator]:
    """Returns one stream per replicate; the stream of replicate k does not depend on the other replicates."""
    return [stream(seed, name, int(k)) for k in replicates]


def _name_text(name: str | int) -> str:
    if isinstance(name, str) and SEPARATOR not in name:
        return f"str:{name}"
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
        return f"int:{name}"  # the same stream for NumPy's integers and Python's
    raise ValueError(f"The name of a stream is {name!r}, expected a whole number or a text without {SEPARATOR!r}.")


class Draws:
    """Random numbers drawn in advance for many replicates at once, each from its own generator.

    `values[b, at[b]:]` are the unused numbers of replicate b; compiled loops read them and advance `at`. Each replicate
    reads the sequence of its generator, independently of the size of requests and of the other replicates, provided
    that no other code draws from that generator.

    Args:
      generators: one per replicate, used by no other code.
      kind: "uniform" on [0, 1) or "normal".
      ahead: how many numbers to keep for each replicate.
    """

    def __init__(self, generators: list[np.random.Generator], kind: str, ahead: int = 512) -> None:
        self._generators = generators
        self._kind = checks.one_of("kind", kind, ("uniform", "normal"))
        self.values: FloatArray = np.empty((len(generators), ahead))
        self.at: IntArray = np.full(len(generators), ahead, dtype=np.int64)
        self._room = 0  # unused numbers that every replicate has left, if it used all that were requested

    def need(self, most: int) -> Draws:
        """Ensures that every replicate has `most` numbers left; callers use at most this many."""
        if self._room < most:
            self._refill(most)
        self._room -= most
        return self

    def _refill(self, most: int) -> None:
        ahead = self.values.shape[1]
        if most > ahead:
            grown = np.empty((len(self.values), 2 * most))
            grown[:, 2 * most - ahead :] = self.values
            self.values, self.at = grown, self.at + (2 * most - ahead)
            ahead = 2 * most
        short: BoolArray = self.at + max(most, ahead // 2) > ahead  # refill early, so that refills are rare
        for b in np.flatnonzero(short):
            left = ahead - self.at[b]
            self.values[b, :left] = self.values[b, self.at[b] :]
            draw = self._generators[b].random if self._kind == "uniform" else self._generators[b].standard_normal
            self.values[b, left:] = draw(ahead - left)
            self.at[b] = 0
        self._room = int(ahead - self.at.max(initial=0))

    def state(self) -> dict[str, Any]:
        """Returns the unused numbers and the generators' states as arrays, enough to resume bit for bit."""
        return {"values": self.values.copy(), "at": self.at.copy(), "generators": positions(self._generators)}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores what `state` returned, including the generators' states."""
        go_to(self._generators, state["generators"])
        self.values, self.at, self._room = np.array(state["values"]), np.array(state["at"]), 0


def positions(generators: list[np.random.Generator]) -> np.ndarray:
    """Returns the states of generators as an array of JSON texts."""
    return np.array([json.dumps(g.bit_generator.state) for g in generators], dtype=np.str_)


def go_to(generators: list[np.random.Generator], there: np.ndarray) -> None:
    """Sets generators to the states returned by `positions`."""
    if len(there) != len(generators):
        raise ValueError(f"state has {len(there)} replicates, expected {len(generators)}, as at the start.")
    for generator, text in zip(generators, there, strict=True):
        generator.bit_generator.state = json.loads(str(text))
