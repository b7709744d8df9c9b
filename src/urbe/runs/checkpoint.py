"""Save agents and runs to files that resume bit for bit: arrays without pickles, and no executable content.

A file holds tensors (`urbe.runs.tensors`), the structure of the state, its plain values, and a description of the
agent. Files of urbe 0.1.0 can be read, too.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import partial
from typing import Any, Protocol

import numpy as np

from urbe import checks
from urbe.runs import upgrade
from urbe.runs.errors import CheckpointError
from urbe.runs.tensors import load_tensors, save_tensors

VERSION = 1
"""Version of the metadata of an agent's tensors."""

SHORT = 8
"""Arrays with at most this many numbers are listed in full, longer ones by their hash."""


class AgentFileError(ValueError):
    """A file cannot be loaded into this agent; the message says why."""

    def __init__(self, path: str | os.PathLike[str], message: str) -> None:
        super().__init__(path, message)

    def __str__(self) -> str:
        path, message = self.args
        return f"{os.fspath(path)}: {message}"


class Resumable(Protocol):
    """An object that can be saved: `Single`, `Run`, and any other with these three methods."""

    @property
    def parts(self) -> Mapping[str, object]:
        """Everything that must agree between the saved and the loading object: parameters, task, seed."""

    def state(self) -> dict[str, Any]:
        """The complete state, as nested dicts of arrays and plain values."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores the result of `state`."""


def save_agent(path: str | os.PathLike[str], agent: Resumable) -> None:
    """Saves everything that a `Single` or a `Run` needs to resume, including random generators.

    Readers of `path` find either the complete old file or the complete new one, also after a crash.

    >>> import tempfile, urbe
    >>> from urbe.agents import QLearning, Single, Task
    >>> task = Task(urbe.Posterior.before(urbe.library.riverswim(6)), horizon=20)
    >>> agent, again = Single(QLearning(), task, seed=0), Single(QLearning(), task, seed=0)
    >>> agent.observe(0, 1, 0.0, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_agent(f"{folder}/agent.safetensors", agent)
    ...     load_agent(f"{folder}/agent.safetensors", again)
    >>> again.step
    1
    """
    _check_agent(agent)
    arrays: dict[str, np.ndarray] = {}
    state = _pack("state", agent.state(), arrays)
    save_tensors(path, arrays, {"agent": VERSION, "parts": _all_parts(agent), "state": state})


def load_agent(path: str | os.PathLike[str], agent: Resumable) -> None:
    """Loads a saved agent or run into one that was started the same way: same kind, parameters, task and seed.

    Raises:
      AgentFileError: the file is damaged, or of another agent; `agent` is unchanged.
    """
    _check_agent(agent)
    arrays, about = _read(path)
    saved = {name: upgrade.MOVED.get(part, part) for name, part in about["parts"].items()}
    here = _without_additions(_all_parts(agent), saved)
    if saved != here:
        raise AgentFileError(path, _difference(saved, here))
    agent.load(_unpack(about["state"], arrays))


def _check_agent(agent: object) -> None:
    fits = all(hasattr(agent, name) for name in ("parts", "state", "load"))
    checks.kind("agent", agent, fits, "an agent or run that can be saved, such as Single(...)")


def _all_parts(agent: Resumable) -> dict[str, str]:
    parts = fingerprint("what", type(agent))
    for name, part in agent.parts.items():
        parts |= fingerprint(name, part)
    return parts


def _without_additions(here: Mapping[str, str], saved: Mapping[str, str]) -> dict[str, str]:
    """Removes empty parts that the file does not have: they were added in later versions.

    A part is empty if it is None, or has no entries but empty ones, like labels without names.
    """
    new = {name for name in here if name not in saved}

    def says_nothing(name: str) -> bool:
        inner = [other for other in new if other.startswith((f"{name}.", f"{name}["))]
        return here[name] in ("None", "0 items") or (bool(inner) and all(map(says_nothing, inner)))

    return {name: part for name, part in here.items() if name not in new or not says_nothing(name)}


def _difference(saved: Mapping[str, str], here: Mapping[str, str]) -> str:
    names = [*here, *(name for name in saved if name not in here)]
    differing = [name for name in names if saved.get(name) != here.get(name)]
    name = differing[0]
    found, expected = saved.get(name, "not there"), here.get(name, "nothing of that name")
    also = f" (also different: {checks.listing(differing[1:])})" if len(differing) > 1 else ""
    return (
        f"{name} is {found} in the file, expected {expected} as in the given agent{also}. Start the agent in the same "
        "way as the saved one."
    )


def _pack(path: str, value: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if isinstance(value, Mapping):
        wrong = [key for key in value if not isinstance(key, str) or "/" in key]
        if wrong:
            raise TypeError(f"{path} has the key {wrong[0]!r}, expected text without '/'.")
        return {"dict": {key: _pack(f"{path}/{key}", item, arrays) for key, item in value.items()}}
    if type(value) is float and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, (bool, int, str)) or type(value) is float:
        return {"plain": value}
    array = np.asarray(value) if isinstance(value, (np.ndarray, np.generic)) else None
    if array is None or array.dtype.hasobject or array.dtype.fields:
        found = type(value).__name__ if array is None else f"an array of {array.dtype}"
        raise TypeError(f"{path} is {found}, expected a dict, an array of numbers or text, or a plain value.")
    if array.dtype.kind == "U":
        return {"text": array.tolist(), "dtype": array.dtype.str}
    arrays[path] = array
    return {"array": path}


def _unpack(packed: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    if "dict" in packed:
        return {key: _unpack(item, arrays) for key, item in packed["dict"].items()}
    if "text" in packed:
        return np.array(packed["text"], dtype=packed["dtype"])
    if "float" in packed:
        return float(packed["float"])
    return arrays[packed["array"]] if "array" in packed else packed["plain"]


def _read(path: str | os.PathLike[str]) -> upgrade.Read:
    try:
        if upgrade.is_zip(path):
            return upgrade.read_zip_agent(path)
        arrays, about = load_tensors(path)
    except CheckpointError as error:
        raise AgentFileError(path, f"{error.message} Take an earlier copy.") from None
    if about.get("agent") != VERSION or not about.keys() >= {"parts", "state"}:
        found = about.get("agent", "none")
        raise AgentFileError(
            path,
            f"has the agent version {found!r:.100}, expected {VERSION}: it is not an agent, or was saved by a "
            "newer urbe.",
        )
    return arrays, about


def fingerprint(name: str, value: object) -> dict[str, str]:
    """`{"agent": "urbe.agents.urbe_family.URBE", "agent.radius": "0.3", ...}`: every part of `value`, by its path.

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
