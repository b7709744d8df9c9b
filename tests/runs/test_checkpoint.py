"""Saved agents continue bit for bit; damaged and foreign files are errors."""

import json
import re
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import urbe
from fixtures.old_files import write_zip_agent
from urbe import AgentFileError, load_agent, save_agent
from urbe.agents import PSRL, RLSVI, UBE, URBE, BayesianQ, PolynomialDecay, QLearning, Robust, Run, Single, Task
from urbe.envs.finite import FiniteEnv
from urbe.posteriors.beliefs import Forgetting, Window
from urbe.runs import checkpoint
from urbe.runs.checkpoint import fingerprint, type_name
from urbe.runs.tensors import save_tensors

SWIM = urbe.library.riverswim(5)
TASK = Task(urbe.Posterior.before(SWIM), 10)
KINDS = [URBE(), URBE(belief=Window(3)), URBE(belief=Forgetting(0.9)), QLearning(), RLSVI(0.2), BayesianQ()]


def new_run(kind, episodes=12, seed=0):
    return Run(kind, FiniteEnv.of(SWIM), TASK, episodes=episodes, seed=seed, replicates=np.array([0, 3]))


def finish(running):
    while not running.done:
        running.episode()
    return running


def known(state):
    """A state without the numbers drawn ahead: how many there are at a time is no part of the contract."""
    if not isinstance(state, dict):
        return state
    return {
        key: known(value)
        for key, value in state.items()
        if not (key == "values" and "generators" in state) and key not in ("at", "generators")
    }


def same(a, b):
    """Whether two states are equal bit for bit, types and shapes included."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_a_run_goes_on_bit_for_bit(kind, tmp_path):
    whole = finish(new_run(kind))
    first = new_run(kind)
    for _ in range(5):
        first.episode()
    save_agent(tmp_path / "run.safetensors", first)
    again = new_run(kind)
    load_agent(tmp_path / "run.safetensors", again)
    assert again.at == 5
    assert same(first.state(), again.state())
    assert same(known(finish(again).state()), known(whole.state()))
    assert not same(known(finish(new_run(kind, seed=1)).state()["agent"]), known(whole.state()["agent"]))


def test_equal_agents_give_equal_files_which_the_library_reads(tmp_path):
    for name in ("a", "b"):
        save_agent(tmp_path / name, finish(new_run(QLearning())))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    found = safetensors.numpy.load_file(tmp_path / "a")
    assert np.array_equal(found["state/agent/q"], finish(new_run(QLearning())).agent.q)


KILLED = """
import sys
import numpy as np
import urbe
from urbe.agents import URBE, Run, Task
from urbe.envs.finite import FiniteEnv

swim = urbe.library.riverswim(5)
task = Task(urbe.Posterior.before(swim), 10)
run = Run(URBE(), FiniteEnv.of(swim), task, episodes=100_000, seed=0, replicates=np.array([0, 3]))
while True:
    run.episode()
    if run.at % 5 == 0:
        urbe.save_agent(sys.argv[1], run)
        print(run.at, flush=True)
