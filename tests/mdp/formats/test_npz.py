"""Manipulated .npz files: each error says what is wrong, and none needs more memory than the size of the file."""

import io
import re
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.random_models import assert_valid
from urbe import MDP
from urbe.mdp.formats import ModelFileError, read_mdp, write_mdp


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    """The members of a valid file: states 0 and 1 act, 2 is terminal."""
    mdp = MDP.from_transitions(
        [0, 0, 0, 1],
        [0, 0, 2, 1],
        [0, 1, 2, 0],
        [0.25, 0.75, 1.0, 1.0],
        [1.0, 2.0, 3.0, 4.0],
        discount=0.9,
        terminal=[2],
        initial=[0.5, 0.5, 0.0],
        lower=[0.0, 0.5, 1.0, 0.9],
        upper=[0.5, 1.0, 1.0, 1.0],
    )
    path = tmp_path_factory.mktemp("npz") / "model.npz"
    write_mdp(mdp, path)
    with np.load(path, allow_pickle=False) as members:
        return dict(members)


def put(path, members):
    with open(path, "wb") as file:
        np.savez(file, **members)
    return path


def test_the_members_themselves_are_a_model(tmp_path, arrays):
    mdp = read_mdp(put(tmp_path / "m.npz", arrays))
    assert_valid(mdp)
    assert mdp.terminal.tolist() == [False, False, True]


def i4(*numbers):
    return np.array(numbers, dtype=np.int32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": np.int64(2)}, "has format version 2, expected 1; read it with a newer urbe"),
        ({"version": np.float64(1)}, "version.npy has type <f8, expected <i8"),
        ({"discount": np.float64(1.5)}, "discount is 1.5, expected a number in [0, 1]"),
        ({"discount": np.float64(np.nan)}, "discount is nan, expected a number in [0, 1]"),
        ({"discount": np.array([0.9])}, "discount.npy has shape (1,), expected a number"),
        ({"row_start": i4()}, "row_start has 0 entries, expected one more than there are states"),
        ({"row_start": i4(0)}, "row_start has 1 entries"),
        ({"row_start": i4(0, 2, 3)}, "successor[2] is 2, expected a 0-based state below 2"),
        ({"row_start": i4(1, 2, 3, 3)}, "row_start goes from 1 to 3, expected from 0 to 3"),
        ({"row_start": i4(0, 2, 3, 4)}, "row_start goes from 0 to 4, expected from 0 to 3"),
        ({"row_start": i4(0, 4, 3, 3)}, "row_start[2] is 3 after 4, expected a number not smaller"),
        ({"row_start": i4(0, -2147483648, 2147483647, 3)}, "row_start[1] is -2147483648 after 0"),
        ({"row_start": np.array([0.0, 2.0, 3.0, 3.0])}, "row_start.npy has type <f8, expected <i4 or <i8"),
        ({"row_start": i4(0, 2, 3, 3).reshape(2, 2)}, "row_start.npy has shape (2, 2), expected one dimension"),
        ({"action": i4(0, 2)}, "row_start goes from 0 to 3, expected from 0 to 2"),
        ({"action": i4(2, 0, 1)}, "action[1] is 0 after 2, expected them increasing"),
        ({"action": i4(0, 0, 1)}, "action[1] is 0 after 0, expected them increasing"),
        ({"action": i4(-1, 2, 1)}, "action[0] is -1, expected at least 0"),
        ({"action": np.array([0, 2, 1])}, "action.npy has type <i8, expected <i4"),
        ({"entry_start": i4(0, 2, 4)}, "entry_start has 3 entries, expected 4, one more than action"),
        ({"entry_start": i4(0, 2, 2, 4)}, "entry_start[2] is 2 after 2, expected a number larger"),
        ({"entry_start": i4(0, 2, 3, 5)}, "entry_start goes from 0 to 5, expected from 0 to 4"),
        ({"successor": i4(1, 0, 2, 0)}, "successor[1] is 0 after 1, expected them increasing"),
        ({"successor": i4(0, 0, 2, 0)}, "successor[1] is 0 after 0, expected them increasing"),
        ({"successor": i4(0, 1, 3, 0)}, "successor[2] is 3, expected a 0-based state below 3"),
        ({"successor": i4(0, 1, -2, 0)}, "successor[2] is -2, expected at least 0"),
        ({"probability": np.array([0.25, 0.75, 1.0])}, "probability has 3 entries, expected 4, one for each successor"),
        (
            {"probability": np.array([0.25, 0.7, 1.0, 1.0])},
            "probabilities of state 0, action 0 sum to 0.95, expected 1",
        ),
        ({"probability": np.array([-0.5, 1.5, 1.0, 1.0])}, "probability[0] is -0.5, expected a number in [0, 1]"),
        ({"probability": np.array([0.25, np.nan, 1.0, 1.0])}, "probability[1] is nan, expected a finite number"),
        ({"probability": np.ones(4, np.float32)}, "probability.npy has type <f4, expected <f8"),
        (
            {"probability": np.array([0.6, 0.4, 1.0, 1.0])},
            "The probability from state 0, action 0 to state 0 is 0.6, exp",
        ),
        ({"reward": np.zeros(5)}, "reward has 5 entries, expected one per row (3) or entry (4)"),
        ({"reward": np.array([0.0, np.inf, 0.0, 0.0])}, "reward[1] is inf, expected a finite number"),
        ({"initial": np.array([0.5, 0.5])}, "initial has 2 entries, expected 3"),
        ({"initial": np.array([0.5, 0.4, 0.0])}, "initial sums to 0.9, expected 1"),
        ({"initial": np.array([1.5, -0.5, 0.0])}, "initial[1] is -0.5, expected at least 0"),
        ({"lower": np.zeros(3)}, "lower has 3, upper has 4 entries, expected both bounds with 4 each"),
        ({"lower": None}, "upper has 4 entries, expected both bounds with 4 each"),
        ({"lower": np.array([0.6, 0.5, 1.0, 0.9])}, "The interval from state 0, action 0 to state 0 is [0.6, 0.5]"),
        ({"lower": np.array([0.0, np.nan, 1.0, 0.9])}, "lower[1] is nan, expected a finite number"),
        ({"upper": np.array([0.1, 0.8, 1.0, 1.0])}, "The intervals of state 0, action 0 hold no distribution"),
        ({"reward": None}, "has no reward.npy, expected version.npy, discount.npy"),
        ({"extra": np.zeros(1)}, "holds version.npy"),
    ],
)
def test_refuses_arrays_that_are_no_model(tmp_path, arrays, changes, message):
    members = {name: array for name, array in (arrays | changes).items() if array is not None}
    path = put(tmp_path / "m.npz", members)
    with pytest.raises(ModelFileError, match=re.escape(message)) as caught:
        read_mdp(path)
    assert str(caught.value).startswith(str(path))


