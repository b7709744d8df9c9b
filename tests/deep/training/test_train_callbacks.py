"""Runs that evaluate, keep their best agent and stop early leave the same bytes after any interruption."""

import errno

import gymnasium
import numpy as np
import pytest

from oracles.event_files import shown
from urbe.deep.compilation import cache_compilation
from urbe.deep.presets import dqn
from urbe.deep.saving.load import load
from urbe.deep.settings import Network
from urbe.deep.training import best as best_module
from urbe.deep.training.evaluate import Evaluate
from urbe.deep.training.train import train
from urbe.evaluation.robustness import evaluate
from urbe.runs import tensors as tensors_module
from urbe.runs.directory import RunDirectory, read_finished, saved_steps
from urbe.runs.errors import CheckpointError, LogDamaged
from urbe.runs.row_log import read_rows
from urbe.simulators import CartPole

TINY = {"network": Network(hidden=(16, 16)), "batch": 16, "capacity": 300, "warm_up": 50}
STEPS, EVERY, POLES = 300, 40, {"half_length": (0.25, 1.0)}
LOGS = ("log.csv", "episodes.csv", "evaluation.csv")


class Interrupted(BaseException):
    """Nobody catches it."""


def poles(**rules):
    return Evaluate(every=EVERY, over=POLES, episodes=3, seed=1, time_limit=60, **({"by": "worst"} | rules))


@pytest.fixture(scope="module")
def agent():
    """One compiled agent for all tests: `train` makes it what the folder says."""
    cache_compilation()
    return dqn(CartPole(), seed=5, log_every=50, **TINY)


@pytest.fixture(scope="module")
def start(agent):
    return agent.tensors()


@pytest.fixture
def fresh(agent, start):
    """The agent as it was before its first step."""
    agent.load_tensors(start, "start")
    return agent


@pytest.fixture(scope="module")
def folder(agent, start, tmp_path_factory):
    """The folder of the run that was never interrupted."""
    path = tmp_path_factory.mktemp("whole") / "run"
    agent.load_tensors(start, "start")
    train(agent, path, STEPS, callbacks=[poles()], checkpoint_every=70)
    return path


@pytest.fixture(scope="module")
def whole(folder):
    return left(folder)


def tensors(path):
    return {name: array.tobytes() for name, array in tensors_module.load_tensors(path)[0].items()}


def last_of(path):
    return path / "checkpoints" / f"{STEPS:012d}.safetensors"


def left(path):
    """Everything that must not depend on interruptions, the names of all files included."""
    files = {name: (path / name).read_bytes() for name in (*LOGS, "finished.json", "config.json")}
    names = sorted(str(each.relative_to(path)) for each in path.rglob("*"))
    return files | {"names": names, "best": tensors(path / "best.safetensors"), "last": tensors(last_of(path))}


def test_what_is_measured_is_what_evaluate_finds(folder, fresh):
    rows = read_rows(folder / "evaluation.csv")
    assert rows["step"].tolist() == list(range(EVERY, STEPS + 1, EVERY))
    assert (rows["worst"] < rows["mean"]).any()
    assert len(set(rows["worst"].tolist())) > 1
    for at in (2, 5):
        fresh.learn(int(rows["step"][at]) - fresh.step)
        found = evaluate(fresh, POLES, episodes=3, seed=1, time_limit=60).greedy.returns.mean(axis=1)
        assert (rows["mean"][at], rows["worst"][at]) == (found.mean(), found.min())


def test_training_is_the_same_bits_without_it(whole, fresh):
    assert {name: array.tobytes() for name, array in fresh.learn(STEPS).trainer_tensors().items()} == whole["last"]
    assert not any(name.startswith("history/") for name in whole["last"])  # in the logs, and nowhere else


