"""The status of a sweep: counts, remaining time, and the file."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from fixtures import finished_run as run
from urbe.sweep.cells import Job
from urbe.sweep.launcher import Event, Losses
from urbe.sweep.status import SILENCE, StatusTracker, is_alive, read_status, write_status


@dataclass(frozen=True)
class Cell:
    name: str
    cost: float


def job(name, cost=1.0, experiment="f", folder=Path("/nowhere")):
    return Job("module", experiment, "code", Cell(name, cost), f"{experiment}-{name}", folder / experiment / name)


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
        status = follow.status("running")
        assert tuple(status[kind] for kind in ("waiting", "running", "done", "failed")) == counts
        assert sum(counts) == 5
    assert status["lost"] == 1
    assert status["experiments"] == {
        "f": {"waiting": 2, "running": 0, "done": 2, "failed": 0, "kept": 1},
        "g": {"waiting": 0, "running": 0, "done": 0, "failed": 1, "kept": 0},
    }
    assert status["failures"] == [{"experiment": "g", "cell": "e", "text": "ValueError: no"}]
    assert status["left"] == 6.0  # two cells of the mean of 4 and 8 seconds, two at once


def test_a_cell_takes_its_cost_until_others_show_how_costs_compare_to_seconds():
    a, b, c, d = job("a", 10.0), job("b", 10.0), job("c", 30.0), job("d", 10.0, "g")
    follow = board({"f": [a, b, c], "g": [d]})
    assert follow.expected(a) == 10.0
    follow.take(Event("done", d), 40.0)
    assert follow.expected(a) == 40.0  # of another experiment, better than nothing
    follow.take(Event("done", b), 15.0)
    follow.take(Event("done", c), 45.0)
    assert follow.expected(a) == 15.0  # of its own
    assert follow.status("running")["left"] == 15.0


def test_time_left_lies_between_the_two_bounds_of_any_schedule():
    """All work spread evenly is the least; a greedy schedule of the same cells ends later, but by one cell at most."""
    costs = [50.0, 30.0, 20.0, 20.0, 10.0, 5.0]
    for at_once in (1, 2, 3, 6):
        jobs = [job(str(i), cost) for i, cost in enumerate(costs)]
        follow = board({"f": jobs})
        for each in jobs[:at_once]:
            follow.take(Event("begun", each))
        ends = [0.0] * at_once
        for each in costs:
            ends[ends.index(min(ends))] += each
        left = follow.status("running")["left"]
        assert left <= max(ends) <= left + max(costs) + 1.0  # a second may have passed
    assert board({"f": []}).status("running")["left"] == 0.0


def test_a_status_comes_back(tmp_path):
    a = job("a", 100.0)
    follow = board({"f": [a]})
    follow.take(Event("begun", a))
    status = follow.status("running")
    assert [(cell["cell"], cell["expected"]) for cell in status["cells"]] == [("a", 100.0)]
    assert 99.0 < status["left"] <= 100.0
    write_status(tmp_path, status)
    assert read_status(tmp_path) == status
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


@pytest.mark.parametrize("content", ["", "[]", "{", '{"version": 2}', '{"version": 1'])
def test_a_status_of_another_form_is_none(tmp_path, content):
    assert read_status(tmp_path) is None
    (tmp_path / "status.json").write_text(content)
    assert read_status(tmp_path) is None


@pytest.mark.parametrize(
    ("state", "age", "alive"),
    [("running", 0.0, True), ("running", SILENCE + 5.0, False), ("done", 0.0, False), ("stopped", 0.0, False)],
)
def test_whether_somebody_works_there(tmp_path, state, age, alive):
    run.say(tmp_path, state, age)
    assert is_alive(read_status(tmp_path)) is alive
    assert not is_alive(None)


def test_losses_are_counted_by_job():
    losses, a, b = Losses(2), job("a"), job("b")
    kinds = [losses.event(each, "Died.").kind for each in (a, a, b, a, b, b)]
    assert kinds == ["lost", "lost", "lost", "failed", "lost", "failed"]
    assert Losses(0).event(a, "Died.") == Event("failed", a, "Died.")
    assert losses.event(a, "Died.").text == "Died. That was attempt 4, the last."
