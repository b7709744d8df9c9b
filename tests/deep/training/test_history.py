"""The log and the episodes of an agent: columns, means, splits into calls."""

from types import SimpleNamespace

import numpy as np
import pytest

from urbe.deep.agent import DQNAgent
from urbe.deep.loops.meters import PER_STEP, PER_UPDATE
from urbe.deep.loops.trainer import TrainingRecord
from urbe.deep.training.history import EPISODES, LOG, History
from urbe.runs.errors import CheckpointError


class Clock:
    """A trainer that does nothing but count: every third step ends an episode, whose return is its last step."""

    deciders = 1

    def __init__(self):
        self.step, self.calls, self._since = 0, [], 0

    @property
    def learner(self):
        return SimpleNamespace(updates=self.step // 2, episodes=self.step // 3)

    def advance(self, steps):
        self.calls.append(steps)
        self.step += steps

    def collect(self, restart=True):
        ended = np.arange(self._since + 1, self.step + 1)
        ended = ended[ended % 3 == 0]
        means = {name: float(self.step) for name in (*PER_STEP, *PER_UPDATE)}
        if restart:
            self._since = self.step
        return TrainingRecord(means, {"step": ended, "return": ended.astype(float), "length": np.full(len(ended), 3)})


def agent(log_every=4):
    return DQNAgent("clock", Clock(), 0, log_every)


def test_rows_come_every_so_many_steps_wherever_learning_is_cut():
    whole, parts = agent().learn(12), agent()
    for steps in (1, 2, 0, 6, 3):
        parts.learn(steps)
    assert whole.trainer.calls == [4, 4, 4]
    assert parts.trainer.calls == [1, 2, 1, 4, 1, 3]
    for table in ("log", "episodes"):
        first, second = getattr(whole.history, table), getattr(parts.history, table)
        assert first.keys() == second.keys()
        for name in first:
            np.testing.assert_array_equal(first[name], second[name])


def test_columns_are_what_they_are_called():
    history = agent().learn(12).history
    assert tuple(history.log) == LOG
    assert tuple(history.episodes) == EPISODES
    assert history.log["step"].tolist() == [4, 8, 12]
    assert history.log["updates"].tolist() == [2, 4, 6]
    assert history.log["episodes"].tolist() == [1, 2, 4]
    assert history.log["mean_return"].tolist() == [3.0, 6.0, 10.5]  # of those that ended since the row before
    assert history.log["mean_length"].tolist() == [3.0, 3.0, 3.0]
    assert history.log["td_error"].tolist() == [4.0, 8.0, 12.0]
    assert history.episodes["step"].tolist() == [3, 6, 9, 12]


def test_without_a_finished_episode_the_means_are_nan():
    log = agent(log_every=2).learn(2).history.log
    assert np.isnan(log["mean_return"]).all()
    assert np.isnan(log["mean_length"]).all()


def test_a_plain_function_receives_every_row():
    seen = []
    agent().learn(9, callbacks=[seen.append])
    assert [row["step"] for row in seen] == [4, 8]
    assert set(seen[0]) == set(LOG)


def test_progress_without_a_terminal_is_lines_of_text(capsys):
    assert agent().learn(9, progress=True).step == 9
    first, last = capsys.readouterr().err.splitlines()
    assert first == "clock: 0 of 9 steps."
    assert last == "clock: 9 of 9 steps in 0 s, return 6, TD 8."


@pytest.mark.parametrize("steps", [-1, 1.5, True, None])
def test_steps_are_a_whole_number(steps):
    with pytest.raises(ValueError, match="steps is"):
        agent().learn(steps)
    with pytest.raises(ValueError, match="log_every is 0"):
        agent(log_every=0)


def test_a_history_goes_through_its_state():
    history = agent().learn(12).history
    flat = {f"{table}/{name}": column for table, columns in history.state().items() for name, column in columns.items()}
    again = History.of(flat, "here")
    for table in ("log", "episodes"):
        for name, column in getattr(history, table).items():
            np.testing.assert_array_equal(getattr(again, table)[name], column)
    with pytest.raises(CheckpointError, match=r"has no column 'step' in history/log"):
        History.of({name: column for name, column in flat.items() if name != "log/step"}, "here")
    with pytest.raises(CheckpointError, match="columns of different lengths in history/episodes"):
        History.of(flat | {"episodes/step": np.zeros(1)}, "here")
    with pytest.raises(CheckpointError, match="has no column 'length'"):
        History.of(flat | {"episodes/length": np.zeros((4, 1))}, "here")