def test_the_best_agent_is_kept_and_goes_on(folder, whole):
    rows = read_rows(folder / "evaluation.csv")
    best = load(folder / "best.safetensors")
    assert best.step == rows["step"][rows["worst"].argmax()]
    assert best.step < STEPS
    found = evaluate(best, POLES, episodes=3, seed=1, time_limit=60).greedy.returns.mean(axis=1)
    assert found.min() == rows["worst"].max()
    best.learn(STEPS - best.step, callbacks=[poles()])
    assert {name: array.tobytes() for name, array in best.trainer_tensors().items()} == whole["last"]
    for name, rows in best.history.files().items():
        found = read_rows(folder / name)
        assert all(np.array_equal(found[column], values, equal_nan=True) for column, values in rows.items())


@pytest.mark.parametrize("calls", [1, 2, 4])
@pytest.mark.parametrize("where", ["measuring", "measured", "keeping", "half kept", "kept", "saved"])
def test_interrupted_anywhere_it_ends_as_if_nothing_had_been(whole, fresh, tmp_path, monkeypatch, where, calls):
    count = iter(range(1, 1000))

    def interrupting(function, *, late, only=lambda *_: True):
        def call(*arguments, **named):
            stop = only(*arguments) and next(count) == calls
            if stop and not late:
                raise Interrupted
            found = function(*arguments, **named)
            if stop:
                raise Interrupted
            return found

        return call

    def is_best(path, *_):
        return "best" in str(path)

    places = {
        "measuring": (Evaluate, "measure", False),
        "measured": (Evaluate, "measure", True),
        "keeping": (best_module, "save_tensors", False),
        "kept": (best_module, "save_tensors", True),
        "saved": (RunDirectory, "save", True),
    }
    with monkeypatch.context() as patch:
        if where == "half kept":
            real = tensors_module.replace_files
            patch.setattr(tensors_module, "replace_files", interrupting(real, late=False, only=is_best))
        else:
            owner, name, late = places[where]
            patch.setattr(owner, name, interrupting(getattr(owner, name), late=late))
        try:
            train(fresh, tmp_path / "run", STEPS, callbacks=[poles()], checkpoint_every=70)
        except Interrupted:
            assert not (tmp_path / "run" / "finished.json").exists()
        else:
            assert calls > len(set(np.maximum.accumulate(fresh.history.measured["evaluation"]["worst"]).tolist()))
    if where == "half kept":
        (tmp_path / "run" / ".best.safetensors.0123456789abcdef.tmp").write_bytes(b"what a kill leaves")
    fresh.learn(17)  # whatever the agent knows when it comes back
    train(fresh, tmp_path / "run", STEPS, callbacks=[poles()], checkpoint_every=70)
    assert left(tmp_path / "run") == whole


def test_no_room_for_the_best_agent_leaves_the_one_before(whole, fresh, tmp_path, monkeypatch):
    def full(path, *_):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(best_module, "save_tensors", full)
        with pytest.raises(OSError, match="No space left"):
            train(fresh, tmp_path / "run", STEPS, callbacks=[poles()], checkpoint_every=70)
    assert saved_steps(tmp_path / "run") == [0, EVERY]
    train(fresh, tmp_path / "run", STEPS, callbacks=[poles()], checkpoint_every=70)
    assert left(tmp_path / "run") == whole


# stopping


def test_a_run_that_was_stopped_stays_so_until_the_rule_allows_more(whole, fresh, start, tmp_path):
    first = float(read_rows_of(whole)["worst"][0])
    rules = {"stop_at": first}
    assert train(fresh, tmp_path / "run", STEPS, callbacks=[poles(**rules)], checkpoint_every=70).step == EVERY
    expected = f"The worst return of evaluation was {first:.6g} at step {EVERY}, and stop_at is {first:g}."
    assert fresh.stopped == expected
    assert read_finished(tmp_path / "run") == {"step": EVERY, "stopped": expected}
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*.json")}
    fresh.load_tensors(start, "start")
    assert train(fresh, tmp_path / "run", STEPS, callbacks=[poles(**rules)]).step == EVERY
    assert fresh.stopped == expected
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*.json")}
    train(fresh, tmp_path / "run", STEPS, callbacks=[poles()], checkpoint_every=70)
    assert fresh.stopped is None
    assert left(tmp_path / "run") == whole


