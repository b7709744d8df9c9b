"""Tensors are restored bit for bit from standard safetensors files; anything else is an error."""

import copy
import hashlib
import json
import re
import subprocess
import sys
import tracemalloc
from contextlib import nullcontext

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from urbe.runs.errors import CheckpointError
from urbe.runs.sealed import require_plain
from urbe.runs.tensors import CODES, load_tensors, read_header, save_tensors

ABOUT = {
    "step": 7,
    "big": 2**127,
    "x": 0.1,
    "none": None,
    "yes": True,
    "text": "ä\ud800\n",
    "deep": {"list": [1, [2.5, {}]]},
}
SMALL = {"a/w": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array(3), "none": np.zeros((0, 4), np.uint8)}


def same(a, b):
    """Equal bit for bit, types and shapes included."""
    return a.keys() == b.keys() and all(
        a[name].dtype == b[name].dtype and a[name].shape == b[name].shape and a[name].tobytes() == b[name].tobytes()
        for name in a
    )


def names(folder):
    return sorted(path.name for path in folder.iterdir())


shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
arrays = st.sampled_from(sorted(CODES)).flatmap(lambda dtype: hnp.arrays(np.dtype(dtype), shapes))
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(lambda text: text != "__metadata__")
trees = st.dictionaries(texts, arrays, max_size=6)


@given(tensors=trees)
def test_arrays_come_back_bit_for_bit_and_the_library_reads_them(tensors, tmp_path_factory):
    file = tmp_path_factory.mktemp("checkpoint") / "c"
    before = {name: array.copy() for name, array in tensors.items()}
    save_tensors(file, tensors, ABOUT)
    back, about = load_tensors(file)
    assert same(back, before)
    assert same(tensors, before)
    assert about == ABOUT
    assert [type(value) for value in about.values()] == [type(value) for value in ABOUT.values()]
    assert all(array.flags.writeable and array.flags.c_contiguous and array.flags.aligned for array in back.values())
    assert same(safetensors.numpy.load_file(file), before)
    with safetensors.safe_open(file, "np") as opened:
        assert json.loads(opened.metadata()["about"]) == ABOUT


@given(tensors=trees)
def test_every_array_is_aligned_for_whoever_maps_the_file(tensors, tmp_path_factory):
    file = tmp_path_factory.mktemp("checkpoint") / "c"
    save_tensors(file, tensors, {})
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    assert length % 8 == 0
    entries = json.loads(data[8 : 8 + length])
    del entries["__metadata__"]
    for name, entry in entries.items():
        start, stop = entry["data_offsets"]
        assert start % tensors[name].itemsize == 0
        assert data[8 + length + start : 8 + length + stop] == tensors[name].tobytes()


def test_other_layouts_in_memory_are_the_same_arrays(tmp_path):
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    views = {"turned": x.T, "every other": x[:, ::2, ::-1], "swapped": x.astype(">i4"), "fortran": np.asfortranarray(x)}
    views |= {"wide": np.broadcast_to(np.float16(2.5), (3, 2)), "one": x[1, 2, 3:4].reshape(())}
    memmap = np.memmap(tmp_path / "memory", dtype=np.int16, mode="w+", shape=3)
    save_tensors(tmp_path / "c", {**views, "memmap": memmap}, {})
    back, _ = load_tensors(tmp_path / "c")
    for name, view in views.items():
        assert np.array_equal(back[name], view)
        assert back[name].shape == view.shape
    assert back["swapped"].dtype == np.int32
    assert back["wide"].dtype == np.float16


def test_bits_of_nan_and_minus_zero_come_back(tmp_path):
    x = np.array([0x7FF8000000000001, 0xFFF0000000000001, 0x8000000000000000, 1], np.uint64).view(np.float64)
    save_tensors(tmp_path / "c", {"x": x}, {})
    assert load_tensors(tmp_path / "c")[0]["x"].tobytes() == x.tobytes()


def test_nothing_at_all_is_a_checkpoint(tmp_path):
    save_tensors(tmp_path / "c", {}, {})
    assert load_tensors(tmp_path / "c") == ({}, {})
    assert safetensors.numpy.load_file(tmp_path / "c") == {}


def test_saving_again_replaces_and_leaves_one_file(tmp_path):
    for k in range(3):
        save_tensors(tmp_path / "c", {"x": np.full(3, k)}, {"k": k})
        back, about = load_tensors(tmp_path / "c")
        assert (back["x"].tolist(), about) == ([k] * 3, {"k": k})
        assert names(tmp_path) == ["c"]


def test_what_is_loaded_can_be_changed_and_the_file_is_as_it_was(tmp_path):
    save_tensors(tmp_path / "c", SMALL, {})
    before = (tmp_path / "c").read_bytes()
    back, _ = load_tensors(tmp_path / "c")
    back["a/w"][:] = -1.0
    save_tensors(tmp_path / "c", {"other": np.ones(1)}, {})
    assert (back["a/w"] == -1.0).all()  # another file has its name now
    assert back["n"] == 3
    (tmp_path / "c").write_bytes(before)
    assert same(load_tensors(tmp_path / "c")[0], SMALL)


