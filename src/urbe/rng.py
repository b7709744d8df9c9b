"""Random streams derived from one root seed by name.

A stream depends only on its names, never on other draws or their order: adding an agent, a cell or a replicate changes
no other.
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
    """The generator of a named stream.

    Args:
      seed: the root, a whole number of at least 0.
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
    """One stream per replicate; the draws of replicate k do not depend on the others."""
    return [stream(seed, name, int(k)) for k in replicates]


def _name_text(name: str | int) -> str:
    if isinstance(name, str) and SEPARATOR not in name:
        return f"str:{name}"
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
        return f"int:{name}"  # the same stream for NumPy's integers and Python's
    raise ValueError(f"A stream is named {name!r}, expected a whole number or a text without {SEPARATOR!r}.")


class Draws:
    """Numbers drawn ahead for many replicates at once, each from its own generator.

    `values[b, at[b]:]` are the unused numbers of replicate b; compiled loops read them and advance `at`. A replicate
    reads the sequence of its generator, regardless of block sizes and of other replicates, provided that nothing else
    draws from that generator.

    Args:
      generators: one per replicate, not used elsewhere.
      kind: "uniform" on [0, 1) or "normal".
      ahead: how many numbers to keep for each replicate.
    """

    def __init__(self, generators: list[np.random.Generator], kind: str, ahead: int = 512) -> None:
        self._generators = generators
        self._kind = checks.one_of("kind", kind, ("uniform", "normal"))
        self.values: FloatArray = np.empty((len(generators), ahead))
        self.at: IntArray = np.full(len(generators), ahead, dtype=np.int64)
        self._room = 0  # numbers every replicate has left, whatever was used of those asked for

    def need(self, most: int) -> Draws:
        """Ensures that every replicate has `most` numbers left; at most this many may then be used."""
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
        short: BoolArray = self.at + max(most, ahead // 2) > ahead  # more than must be, so as not to ask again soon
        for b in np.flatnonzero(short):
            left = ahead - self.at[b]
            self.values[b, :left] = self.values[b, self.at[b] :]
            draw = self._generators[b].random if self._kind == "uniform" else self._generators[b].standard_normal
            self.values[b, left:] = draw(ahead - left)
            self.at[b] = 0
        self._room = int(ahead - self.at.max(initial=0))

    def state(self) -> dict[str, Any]:
        """Everything needed to resume bit for bit, as arrays: unused numbers, and states of the generators."""
        return {"values": self.values.copy(), "at": self.at.copy(), "generators": positions(self._generators)}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores the result of `state`, including the states of the generators."""
        go_to(self._generators, state["generators"])
        self.values, self.at, self._room = np.array(state["values"]), np.array(state["at"]), 0


def positions(generators: list[np.random.Generator]) -> np.ndarray:
    """The states of generators, as an array of strings."""
    return np.array([json.dumps(g.bit_generator.state) for g in generators], dtype=np.str_)


def go_to(generators: list[np.random.Generator], there: np.ndarray) -> None:
    """Restores the states of generators from the result of `positions`."""
    if len(there) != len(generators):
        raise ValueError(f"state is of {len(there)} replicates, expected {len(generators)}, as started.")
    for generator, text in zip(generators, there, strict=True):
        generator.bit_generator.state = json.loads(str(text))
