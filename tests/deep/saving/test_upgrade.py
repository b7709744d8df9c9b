"""Agents and runs of older versions continue unchanged; those of this version are not modified."""

import copy
import json
from dataclasses import replace

import pytest

from fixtures.old_files import write_folder_checkpoint
from urbe.deep.agent import VERSION
from urbe.deep.compilation import cache_compilation
from urbe.deep.presets import dqn
from urbe.deep.saving.load import load
from urbe.deep.saving.upgrade import upgraded
from urbe.deep.settings import CopyEvery, Network, Settings
from urbe.deep.training.train import train
from urbe.runs.directory import RunDirectory, read_config
from urbe.runs.errors import CheckpointError
from urbe.runs.tensors import save_tensors
from urbe.simulators import CartPole

# what 0.1.0 wrote of dqn(CartPole(), seed=3, log_every=50, **TINY)
TINY = {"network": Network(hidden=(16, 16)), "batch": 16, "capacity": 300, "warm_up": 50}
FIRST = json.loads("""
{"version": 1, "agent": "dqn", "seed": 3, "log_every": 50, "settings": {"kind": "Settings", "nature": {"kind":
"Average"}, "variance": {"kind": "NoVariance"}, "network": {"kind": "Network", "hidden": [16, 16], "scale": [1.0]},
"double": false, "discount": 0.9, "learning_rate": 0.0001, "batch": 16, "capacity": 300, "warm_up": 50, "train_every":
1, "copy": {"kind": "CopyEvery", "episodes": 10, "updates": null}, "epsilon": {"kind": "Epsilon", "first": 1.0, "last":
1e-05, "steps": 20000}, "huber": null, "optimiser": {"kind": "Adam", "first_decay": 0.9, "second_decay": 0.999,
"offset": 1e-08}}, "world": {"kind": "simulator", "simulator": {"kind": "CartPole", "time_limit": 500,
"terminal_reward": 1.0, "usual": {"kind": "CartPoleParams", "half_length": 0.5, "masspole": 0.1, "masscart": 1.0,
"gravity": 9.8, "force": 10.0}}, "schedule": null, "uncertain": null}}
""")


@pytest.fixture(scope="module", autouse=True)
def _compiled_once():
    cache_compilation()


def pole(**changes):
    return dqn(CartPole(), seed=3, log_every=50, **TINY, **changes)


def same(one, other):
    a, b = one.tensors(), other.tensors()
    assert list(a) == list(b)
    return all(a[name].tobytes() == b[name].tobytes() for name in a)


def test_an_old_agent_loads_and_goes_on_without_clipping(tmp_path):
    then = pole(clip_norm=None).learn(80)
    write_folder_checkpoint(tmp_path / "agent", then.tensors(), FIRST)
    again = load(tmp_path / "agent")
    assert again.trainer.settings == replace(Settings(**TINY), clip_norm=None)
    assert again.about() == then.about()
    assert same(again.learn(60), then.learn(60))


def test_an_old_run_goes_on_when_it_is_started_as_it_was(tmp_path):
    with RunDirectory(tmp_path / "run", FIRST) as run:
        then = pole(clip_norm=None)
        then.learn(100)
        for name, rows in then.history.files().items():
            run.log(name, list(rows)).extend(rows)
    lengths = {name: (tmp_path / "run" / name).stat().st_size for name in then.history.files()}
    expected = {"step": 100, "logs": lengths, "about": FIRST}
    write_folder_checkpoint(tmp_path / "run" / "checkpoints" / f"{100:012d}", then.tensors(), expected)
    assert same(load(tmp_path / "run"), then)
    assert same(load(tmp_path / "run" / "checkpoints" / f"{100:012d}"), then)
    again = train(pole(clip_norm=None), tmp_path / "run", 160)
    assert again.step == 160
    assert same(again, then.learn(60))
    assert read_config(tmp_path / "run") == FIRST  # what a run is never changes
    assert same(load(tmp_path / "run"), again)


def test_an_old_run_is_refused_when_it_is_not(tmp_path):
    with RunDirectory(tmp_path / "run", FIRST) as run:
        run.save(0, pole().tensors(), FIRST)
    with pytest.raises(CheckpointError, match=r"settings\.clip_norm is 10\.0 as given, expected None: an older urbe"):
        train(pole(), tmp_path / "run", 100)
    with pytest.raises(CheckpointError, match=r"settings\.discount is 0\.9 in the file, expected 0\.8 as"):
        train(pole(clip_norm=None, discount=0.8), tmp_path / "run", 100)
    with pytest.raises(CheckpointError, match=r"settings\.copy is \{'tau': 0\.5\} as given, expected \{'tau': 1\.0\}"):
        train(pole(clip_norm=None, copy=CopyEvery(episodes=9, tau=0.5)), tmp_path / "run", 100)
    with pytest.raises(CheckpointError, match=r"settings\.copy\.episodes is 10 in the file, expected 9 as"):
        train(pole(clip_norm=None, copy=CopyEvery(episodes=9)), tmp_path / "run", 100)


def test_what_is_of_today_is_left_alone():
    today = pole().about()
    assert today["version"] == VERSION
    assert upgraded(today) == today
    own = {**FIRST, "settings": {"why": "a nature of one's own"}}
    assert upgraded(own) == {**upgraded(FIRST), "settings": own["settings"], "version": VERSION}


def test_what_is_upgraded_is_not_changed_itself():
    before = copy.deepcopy(FIRST)
    assert upgraded(FIRST)["settings"]["copy"]["tau"] == 1.0
    assert before == FIRST


def test_damaged_descriptions_are_refused_and_not_upgraded(tmp_path):
    broken = copy.deepcopy(FIRST)
    broken["settings"]["copy"] = 3
    save_tensors(tmp_path / "agent", pole(clip_norm=None).tensors(), broken)
    with pytest.raises(CheckpointError, match="copy"):
        load(tmp_path / "agent")