def npy(array, shape=None):
    """Bytes of an .npy file whose header may lie about the shape."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape if shape is None else shape}
    )
    return buffer.getvalue() + array.tobytes()


@pytest.mark.parametrize(
    ("member", "content", "message"),
    [
        ("reward.npy", npy(np.zeros(4), (10**15,)), "reward.npy holds 32 bytes, expected 1000000000000000 times 8"),
        ("reward.npy", npy(np.zeros(4), (5,)), "reward.npy holds 32 bytes, expected 5 times 8"),
        ("reward.npy", npy(np.zeros(4))[:-1], "reward.npy holds 31 bytes, expected 4 times 8"),
        ("reward.npy", npy(np.zeros(4))[:40], "reward.npy has an unreadable header"),
        ("reward.npy", b"", "reward.npy does not start as an .npy file"),
        ("reward.npy", b"\x93NUMPY\x02\x00" + npy(np.zeros(4))[8:], "reward.npy does not start as an .npy file of ver"),
        ("reward.npy", npy(np.zeros(4)).replace(b"'<f8'", b"'|O8'"), "reward.npy has type |O8, expected <f8"),
        ("reward.npy", npy(np.zeros(4)).replace(b"(4,)", b"(+4)"), "reward.npy has an unreadable header"),
        ("reward.npy", npy(np.zeros(4)).replace(b"(4,)", b"(9 )"), "reward.npy has shape (9 ), expected one dimension"),
        ("../reward.npy", b"", "holds version.npy"),
    ],
)
def test_refuses_members_that_lie(tmp_path, arrays, member, content, message):
    path = tmp_path / "m.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            if f"{name}.npy" != member:
                archive.writestr(f"{name}.npy", npy(array))
        archive.writestr(member, content)
    with pytest.raises(ModelFileError, match=re.escape(message)):
        read_mdp(path)


def test_a_size_beyond_the_file_costs_no_memory(tmp_path, arrays):
    path = tmp_path / "m.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", npy(array))
    content = bytearray(path.read_bytes())
    first = content.index(b"PK\x01\x02")  # the directory's entry of the first member, its sizes 20 bytes on
    content[first + 20 : first + 28] = (2_000_000_000).to_bytes(4, "little") * 2
    path.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=r"version\.npy claims 2000000000 bytes in a file of"):
        read_mdp(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 << 20


def test_refuses_compressed_members(tmp_path, arrays):
    with open(tmp_path / "m.npz", "wb") as file:
        np.savez_compressed(file, **arrays)
    with pytest.raises(ModelFileError, match=r"version.npy is compressed, expected it stored plainly"):
        read_mdp(tmp_path / "m.npz")


def test_refuses_a_member_twice(tmp_path, arrays):
    path = put(tmp_path / "m.npz", arrays)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("reward.npy", npy(np.ones(4)))
    with pytest.raises(ModelFileError, match=r"holds version\.npy"):
        read_mdp(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"idstatefrom,idaction\n", b"\0" * 1000])
def test_refuses_what_is_no_archive(tmp_path, content):
    (tmp_path / "m.npz").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"is damaged or not an \.npz file"):
        read_mdp(tmp_path / "m.npz")


def test_every_truncation_is_noticed(tmp_path, arrays):
    whole = put(tmp_path / "m.npz", arrays).read_bytes()
    for length in range(0, len(whole), 7):
        (tmp_path / "m.npz").write_bytes(whole[:length])
        with pytest.raises(ModelFileError):
            read_mdp(tmp_path / "m.npz")


def test_every_flipped_payload_bit_is_noticed(tmp_path, arrays):
    whole = put(tmp_path / "m.npz", arrays).read_bytes()
    start = whole.index(arrays["probability"].tobytes())
    for at in range(start, start + 32):
        (tmp_path / "m.npz").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(ModelFileError, match="CRC"):
            read_mdp(tmp_path / "m.npz")


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_flipped_bytes_give_the_same_model_or_a_refusal(tmp_path_factory, arrays, data):
    path = put(tmp_path_factory.getbasetemp() / "flips.npz", arrays)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        mdp = read_mdp(path)
    except ModelFileError:
        return
    assert_valid(mdp)
    assert mdp.rows.probability.tolist() == arrays["probability"].tolist()
    assert mdp.rows.reward.tolist() == arrays["reward"].tolist()


words = st.one_of(
    st.integers(-3, 6), st.sampled_from([2**31 - 1, -(2**31)]), st.floats(), st.floats(0, 1), st.just(float("nan"))
)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_fuzzed_arrays_give_a_model_or_a_refusal(tmp_path_factory, arrays, data):
    members = {name: np.array(array) for name, array in arrays.items()}
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(sorted(members)))
        array = members[name].ravel()
        kind = data.draw(st.sampled_from(["set", "drop", "repeat", "delete"]))
        if kind == "delete":
            members.pop(name)
        elif len(array):
            at = data.draw(st.integers(0, len(array) - 1))
            if kind == "set":
                value = data.draw(words)
                if array.dtype.kind == "i":
                    value = int(value) if np.isfinite(value) and abs(value) <= 2**31 else -1
                    value = min(max(value, -(2**31)), 2**31 - 1)
                array[at] = value
            array = {"drop": np.delete(array, at), "repeat": np.insert(array, at, array[at])}.get(kind, array)
            members[name] = array if members[name].ndim else array.reshape(-1)[:1].reshape(() if len(array) else (0,))
    path = put(tmp_path_factory.getbasetemp() / "fuzz.npz", members)
    try:
        mdp = read_mdp(path)
    except ModelFileError:
        return
    assert_valid(mdp)
