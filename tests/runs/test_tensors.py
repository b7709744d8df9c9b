"""Checkpoints come back bit for bit, are plain safetensors, and anything else is refused."""

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
from urbe.runs.sealed import require_plain, write_sealed
from urbe.runs.tensor_file import CODES
from urbe.runs.tensors import delete_checkpoint, load_tensors, read_manifest, save_tensors

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
    """Equal bit for bit, names in the same order, types and shapes included."""
    return list(a) == list(b) and all(
        a[name].dtype == b[name].dtype and a[name].shape == b[name].shape and a[name].tobytes() == b[name].tobytes()
        for name in a
    )


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def tensor_file(folder):
    (file,) = folder.glob("*.safetensors")
    return file


shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
arrays = st.sampled_from(sorted(CODES)).flatmap(lambda dtype: hnp.arrays(np.dtype(dtype), shapes))
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(lambda text: text != "__metadata__")
trees = st.dictionaries(texts, arrays, max_size=6)


@given(tensors=trees)
def test_arrays_come_back_bit_for_bit_and_the_library_reads_them(tensors, tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint")
    before = {name: array.copy() for name, array in tensors.items()}
    save_tensors(folder, tensors, ABOUT)
    back, about = load_tensors(folder)
    assert same(back, before)
    assert same(tensors, before)
    assert about == ABOUT
    assert [type(value) for value in about.values()] == [type(value) for value in ABOUT.values()]
    assert all(array.flags.writeable and array.flags.c_contiguous and array.flags.aligned for array in back.values())
    library = safetensors.numpy.load_file(tensor_file(folder))
    assert same({name: library[name] for name in tensors}, before)


@given(tensors=trees)
def test_every_array_is_aligned_for_whoever_maps_the_file(tensors, tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tensors(folder, tensors, {})
    data = tensor_file(folder).read_bytes()
    length = int.from_bytes(data[:8], "little")
    assert length % 8 == 0
    for name, entry in json.loads(data[8 : 8 + length]).items():
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
    assert safetensors.numpy.load_file(tensor_file(tmp_path / "c")) == {}


def test_saving_again_replaces_and_leaves_two_files(tmp_path):
    for k in range(3):
        save_tensors(tmp_path / "c", {"x": np.full(3, k)}, {"k": k})
        back, about = load_tensors(tmp_path / "c")
        assert (back["x"].tolist(), about) == ([k] * 3, {"k": k})
        assert len(names(tmp_path / "c")) == 2
    file = tensor_file(tmp_path / "c")
    save_tensors(tmp_path / "c", {"x": np.full(3, 2)}, {"k": 9})  # same arrays, so the same file
    assert tensor_file(tmp_path / "c") == file
    assert load_tensors(tmp_path / "c")[1] == {"k": 9}


def test_the_manifest_tells_what_another_program_needs(tmp_path):
    save_tensors(tmp_path / "c", SMALL, {"step": 7})
    text = (tmp_path / "c" / "manifest.json").read_bytes()
    manifest = json.loads(text)
    assert manifest["sha256"] == hashlib.sha256(text.split(b"\n", 1)[1]).hexdigest()
    assert (manifest["format"], manifest["version"], manifest["about"]) == ("urbe checkpoint", 1, {"step": 7})
    assert {"time", "python", "urbe", "numpy", "jax", "safetensors"} == manifest["made"].keys()
    assert manifest["made"]["numpy"] == np.__version__
    entry = manifest["tensors"]["a/w"]
    assert entry == {"dtype": "float32", "shape": [2, 3], "sha256": hashlib.sha256(SMALL["a/w"].tobytes()).hexdigest()}
    data = (tmp_path / "c" / manifest["file"]).read_bytes()
    length = 8 + int.from_bytes(data[:8], "little")
    hashes = [hashlib.sha256(SMALL[name].tobytes()).digest() for name in ("n", "a/w", "none")]
    assert manifest["file"] == f"tensors-{hashlib.sha256(data[:length] + b''.join(hashes)).hexdigest()}.safetensors"


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
    """Every bit of both files flipped alone, every truncation, every file one byte longer."""
    folder = memory / "c"
    save_tensors(folder, SMALL, {"step": 7})
    for file in list(folder.iterdir()):
        sound = file.read_bytes()
        damaged = [
            sound[:at] + bytes([sound[at] ^ 1 << bit]) + sound[at + 1 :] for at in range(len(sound)) for bit in range(8)
        ]
        damaged += [sound[:at] for at in range(len(sound))] + [sound + b"\0", sound[1:]]
        for data in damaged:
            file.write_bytes(data)
            with pytest.raises(CheckpointError):
                load_tensors(folder)
        file.write_bytes(sound)
    assert same(load_tensors(folder)[0], SMALL)


@given(data=st.data())
def test_only_checkpoint_errors_come_out_of_random_damage(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tensors(folder, SMALL, {"step": 7})
    file = data.draw(st.sampled_from(sorted(folder.iterdir())))
    sound = file.read_bytes()
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(sound))] * 2)))
    file.write_bytes(sound[:start] + data.draw(st.binary(max_size=40)) + sound[stop:])
    changed = file.read_bytes() != sound
    with pytest.raises(CheckpointError, match=re.escape(str(folder))) if changed else nullcontext():
        load_tensors(folder)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(data=st.data())
