"""Read files of urbe 0.1.0: arrays by name, and their metadata.

    a checkpoint    a folder of `manifest.json`, with the hash of each array, and of `tensors-<digest>.safetensors`
    a tabular agent a zip of .npy members and `manifest.json`; the zip's comment is the SHA-256 of all before it

These files are read and deleted, never written.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from urbe.atomic import sync_folder
from urbe.runs.errors import CheckpointError
from urbe.runs.sealed import read_bytes, read_sealed

MANIFEST = "manifest.json"
MOVED = {
    "urbe.agents.certain.CertaintyEquivalent": "urbe.agents.urbe_family.CertaintyEquivalent",
    "urbe.agents.certain.Robust": "urbe.agents.urbe_family.Robust",
    "urbe.agents.decay.Decay": "urbe.agents.decay.PolynomialDecay",
    "urbe.agents.psrl.PSRL": "urbe.agents.urbe_family.PSRL",
    "urbe.agents.ube.UBE": "urbe.agents.urbe_family.UBE",
    "urbe.agents.urbe.CertaintyEquivalent": "urbe.agents.urbe_family.CertaintyEquivalent",
    "urbe.agents.urbe.PSRL": "urbe.agents.urbe_family.PSRL",
    "urbe.agents.urbe.Robust": "urbe.agents.urbe_family.Robust",
    "urbe.agents.urbe.UBE": "urbe.agents.urbe_family.UBE",
    "urbe.agents.urbe.URBE": "urbe.agents.urbe_family.URBE",
}
"""Where the parts of saved agents are defined today."""
Read = tuple[dict[str, np.ndarray], dict[str, Any]]

# errors of zipfile, of NumPy and of missing entries
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, OverflowError, ValueError,
    NotImplementedError, KeyError, IndexError, TypeError, AttributeError,
)  # fmt: skip


def is_folder_checkpoint(path: Path) -> bool:
    """Whether there is a checkpoint in a folder of its own, written to its end."""
    return os.path.lexists(path / MANIFEST)


def read_folder_checkpoint(path: Path) -> Read:
    """Reads a checkpoint in a folder."""
    content = read_folder_manifest(path)
    with _damaged(path):
        file = path / Path(content["file"]).name
        data = read_bytes(file)
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start].decode())
        tensors = {}
        for name, entry in content["tensors"].items():
            first, last = header[name]["data_offsets"]
            part = data[start + first : start + last]
            if hashlib.sha256(part).hexdigest() != entry["sha256"]:
                raise CheckpointError(file, f"is damaged: {name!r} has another SHA-256 than {MANIFEST} says.")
            little = np.frombuffer(part, np.dtype(entry["dtype"]).newbyteorder("<")).reshape(entry["shape"])
            tensors[name] = little.astype(entry["dtype"])
        return tensors, dict(content["about"])


def read_folder_manifest(path: Path) -> dict[str, Any]:
    """Reads the metadata of a checkpoint in a folder."""
    return read_sealed(path / MANIFEST, "urbe checkpoint", 1)


def delete_folder_checkpoint(path: Path) -> None:
    """Deletes a checkpoint in a folder, complete or not; if it has other files, these and the folder stay."""
    with suppress(OSError):
        if is_folder_checkpoint(path):
            os.unlink(path / MANIFEST)
            sync_folder(path)
        for name in os.listdir(path):
            if name.startswith(("tensors-", ".tensors.", f".{MANIFEST}.")):
                os.unlink(path / name)
        os.rmdir(path)


def is_zip(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a zip, as saved agents of urbe 0.1.0 are."""
    with suppress(OSError), open(path, "rb") as file:
        return file.read(4) == b"PK\3\4"
    return False


def read_zip_agent(path: str | os.PathLike[str]) -> Read:
    """Reads a tabular agent: the metadata have the keys `parts` and `state`."""
    data = read_bytes(path)
    if hashlib.sha256(data[:-64]).hexdigest() != data[-64:].decode("ascii", "replace"):
        raise CheckpointError(path, "is damaged, or not a saved agent: its bytes have another SHA-256 than it says.")
    with _damaged(path), zipfile.ZipFile(io.BytesIO(data)) as archive:
        manifest = json.loads(archive.read(MANIFEST))
        if (manifest["format"], manifest["version"]) != ("urbe agent", 1):
            found_format = f"{manifest['format']!r} of version {manifest['version']}"
            raise CheckpointError(path, f"has format {found_format}, expected 'urbe agent' of version 1.")
        names = [name for name in archive.namelist() if name != MANIFEST]
        read = {name.removesuffix(".npy"): _npy(archive.read(name)) for name in names}
        return read, {"parts": manifest["parts"], "state": manifest["state"]}


def _npy(data: bytes) -> np.ndarray:
    array: np.ndarray = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    return array


@contextmanager
def _damaged(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except CheckpointError:
        raise
    except _DAMAGE as error:
        raise CheckpointError(path, f"is damaged or not of urbe 0.1.0: {type(error).__name__}: {error}.") from None