def test_patience_ends_a_run(whole, fresh, tmp_path):
    values = read_rows_of(whole)["worst"]
    expected = next(i for i in range(len(values)) if i - values[: i + 1].argmax() >= 2)
    train(fresh, tmp_path / "run", STEPS, callbacks=[poles(patience=2)])
    assert fresh.step == EVERY * (expected + 1)
    assert "in 2 evaluations, and patience is 2." in read_finished(tmp_path / "run")["stopped"]


def read_rows_of(whole):
    names, *lines = whole["evaluation.csv"].decode().splitlines()
    rows = np.array([[float(number) for number in line.split(",")] for line in lines])
    return dict(zip(names.split(","), rows.T, strict=True))


# what is refused


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        ([], r"callbacks\.evaluation\.every is 40 in the file, expected nothing there"),
        ([poles(by="mean")], r'callbacks\.evaluation\.by is "worst" in the file, expected "mean"'),
        ([Evaluate(every=EVERY, by="worst")], r"callbacks\.evaluation\.points\[0\]\.half_length is 0\.25"),
    ],
)
def test_other_measurements_than_the_runs_are_refused(fresh, folder, callbacks, message):
    with pytest.raises(CheckpointError, match=message):
        train(fresh, folder, STEPS, callbacks=callbacks)


def test_another_agent_in_the_place_of_the_best_is_refused(fresh, tmp_path):
    train(fresh, tmp_path / "run", EVERY + 5, callbacks=[poles()])
    tensors_module.save_tensors(
        tmp_path / "run" / "best.safetensors", fresh.tensors(), {**fresh.saved_about(), "step": 3}
    )
    with pytest.raises(
        CheckpointError, match=r"best\.safetensors: holds the agent of step 3, expected that of step 40, the best"
    ):
        train(fresh, tmp_path / "run", EVERY + 6, callbacks=[poles()])


def test_an_agent_that_was_evaluated_elsewhere_can_begin_a_run(fresh, tmp_path):
    train(fresh.learn(90, callbacks=[poles()]), tmp_path / "run", 100, callbacks=[poles()])
    train(fresh, tmp_path / "run", 110, callbacks=[poles()])
    assert read_rows(tmp_path / "run" / "evaluation.csv")["step"].tolist() == [40, 80]


# damaged logs


def test_damaged_logs_are_refused_when_a_run_goes_on(fresh, whole, tmp_path):
    train(fresh, tmp_path / "run", 250, callbacks=[poles()], checkpoint_every=70)
    rng = np.random.default_rng(0)
    for name in LOGS:
        file = tmp_path / "run" / name
        data = file.read_bytes()
        for at in rng.choice(len(data), 5, replace=False).tolist():
            damaged = bytearray(data)
            damaged[at] ^= 1 << int(rng.integers(8))
            file.write_bytes(damaged)
            with pytest.raises(CheckpointError, match=f"{name}: is damaged"):
                train(fresh, tmp_path / "run", 250, callbacks=[poles()], checkpoint_every=70)
            assert file.read_bytes() == damaged
        file.write_bytes(data + b"1,2")  # what a kill leaves is no damage
    train(fresh, tmp_path / "run", STEPS, callbacks=[poles()], checkpoint_every=70)
    assert left(tmp_path / "run") == whole


def test_the_last_rows_of_a_log_are_written_again(fresh, whole, tmp_path):
    """They follow the checkpoint's part of the log, so damage there is repaired."""
    train(fresh, tmp_path / "run", 230, callbacks=[poles()], checkpoint_every=70)
    file = tmp_path / "run" / "log.csv"
    data = file.read_bytes()
    file.write_bytes(data[:-9])
    train(fresh, tmp_path / "run", 230, callbacks=[poles()], checkpoint_every=70)
    assert file.read_bytes() == data
    train(fresh, tmp_path / "run", STEPS, callbacks=[poles()], checkpoint_every=70)
    assert left(tmp_path / "run") == whole


