"""What those who watch are told: counts, time left, and the file itself."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from urbe.sweep import progress
from urbe.sweep.cells import Job
from urbe.sweep.forecast import Pace, seconds_left
from urbe.sweep.launcher import Event, Losses
from urbe.sweep.status import StatusTracker, read_status


@dataclass(frozen=True)
class Cell:
    name: str
    cost: float | None = None


def job(name, cost=None, experiment="f", folder=Path("/nowhere")):
    return Job("module", experiment, "code", Cell(name, cost), f"{experiment}-{name}", folder / experiment / name)


def test_a_cell_takes_its_cost_until_others_tell_how_costs_compare_to_seconds():
    pace = Pace()
    assert pace.expected(job("a", 10.0)) == 10.0
    assert pace.expected(job("b")) is None
    pace.saw(job("c", 10.0, "g"), 40.0)
    assert pace.expected(job("a", 10.0)) == 40.0  # of another experiment, better than nothing
    pace.saw(job("d", 10.0), 15.0)
    pace.saw(job("e", 30.0), 45.0)
    assert pace.expected(job("a", 10.0)) == 15.0  # of its own
    assert pace.expected(job("a", 100.0)) == 150.0


def test_a_cell_without_cost_takes_the_mean_of_its_experiment():
    pace = Pace()
    pace.saw(job("a", None, "g"), 9.0)
    assert pace.expected(job("b")) == 9.0
    pace.saw(job("c"), 1.0)
    pace.saw(job("d"), 3.0)
    assert pace.expected(job("b")) == 2.0


def test_time_left_lies_between_the_two_bounds_of_any_schedule():
    """All work spread evenly is the least; a greedy schedule of the same cells ends later, but by one cell at most."""
    waiting = [50.0, 30.0, 20.0, 20.0, 10.0, 5.0]
    for at_once in (1, 2, 3, 7):
        ends = [0.0] * at_once
        for each in waiting:
            ends[ends.index(min(ends))] += each
        told = seconds_left(waiting, [], at_once)
        assert told <= max(ends) <= told + max(waiting)
    assert seconds_left(waiting, [], 1) == sum(waiting)
    assert seconds_left([], [], 2) == 0.0
    assert seconds_left([1.0, None], [], 2) is None


def board(jobs, kept=()):
    return StatusTracker(jobs, dict.fromkeys(kept, 4.0), "somewhere")


def test_counts_follow_events_and_always_add_up():
    a, b, c, d = (job(name) for name in "abcd")
    e = job("e", experiment="g")
    follow = board({"f": [a, b, c, d], "g": [e]}, kept=[d.identity])
    story = [
        (Event("tick"), (4, 0, 1, 0)),
        (Event("begun", a), (3, 1, 1, 0)),
        (Event("begun", e), (2, 2, 1, 0)),
        (Event("lost", a, "died"), (3, 1, 1, 0)),
        (Event("begun", a), (2, 2, 1, 0)),
        (Event("done", a), (2, 1, 2, 0)),
        (Event("failed", e, "Traceback\nValueError: no\n"), (2, 0, 2, 1)),
    ]
    for event, counts in story:
        follow.take(event, 8.0)
        told = follow.status("running")
        assert tuple(told[kind] for kind in ("waiting", "running", "done", "failed")) == counts
        assert sum(counts) == 5
    assert told["lost"] == 1
    assert told["experiments"] == {
        "f": {"waiting": 2, "running": 0, "done": 2, "failed": 0, "kept": 1},
        "g": {"waiting": 0, "running": 0, "done": 0, "failed": 1, "kept": 0},
    }
    assert told["failures"] == [{"experiment": "g", "cell": "e", "text": "ValueError: no"}]
    assert told["left"] == 6.0  # two cells of the mean of 4 and 8 seconds, two at once


def test_running_cells_tell_how_far_they_are(tmp_path):
    a, b = job("a", 100.0, folder=tmp_path), job("b", 100.0, folder=tmp_path)
    for each, seconds in ((a, 20.0), (b, 30.0)):
        each.work.mkdir(parents=True)
        progress.write(each.folder / "running.json", {"identity": each.identity, "seconds": seconds})
    progress.tell(b.work, 3, 4)
    follow = board({"f": [a, b]})
    follow.take(Event("begun", a))
    follow.take(Event("begun", b))
    told = follow.status("running")
    assert [(cell["seconds"], cell["expected"], cell["fraction"]) for cell in told["cells"]] == [
        (20.0, 100.0, None), (30.0, 100.0, 0.75),
    ]  # fmt: skip
    assert told["left"] == 80.0  # the first still takes 80, the second 10
    progress.write(tmp_path / "status.json", told)
    assert read_status(tmp_path) == told
    assert json.loads((tmp_path / "status.json").read_text())["version"] == 1


@pytest.mark.parametrize("content", ["", "[]", "{", '{"version": 2}', '{"version": 1'])
def test_a_status_of_another_form_is_none(tmp_path, content):
    assert read_status(tmp_path) is None
    (tmp_path / "status.json").write_text(content)
    assert read_status(tmp_path) is None


@pytest.mark.parametrize(
    ("content", "fraction"),
    [('{"done": 1, "total": 4}', 0.25), ('{"done": 5, "total": 4}', 1.0), ('{"done": 1, "total": 0}', None),
     ('{"done": 1}', None), ('{"done": "x", "total": 4}', None), ("[]", None), ('{"done": -1, "total": 4}', 0.0)],
)  # fmt: skip
def test_fractions_lie_between_0_and_1_or_are_unknown(tmp_path, content, fraction):
    (tmp_path / progress.FILE).write_text(content)
    assert progress.fraction(tmp_path) == fraction


def test_losses_are_counted_by_job():
    losses, a, b = Losses(2), job("a"), job("b")
    kinds = [losses.event(each, "Died.").kind for each in (a, a, b, a, b, b)]
    assert kinds == ["lost", "lost", "lost", "failed", "lost", "failed"]
    assert Losses(0).event(a, "Died.") == Event("failed", a, "Died.")
    assert losses.event(a, "Died.").text == "Died. That was attempt 4, the last."
