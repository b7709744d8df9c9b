"""Save named arrays with metadata in one file, atomically.

The format is safetensors:

    8 bytes   N, little-endian
    N bytes   JSON {"__metadata__": {...}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...},
              padded with blanks to a multiple of 8
    the rest  the arrays, C order, little-endian, without gaps

Arrays are ordered by the size of their numbers, largest first, then by name, so that each is aligned. Metadata are
strings:

    header_sha256  of the first 8 + N bytes, with zeros in the place of these 64 digits
    sha256         of the rest
    format         `urbe tensors 1`
    made           versions of the writing software
    about          JSON of plain values

Names, types, shapes and metadata determine the header, and reading compares its bytes: arrays that overlap, leave gaps
or are listed twice, and headers changed by one bit, are rejected. Reading maps the file into memory and executes
nothing.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import mmap
import os
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from urbe.atomic import replace_files
from urbe.runs.errors import CheckpointError
from urbe.runs.sealed import require_plain

CODES = {
    "bool": "BOOL", "int8": "I8", "uint8": "U8", "int16": "I16", "uint16": "U16", "int32": "I32", "uint32": "U32",
    "int64": "I64", "uint64": "U64", "float16": "F16", "float32": "F32", "float64": "F64",
}  # fmt: skip
"""Supported types of arrays, and their names in safetensors."""

SUFFIX = ".safetensors"
_DTYPES = {code: dtype for dtype, code in CODES.items()}
_FORMAT, _VERSION = "urbe tensors", 1
_ZEROS = "0" * 64
_CHUNK = 1 << 20  # bytes that are hashed, then written: small enough to be in the cache for both
_LONGEST_HEADER = 100_000_000  # what the safetensors library accepts
_FAILED = "Saving failed; the old or the new file is complete. Free space or repair the disk, then resume."

Path_ = str | os.PathLike[str]


class Kind(NamedTuple):
    """The name of an array's type, and its shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def n_bytes(self) -> int:
        """The length in the file, in bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


class Header(NamedTuple):
    """The checked header of a file, whose arrays are not checked.

    Attributes:
      kinds: types and shapes of the arrays, in their order in the file.
      about: the metadata.
      sha256: hash of the arrays' bytes.
      length: position of the first array.
    """

    kinds: dict[str, Kind]
    about: dict[str, Any]
    sha256: str
    length: int


def save_tensors(path: Path_, tensors: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
    """Replaces a file atomically: readers find the complete old or the complete new one, also after a crash.

    At most one array is copied at a time, and only if it is not contiguous.

    Args:
      path: the file; its folder must exist.
      tensors: arrays of truth values, integers or floats of 16, 32 or 64 bits, any shape, by name.
      about: JSON values to store with them: counters, names, states of generators.

    Raises:
      OSError: writing failed, for instance because the disk is full; no partial file is left.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     save_tensors(f"{here}/last.safetensors", {"w": np.ones(2, np.float32)}, {"step": 7})
    ...     load_tensors(f"{here}/last.safetensors")
    ({'w': array([1., 1.], dtype=float32)}, {'step': 7})
    """
    kinds, about_text = _kinds_of(tensors), _about_text(about)
    try:
        replace_files({path: lambda file: _write(file, tensors, kinds, about_text)})
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror or error}. {_FAILED}", os.fspath(path)) from error


def load_tensors(path: Path_) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Loads the arrays and their metadata, bit for bit.

    The arrays may be modified; the file does not change.

    Raises:
      CheckpointError: the file is missing, damaged, of another format or of a newer version.
    """
    with _opened(path) as file:
        header = _read_header(path, file)
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    return _arrays(path, header, data), header.about


def read_header(path: Path_) -> Header:
    """Reads the header of a file; its arrays are neither read nor checked."""
    with _opened(path) as file:
        return _read_header(path, file)


def _write(file: BinaryIO, tensors: Mapping[str, np.ndarray], kinds: dict[str, Kind], about_text: str) -> None:
    """Writes the header with zeros in place of the hash, then the arrays, then the header with the hash."""
    start, sha = file.tell(), hashlib.sha256()
    file.write(_header_bytes(kinds, about_text, _ZEROS, _made()))
    for name in kinds:
        _write_array(file, tensors[name], sha)
    file.seek(start)
    file.write(_header_bytes(kinds, about_text, sha.hexdigest(), _made()))


def _write_array(file: BinaryIO, array: np.ndarray, sha: Any) -> None:
    data = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data
    for at in range(0, len(data), _CHUNK):
        sha.update(data[at : at + _CHUNK])
        file.write(data[at : at + _CHUNK])


