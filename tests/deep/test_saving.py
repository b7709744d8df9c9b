"""Saved agents: everything comes back bit for bit, and files that are not what they say are refused."""

import json
import sys
from dataclasses import dataclass, replace

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urbe import simulators
from urbe.deep import natures, variances
from urbe.deep import settings as config
from urbe.deep.agent import VERSION
from urbe.deep.compilation import cache_compilation
from urbe.deep.load import load
from urbe.deep.presets import dqn, dqn_urbe
from urbe.io.errors import CheckpointError
from urbe.io.runs import RunDirectory
from urbe.io.sealed import read_sealed, write_sealed
from urbe.io.tensors import load_tensors, save_tensors
from urbe.simulators import CartPole, MarsRover, UncertaintySet

TINY = {"network": config.Network(hidden=(16, 16)), "batch": 16, "capacity": 300, "warm_up": 50}
OBS = [[0.0, 0.1, 0.05, -0.2], [0.3, 0.0, -0.1, 0.4]]


@pytest.fixture(scope="module", autouse=True)
def _compiled_once():
    cache_compilation()


@dataclass(frozen=True)
class OwnPole:
    """A simulator of the user's own: not in any list. It compiles to what CartPole does, which saves time."""

    time_limit: int = 500
    n_actions: int = 2
    size: int = 4

    def nominal(self):
        return CartPole().nominal()

    def start(self, key, params):
        return CartPole().start(key, params)

    def outcomes(self, state, action, params):
        return CartPole().outcomes(state, action, params)

    def observe(self, state):
        return state if self.size == len(state) else state[: self.size]


@dataclass(frozen=True)
class OwnNature:
    """A nature of the user's own."""

    def weights(self, values):
        return natures.Worst().weights(values)


@dataclass(frozen=True, eq=False)
class OwnSchedule(simulators.Schedule):
    """A schedule of the user's own."""

    inner: simulators.Schedule

    def begin(self, key):
        return self.inner.begin(key)

    def next(self, carry, key):
        return self.inner.next(carry, key)


def poles(env=None):
    return UncertaintySet.grid(env or CartPole(), half_length=(0.25, 1.0))


def same(one, other):
    """Whether two agents' tensors are equal in name, type and every bit."""
    a, b = one.tensors(), other.tensors()
    assert list(a) == list(b)
    return all(a[k].dtype == b[k].dtype and a[k].tobytes() == b[k].tobytes() for k in a)


def rover():
    """Two outcomes, random parameters with infinite bounds, a calibrated head, forgetting."""
    law = simulators.Normal(0.2, 0.05, low=0.0)
    schedule = simulators.Redrawn(MarsRover().nominal(), {"failure": law})
    uncertain = UncertaintySet.samples(MarsRover(), 1, count=3, failure=simulators.Uniform(0.0, 0.3))
    variance = variances.calibrated(hidden=(8,))
    return dqn_urbe(MarsRover(), uncertain, seed=4, schedule=schedule, log_every=50, variance=variance, **TINY)


def pole(seed=3, **changes):
    return dqn_urbe(CartPole(), poles(), seed=seed, log_every=50, **TINY, **changes)


@pytest.fixture(scope="module", params=[pole, rover])
def trained(request):
    return request.param().learn(170)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved agent on disk, its folder."""
    path = tmp_path_factory.mktemp("saved") / "pole"
    pole().learn(60).save(path)
    return path


def test_a_loaded_agent_is_the_agent_and_goes_on_bit_for_bit(trained, tmp_path):
    trained.save(tmp_path / "agent")
    again = load(tmp_path / "agent")
    assert same(trained, again)
    assert again.about() == trained.about()
    assert again.trainer.settings == trained.trainer.settings
    before = again.tensors()
    trained.learn(133)
    again.learn(33).learn(100)
    assert same(trained, again)
    moved = again.tensors()
    assert any(moved[name].tobytes() != before[name].tobytes() for name in before if name.startswith("trainer/learner"))
    assert again.history.log["step"].tolist() == [50, 100, 150, 200, 250, 300]


def test_saving_over_an_agent_leaves_the_new_one(trained, tmp_path):
    trained.save(tmp_path / "agent")
    before = load_tensors(tmp_path / "agent")[0]
    trained.learn(1)
    trained.save(tmp_path / "agent")
    assert same(load(tmp_path / "agent"), trained)
    assert load_tensors(tmp_path / "agent")[0]["trainer/learner/step"] == before["trainer/learner/step"] + 1


# what must be given again


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A saved agent on a simulator that no file can describe, and the agent."""
    path = tmp_path_factory.mktemp("own") / "pole"
    agent = dqn_urbe(OwnPole(), poles(OwnPole()), seed=3, log_every=50, **TINY).learn(60)
    agent.save(path)
    return path, agent


def test_an_environment_of_ones_own_is_given_again(own):
    path, agent = own
    again = load(path, env=OwnPole())
    assert same(agent, again)
    assert same(load(path, env=OwnPole()).learn(50), again.learn(50))
    assert again.step == 110


def test_without_it_the_agent_predicts_and_says_why_it_does_not_learn(own):
    path, agent = own
    frozen = load(path)
    assert frozen.predict(OBS).tolist() == agent.predict(OBS).tolist()
    assert (
        frozen.predict(OBS, np.random.default_rng(0)).tolist() == agent.predict(OBS, np.random.default_rng(0)).tolist()
    )
    assert frozen.step == 60
    assert frozen.history.log["step"].tolist() == [50]
    with pytest.raises(ValueError, match="env="):
        frozen.learn(1)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"env": OwnPole(size=3)}, "env has 3 numbers in an observation, expected 4"),
        ({"env": OwnPole(n_actions=3)}, "env has 3 actions, expected 2"),
        ({"env": OwnPole(), "uncertainty_set": UncertaintySet.single(OwnPole())}, "has 1 members, expected 3"),
        ({"env": MarsRover()}, "parameters"),
        ({"uncertainty_set": poles()}, "without env"),
        ({"schedule": simulators.Constant(CartPole().nominal())}, "without env"),
    ],
)
def test_what_is_given_must_fit(own, given, told):
    with pytest.raises(ValueError, match=told):
        load(own[0], **given)


