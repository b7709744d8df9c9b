"""Checkpoints: a folder of named arrays and of what is told about them, whole or not there.

    manifest.json                  what there is: plain values, and type, shape and SHA-256 of each array
    tensors-<digest>.safetensors   the arrays

The arrays are on the disk before `manifest.json`, which names their file, takes the place of the one before; only then
is the file of the old arrays deleted. Whoever reads meanwhile, or after a crash at any point, finds the old checkpoint
or the new one. Reading runs no code and believes nothing: `urbe.runs.sealed` and `urbe.runs.tensor_file` say how.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from urbe.atomic import sync_folder, write_new
from urbe.runs.errors import CheckpointError
from urbe.runs.sealed import read_sealed, require_plain, write_sealed
from urbe.runs.tensor_file import CODES, Kind, kinds_of, read_tensors, write_tensors

FORMAT, VERSION = "urbe checkpoint", 1
MANIFEST = "manifest.json"
_TENSORS = re.compile(r"tensors-([0-9a-f]{64})\.safetensors")
_FAILED = (
    "Saving the checkpoint failed: the one before, or this one, is there and whole. Make room or repair the disk, then "
    "resume"
)
_HASH = re.compile(r"[0-9a-f]{64}")
_OURS = re.compile(rf"{_TENSORS.pattern}|\.(tensors|manifest\.json)\.[0-9a-f]{{16}}\.tmp")


class Manifest(NamedTuple):
    """What a checkpoint says of itself, without its arrays."""

    file: str
    kinds: dict[str, Kind]
    hashes: dict[str, str]
    about: dict[str, Any]
    made: dict[str, Any]


def save_tensors(folder: str | os.PathLike[str], tensors: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
    """Writes a checkpoint, or another one over it; when that fails, the one before is as it was.

    One process may write at a time; any number may read. Besides the arrays given, memory for one copy of one array is
    taken, if it is not contiguous.

    Args:
      folder: where; its parent must be there.
      tensors: arrays of truth values, integers or floats of 16, 32 or 64 bits, any shape, by name.
      about: what else there is to keep, as JSON has it: counters, names, positions of generators.

    Raises:
      OSError: the disk is full, for instance; what is in the folder is whole, and nothing half is left.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     save_tensors(f"{here}/last", {"w": np.ones(2, np.float32)}, {"step": 7})
    ...     load_tensors(f"{here}/last")
    ({'w': array([1., 1.], dtype=float32)}, {'step': 7})
    """
    folder = Path(folder)
    kinds = kinds_of(tensors)
    require_plain("about", dict(about))
    before, new = _manifest_bytes(folder), not folder.exists()
    try:
        if new:
            os.mkdir(folder)
            sync_folder(folder.parent)
        file, hashes = _write_tensor_file(folder, tensors)
        entries = {
            name: {"dtype": kind.dtype, "shape": list(kind.shape), "sha256": hashes[name]}
            for name, kind in kinds.items()
        }
        content = {"file": file, "made": _made(), "about": dict(about), "tensors": entries}
        write_sealed(folder / MANIFEST, FORMAT, VERSION, content)
    except BaseException as error:
        sweep(folder, before)
        if new:
            _remove_empty(folder)
        if isinstance(error, OSError):
            raise OSError(error.errno, f"{error.strerror or error}. {_FAILED}", str(folder)) from error
        raise
    sweep(folder)


def load_tensors(folder: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and what was told about them, bit for bit as saved.

    Raises:
      CheckpointError: there is no checkpoint, or it is damaged, of something else, or of a newer version.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    while True:
        path = folder / manifest.file
        try:
            with path.open("rb") as file:
                digest = _TENSORS.sub(r"\1", manifest.file)
                return read_tensors(path, file, manifest.kinds, manifest.hashes, digest), manifest.about
        except FileNotFoundError:
            newer = read_manifest(folder)
            if newer.file == manifest.file:
                raise CheckpointError(path, f"is missing, though {MANIFEST} names it; take another copy.") from None
            manifest = newer  # saved anew while we were reading
        except OSError as error:
            raise CheckpointError(path, f"cannot be read: {error.strerror}.") from error


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """What a checkpoint says of itself; its arrays are neither read nor checked."""
    path = Path(folder) / MANIFEST
    if not Path(folder).is_dir():
        raise CheckpointError(folder, "is no folder, expected one that holds a checkpoint.")
    if not is_complete(folder):
        raise CheckpointError(folder, f"has no {MANIFEST}: it is no checkpoint, or was never completed.")
    content = read_sealed(path, FORMAT, VERSION)
    for name, kind in {"file": str, "about": dict, "made": dict, "tensors": dict}.items():
        if type(content.get(name)) is not kind:
            raise CheckpointError(path, f"has no {name}, expected one of type {kind.__name__}.")
    if not _TENSORS.fullmatch(content["file"]):
        raise CheckpointError(
            path, f"names the file {content['file']!r}, expected tensors-<64 hex digits>.safetensors beside it."
        )
    kinds, hashes = {}, {}
    for name, entry in content["tensors"].items():
        kinds[name], hashes[name] = _entry(path, name, entry)
    return Manifest(content["file"], kinds, hashes, content["about"], content["made"])


def is_complete(folder: str | os.PathLike[str]) -> bool:
    """Whether a checkpoint was written to its end; says nothing about later damage."""
    return os.path.lexists(Path(folder) / MANIFEST)


def delete_checkpoint(folder: str | os.PathLike[str]) -> None:
    """Deletes a checkpoint, complete or not; stopped half-way, it is one that is not complete.

    Files that are not part of a checkpoint stay, and so does then the folder.
    """
    folder = Path(folder)
    with suppress(OSError):
        if is_complete(folder):
            os.unlink(folder / MANIFEST)
            sync_folder(folder)
    sweep(folder)
    _remove_empty(folder)


def sweep(folder: str | os.PathLike[str], spared: bytes = b"") -> None:
    """Deletes the files of a checkpoint's folder that its manifest does not name.

    What cannot be deleted now is found again the next time.

    Args:
      folder: of the checkpoint.
      spared: an earlier manifest, whose file stays too.
    """
    folder = Path(folder)
    with suppress(OSError):
        named = _manifest_bytes(folder) + spared
        for name in os.listdir(folder):
            if _OURS.fullmatch(name) and name.encode() not in named:
                with suppress(OSError):
                    os.unlink(folder / name)


def _manifest_bytes(folder: Path) -> bytes:
    return (folder / MANIFEST).read_bytes() if is_complete(folder) else b""


def _remove_empty(folder: Path) -> None:
    if not is_complete(folder):
        with suppress(OSError):
            os.rmdir(folder)


def _write_tensor_file(folder: Path, tensors: Mapping[str, np.ndarray]) -> tuple[str, dict[str, str]]:
    """Writes the arrays' file under a name of its own, which no manifest names yet unless it holds the same."""
    digest = ""
    hashes: dict[str, str] = {}

    def write(file: BinaryIO) -> None:
        nonlocal digest, hashes
        digest, hashes = write_tensors(file, tensors)

    temporary = folder / f".tensors.{secrets.token_hex(8)}.tmp"
    write_new(temporary, write)
    name = f"tensors-{digest}.safetensors"
    os.replace(temporary, folder / name)
    sync_folder(folder)
    return name, hashes


def _entry(path: Path, name: str, entry: Any) -> tuple[Kind, str]:
    entry = entry if type(entry) is dict else {}
    dtype, shape, sha = entry.get("dtype"), entry.get("shape"), entry.get("sha256")
    if (
        type(shape) is list
        and all(type(size) is int and size >= 0 for size in shape)
        and type(dtype) is str
        and dtype in CODES
        and type(sha) is str
        and _HASH.fullmatch(sha)
    ):
        return Kind(dtype, tuple(shape)), sha
    raise CheckpointError(path, f"tells of {name!r} {entry!r:.200}, expected a dtype, a shape and a sha256.")


def _made() -> dict[str, Any]:
    return {"time": datetime.now(UTC).isoformat(timespec="seconds"), **_versions()}


@cache
def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in ("urbe", "numpy", "jax", "safetensors"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found
