"""Agents and runs in files, to go on from bit for bit: arrays without pickles, and nothing that could run.

The file is a plain zip of .npy members, readable by `numpy.load`, and of `manifest.json`: the shape of the state, its
plain values, and what the agent is made of. The zip's comment is the SHA-256 of all bytes before it, so that not one
bit can change unnoticed. A file is complete or not there (`urbe.atomic`).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from urbe import checks
from urbe.atomic import replace_files
from urbe.mdp.formats.npz import add_array
from urbe.runs.fingerprint import fingerprint

FORMAT, VERSION = "urbe agent", 1
_MANIFEST = "manifest.json"
_HASH = 64


class AgentFileError(ValueError):
    """A file cannot be taken up by this agent; says why."""

    def __init__(self, path: str | os.PathLike[str], message: str) -> None:
        super().__init__(path, message)

    def __str__(self) -> str:
        path, message = self.args
        return f"{os.fspath(path)}: {message}"


class Resumable(Protocol):
    """What can be saved: `Single`, `Run`, and whatever has these three."""

    @property
    def parts(self) -> Mapping[str, object]:
        """What makes two of them alike: parameters, task, seed."""

    def state(self) -> dict[str, Any]:
        """Everything, as nested dicts of arrays and plain values."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Goes on from what `state` gave."""


def save_agent(path: str | os.PathLike[str], agent: Resumable) -> None:
    """Saves all that a `Single` or a `Run` needs to go on, random generators included.

    Whoever reads `path` meanwhile, or after a crash, finds the old file or the new one, whole.

    >>> import tempfile, urbe
    >>> from urbe.agents import QLearning, Single, Task
    >>> task = Task(urbe.Posterior.before(urbe.library.riverswim(6)), horizon=20)
    >>> agent, again = Single(QLearning(), task, seed=0), Single(QLearning(), task, seed=0)
    >>> agent.observe(0, 1, 0.0, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_agent(f"{folder}/agent.npz", agent)
    ...     load_agent(f"{folder}/agent.npz", again)
    >>> again.step
    1
    """
    arrays: dict[str, np.ndarray] = {}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "parts": _all_parts(agent),
        "state": _pack("state", agent.state(), arrays),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            add_array(archive, name, array)
        member = zipfile.ZipInfo(_MANIFEST, date_time=(1980, 1, 1, 0, 0, 0))
        archive.writestr(member, json.dumps(manifest))
        archive.comment = b"0" * _HASH
    body = buffer.getbuffer()[:-_HASH]
    comment = hashlib.sha256(body).hexdigest().encode()
    replace_files({path: lambda file: file.writelines((body, comment))})


def load_agent(path: str | os.PathLike[str], agent: Resumable) -> None:
    """Takes up a saved agent or run in one started alike: same kind, parameters, task and seed.

    Raises:
      AgentFileError: the file is damaged, or of another agent; `agent` is as it was.
    """
    manifest, arrays = _read(path)
    saved = manifest["parts"]
    # a parameter that is None and that the file does not know of has been added since
    here = {name: part for name, part in _all_parts(agent).items() if name in saved or part != "None"}
    if saved != here:
        raise AgentFileError(path, _difference(saved, here))
    agent.load(_unpack(manifest["state"], arrays))


def _all_parts(agent: Resumable) -> dict[str, str]:
    parts = fingerprint("what", type(agent))
    for name, part in agent.parts.items():
        parts |= fingerprint(name, part)
    return parts


def _difference(saved: Mapping[str, str], here: Mapping[str, str]) -> str:
    names = [*here, *(name for name in saved if name not in here)]
    differing = [name for name in names if saved.get(name) != here.get(name)]
    name = differing[0]
    found, expected = saved.get(name, "not there"), here.get(name, "nothing of that name")
    also = f" (also different: {checks.listing(differing[1:])})" if len(differing) > 1 else ""
    return (
        f"{name} is {found} in the file, expected {expected} as in the agent given{also}. Start the agent as it was "
        "started when saved."
    )


def _pack(path: str, value: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if isinstance(value, Mapping):
        wrong = [key for key in value if not isinstance(key, str) or "/" in key]
        if wrong:
            raise TypeError(f"{path} has the key {wrong[0]!r}, expected text without '/'.")
        return {"dict": {key: _pack(f"{path}/{key}", item, arrays) for key, item in value.items()}}
    if value is None or isinstance(value, (bool, int, str)) or type(value) is float:
        return {"plain": value}
    array = np.asarray(value) if isinstance(value, (np.ndarray, np.generic)) else None
    if array is None or array.dtype.hasobject or array.dtype.fields:
        told = type(value).__name__ if array is None else f"an array of {array.dtype}"
        raise TypeError(f"{path} is {told}, expected a dict, an array of numbers or text, or a plain value.")
    arrays[path] = array
    return {"array": path}


def _unpack(packed: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    if "dict" in packed:
        return {key: _unpack(item, arrays) for key, item in packed["dict"].items()}
    return arrays[packed["array"]] if "array" in packed else packed["plain"]


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    data = Path(path).read_bytes()
    body, told = data[:-_HASH], data[-_HASH:].decode("ascii", "replace")
    found = hashlib.sha256(body).hexdigest()
    if found != told:
        raise AgentFileError(
            path,
            f"is damaged, or not a saved agent: its content has the SHA-256 {found[:16]}..., expected {told[:16]!r}... "
            "as it says at its end. Take an earlier copy.",
        )
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        manifest = json.loads(archive.read(_MANIFEST)) if _MANIFEST in names else {}
        if manifest.get("format") != FORMAT:
            raise AgentFileError(path, f"has format {manifest.get('format')!r}, expected {FORMAT!r}.")
        if manifest["version"] != VERSION:
            raise AgentFileError(
                path, f"has format version {manifest['version']}, expected {VERSION}; read it with a newer urbe."
            )
        arrays = {
            name.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
            for name in names
            if name != _MANIFEST
        }
    return manifest, arrays