"""


def test_a_killed_run_resumes_bit_for_bit(tmp_path):
    script, file = tmp_path / "killed.py", tmp_path / "run.safetensors"
    script.write_text(KILLED)
    process = subprocess.Popen([sys.executable, script, file], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if int(line) >= 20:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    again = new_run(URBE(), episodes=100_000)
    load_agent(file, again)
    assert again.at >= 20
    until = again.at + 100
    whole = new_run(URBE(), episodes=100_000)
    for each in (again, whole):
        while each.at < until:
            each.episode()
    assert same(known(again.state()), known(whole.state()))


def test_not_one_bit_may_change(tmp_path):
    """A bit of every byte of a small file, flipped alone."""
    file, agent = tmp_path / "agent.safetensors", Tiny({"x": np.arange(3), "y": 0.5})
    save_agent(file, agent)
    sound = file.read_bytes()
    for at in range(len(sound)):
        file.write_bytes(sound[:at] + bytes([sound[at] ^ (1 << at % 8)]) + sound[at + 1 :])
        with pytest.raises(AgentFileError, match="Take an earlier copy"):
            load_agent(file, agent)
    for broken in (b"", sound[:-1], sound[1:], sound + b"0", sound[: len(sound) // 2]):
        file.write_bytes(broken)
        with pytest.raises(AgentFileError, match="Take an earlier copy"):
            load_agent(file, agent)
    assert agent.loaded == []


@dataclass
class Tiny:
    """Something with a state of every kind."""

    values: dict = field(
        default_factory=lambda: {
            "number": 3,
            "big": 2**127,
            "x": 0.1,
            "nan": float("nan"),
            "yes": True,
            "none": None,
            "text": "ä",
            "empty": {},
            "deep": {"array": np.arange(3), "words": np.array(["a", "bc"]), "none": np.zeros((0, 2))},
            "scalar": np.float32(2.5),
        }
    )
    parts: dict = field(default_factory=lambda: {"size": 3})
    loaded: list = field(default_factory=list)

    def state(self):
        return self.values

    def load(self, state):
        self.loaded.append(state)


def test_states_of_every_kind_come_back(tmp_path):
    agent = Tiny()
    save_agent(tmp_path / "tiny", agent)
    load_agent(tmp_path / "tiny", agent)
    (back,) = agent.loaded
    assert np.isnan(back.pop("nan"))
    assert back.pop("scalar") == np.float32(2.5)
    expected = {k: v for k, v in agent.values.items() if k not in ("nan", "scalar")}
    assert same(back, expected)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"a": {"b": [1, 2]}}, "state/a/b is list, expected a dict, an array of numbers or text, or a plain value"),
        ({"a": np.array([None])}, "state/a is an array of object, expected"),
        ({"a/b": 1}, "state has the key 'a/b', expected text without '/'"),
        ({3: 1}, "state has the key 3, expected text"),
    ],
)
def test_other_states_are_refused(state, message, tmp_path):
    with pytest.raises(TypeError, match=re.escape(message)):
        save_agent(tmp_path / "tiny", Tiny(values=state))
    assert list(tmp_path.iterdir()) == []


OTHERS = [
    (Single(URBE(0.4), TASK, seed=0), "agent.radius is 0.3 in the file, expected 0.4 as in the given agent"),
    (
        Single(QLearning(), TASK, seed=0),
        "agent is urbe.agents.urbe_family.URBE in the file, expected urbe.agents.q_learning.",
    ),
    (Single(URBE(0.3), TASK, seed=1), "seed is 0 in the file, expected 1"),
    (Single(URBE(0.3), TASK._replace(horizon=11), seed=0), "task.horizon is 10 in the file, expected 11"),
    (
        Single(URBE(0.3), Task(urbe.Posterior.before(SWIM, 2.0), 10), seed=0),
        "task.prior.concentration is float64 (18,) sha256 ",
    ),
    (Single(URBE(0.3, belief=Forgetting(0.9)), TASK, seed=0), "agent.belief is urbe.posteriors.beliefs.Stationary in"),
    (new_run(URBE(0.3)), "what is urbe.agents.single.Single in the file, expected urbe.agents.run.Run"),
]


@pytest.mark.parametrize(("other", "message"), OTHERS, ids=[message[:30] for _, message in OTHERS])
def test_files_of_others_are_refused(other, message, tmp_path):
    agent = Single(URBE(0.3), TASK, seed=0)
    agent.observe(0, 1, 0.0, 1)
    save_agent(tmp_path / "agent.safetensors", agent)
    before = other.state()
    with pytest.raises(AgentFileError, match=re.escape(message)) as failure:
        load_agent(tmp_path / "agent.safetensors", other)
    assert str(failure.value).startswith(str(tmp_path / "agent.safetensors"))
    assert "Start the agent in the same way as the saved one." in str(failure.value)
    assert same(before, other.state())


def test_files_of_another_version_or_of_something_else_are_refused(tmp_path):
    file, agent = tmp_path / "tiny", Tiny()
    for about, message in [
        ({"agent": 2, "parts": {}, "state": {}}, "has the agent version 2, expected 1"),
        ({"step": 3}, "has the agent version 'none', expected 1: it is not an agent, or was saved by a newer urbe"),
    ]:
        save_tensors(file, {}, about)
        with pytest.raises(AgentFileError, match=message):
            load_agent(file, agent)
    assert agent.loaded == []


def test_files_of_an_older_version_are_read(tmp_path):
    state = {"x": np.arange(3), "words": np.array(["a", "bc"])}
    agent = Tiny(values=state)
    parts = fingerprint("what", Tiny) | fingerprint("size", 3)
    write_zip_agent(tmp_path / "agent.npz", parts, state)
    load_agent(tmp_path / "agent.npz", agent)
    assert same(agent.loaded[0], state)
    with pytest.raises(AgentFileError, match="size is 3 in the file, expected 4"):
        load_agent(tmp_path / "agent.npz", Tiny(parts={"size": 4}))
    sound = (tmp_path / "agent.npz").read_bytes()
    for at in range(4, len(sound)):
        (tmp_path / "agent.npz").write_bytes(sound[:at] + bytes([sound[at] ^ (1 << at % 8)]) + sound[at + 1 :])
        with pytest.raises(AgentFileError, match="is damaged, or not a saved agent"):
            load_agent(tmp_path / "agent.npz", agent)


@pytest.mark.parametrize(
    ("kind", "before"),
    [(PSRL(), "psrl.PSRL"), (UBE(), "ube.UBE"), (Robust(), "certain.Robust"), (URBE(0.3), "urbe.URBE")],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_of_kinds_that_were_defined_elsewhere_are_read(kind, before, tmp_path, monkeypatch):
    agent, path = Single(kind, TASK, seed=0), tmp_path / "agent"
    with monkeypatch.context() as patch:
        patch.setattr(type(kind), "__module__", f"urbe.agents.{before.split('.')[0]}")
        save_agent(path, agent)
    assert f"urbe.agents.{before}".encode() in path.read_bytes()
    load_agent(path, Single(kind, TASK, seed=0))


def test_files_with_the_earlier_name_of_decaying_rates_are_read(tmp_path, monkeypatch):
    agent, path = Single(QLearning(), TASK, seed=0), tmp_path / "agent"
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "type_name", lambda kind: type_name(kind).replace("PolynomialDecay", "Decay"))
        save_agent(path, agent)
    assert b"urbe.agents.decay.Decay" in path.read_bytes()
    load_agent(path, Single(QLearning(), TASK, seed=0))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(AgentFileError, match="nothing: is missing"):
        load_agent(tmp_path / "nothing", Tiny())


def test_fingerprints_see_every_difference():
    @dataclass(frozen=True)
    class Kind:
        rate: object = 0.5

    def value(x):
        return fingerprint("kind", Kind(x))

    things = [
        0.5,
        1,
        1.0,
        True,
        None,
        "0.5",
        np.array(0.5),
        np.array([0.5]),
        np.array([0.5], dtype=np.float32),
        [0.5],
        (0.5, 1),
        {"a": 1},
        {"a": 2},
        PolynomialDecay(0.5),
        PolynomialDecay(0.5, power=1.0),
        np.arange(100),
        np.arange(100)[::-1],
        np.nextafter(np.arange(100.0), 200.0),
        np.arange(100.0),
        len,
        max,
        Path,
        partial(max, 1),
        partial(max, 2),
        TASK,
        replace(TASK.prior, concentration=TASK.prior.concentration + 1e-15),
    ]
    expected = [json.dumps(value(thing)) for thing in things]
    assert len(set(expected)) == len(expected)
    assert expected == [json.dumps(value(thing)) for thing in things]
    wide = np.arange(200)[::2]
    assert value(wide) == value(np.ascontiguousarray(wide))


def test_fingerprints_of_plain_objects_are_their_attributes():
    class Thing:
        def __init__(self, x):
            self.x = x

    assert fingerprint("t", Thing(1))["t.x"] == "1"
    assert textwrap.shorten(fingerprint("t", Thing(1))["t"], 200).endswith("Thing")