def test_the_metadata_tell_what_another_program_needs(tmp_path):
    save_tensors(tmp_path / "c", SMALL, {"step": 7})
    data = (tmp_path / "c").read_bytes()
    length = 8 + int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8:length])["__metadata__"]
    assert metadata["format"] == "urbe tensors 1"
    assert metadata["sha256"] == hashlib.sha256(data[length:]).hexdigest()
    zeros = data[:length].replace(metadata["header_sha256"].encode(), b"0" * 64)
    assert metadata["header_sha256"] == hashlib.sha256(zeros).hexdigest()
    assert f"numpy {np.__version__}" in metadata["made"]
    header = read_header(tmp_path / "c")
    assert (header.about, list(header.kinds)) == ({"step": 7}, ["n", "a/w", "none"])


@pytest.mark.parametrize(
    ("tensors", "about", "error", "message"),
    [
        ({"x": [1.0]}, {}, TypeError, "tensors['x'] is of type list, expected a NumPy array"),
        ({"x": np.ma.ones(2)}, {}, TypeError, "tensors['x'] is of type MaskedArray"),
        ({"x": np.array(["a"])}, {}, TypeError, "tensors['x'] has type <U1, expected one of bool, int8"),
        ({"x": np.array([None])}, {}, TypeError, "tensors['x'] has type object"),
        ({"x": np.zeros(2, complex)}, {}, TypeError, "tensors['x'] has type complex128"),
        ({"x": np.zeros(2, np.longdouble)}, {}, TypeError, "tensors['x'] has type float128"),
        ({"": np.zeros(2)}, {}, ValueError, "tensors has the name ''"),
        ({"__metadata__": np.zeros(2)}, {}, ValueError, "tensors has the name '__metadata__'"),
        ({"\ud800": np.zeros(2)}, {}, ValueError, r"tensors has the name '\ud800'"),
        ({3: np.zeros(2)}, {}, ValueError, "tensors has the name 3"),
        ({}, {"a": {"b": [1, float("nan")]}}, ValueError, "about.a.b[1] is nan, expected a finite number"),
        ({}, {"a": np.int64(3)}, TypeError, "about.a is of type int64, expected"),
        ({}, {"a": (1,)}, TypeError, "about.a is of type tuple, expected"),
        ({}, {"a": {1: 2}}, TypeError, "about.a has the key 1, expected a text"),
    ],
)
def test_what_would_not_come_back_is_refused_before_anything_is_written(tensors, about, error, message, tmp_path):
    with pytest.raises(error) as failure:
        save_tensors(tmp_path / "c", tensors, about)
    assert message in str(failure.value)
    assert names(tmp_path) == []


def test_plain_values_pass():
    require_plain("about", copy.deepcopy(ABOUT))


# damage


def test_not_one_bit_may_change_and_no_byte_may_be_missing(memory):
    """Every bit flipped alone, every truncation, one byte more; the header is checked without the arrays."""
    file = memory / "c"
    save_tensors(file, SMALL, {"step": 7})
    sound, length = file.read_bytes(), read_header(file).length
    damaged = [
        sound[:at] + bytes([sound[at] ^ 1 << bit]) + sound[at + 1 :] for at in range(len(sound)) for bit in range(8)
    ]
    damaged += [sound[:at] for at in range(len(sound))] + [sound + b"\0", sound[1:]]
    for data in damaged:
        file.write_bytes(data)
        with pytest.raises(CheckpointError):
            load_tensors(file)
        if data[:length] != sound[:length] or len(data) != len(sound):
            with pytest.raises(CheckpointError):
                read_header(file)
    file.write_bytes(sound)
    assert same(load_tensors(file)[0], SMALL)


@given(data=st.data())
def test_only_checkpoint_errors_come_out_of_random_damage(data, tmp_path_factory):
    file = tmp_path_factory.mktemp("checkpoint") / "c"
    save_tensors(file, SMALL, {"step": 7})
    sound = file.read_bytes()
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(sound))] * 2)))
    file.write_bytes(sound[:start] + data.draw(st.binary(max_size=40)) + sound[stop:])
    changed = file.read_bytes() != sound
    with pytest.raises(CheckpointError, match=re.escape(str(file))) if changed else nullcontext():
        load_tensors(file)


def doctored(file, change):
    """The bytes of SMALL, saved to a file, with a header that was changed and has a hash that fits."""
    save_tensors(file, SMALL, {"step": 7})
    data = file.read_bytes()
    length = 8 + int.from_bytes(data[:8], "little")
    entries = json.loads(data[8:length])
    change(entries)
    entries["__metadata__"]["header_sha256"] = "0" * 64
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    head = len(text).to_bytes(8, "little") + text
    return head.replace(b"0" * 64, hashlib.sha256(head).hexdigest().encode(), 1) + data[length:]


