"""What a description is made of, as text: to tell whether two are the same, and where they differ."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import partial
from typing import Any

import numpy as np

SHORT = 8
"""Arrays of at most this many numbers are listed in full, longer ones by their hash."""


def fingerprint(name: str, value: object) -> dict[str, str]:
    """`{"agent": "urbe.agents.urbe.URBE", "agent.radius": "0.3", ...}`: every part of `value`, by its path.

    Dataclasses, named tuples, other objects with attributes, mappings, sequences, arrays, plain values and functions
    (by name) are distinguished; arrays by all of their bits.

    >>> fingerprint("sizes", (3, np.ones(2)))
    {'sizes': '2 items', 'sizes[0]': '3', 'sizes[1]': 'float64 (2,) [1.0, 1.0]'}
    """
    return dict(_parts(name, value))


def _parts(name: str, value: object) -> Iterator[tuple[str, str]]:
    fields: dict[str, object] = {}
    text = type_name(type(value))
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        text = repr(value)
    elif isinstance(value, np.generic):
        text = repr(value.item())
    elif isinstance(value, np.ndarray):
        text = _array_text(value)
    elif isinstance(value, Enum):
        text = f"{text}.{value.name}"
    elif isinstance(value, Mapping):
        text = f"{len(value)} items"
        fields = {f"[{key!r}]": item for key, item in value.items()}
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = {f".{key}": item for key, item in zip(value._fields, value, strict=True)}
    elif isinstance(value, (list, tuple)):
        text = f"{len(value)} items"
        fields = {f"[{i}]": item for i, item in enumerate(value)}
    elif isinstance(value, partial):
        fields = {".func": value.func, ".args": value.args, ".keywords": value.keywords}
    elif isinstance(value, type) or (isinstance(value, Callable) and hasattr(value, "__qualname__")):  # type: ignore[arg-type]
        text = type_name(value)
    elif dataclasses.is_dataclass(value):
        fields = {f".{field.name}": getattr(value, field.name) for field in dataclasses.fields(value)}
    else:
        fields = {f".{key}": item for key, item in getattr(value, "__dict__", {}).items()}
    yield name, text
    for key, item in fields.items():
        yield from _parts(name + key, item)


def type_name(thing: Any) -> str:
    """`module.Name` of a class or function."""
    return f"{thing.__module__}.{thing.__qualname__}"


def _array_text(array: np.ndarray) -> str:
    text = f"{array.dtype} {array.shape}"
    if array.size <= SHORT:
        return f"{text} {array.tolist()}"
    bits = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
    return f"{text} sha256 {hashlib.sha256(bits.tobytes()).hexdigest()[:32]}"
