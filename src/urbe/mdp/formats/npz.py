"""Read and write models as .npz files: the arrays bit for bit, without executable content.

The file is a plain zip of .npy members, readable by `numpy.load`; labels are the bytes of a JSON text. Reading checks
everything: sizes are compared with the file before memory is allocated, and the arrays must form a model.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zipfile
import zlib
from typing import Any, BinaryIO

import numpy as np

from urbe import checks, memory
from urbe.atomic import replace_files
from urbe.mdp import intervals
from urbe.mdp.formats.errors import ModelFileError
from urbe.mdp.formats.text import Path
from urbe.mdp.labels import Labels
from urbe.mdp.model import MDP, fitting_labels
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray

VERSION = 1

# name: types a member may have, and its number of dimensions; the first six are always there
_MEMBERS = {
    "version": (("<i8",), 0),
    "discount": (("<f8",), 0),
    "row_start": (("<i4", "<i8"), 1),
    "action": (("<i4",), 1),
    "entry_start": (("<i4", "<i8"), 1),
    "successor": (("<i4",), 1),
    "probability": (("<f8",), 1),
    "reward": (("<f8",), 1),
    "initial": (("<f8",), 1),
    "lower": (("<f8",), 1),
    "upper": (("<f8",), 1),
    "labels": (("|u1",), 1),
    "propositions": (("|u1",), 1),
}
# errors of zipfile for manipulated bytes: wrong offsets, unknown methods, encryption, lengths beyond the end
_DAMAGE = (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, struct.error, OSError, OverflowError, ValueError)
_OPTIONAL = ("initial", "lower", "upper", "labels", "propositions")
_TOLERANCE = 1e-9

# The header of a version 1.0 .npy file, as every NumPy has written it; read without evaluating anything.
_HEADER = re.compile(
    rb"\{'descr': '([ -&(-~]{1,20})', 'fortran_order': (?:True|False), 'shape': \(([0-9, ]{0,80}+)\), \}\s*+\Z"
)
_SHAPES = (re.compile("()"), re.compile(r"(\d{1,18}),"))  # of 0 and of 1 dimension


def read(path: Path, *, discount: float | None = None) -> MDP:
    """The model of an .npz file; `discount` replaces the stored one. See `urbe.read_mdp`."""
    arrays = _read_members(path)
    version = int(arrays["version"])
    if version != VERSION:
        raise ModelFileError(path, f"has format version {version}, expected {VERSION}; read it with a newer urbe.")
    try:
        return _model(arrays, checks.discount(float(arrays["discount"]) if discount is None else discount))
    except ValueError as error:
        raise ModelFileError(path, str(error)) from None


def write(mdp: MDP, path: Path) -> None:
    """Writes a model; see `urbe.write_mdp`."""
    arrays: dict[str, Any] = {
        "version": np.int64(VERSION),
        "discount": np.float64(mdp.discount),
        "row_start": mdp.row_start,
        "action": mdp.action,
        "entry_start": mdp.rows.entry_start,
        "successor": mdp.rows.successor,
        "probability": mdp.rows.probability,
        "reward": mdp.rows.reward,
    }
    if mdp.initial is not None:
        arrays["initial"] = mdp.initial
    if mdp.bounds is not None:
        arrays["lower"], arrays["upper"] = mdp.bounds
    if mdp.labels:
        arrays["labels"] = np.frombuffer(mdp.labels.to_json().encode(), dtype=np.uint8)
    if mdp.propositions:
        holds = {name: np.asarray(states).tolist() for name, states in mdp.propositions.items()}
        arrays["propositions"] = np.frombuffer(json.dumps(holds, ensure_ascii=False).encode(), dtype=np.uint8)

    def writer(file: BinaryIO) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, array in arrays.items():
                add_array(archive, name, array)

    replace_files({path: writer})


def add_array(archive: zipfile.ZipFile, name: str, array: Any) -> None:
    """Stores an array as `name`.npy, without pickles and with a fixed date: equal arrays give equal bytes."""
    member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
    with archive.open(member, "w", force_zip64=True) as out:
        little = np.asarray(array).astype(np.asarray(array).dtype.newbyteorder("<"), copy=False)
        np.lib.format.write_array(out, little, version=(1, 0), allow_pickle=False)


def _read_members(path: Path) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    # opened here, so that a missing file is an OSError and everything after it is about the content
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                names = archive.namelist()
                expected = [f"{name}.npy" for name in _MEMBERS]
                if len(set(names)) < len(names) or not set(names) <= set(expected):
                    raise ModelFileError(path, f"holds {checks.listing(names)}; expected {', '.join(expected)}, once.")
                sizes = [info.file_size for info in archive.infolist()]
                memory.require({f"the arrays of {path}": 1.0 * sum(sizes) + max(sizes)}, "Use a smaller file.")
                for name in _MEMBERS:
                    if f"{name}.npy" in names:
                        arrays[name] = _read_array(path, archive, name, os.fstat(file.fileno()).st_size)
                    elif name not in _OPTIONAL:
                        raise ModelFileError(path, f"has no {name}.npy, expected {', '.join(expected[:8])}.")
        except ModelFileError:
            raise
        except _DAMAGE as error:
            raise ModelFileError(path, f"is damaged or not an .npz file: {error}.") from None
    return arrays


def _read_array(path: Path, archive: zipfile.ZipFile, name: str, archive_size: int) -> np.ndarray:
    """One member as an array; its size in memory is what the file really holds."""
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED:
        raise ModelFileError(path, f"{name}.npy is compressed, expected it stored plainly, as write_mdp does.")
    if not 0 <= info.file_size == info.compress_size <= archive_size:
        raise ModelFileError(path, f"{name}.npy claims {info.file_size} bytes in a file of {archive_size}.")
    with archive.open(info) as member:
        start = member.read(10)
        if start[:8] != b"\x93NUMPY\x01\x00" or len(start) < 10:
            raise ModelFileError(path, f"{name}.npy does not start as an .npy file of version 1.0.")
        header = member.read(int.from_bytes(start[8:10], "little"))
        data = member.read()
    header_match = _HEADER.match(header)
    types, ndim = _MEMBERS[name]
    if header_match is None or header_match[1].decode() not in types:
        found = "an unreadable header" if header_match is None else f"type {header_match[1].decode()}"
        raise ModelFileError(path, f"{name}.npy has {found}, expected {' or '.join(types)}.")
    dtype = np.dtype(header_match[1].decode())
    shape = _SHAPES[ndim].fullmatch(header_match[2].decode())
    if shape is None:
        raise ModelFileError(
            path, f"{name}.npy has shape ({header_match[2].decode()}), expected {('a number', 'one dimension')[ndim]}."
        )
    length = int(shape[1] or 1)
    if length * dtype.itemsize != len(data):
        raise ModelFileError(path, f"{name}.npy holds {len(data)} bytes, expected {length} times {dtype.itemsize}.")
    array = np.frombuffer(data, dtype=dtype).astype(dtype.newbyteorder("="))
    return array if ndim else array.reshape(())


def _model(arrays: dict[str, np.ndarray], discount: float) -> MDP:
    """The model of these arrays, or a ValueError that names the array and the index."""
    row_start, action, entry_start = arrays["row_start"], arrays["action"], arrays["entry_start"]
    successor, probability, reward = arrays["successor"], arrays["probability"], arrays["reward"]
    if len(row_start) < 2:
        raise ValueError(f"row_start has {len(row_start)} entries, expected one more than there are states.")
    if len(row_start) > 2**31 - 1:
        raise ValueError(f"row_start has {len(row_start)} entries, expected fewer than {2**31}.")
    n_states, n_rows, n_entries = len(row_start) - 1, len(action), len(successor)
    _check_starts("row_start", row_start, n_rows, 0)
    if len(entry_start) != n_rows + 1:
        raise ValueError(f"entry_start has {len(entry_start)} entries, expected {n_rows + 1}, one more than action.")
    _check_starts("entry_start", entry_start, n_entries, 1)
    checks.int_array("action", action, 0, 2**31 - 1, "action")
    checks.int_array("successor", successor, 0, n_states, "state")
    _check_increasing("action", action, row_start)
    _check_increasing("successor", successor, entry_start)
    if len(probability) != n_entries:
        raise ValueError(f"probability has {len(probability)} entries, expected {n_entries}, one for each successor.")
    if len(reward) not in (n_rows, n_entries):
        raise ValueError(f"reward has {len(reward)} entries, expected one per row ({n_rows}) or entry ({n_entries}).")
    checks.finite("reward", reward)
    _check_unit("probability", probability)
    rows = Rows(n_states, entry_start, successor, probability, reward)
    mdp = MDP(row_start, action, rows, discount)
    _check_sums(mdp)
    initial = arrays.get("initial")
    if initial is not None:
        checks.distribution("initial", initial, n_states, _TOLERANCE)
    bounds, labels = _bounds(arrays, mdp), _labels(arrays, mdp)
    return MDP(row_start, action, rows, discount, initial, bounds, labels, _propositions(arrays, n_states))


def _labels(arrays: dict[str, np.ndarray], mdp: MDP) -> Labels:
    stored = arrays.get("labels")
    if stored is None:
        return Labels()
    try:
        labels = Labels.from_json(stored.tobytes().decode())
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"labels cannot be read: {error}") from None
    return fitting_labels(labels, mdp.n_states, mdp.n_actions)


def _propositions(arrays: dict[str, np.ndarray], n_states: int) -> dict[str, IntArray]:
    stored = arrays.get("propositions")
    if stored is None:
        return {}
    try:
        found = json.loads(stored.tobytes().decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"propositions cannot be read: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(states, list) for states in found.values()):
        raise ValueError("propositions is not an object of lists, expected the states of each name.")
    return {
        name: checks.int_array(f"propositions[{name!r}]", states or np.zeros(0, dtype=np.int64), 0, n_states, "state")
        for name, states in found.items()
    }


def _check_starts(name: str, starts: IntArray, total: int, shortest: int) -> None:
    if starts[0] != 0 or starts[-1] != total:
        raise ValueError(f"{name} goes from {starts[0]} to {starts[-1]}, expected from 0 to {total}.")
    # compared, not subtracted: a difference could overflow
    short = starts[1:] <= starts[:-1] if shortest else starts[1:] < starts[:-1]
    if short.any():
        at = int(np.argmax(short))
        least = "larger" if shortest else "not smaller"
        raise ValueError(f"{name}[{at + 1}] is {starts[at + 1]} after {starts[at]}, expected a number {least}.")


def _check_increasing(name: str, ids: IntArray, starts: IntArray) -> None:
    within = np.ones(max(len(ids) - 1, 0), dtype=bool)
    inner = starts[1:-1]
    within[inner[(inner > 0) & (inner < len(ids))] - 1] = False
    wrong = within & (ids[1:] <= ids[:-1])
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"{name}[{at + 1}] is {ids[at + 1]} after {ids[at]}, expected them increasing.")


def _check_unit(name: str, array: FloatArray) -> None:
    checks.finite(name, array)
    wrong = (array < 0.0) | (array > 1.0 + _TOLERANCE)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"{name}[{at}] is {array[at]:.17g}, expected a number in [0, 1].")


def _check_sums(mdp: MDP) -> None:
    total = mdp.rows.row_sums(mdp.rows.probability)
    wrong = np.abs(total - 1.0) > _TOLERANCE
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"The probabilities of {mdp.row_name(at)} sum to {total[at]:.12g}, expected 1.")


def _bounds(arrays: dict[str, np.ndarray], mdp: MDP) -> tuple[FloatArray, FloatArray] | None:
    lower, upper = arrays.get("lower"), arrays.get("upper")
    if lower is None and upper is None:
        return None
    if lower is None or upper is None or len(lower) != mdp.rows.n_entries or len(upper) != mdp.rows.n_entries:
        found = ", ".join(f"{name} has {len(x)}" for name, x in (("lower", lower), ("upper", upper)) if x is not None)
        raise ValueError(f"{found} entries, expected both bounds with {mdp.rows.n_entries} each.")
    checks.finite("lower", lower)
    checks.finite("upper", upper)
    if mdp.n_rows:
        at = mdp.rows.entry_row
        intervals.check_ends(mdp.row_state[at], mdp.action[at], mdp.rows.successor, lower, upper)
        intervals.fit_rows(mdp.rows, mdp.row_state, mdp.action, lower, upper, _TOLERANCE)
        intervals.check_inside(mdp.rows, mdp.row_state, mdp.action, (lower, upper), _TOLERANCE)
    return lower, upper