def test_only_checkpoint_errors_come_out_of_doctored_manifests(data, tmp_path_factory):
    """A manifest whose hash fits, but not what it says."""
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tensors(folder, SMALL, {"step": 7})
    content = json.loads((folder / "manifest.json").read_bytes())
    for key in ("sha256", "format", "version"):
        del content[key]
    place, key = content, data.draw(st.sampled_from(["file", "tensors", "about", "made"]))
    while type(place[key]) is dict and place[key] and data.draw(st.integers(0, 3)):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place)))
    if data.draw(st.booleans()):
        place[key] = data.draw(values)
    else:
        del place[key]
    write_sealed(folder / "manifest.json", "urbe checkpoint", 1, content)
    try:
        back, about = load_tensors(folder)
    except CheckpointError:
        return
    assert same(back, SMALL)
    assert about == content["about"]


def doctored(folder, **changes):
    content = json.loads((folder / "manifest.json").read_bytes()) | changes
    form, version = content.pop("format"), content.pop("version")
    del content["sha256"]
    write_sealed(folder / "manifest.json", form, version, {k: v for k, v in content.items() if v is not None})


def entries(**changes):
    entry = {"dtype": "float32", "shape": [2], "sha256": "0" * 64} | changes
    return {"x": entry}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "letters"}, "manifest.json: has format 'letters', expected 'urbe checkpoint'."),
        ({"version": 2}, "manifest.json: has format version 2, expected at most 1; read it with a newer urbe."),
        ({"version": 0}, "has format version 0"),
        ({"version": True}, "has format version True"),
        ({"file": "../../etc/passwd"}, "names the file '../../etc/passwd', expected tensors-<64 hex digits>"),
        ({"file": f"tensors-{'0' * 64}.safetensors\n"}, "names the file"),
        (
            {"file": f"tensors-{'0' * 64}.safetensors"},
            f"tensors-{'0' * 64}.safetensors: is missing, though manifest.json",
        ),
        ({"file": None}, "manifest.json: has no file"),
        ({"about": None}, "manifest.json: has no about"),
        ({"tensors": [1]}, "manifest.json: has no tensors, expected one of type dict"),
        ({"tensors": entries(dtype="object")}, "tells of 'x' {'dtype': 'object'"),
        ({"tensors": entries(shape=[-1])}, "tells of 'x'"),
        ({"tensors": entries(shape=[True])}, "tells of 'x'"),
        ({"tensors": entries(sha256="0" * 63)}, "tells of 'x'"),
        ({"tensors": entries(shape=[10**30])}, "has a name that does not fit"),
    ],
)
def test_doctored_manifests_are_refused_in_words(change, message, tmp_path):
    save_tensors(tmp_path / "c", SMALL, {})
    doctored(tmp_path / "c", **change)
    with pytest.raises(CheckpointError) as failure:
        load_tensors(tmp_path / "c")
    assert message in str(failure.value)


def with_other_arrays(folder, tensors):
    """The manifest of SMALL over a sound file of other arrays."""
    save_tensors(folder, SMALL, {})
    tensor_file(folder).write_bytes(safetensors.numpy.save(tensors))


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"n": SMALL["n"], "none": SMALL["none"]}, "lacks 'a/w', which the manifest lists"),
        ({**SMALL, "more": np.ones(2)}, "holds 'more', which the manifest does not list"),
        ({**SMALL, "n": np.array(3, np.uint64)}, "holds 'n' as U64 of shape [], expected I64 of shape [] as in"),
        ({**SMALL, "n": np.array([3])}, "holds 'n' as I64 of shape [1], expected I64 of shape []"),
        ({**SMALL, "n": np.array(4)}, "is damaged: 'n' has the SHA-256 "),
    ],
)
def test_other_arrays_are_refused_in_words(tensors, message, tmp_path):
    with_other_arrays(tmp_path / "c", tensors)
    with pytest.raises(CheckpointError) as failure:
        load_tensors(tmp_path / "c")
    assert message in str(failure.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "truncated, damaged or not a safetensors file"),
        (b"\xff" * 100, "truncated, damaged or not a safetensors file"),
        ((40).to_bytes(8, "little") + b"[" * 40, "not a safetensors file: its header cannot be read"),
        ((10**5).to_bytes(8, "little") + b"[" * 10**5, "not a safetensors file: its header cannot be read"),
        ((2).to_bytes(8, "little") + b"[]", "not a safetensors file: its header cannot be read"),
        ((8).to_bytes(8, "little") + b'{"n": 3}', "not a safetensors file: its header cannot be read"),
        ((8).to_bytes(8, "little") + b"\xff" * 8, "not a safetensors file: its header cannot be read"),
    ],
)
def test_other_files_are_refused_in_words(data, message, tmp_path):
    save_tensors(tmp_path / "c", SMALL, {})
    tensor_file(tmp_path / "c").write_bytes(data)
    with pytest.raises(CheckpointError, match=message):
        load_tensors(tmp_path / "c")