def _header_bytes(kinds: Mapping[str, Kind], about_text: str, sha256: str, made: str) -> bytes:
    metadata = {
        "header_sha256": _ZEROS,
        "sha256": sha256,
        "format": f"{_FORMAT} {_VERSION}",
        "made": made,
        "about": about_text,
    }
    entries: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, kind in kinds.items():
        start, end = end, end + kind.n_bytes
        entries[name] = {"dtype": CODES[kind.dtype], "shape": list(kind.shape), "data_offsets": [start, end]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _LONGEST_HEADER:
        raise ValueError(f"tensors and about take {len(text)} bytes of header, expected at most {_LONGEST_HEADER}.")
    head = len(text).to_bytes(8, "little") + text
    return head.replace(_ZEROS.encode(), hashlib.sha256(head).hexdigest().encode(), 1)


def _opened(path: Path_) -> Any:
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise CheckpointError(path, "is missing.") from None
    except OSError as error:
        raise CheckpointError(path, f"cannot be read: {error.strerror}.") from error


def _read_header(path: Path_, file: BinaryIO) -> Header:
    """Reads the header of a file and checks that its bytes agree with its content."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > min(size - 8, _LONGEST_HEADER):
        raise CheckpointError(
            path, f"is truncated, damaged or not safetensors: it has {size} bytes, of which {length} would be a header."
        )
    found = file.read(length)
    try:
        entries = json.loads(found.decode())
        metadata = entries.pop("__metadata__")
        form, _, number = metadata["format"].rpartition(" ")
        if form != _FORMAT:
            raise CheckpointError(path, f"has format {metadata['format']!r:.100}, expected '{_FORMAT} {_VERSION}'.")
        if number != str(_VERSION):
            raise CheckpointError(
                path, f"has format version {number:.100}, expected {_VERSION}; read it with a newer urbe."
            )
        kinds = {name: _kind(entry) for name, entry in entries.items()}
        about = json.loads(metadata["about"])
        expected = _header_bytes(_ordered(kinds), metadata["about"], metadata["sha256"], metadata["made"])
        misplaced = _misplaced(entries, kinds)
    except CheckpointError:
        raise
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError, OverflowError) as error:
        cause = f"{type(error).__name__}: {error!s:.100}"
        raise CheckpointError(path, f"is damaged or not saved by urbe: its header cannot be read ({cause}).") from None
    if start + found != expected or type(about) is not dict:
        raise CheckpointError(path, f"is damaged or rewritten: {misplaced or 'its header has another hash'}.")
    needed = len(expected) + sum(kind.n_bytes for kind in kinds.values())
    if size != needed:
        what = "truncated" if size < needed else "longer than it should be"
        raise CheckpointError(path, f"is {what}: it has {size} bytes, expected {needed}.")
    return Header(kinds, about, metadata["sha256"], len(expected))


def _kind(entry: Mapping[str, Any]) -> Kind:
    shape = entry["shape"]
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"a shape is {shape}")
    return Kind(_DTYPES[entry["dtype"]], tuple(shape))


def _misplaced(entries: Mapping[str, Any], kinds: dict[str, Kind]) -> str | None:
    """Names the first array that does not begin where the one before ends."""
    end = 0
    for name, kind in _ordered(kinds).items():
        start, end = end, end + kind.n_bytes
        if entries[name]["data_offsets"] != [start, end]:
            found = entries[name]["data_offsets"]
            return f"{name!r} is said to be at {found!r:.100}, expected {[start, end]}, without gaps and overlaps"
    return None


def _arrays(path: Path_, header: Header, data: Any) -> dict[str, np.ndarray]:
    sha, view = hashlib.sha256(), memoryview(data)
    for at in range(header.length, len(view), _CHUNK):
        sha.update(view[at : at + _CHUNK])
    if sha.hexdigest() != header.sha256:
        raise CheckpointError(
            path, f"is damaged: its arrays have the SHA-256 {sha.hexdigest()}, expected {header.sha256} as it says."
        )
    tensors, at = {}, header.length
    for name, kind in header.kinds.items():
        try:
            array: np.ndarray = np.ndarray(kind.shape, np.dtype(kind.dtype).newbyteorder("<"), data, at)
        except (ValueError, OverflowError) as error:  # more dimensions than NumPy has, or empty and yet too large
            raise CheckpointError(path, f"has {name!r} with shape {kind.shape}: {error}.") from None
        tensors[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
        at += kind.n_bytes
    return tensors


def _kinds_of(tensors: Mapping[str, np.ndarray]) -> dict[str, Kind]:
    """Types and shapes by name, in the order of the file; raises for unsupported names and types."""
    kinds = {}
    for name, array in tensors.items():
        if type(name) is not str or not name or name == "__metadata__" or not _is_unicode(name):
            raise ValueError(f"tensors has the name {name!r}, expected a text, not empty and not '__metadata__'.")
        if type(array) not in (np.ndarray, np.memmap):
            raise TypeError(f"tensors[{name!r}] is of type {type(array).__name__}, expected a NumPy array.")
        if array.dtype.name not in CODES:
            raise TypeError(
                f"tensors[{name!r}] has type {array.dtype}, expected one of {', '.join(CODES)}; convert it, or view "
                "its bits as one of these."
            )
        kinds[name] = Kind(array.dtype.name, array.shape)
    return _ordered(kinds)


def _ordered(kinds: dict[str, Kind]) -> dict[str, Kind]:
    return dict(sorted(kinds.items(), key=lambda item: (-np.dtype(item[1].dtype).itemsize, item[0])))


def _about_text(about: Mapping[str, Any]) -> str:
    require_plain("about", dict(about))
    return json.dumps(dict(about), allow_nan=False)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@cache
def _made() -> str:
    """Versions of the installed packages."""
    found = [f"python {platform.python_version()}"]
    for name in ("urbe", "numpy", "jax"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)
