"""Damaged and manipulated agent files raise errors that explain the damage."""

import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urbe.deep import settings as config
from urbe.deep.agent import VERSION
from urbe.deep.compilation import cache_compilation
from urbe.deep.presets import dqn_urbe
from urbe.deep.saving.load import load
from urbe.runs.directory import RunDirectory
from urbe.runs.errors import CheckpointError
from urbe.runs.tensors import load_tensors, save_tensors
from urbe.simulators import CartPole, UncertaintySet


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved agent on disk, its file."""
    cache_compilation()
    path = tmp_path_factory.mktemp("saved") / "pole"
    poles = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0))
    tiny = {"network": config.Network(hidden=(16, 16)), "batch": 16, "capacity": 300, "warm_up": 50}
    dqn_urbe(CartPole(), poles, seed=3, log_every=50, **tiny).learn(60).save(path)
    return path


def doctored(saved, folder, change):
    """A copy whose `about` has been changed and sealed again, as by one who knows the format."""
    tensors, about = load_tensors(saved)
    about = json.loads(json.dumps(about))
    change(about)
    save_tensors(folder, tensors, about)
    return folder


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.update(version=VERSION + 1), "newer urbe"),
        (lambda a: a.update(version="1"), "is not an agent"),
        (lambda a: a.pop("settings"), "is not an agent"),
        (lambda a: a.clear(), "contains nothing"),
        (lambda a: a.update(seed=-1), "seed is -1"),
        (lambda a: a.update(seed=True), "expected one of type int"),
        (lambda a: a.update(log_every=0), "log_every is 0"),
        (lambda a: a.update(log_every=51), "episodes"),
        (lambda a: a.update(agent=None), "the agent None"),
        (lambda a: a.update(settings={"kind": "Adam"}), "found Adam.*expected Settings"),
        (lambda a: a.update(settings={"kind": "Settings2"}), "Settings2"),
        (lambda a: a["settings"].update(discount=2.0), "discount is 2.0"),
        (lambda a: a["settings"].update(flavour=1), "flavour"),
        (lambda a: a["settings"].update(nature=7), "nature is 7"),
        (lambda a: a["settings"].update(copy={"kind": "Adam"}), "copy is Adam"),
        (lambda a: a["settings"].update(variance={"kind": "NoVariance"}), "head"),
        (lambda a: a["settings"].update(capacity=10**12), "memory are needed"),
        (lambda a: a["settings"]["network"].update(hidden=[16]), "trainer/learner"),
        (lambda a: a["settings"]["network"].update(hidden=[10**9, 16]), "trainer/learner"),
        (lambda a: a.update(world={}), "world of the kind None"),
        (lambda a: a["world"].pop("simulator"), "built"),
        (lambda a: a["world"].update(simulator={"kind": "Acrobot"}), "parameters"),
        (lambda a: a["world"].update(simulator={"kind": "Adam"}), "built"),
        (lambda a: a["world"].update(uncertain=None), "trainer/"),
        (lambda a: a["world"].update(uncertain=3), "built"),
        (lambda a: a["world"]["uncertain"].update(nominal=9), "nominal is 9"),
        (lambda a: a["world"]["simulator"].update(time_limit=0), "time_limit is 0"),
    ],
)
def test_a_doctored_description_is_refused_in_words(saved, tmp_path, change, message):
    with pytest.raises(CheckpointError, match=message):
        load(doctored(saved, tmp_path / "x", change))


class Reached(BaseException):
    """The description was accepted: a trainer would be built."""


def reached(*_):
    raise Reached


junk = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "Settings", "CartPole", "LastLayer", "inf", "kind", "xy", "__class__", "os"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["kind", "function", "number", "items", "why", "parameters"]), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


@st.composite
def damage(draw):
    """Changes one place, deep or not, of nested dicts and lists."""
    way, new, how = draw(st.lists(st.integers(0, 30), min_size=1, max_size=5)), draw(junk), draw(st.integers(0, 3))

    def change(about):
        node = about
        for at, turn in enumerate(way):
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                return
            key = keys[turn % len(keys)]
            if at + 1 == len(way) or not isinstance(node[key], (dict, list)):
                break
            node = node[key]
        if how == 0:
            del node[key]
        elif how == 1 and isinstance(node, dict):
            node[f"{key}_"] = node.pop(key)
        else:
            node[key] = new

    return change


@settings(max_examples=60)
@given(change=damage())
def test_whatever_a_description_says_there_is_one_error(saved, tmp_path_factory, change):
    """Believed only as far as it fits the arrays that are there; otherwise one exception, which names the folder."""
    path = doctored(saved, tmp_path_factory.mktemp("x") / "x", change)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["urbe.deep.saving.load"], "CompiledTrainer", reached)
        patch.setattr(sys.modules["urbe.deep.saving.load"], "FrozenTrainer", reached)
        with pytest.raises((CheckpointError, Reached, ValueError)) as found:
            load(path)
    # a ValueError of another kind says that something of the user's own is missing, as the file does
    expected = {CheckpointError: str(path), ValueError: "settings is missing", Reached: ""}
    assert expected[found.type] in str(found.value)


@pytest.mark.parametrize("name", ["trainer/learner/q/0/weight", "trainer/world/key", "history/log/step"])
@pytest.mark.parametrize("how", ["lost", "longer", "other type", "extra"])
def test_arrays_that_do_not_fit_are_named(saved, tmp_path, name, how):
    tensors, about = load_tensors(saved)
    if how == "lost":
        del tensors[name]
    elif how == "longer":
        tensors[name] = np.concatenate([tensors[name]] * 2)
    elif how == "other type":
        tensors[name] = np.zeros((len(tensors[name]), 1), np.float16)
    else:
        tensors[f"{name}s"] = tensors[name]
    save_tensors(tmp_path / "x", tensors, about)
    with pytest.raises(CheckpointError, match=name.split("/")[1]):
        load(tmp_path / "x")


def test_damaged_truncated_foreign_and_newer_files(saved, tmp_path):
    def copy(name):
        return doctored(saved, tmp_path / name, lambda _: None)

    data = bytearray(copy("flipped").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "flipped").write_bytes(data)
    with pytest.raises(CheckpointError, match="damaged"):
        load(tmp_path / "flipped")

    (tmp_path / "cut").write_bytes(copy("cut").read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="truncated"):
        load(tmp_path / "cut")

    (tmp_path / "newer").write_bytes(copy("newer").read_bytes().replace(b"urbe tensors 1", b"urbe tensors 2"))
    with pytest.raises(CheckpointError, match="newer urbe"):
        load(tmp_path / "newer")

    save_tensors(tmp_path / "foreign", {"w": np.zeros(2)}, {"step": 7})
    with pytest.raises(CheckpointError, match="not an agent: it contains step"):
        load(tmp_path / "foreign")

    with RunDirectory(tmp_path / "other run", {"seed": 1}) as run:
        run.save(0, {"w": np.zeros(2)})
    with pytest.raises(CheckpointError, match="is not an agent"):
        load(tmp_path / "other run")

    with RunDirectory(tmp_path / "empty run", {"seed": 1}):
        pass
    with pytest.raises(CheckpointError, match="no checkpoint"):
        load(tmp_path / "empty run")

    (tmp_path / "file").write_bytes(b"\x80\x04\x95")
    for nothing in (tmp_path / "file", tmp_path / "not there", tmp_path):
        with pytest.raises(CheckpointError):
            load(nothing)
