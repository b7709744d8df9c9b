"""Callbacks with a trainer that only counts: when they are called, what is recorded, when learning stops."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from urbe.deep.agent import DQNAgent
from urbe.deep.loops.meters import PER_STEP, PER_UPDATE
from urbe.deep.loops.trainer import TrainingRecord
from urbe.deep.training.callbacks import Callback, Decision
from urbe.deep.training.evaluate import Evaluate
from urbe.deep.training.history import LOG, History
from urbe.runs.errors import CheckpointError
from urbe.runs.tree import flatten


class Counter:
    """A trainer that counts its steps."""

    deciders = 1

    def __init__(self):
        self.step = 0

    @property
    def learner(self):
        return SimpleNamespace(updates=self.step, episodes=0)

    def advance(self, steps):
        self.step += steps

    def collect(self, restart=True):  # noqa: ARG002
        none = np.zeros(0)
        means = dict.fromkeys((*PER_STEP, *PER_UPDATE), 0.0)
        return TrainingRecord(means, {"step": none, "return": none, "length": none})


@dataclass(frozen=True)
class Wave:
    """Measures a number that a list gives for each call; stops at its `stop`-th measurement."""

    every: int
    values: tuple[float, ...] = ()
    stop: int = 1000
    name: str = "wave"
    keep: str | None = None
    columns: tuple[str, ...] = ("height", "depth")

    def describe(self, agent):  # noqa: ARG002
        return {"every": self.every}

    def measure(self, agent):
        height = self.values[agent.step // self.every - 1] if self.values else float(agent.step)
        return {"depth": -height, "height": height}

    def verdict(self, rows):
        n = len(rows["height"])
        return Decision(int(rows["height"].argmax()) if n else None, "enough" if n >= self.stop else None)


def agent(log_every=4):
    return DQNAgent("counter", Counter(), 0, log_every)


def same(one, other):
    a, b = flatten(one.state()), flatten(other.state())
    return list(a) == list(b) and all(a[name].tobytes() == b[name].tobytes() for name in a)


def test_it_measures_at_its_multiples_wherever_learning_is_cut():
    assert isinstance(Wave(3), Callback)
    whole, parts = agent().learn(20, callbacks=[Wave(3)]), agent()
    for steps in (1, 2, 0, 9, 8):
        parts.learn(steps, callbacks=[Wave(3)])
    assert whole.history.measured["wave"]["step"].tolist() == [3, 6, 9, 12, 15, 18]
    assert whole.history.measured["wave"]["height"].tolist() == [3, 6, 9, 12, 15, 18]
    assert whole.history.measured["wave"]["depth"].tolist() == [-3, -6, -9, -12, -15, -18]
    assert whole.history.log["step"].tolist() == [4, 8, 12, 16, 20]
    assert same(whole.history, parts.history)


def test_functions_receive_all_rows_in_order():
    seen = []
    agent().learn(9, callbacks=[seen.append, Wave(4), Wave(3, name="other")])
    assert [(row["step"], next(name for name in row if name != "step")) for row in seen] == [
        (3, "other/height"),
        (4, "updates"),
        (4, "wave/height"),
        (6, "other/height"),
        (8, "updates"),
        (8, "wave/height"),
        (9, "other/height"),
    ]
    assert set(seen[1]) == set(LOG)
    assert seen[2] == {"step": 4, "wave/height": 4.0, "wave/depth": -4.0}


def test_a_verdict_stops_it_and_keeps_it_stopped():
    stops = [Wave(3, stop=2)]
    here = agent().learn(20, callbacks=stops)
    assert (here.step, here.stopped) == (6, "enough")
    here.learn(20, callbacks=stops)
    assert (here.step, here.stopped) == (6, "enough")
    here.learn(20, callbacks=[Wave(3, stop=4)])  # another rule goes on, with the rows there are
    assert (here.step, here.stopped) == (12, "enough")
    here.learn(2)
    assert (here.step, here.stopped) == (14, None)


def test_all_that_is_due_at_a_step_is_recorded_before_it_stops():
    here = agent().learn(20, callbacks=[Wave(4, stop=1), Wave(4, name="other")])
    assert here.step == 4
    assert here.history.log["step"].tolist() == [4]
    assert here.history.measured["other"]["step"].tolist() == [4]


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        ([3], r"callbacks\[0\] is of type int, expected a function of one row, or a callback"),
        ([print, Wave(0)], r"callbacks\[1\].every is 0"),
        ([Wave(3), Wave(4)], r"callbacks\[1\].name is 'wave', which is already in use"),
        ([Wave(3, name="log")], r"callbacks\[0\].name is 'log', which is already in use"),
        ([Wave(3, name="a/b")], r"callbacks\[0\].name is 'a/b', expected a letter, then letters"),
        ([Wave(3, keep="checkpoints")], r"callbacks\[0\].keep is 'checkpoints', which is already in use"),
        (
            [Wave(3, keep="best"), Wave(3, name="b", keep="best")],
            r"callbacks\[1\].keep is 'best', which is already in use",
        ),
        ([Evaluate(every=5)], r"Evaluate.env is missing"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_learned(callbacks, message):
    here = agent()
    with pytest.raises(ValueError, match=message):
        here.learn(10, callbacks=callbacks)
    assert here.step == 0


def test_other_columns_under_the_same_name_are_refused():
    here = agent().learn(6, callbacks=[Wave(3)])
    with pytest.raises(ValueError, match="has the columns step, other, but those measured before under this name are"):
        here.learn(6, callbacks=[Wave(3, columns=("other",))])


def test_tables_go_through_files_in_their_order():
    history = agent().learn(9, callbacks=[Wave(3)]).history
    flat = dict(sorted(flatten(history.state()).items()))  # as a file has them: by name
    again = History.of(flat, "here")
    again.begin("wave", ("height", "depth"))
    assert same(history, again)
    assert list(again.files()["wave.csv"]) == ["step", "height", "depth"]
    with pytest.raises(CheckpointError, match="has no column 'step' in history/measured/wave"):
        History.of({name: column for name, column in flat.items() if name != "measured/wave/step"}, "here")
    with pytest.raises(CheckpointError, match="different lengths in history/measured/wave"):
        History.of(flat | {"measured/wave/height": np.zeros(1)}, "here")
    with pytest.raises(CheckpointError, match="has history/measured/x, which is not one of its tables"):
        History.of(flat | {"measured/x": np.zeros(1)}, "here")


# the verdicts of evaluations


def verdict(values, **rules):
    rows = {"step": np.arange(1, len(values) + 1) * 10.0, "mean": np.array(values), "worst": -np.array(values)}
    return Evaluate(every=10, **rules).verdict(rows)


def test_the_first_of_the_best_is_the_best():
    assert verdict([]) == (None, None)
    assert verdict([1.0, 3.0, 2.0, 3.0]).best == 1
    assert verdict([1.0, 3.0, 2.0, 3.0], by="worst").best == 0


def test_a_return_that_is_reached_stops_it():
    assert verdict([1.0, 3.0], stop_at=3.5).stop is None
    expected = "The mean return of evaluation was 4 at step 20, and stop_at is 3.5."
    assert verdict([1.0, 4.0], stop_at=3.5).stop == expected
    assert verdict([1.0, 4.0, 2.0], stop_at=3.5).stop == expected  # once reached, it stays so
    assert verdict([1.0, 3.5], stop_at=3.5).stop is not None
    assert verdict([5.0, 3.0], by="worst", stop_at=-3.0).stop.startswith(
        "The worst return of evaluation was -3 at step"
    )


def test_patience_is_counted_from_the_best():
    assert verdict([3.0, 1.0, 2.0], patience=3).stop is None
    expected = "The mean return of evaluation has not exceeded the 3 of step 10 in 3 evaluations, and patience is 3."
    assert verdict([3.0, 1.0, 2.0, 3.0], patience=3).stop == expected  # as good is not better
    assert verdict([3.0, 1.0, 2.0, 3.5], patience=3).stop is None
    assert verdict([1.0, 2.0], patience=1).stop is None


@pytest.mark.parametrize(
    ("field", "value"),
    [("every", 0), ("episodes", 0), ("seed", -1), ("by", "median"), ("time_limit", 0), ("patience", 0),
     ("stop_at", float("nan"))],
)  # fmt: skip
def test_numbers_are_checked(field, value):
    with pytest.raises(ValueError, match=field):
        Evaluate(**({"every": 10} | {field: value}))
