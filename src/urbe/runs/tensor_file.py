"""Arrays in the safetensors format, written and read without trust: every byte has its place and its hash.

A file is the length of the header (8 bytes, little-endian), the header (JSON, padded with blanks to a multiple of 8),
and the arrays' bytes one after the other, C order, little-endian. The order is by size of a number, largest first, then
by name, so that everything is aligned; names, types and shapes alone therefore determine the header, and reading
compares the header's bytes with the one that is expected. Whatever reads safetensors reads these files.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from io import BufferedReader
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from urbe import checks
from urbe.runs.errors import CheckpointError

CODES = {
    "bool": "BOOL", "int8": "I8", "uint8": "U8", "int16": "I16", "uint16": "U16", "int32": "I32", "uint32": "U32",
    "int64": "I64", "uint64": "U64", "float16": "F16", "float32": "F32", "float64": "F64",
}  # fmt: skip
"""Types an array may have, and what safetensors calls them."""

_CHUNK = 1 << 20  # bytes that are hashed, then written: small enough to be in the cache for both
_LONGEST_HEADER = 100_000_000  # what the safetensors library accepts


class Kind(NamedTuple):
    """What an array is, its numbers apart: the name of its type and its shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def n_bytes(self) -> int:
        """How long it is in the file."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


def kinds_of(tensors: Mapping[str, np.ndarray]) -> dict[str, Kind]:
    """Types and shapes by name; raises for what has no place in a file."""
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
    return kinds


def write_tensors(file: BinaryIO, tensors: Mapping[str, np.ndarray]) -> tuple[str, dict[str, str]]:
    """Writes a whole file, and hashes it on the way.

    At most one array is copied at a time, and only if it is not contiguous.

    Returns:
      the SHA-256 of the header followed by the arrays' hashes in their order, and the SHA-256 of each array.
    """
    kinds = kinds_of(tensors)
    head = _header(kinds)
    if len(head) > _LONGEST_HEADER:
        raise ValueError(f"tensors has {len(kinds)} names, {len(head)} bytes with shapes; expected fewer or shorter.")
    file.write(head)
    hashes = {name: _write_array(file, tensors[name]) for name in _order(kinds)}
    return _digest(head, kinds, hashes), hashes


def read_tensors(
    path: str | os.PathLike[str],
    file: BufferedReader,
    kinds: Mapping[str, Kind],
    hashes: Mapping[str, str],
    digest: str,
) -> dict[str, np.ndarray]:
    """The arrays of a file that must hold exactly these.

    No more memory is taken than the file is long.

    Args:
      path: how the file is called in messages.
      file: open at its start.
      kinds: type and shape of each array, by name.
      hashes: SHA-256 of each array.
      digest: what `write_tensors` returned.

    Raises:
      CheckpointError: the file is anything else.
    """
    head = _header(kinds)
    if _digest(head, kinds, hashes) != digest:
        raise CheckpointError(path, "has a name that does not fit what the manifest says is in it; take another copy.")
    found = file.read(len(head))
    if found != head:
        raise CheckpointError(path, _explain(found, file, head, kinds))
    length, expected = os.fstat(file.fileno()).st_size, len(head) + sum(kind.n_bytes for kind in kinds.values())
    if length != expected:
        what = "truncated" if length < expected else "longer than it should be"
        raise CheckpointError(path, f"is {what}: it has {length} bytes, expected {expected}.")
    tensors = dict.fromkeys(kinds, np.empty(0))
    for name in _order(kinds):
        try:
            array = np.empty(kinds[name].shape, dtype=np.dtype(kinds[name].dtype).newbyteorder("<"))
        except (ValueError, OverflowError) as error:  # more dimensions than NumPy has, or empty and yet too large
            raise CheckpointError(path, f"has {name!r} with shape {kinds[name].shape}: {error}.") from None
        data, sha = _bytes(array), hashlib.sha256()
        for start in range(0, len(data), _CHUNK):
            part = data[start : start + _CHUNK]
            if file.readinto(part) != len(part):
                raise CheckpointError(path, f"ends within {name!r}, though it was long enough when opened.")
            sha.update(part)
        if sha.hexdigest() != hashes[name]:
            raise CheckpointError(
                path, f"is damaged: {name!r} has the SHA-256 {sha.hexdigest()}, expected {hashes[name]} as in the "
                "manifest.",
            )  # fmt: skip
        tensors[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
    return tensors


def _order(kinds: Mapping[str, Kind]) -> list[str]:
    return sorted(kinds, key=lambda name: (-np.dtype(kinds[name].dtype).itemsize, name))


def _header(kinds: Mapping[str, Kind]) -> bytes:
    entries, end = {}, 0
    for name in _order(kinds):
        start, end = end, end + kinds[name].n_bytes
        code, shape = CODES[kinds[name].dtype], list(kinds[name].shape)
        entries[name] = {"dtype": code, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _digest(head: bytes, kinds: Mapping[str, Kind], hashes: Mapping[str, str]) -> str:
    sha = hashlib.sha256(head)
    for name in _order(kinds):
        sha.update(bytes.fromhex(hashes[name]))
    return sha.hexdigest()


def _write_array(file: BinaryIO, array: np.ndarray) -> str:
    """Writes an array's bytes and returns their hash."""
    data, sha = _bytes(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))), hashlib.sha256()
    for start in range(0, len(data), _CHUNK):
        sha.update(data[start : start + _CHUNK])
        file.write(data[start : start + _CHUNK])
    return sha.hexdigest()


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _explain(start: bytes, file: BufferedReader, head: bytes, kinds: Mapping[str, Kind]) -> str:
    """What is wrong with a header that is not the one expected."""
    length = int.from_bytes(start[:8], "little")
    if len(start) < 8 or length > os.fstat(file.fileno()).st_size - 8:
        return "is truncated, damaged or not a safetensors file: its header is longer than the file."
    file.seek(8)
    try:
        found = _told(json.loads(file.read(min(length, _LONGEST_HEADER)).decode()))
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError) as error:
        return f"is damaged or not a safetensors file: its header cannot be read ({type(error).__name__})."
    lost, extra = [name for name in kinds if name not in found], [name for name in found if name not in kinds]
    if lost:
        return f"lacks {checks.listing([repr(name) for name in lost])}, which the manifest lists."
    if extra:
        return f"holds {checks.listing([repr(name) for name in extra])}, which the manifest does not list."
    for name, kind in kinds.items():
        expected = (CODES[kind.dtype], list(kind.shape))
        if found[name] != expected:
            return (
                f"holds {name!r} as {found[name][0]} of shape {found[name][1]}, expected {expected[0]} of shape "
                f"{expected[1]} as in the manifest."
            )
    return (
        f"is damaged or rewritten: its header differs from the {len(head)} bytes expected, though not in what it says."
    )


def _told(header: Any) -> dict[str, tuple[Any, Any]]:
    return {name: (entry["dtype"], entry["shape"]) for name, entry in header.items() if name != "__metadata__"}