def test_loading_a_run_says_which_log_is_damaged_and_touches_nothing(fresh, tmp_path):
    train(fresh, tmp_path / "run", 60, callbacks=[poles()])
    (one,) = (tmp_path / "run" / "checkpoints").glob("*60.safetensors")
    for path in (tmp_path / "run", one):
        assert load(path).history.log["step"].tolist() == [50]
    file = tmp_path / "run" / "log.csv"
    damaged = file.read_bytes().replace(b"50,", b"51,", 1)
    file.write_bytes(damaged)
    for path in (tmp_path / "run", one):
        with pytest.warns(
            LogDamaged, match=r"log\.csv: is damaged.*The agent is complete, but its history is left out"
        ):
            again = load(path)
        assert (again.step, len(again.history.log["step"])) == (60, 0)
    assert file.read_bytes() == damaged


# TensorBoard and Gymnasium


def test_events_are_on_the_disk_before_the_checkpoint_that_knows_of_them(fresh, tmp_path, monkeypatch):
    """A best agent is saved between two checkpoints: a run resumed there writes none of the earlier events again."""
    kept = RunDirectory.save

    def save(run, step, *rest):
        curves = shown(run.path / "tensorboard") if step else {}
        for tag, table in (
            ("train/loss", fresh.history.log),
            ("evaluation/worst", fresh.history.measured["evaluation"]),
        ):
            # every row but NaN, which TensorBoard does not show
            column = table[tag.partition("/")[2]]
            expected = [int(at) for at, value in zip(table["step"], column, strict=True) if not np.isnan(value)]
            assert [at for at, _ in curves.get(tag, [])] == expected, step
        return kept(run, step, *rest)

    monkeypatch.setattr(RunDirectory, "save", save)
    train(fresh, tmp_path / "run", STEPS, callbacks=[poles()], checkpoint_every=STEPS, tensorboard=True)
    assert len(saved_steps(tmp_path / "run")) >= 1


def test_tensorboard_shows_every_evaluation_once(fresh, tmp_path, monkeypatch):
    """Killed after evaluations that a checkpoint knows while the row of the log after them is still to come."""
    save = RunDirectory.save

    def stopped(run, step, *what):
        if step == 150:
            raise Interrupted
        save(run, step, *what)

    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "save", stopped)
        with pytest.raises(Interrupted):
            train(fresh, tmp_path / "run", STEPS, callbacks=[poles()], checkpoint_every=30, tensorboard=True)
    assert saved_steps(tmp_path / "run")[-1] == 120
    train(fresh, tmp_path / "run", STEPS, callbacks=[poles()], checkpoint_every=30, tensorboard=True)
    curves, rows = shown(tmp_path / "run" / "tensorboard"), read_rows(tmp_path / "run" / "evaluation.csv")
    for column in ("mean", "worst"):
        expected = list(zip(rows["step"], rows[column].astype(np.float32), strict=True))
        assert curves[f"evaluation/{column}"] == expected


def test_an_agent_on_gymnasium_is_evaluated_on_another_environment():
    def new():
        return dqn(gymnasium.make("CartPole-v1"), seed=2, log_every=50, **TINY)

    def made():
        return gymnasium.make("CartPole-v1", max_episode_steps=60)

    agent, plain = new(), new().learn(100)
    agent.learn(100, callbacks=[Evaluate(every=33, env=made, episodes=2, name="test")])
    rows = agent.history.measured["test"]
    assert rows["step"].tolist() == [33, 66, 99]
    assert (rows["mean"] == rows["worst"]).all()
    assert ((rows["mean"] >= 8) & (rows["mean"] <= 60)).all()
    mine, theirs = agent.tensors(), plain.tensors()
    assert all(mine[name].tobytes() == theirs[name].tobytes() for name in theirs)
    with pytest.raises(ValueError, match=r"Evaluate\.env is missing: the agent does not learn in a simulator"):
        agent.learn(1, callbacks=[Evaluate(every=10)])
    env = gymnasium.make("CartPole-v1")
    shared = dqn(gymnasium.wrappers.TimeLimit(env.unwrapped, 50), seed=0, **TINY)
    with pytest.raises(ValueError, match=r"which the agent learns in; expected another one"):
        shared.learn(1, callbacks=[Evaluate(every=10, env=env)])