def test_a_header_that_says_the_same_in_other_words_is_refused(tmp_path):
    save_tensors(tmp_path / "c", SMALL, {})
    file = tensor_file(tmp_path / "c")
    file.write_bytes(safetensors.numpy.save(SMALL, metadata={"by": "me"}))
    with pytest.raises(CheckpointError, match="damaged or rewritten: its header differs"):
        load_tensors(tmp_path / "c")


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"[" * 10**5, b"9" * 5000, b'{"format": "urbe'])
def test_manifests_that_are_not_json_are_refused_in_words(data, tmp_path):
    save_tensors(tmp_path / "c", SMALL, {})
    (tmp_path / "c" / "manifest.json").write_bytes(data)
    with pytest.raises(CheckpointError, match="is truncated, damaged or not JSON"):
        load_tensors(tmp_path / "c")


def test_places_without_a_checkpoint_are_named(tmp_path):
    with pytest.raises(CheckpointError, match="nowhere: is no folder, expected one that holds a checkpoint"):
        load_tensors(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"has no manifest.json: it is no checkpoint, or was never completed"):
        load_tensors(tmp_path)
    (tmp_path / "manifest.json").mkdir()
    with pytest.raises(CheckpointError, match=r"manifest.json: cannot be read: Is a directory"):
        load_tensors(tmp_path)
    save_tensors(tmp_path / "c", SMALL, {})
    file = tensor_file(tmp_path / "c")
    file.unlink()
    file.mkdir()
    with pytest.raises(CheckpointError, match=r"safetensors: cannot be read: Is a directory"):
        load_tensors(tmp_path / "c")


def test_folders_that_cannot_be_are_os_errors(tmp_path):
    with pytest.raises(FileNotFoundError, match="Saving the checkpoint failed"):
        save_tensors(tmp_path / "no" / "c", SMALL, {})
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="Saving the checkpoint failed"):
        save_tensors(tmp_path / "file", SMALL, {})
    assert names(tmp_path) == ["file"]


def test_errors_can_be_copied_as_between_processes():
    error = copy.copy(CheckpointError("c", "is missing."))
    assert (str(error), error.path, error.message) == ("c: is missing.", "c", "is missing.")


def test_a_deleted_checkpoint_leaves_only_what_is_not_its_own(tmp_path):
    save_tensors(tmp_path / "c", SMALL, {})
    delete_checkpoint(tmp_path / "c")
    assert names(tmp_path) == []
    save_tensors(tmp_path / "c", SMALL, {})
    (tmp_path / "c" / "notes.txt").write_text("mine")
    delete_checkpoint(tmp_path / "c")
    assert names(tmp_path / "c") == ["notes.txt"]


def test_a_reader_finds_the_new_arrays_when_the_old_ones_go_away_under_it(tmp_path, monkeypatch):
    from urbe.runs import tensors as module

    save_tensors(tmp_path / "c", {"x": np.zeros(3)}, {"k": 0})
    told = []

    def read_then_replaced(folder):
        manifest = read_manifest(folder)
        told.append(manifest.about["k"])
        if len(told) < 3:
            save_tensors(folder, {"x": np.full(3, len(told))}, {"k": len(told)})
        return manifest

    monkeypatch.setattr(module, "read_manifest", read_then_replaced)
    back, about = load_tensors(tmp_path / "c")
    assert told == [0, 1, 2]
    assert (back["x"].tolist(), about) == ([2, 2, 2], {"k": 2})


def test_memory_is_bounded(tmp_path):
    """Saving contiguous arrays takes next to nothing, others one copy of one; loading the arrays themselves."""
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
    assert most[2] < 34 << 20


def test_no_library_is_imported_for_it():
    code = (
        "import sys, urbe.runs; print([m for m in ('safetensors', 'jax', 'urbe.runs.tensors') if m in sys.modules]); "
        "import urbe.runs.directory; print([m for m in ('safetensors', 'jax') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["[]", "[]"]
