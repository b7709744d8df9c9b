"""Saved agents: everything comes back bit for bit, and nothing else is ever built from a file."""

import json
import math
import sys
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urbe import simulators
from urbe.deep import natures, variances
from urbe.deep import settings as config
from urbe.deep.agent import VERSION
from urbe.deep.compilation import cache_compilation
from urbe.deep.describe import KNOWN, Unknown, build, describe
from urbe.deep.load import load
from urbe.deep.presets import dqn, dqn_urbe
from urbe.io.errors import CheckpointError
from urbe.io.runs import RunDirectory
from urbe.io.sealed import read_sealed, write_sealed
from urbe.io.tensors import load_tensors, save_tensors
from urbe.rng import stream
from urbe.simulators import CartPole, MarsRover, UncertaintySet, mars_rover, schedules

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


# what files can describe: every kind, there and back


numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)
above_zero = st.floats(1e-6, 1e6)
whole = st.integers(1, 10**6)
units = st.lists(st.integers(1, 500), min_size=1, max_size=4).map(tuple)
shares = st.lists(st.integers(1, 9), min_size=1, max_size=5).map(lambda n: tuple(x / sum(n) for x in n))
pole_params = st.builds(
    lambda cast, *values: simulators.CartPoleParams(*map(cast, values)),
    st.sampled_from([float, np.float32, jnp.float32, np.float64]), *[st.floats(0.0625, 64.0, width=32)] * 5,
)  # fmt: skip
bounds = st.dictionaries(st.sampled_from(simulators.CartPoleParams._fields), st.just((0.0625, 64.0)), min_size=1)
normals = st.builds(lambda m, s, low: simulators.Normal(m, s, m - low * s), numbers, above_zero, st.floats(0, math.inf))
laws = st.one_of(
    normals,
    st.builds(simulators.Uniform, st.floats(-9, 0), st.floats(1, 9)),
    st.builds(simulators.LogUniform, st.floats(0.1, 1), st.floats(2, 9)),
)


def made(kind, **arguments):
    """What a kind is made from; it is made in the test, as checks of its types draw random numbers of their own."""
    return st.builds(partial, st.just(kind), **arguments)


def resolved(value):
    if not isinstance(value, partial):
        return value
    return value.func(**{name: resolved(argument) for name, argument in value.keywords.items()})


def params_of(kind):
    return st.builds(kind, *[above_zero] * len(kind._fields))


KINDS = {
    "Average": st.builds(natures.Average),
    "Worst": st.builds(natures.Worst),
    "Soft": made(natures.Soft, shares=shares),
    "CVaR": made(natures.CVaR, level=st.floats(1e-3, 1.0)),
    "NoVariance": st.builds(variances.NoVariance),
    "LastLayer": st.builds(
        variances.LastLayer, beta=st.floats(0, 9), mu=above_zero, hidden=units, raw_input=st.booleans(),
        residual_decay=st.none() | st.floats(0.1, 0.999), forget=st.floats(0.1, 1.0), refresh_every=whole,
    ),
    "Network": st.builds(config.Network, units, st.lists(above_zero, min_size=1).map(tuple)),
    "Epsilon": st.builds(config.Epsilon, st.floats(0, 1), st.floats(0, 1), whole),
    "CopyEvery": st.builds(lambda n, by: config.CopyEvery(**{by: n}), whole, st.sampled_from(["episodes", "updates"])),
    "Adam": st.builds(config.Adam, st.floats(0, 1), st.floats(0, 1), above_zero),
    "Acrobot": st.builds(simulators.Acrobot, time_limit=whole),
    "AcrobotParams": params_of(simulators.AcrobotParams),
    "CartPole": st.builds(simulators.CartPole, whole, numbers, pole_params),
    "CartPoleParams": pole_params,
    "DeepSea": st.builds(simulators.DeepSea, size=st.integers(1, 30), seed=st.none() | whole),
    "DeepSeaParams": params_of(simulators.DeepSeaParams),
    "MarsRover": st.builds(
        simulators.MarsRover, size=st.integers(4, 12), success=numbers, fail=numbers,
        risk=st.sampled_from([mars_rover.any_approach, mars_rover.vertical_approach, mars_rover.horizontal_approach,
                              mars_rover.diagonal_approach]),
        encoding=st.sampled_from([mars_rover.xy, mars_rover.one_hot]),
    ),
    "MarsRoverParams": st.builds(simulators.MarsRoverParams, st.floats(0, 1)),
    "MountainCar": st.builds(simulators.MountainCar, whole),
    "MountainCarParams": params_of(simulators.MountainCarParams),
    "SevenStates": st.builds(simulators.SevenStates, st.sampled_from(["direct", "chain"])),
    "SevenStatesParams": params_of(simulators.SevenStatesParams),
    "Constant": st.builds(simulators.Constant, pole_params),
    "StepChange": st.builds(
        simulators.StepChange, st.lists(st.tuples(whole, pole_params), min_size=1, max_size=3).map(tuple), st.booleans()
    ),
    "Drift": st.builds(simulators.Drift, pole_params, bounds, whole),
    "Cyclic": st.builds(simulators.Cyclic, pole_params, bounds, st.integers(2, 99)),
    "Saw": st.builds(simulators.Saw, pole_params, bounds, st.integers(2, 99)),
    "RandomWalk": st.builds(
        lambda base, b, edge: simulators.RandomWalk(base, b, dict.fromkeys(b, 0.1), edge),
        pole_params, bounds, st.sampled_from([schedules.reflect, jnp.clip]),
    ),
    "Redrawn": st.builds(
        simulators.Redrawn, pole_params,
        st.dictionaries(st.sampled_from(simulators.CartPoleParams._fields), laws, min_size=1),
    ),
    "Uniform": st.builds(simulators.Uniform, st.floats(-9, 0), st.floats(1, 9)),
    "Normal": normals,
    "LogUniform": st.builds(simulators.LogUniform, st.floats(0.1, 1), st.floats(2, 9)),
}  # fmt: skip
KINDS["Settings"] = made(
    config.Settings, nature=KINDS["Soft"] | KINDS["CVaR"] | KINDS["Worst"], variance=KINDS["LastLayer"],
    network=KINDS["Network"], double=st.booleans(), discount=st.floats(0, 1), copy=KINDS["CopyEvery"],
    huber=st.none() | above_zero, optimiser=KINDS["Adam"],
)  # fmt: skip
FUNCTIONS = ("any_approach", "vertical_approach", "horizontal_approach", "diagonal_approach", "xy", "one_hot",
             "reflect", "clip")  # fmt: skip