def changed(name, **values):
    return lambda entries: entries[name].update(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed("__metadata__", format="letters 1"), "has format 'letters 1', expected 'urbe tensors 1'"),
        (
            changed("__metadata__", format="urbe tensors 2"),
            "has format version 2, expected 1; read it with",
        ),
        (changed("__metadata__", sha256="0" * 64), "is damaged: its arrays have the SHA-256 "),
        (changed("__metadata__", about="[]"), "is damaged or rewritten"),
        (changed("__metadata__", about="{"), "its header cannot be read (JSONDecodeError"),
        (lambda entries: entries.pop("__metadata__"), None),
        (changed("n", dtype="F128"), "its header cannot be read (KeyError"),
        (changed("n", shape=[-1]), "its header cannot be read (ValueError: a shape is [-1]"),
        (changed("n", shape=[True]), "its header cannot be read (ValueError: a shape is [True]"),
        (changed("n", shape=[2]), "'n' is said to be at [0, 8], expected [0, 16], without gaps and overlaps"),
        (changed("a/w", data_offsets=[0, 24]), "'a/w' is said to be at [0, 24], expected [8, 32], without gaps"),
        (changed("a/w", data_offsets=[16, 40]), "'a/w' is said to be at [16, 40], expected [8, 32]"),
        (changed("a/w", shape=[10**30]), "'a/w' is said to be at"),
        (changed("none", shape=[0, 10**30]), "has 'none' with shape"),
        (changed("none", shape=[0] * 100), "has 'none' with shape"),
        (lambda entries: entries.update(more=entries["none"]), "is damaged or rewritten: its header has another hash"),
    ],
)
def test_doctored_headers_are_refused_in_words(change, message, tmp_path):
    if message is None:
        (tmp_path / "c").write_bytes(safetensors.numpy.save(SMALL))
        message = "is damaged or not saved by urbe: its header cannot be read (KeyError: '__metadata__')"
    else:
        (tmp_path / "c").write_bytes(doctored(tmp_path / "c", change))
    with pytest.raises(CheckpointError) as failure:
        load_tensors(tmp_path / "c")
    assert message in str(failure.value)


def test_doctoring_changes_nothing_else(tmp_path):
    (tmp_path / "c").write_bytes(doctored(tmp_path / "c", lambda _: None))
    assert same(load_tensors(tmp_path / "c")[0], SMALL)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is truncated, damaged or not safetensors: it has 0 bytes"),
        (b"\xff" * 100, "is truncated, damaged or not safetensors"),
        ((40).to_bytes(8, "little") + b"[" * 40, "its header cannot be read"),
        ((10**5).to_bytes(8, "little") + b"[" * 10**5, "its header cannot be read"),
        ((2).to_bytes(8, "little") + b"[]", "its header cannot be read"),
        ((8).to_bytes(8, "little") + b'{"n": 3}', "its header cannot be read"),
        ((8).to_bytes(8, "little") + b"\xff" * 8, "its header cannot be read"),
    ],
)
def test_other_files_are_refused_in_words(data, message, tmp_path):
    (tmp_path / "c").write_bytes(data)
    with pytest.raises(CheckpointError, match=message):
        load_tensors(tmp_path / "c")


def test_places_without_a_file_are_named(tmp_path):
    with pytest.raises(CheckpointError, match="nowhere: is missing"):
        load_tensors(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="cannot be read: Is a directory"):
        load_tensors(tmp_path)


def test_folders_that_cannot_be_are_os_errors(tmp_path):
    with pytest.raises(FileNotFoundError, match="Saving failed"):
        save_tensors(tmp_path / "no" / "c", SMALL, {})
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="Saving failed"):
        save_tensors(tmp_path / "folder", SMALL, {})
    assert names(tmp_path) == ["folder"]


def test_errors_can_be_copied_as_between_processes():
    error = copy.copy(CheckpointError("c", "is missing."))
    assert (str(error), error.path, error.message) == ("c: is missing.", "c", "is missing.")


def test_memory_is_bounded(tmp_path):
    """Saving contiguous arrays takes next to nothing, others one copy of one; loading maps the file."""
    plain = {str(i): np.full(1 << 20, i, np.float32) for i in range(8)}  # 4 MB each
    strided = {name: np.full(1 << 21, 1.0, np.float32)[::2] for name in plain}
    most = []
    for tensors in (plain, strided):
        tracemalloc.start()
        save_tensors(tmp_path / "c", tensors, {})
        most.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    tracemalloc.start()
    load_tensors(tmp_path / "c")
    most.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    assert most[0] < 1 << 20
    assert most[1] < 6 << 20
    assert most[2] < 1 << 20


def test_no_library_is_imported_for_it():
    code = (
        "import sys, urbe.runs; print([m for m in ('safetensors', 'jax', 'urbe.runs.tensors') if m in sys.modules]); "
        "import urbe.runs.directory; print([m for m in ('safetensors', 'jax') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["[]", "[]"]