def test_a_gymnasium_environment_is_no_simulator(own):
    with pytest.raises(ValueError, match="env is a Gymnasium environment, expected a simulator"):
        load(own[0], env=gymnasium.make("CartPole-v1"))


def test_an_agent_of_a_gymnasium_environment(tmp_path):
    agent = dqn(gymnasium.make("CartPole-v1"), seed=0, log_every=50, **TINY).learn(60)
    agent.save(tmp_path / "agent")
    frozen = load(tmp_path / "agent")
    assert frozen.predict(OBS).tolist() == agent.predict(OBS).tolist()
    with pytest.raises(ValueError, match="env="):
        frozen.learn(1)
    frozen.save(tmp_path / "frozen")
    assert load(tmp_path / "frozen").predict(OBS).tolist() == agent.predict(OBS).tolist()
    again = load(tmp_path / "agent", env=gymnasium.make("CartPole-v1"))
    assert same(agent, again)
    assert same(agent.learn(70), again.learn(70))
    for env, told in [(gymnasium.make("Acrobot-v1"), "env has 6 numbers"), (CartPole(), "expected a Gymnasium")]:
        with pytest.raises(ValueError, match=told):
            load(tmp_path / "agent", env=env)
    with pytest.raises(ValueError, match="expected none"):
        load(tmp_path / "frozen", env=CartPole())


def test_a_schedule_of_ones_own_is_not_forgotten_in_silence(tmp_path):
    schedule = OwnSchedule(simulators.Constant(CartPole().nominal()))
    agent = pole(schedule=schedule).learn(60)
    agent.save(tmp_path / "agent")
    with pytest.raises(ValueError, match="env="):
        load(tmp_path / "agent").learn(1)
    again = load(tmp_path / "agent", env=CartPole(), schedule=schedule)
    assert same(agent.learn(60), again.learn(60))


def test_a_nature_of_ones_own_comes_with_the_settings(tmp_path):
    agent = pole(nature=OwnNature()).learn(60)
    agent.save(tmp_path / "agent")
    with pytest.raises(ValueError, match=r"settings is missing.*OwnNature"):
        load(tmp_path / "agent")
    again = load(tmp_path / "agent", settings=agent.trainer.settings)
    assert same(agent.learn(60), again.learn(60))
    with pytest.raises(CheckpointError, match="trainer/learner"):
        load(tmp_path / "agent", settings=replace(agent.trainer.settings, network=config.Network(hidden=(16, 8))))


# files that are not what they should be


def doctored(saved, folder, change):
    """A copy whose `about` has been changed and sealed again, as by one who knows the format."""
    tensors, about = load_tensors(saved)
    about = json.loads(json.dumps(about))
    change(about)
    save_tensors(folder, tensors, about)
    return folder


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda a: a.update(version=VERSION + 1), "newer urbe"),
        (lambda a: a.update(version="1"), "not of an agent"),
        (lambda a: a.pop("settings"), "not of an agent"),
        (lambda a: a.clear(), "tells nothing"),
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
        (lambda a: a["settings"].update(capacity=10**12), "replay"),
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
def test_a_doctored_description_is_refused_in_words(saved, tmp_path, change, told):
    with pytest.raises(CheckpointError, match=told):
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
        patch.setattr(sys.modules["urbe.deep.load"], "CompiledTrainer", reached)
        patch.setattr(sys.modules["urbe.deep.load"], "FrozenTrainer", reached)
        with pytest.raises((CheckpointError, Reached, ValueError)) as found:
            load(path)
    # a ValueError of another kind says that something of the user's own is missing, as the file does
    told = {CheckpointError: str(path), ValueError: "settings is missing", Reached: ""}
    assert told[found.type] in str(found.value)


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

    (tensor_file,) = copy("flipped").glob("*.safetensors")
    data = bytearray(tensor_file.read_bytes())
    data[len(data) // 2] ^= 1
    tensor_file.write_bytes(data)
    with pytest.raises(CheckpointError, match="damaged"):
        load(tmp_path / "flipped")

    (tensor_file,) = copy("cut").glob("*.safetensors")
    tensor_file.write_bytes(tensor_file.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="truncated"):
        load(tmp_path / "cut")

    manifest = copy("newer") / "manifest.json"
    write_sealed(manifest, "urbe checkpoint", 2, read_sealed(manifest, "urbe checkpoint", 1))
    with pytest.raises(CheckpointError, match="newer urbe"):
        load(tmp_path / "newer")

    save_tensors(tmp_path / "foreign", {"w": np.zeros(2)}, {"step": 7})
    with pytest.raises(CheckpointError, match="not of an agent: it tells step"):
        load(tmp_path / "foreign")

    with RunDirectory(tmp_path / "other run", {"seed": 1}) as run:
        run.save(0, {"w": np.zeros(2)})
    with pytest.raises(CheckpointError, match="not of an agent"):
        load(tmp_path / "other run")

    with RunDirectory(tmp_path / "empty run", {"seed": 1}):
        pass
    with pytest.raises(CheckpointError, match="no checkpoint"):
        load(tmp_path / "empty run")

    (tmp_path / "file").write_bytes(b"\x80\x04\x95")
    for nothing in (tmp_path / "file", tmp_path / "not there", tmp_path):
        with pytest.raises(CheckpointError):
            load(nothing)