def test_every_kind_has_its_round_trip():
    assert {*KINDS, *FUNCTIONS} == set(KNOWN)


def alike(one, other):
    """Equality of values that may hold float32 numbers: as the simulators see them."""
    if is_dataclass(one):
        pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)]
        return type(one) is type(other) and all(alike(*pair) for pair in pairs)
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(alike, one, other))
    if hasattr(one, "dtype") and one.dtype == np.float32:
        return np.float32(one).tobytes() == np.float32(other).tobytes()
    return one == other or (one != one and other != other)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(data=st.data())
def test_descriptions_build_the_same_again(kind, data):
    value = resolved(data.draw(KINDS[kind]))
    told = json.loads(json.dumps(describe("value", value), allow_nan=False))
    again = build("value", told)
    assert alike(value, again)
    assert describe("value", again) == told


@settings(max_examples=300)
@given(st.integers(0, 2**32 - 1))
def test_float32_numbers_come_back_in_every_bit(bits):
    value = np.uint32(bits).view(np.float32)
    back = np.float32(build("x", json.loads(json.dumps(describe("x", value), allow_nan=False))))
    assert back.tobytes() == value.tobytes() or (np.isnan(value) and np.isnan(back))


def test_random_float32_numbers_by_the_million_survive_their_shortest_decimals():
    bits = stream(0, "decimals").integers(2**32, size=200_000, dtype=np.uint32)
    values = bits.view(np.float32)
    values = values[np.isfinite(values)]
    back = np.array([float(str(value)) for value in values]).astype(np.float32)
    assert back.tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (OwnPole(), "of the kind OwnPole"),
        (lambda x: x, "<lambda>"),
        (config.Settings(nature=OwnNature()), r"value\.nature is of the kind OwnNature"),
        (simulators.Constant(np.zeros(3)), r"value\.base is array"),
        (object(), "cannot be described"),
    ],
)
def test_what_is_not_listed_is_not_described(value, told):
    with pytest.raises(Unknown, match=told):
        describe("value", value)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"kind": "os.system"}, "not known here"),
        ({"kind": "eval", "source": "1"}, "not known here"),
        ({"kind": "jnp"}, "not known here"),
        ({"kind": ["Adam"]}, "not known here"),
        ({}, "None"),
        ({"function": "system"}, "not known here"),
        ({"function": "Adam"}, "not known here"),
        ({"kind": "xy"}, "not known here"),
        ({"kind": "Adam", "speed": 1.0}, "speed"),
        ({"kind": "Epsilon", "first": 2.0}, "first is 2.0"),
        ({"kind": "Mapping"}, "items"),
        ({"kind": "Mapping", "items": [1]}, "items"),
        ({"number": "1e999"}, "expected one of inf"),
        ([{"kind": "Adam"}, {"kind": "Eve"}], r"value\[1\]"),
    ],
)
def test_what_is_not_listed_is_not_built(data, told):
    with pytest.raises(ValueError, match=told):
        build("value", data)


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
