"""Progress: lines without a terminal, a bar with one, nothing by default."""

import io
import sys

import pytest

from urbe.progress import EVERY, Lines, StageLines, duration, of_gap, progress, stages


class Clock:
    """Seconds that pass when they are asked to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    """What a bar is drawn on."""

    def isatty(self):
        return True


def test_a_line_at_the_start_every_so_often_and_at_the_end(capsys):
    clock = Clock()
    lines = Lines("dqn", 10_000, 1_000, "steps", clock)
    for done, seconds in ((2_000, 20), (3_000, 20), (3_500, 20), (4_000, 20), (10_000, 20)):
        clock.now += seconds
        lines(done, f"return {done}")
    lines.end()
    assert capsys.readouterr().err.splitlines() == [
        "dqn: 1000 of 10000 steps.",
        "dqn: 3000 of 10000 steps, 50 steps/s, 2 min 20 s left, return 3000.",
        "dqn: 4000 of 10000 steps, 37.5 steps/s, 2 min 40 s left, return 4000.",
        "dqn: 10000 of 10000 steps in 1 min 40 s, return 10000.",
    ]
    assert EVERY == 30.0


def test_what_is_done_already_needs_no_line(capsys):
    lines = Lines("dqn", 100, 100, "steps", Clock())
    lines(100)
    lines.end()
    assert capsys.readouterr().err == ""


def test_a_total_that_is_known_later_is_reported_with_the_first_call(capsys):
    clock = Clock()
    lines = Lines("urbe reproduce", None, unit="cells", clock=clock)
    lines(12, "a 25%", total=40)  # kept from before: no measure of pace
    clock.now += 60
    lines(13, "b", total=40)
    clock.now += 60
    lines(14, "c", total=40, left=7200.0)
    assert capsys.readouterr().err.splitlines() == [
        "urbe reproduce: 12 of 40 cells, a 25%.",
        "urbe reproduce: 13 of 40 cells, 27 min left, b.",
        "urbe reproduce: 14 of 40 cells, 2 h left, c.",
    ]


def test_without_a_terminal_lines_are_written(capsys):
    with progress("work", 3, unit="parts") as show:
        show(3)
    assert capsys.readouterr().err.splitlines() == ["work: 0 of 3 parts.", "work: 3 of 3 parts in 0 s."]


def test_an_error_has_no_last_line(capsys):
    def fail():
        with progress("work", 3, unit="parts") as show:
            show(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert capsys.readouterr().err == "work: 0 of 3 parts.\n"


def test_on_a_terminal_there_is_a_bar(monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("work", 3, start=1) as show:
        show(2, "return 7", left=75.0)
    drawn = terminal.getvalue()
    assert "work" in drawn
    assert "2/3" in drawn
    assert "return 7  1 min 15 s left" in drawn
    assert capsys.readouterr().out == ""


def test_nobody_asked(capsys):
    with progress("work", 3, shown=False) as show:
        show(2, "note", total=4, left=1.0)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-1.0, "0 s"),
        (0.4, "0 s"),
        (59.6, "1 min"),
        (60, "1 min"),
        (3599, "59 min 59 s"),
        (3600, "1 h"),
        (1e5, "1 d 3 h"),
    ],
)
def test_times_in_words(seconds, expected):
    assert duration(seconds) == expected


def test_stages_write_a_line_every_so_often_and_none_for_short_tasks(capsys):
    clock = Clock()
    report = StageLines("planning", clock)
    for stage, done, total, note, seconds in (
        ("posterior draws", 100, 400, "", 29),
        ("posterior draws", 200, 400, "", 2),
        ("solving", 10, 100, "sweep 3, gap 0.1", 29),
        ("candidate policies", 7, None, "", 2),
    ):
        clock.now += seconds
        report(stage, done, total, note)
    assert capsys.readouterr().err.splitlines() == [
        "planning: posterior draws, 200 of 400.",
        "planning: candidate policies, 7.",
    ]


def test_stages_on_a_terminal_are_a_bar_for_each(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with stages("planning") as report:
        report("posterior draws", 3, 4)
        report("solving", 50, 100, "sweep 3")
    assert "planning: solving" in terminal.getvalue()


def test_a_solve_is_reported_in_percent_of_the_logarithm_of_its_gap():
    seen = []
    tell = of_gap(lambda *now: seen.append(now), 1e-4)
    for step, gap in enumerate((1.0, 1e-2, 1e-4)):
        tell(step, gap)
    assert [now[:3] for now in seen] == [("solving", done, 100) for done in (0, 50, 100)]
    assert seen[1][3] == "sweep 1, gap 0.01"
