"""`urbe report`, run as a user runs it; while it watches, time is told by the test."""

import io

import pytest
from rich.console import Console

import urbe.paper
from fixtures import finished_run as run
from urbe.cli import main, report, watching


@pytest.fixture
def dots(monkeypatch):
    made = run.experiment()
    monkeypatch.setattr(urbe.paper, "CHAPTERS", (made,))
    return made


@pytest.fixture
def output(tmp_path):
    return tmp_path / "results"


def urbe_report(capsys, *arguments):
    code = main(["report", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_says_where_the_report_is(dots, output, capsys):
    run.lay(output, [dots])
    assert urbe_report(capsys, output) == (0, f"The report is {output / 'index.html'}\n", "")
    assert (output / "figures" / "dots-lines.pdf").exists()


def test_writes_a_light_copy_elsewhere(dots, output, capsys, tmp_path):
    run.lay(output, [dots])
    told = urbe_report(capsys, output, "--to", tmp_path / "copy", "--formats", "svg", "csv")
    assert told == (0, f"The report is {tmp_path / 'copy' / 'index.html'}\n", "")
    assert [path.name for path in (tmp_path / "copy" / "figures").iterdir()] == ["dots-lines.svg"]


def test_says_that_parquet_is_left_out(dots, output, capsys, monkeypatch):
    monkeypatch.setattr("urbe.paper.row_files.find_spec", lambda _: None)
    run.lay(output, [dots])
    _, out, _ = urbe_report(capsys, output)
    assert out.startswith('Rows are written as CSV alone: Parquet needs pyarrow, pip install "urbe[logs]".\n')


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "no sweep was run into"),
        (("--only", "stars"), "--only stars is no chapter, expected one of dots."),
        (("--formats", "svg", "gif"), "--formats gif is no format, expected some of png, svg, pdf, csv, parquet."),
        (("--watch", "--to", "elsewhere"), "--watch goes without --to and --formats"),
        (("--watch", "--every", "0"), "--every is 0, expected a positive number of seconds."),
    ],
)
@pytest.mark.usefixtures("dots")
def test_what_is_wrong_is_named(output, capsys, arguments, told):
    code, out, err = urbe_report(capsys, output, *arguments)
    assert (code, out) == (2, "")
    assert told in err


def test_without_matplotlib_it_says_so(dots, output, capsys, monkeypatch):
    run.lay(output, [dots])
    monkeypatch.setattr(report, "find_spec", lambda _: None)
    code, _, err = urbe_report(capsys, output)
    assert code == 2
    assert 'pip install "urbe[plots]"' in err


def follow(monkeypatch, *scenes):
    """While watching, each pause plays the next scene; too many pauses are an error."""
    left = list(scenes)
    monkeypatch.setattr(report, "sleep", lambda _: left.pop(0)())
    clock = iter(range(0, 10_000, 20))
    monkeypatch.setattr(report, "monotonic", lambda: float(next(clock)))
    return left


def test_watching_begins_before_the_run_and_ends_with_it(dots, output, capsys, monkeypatch):
    seen = []
    jobs = {}

    def begin():
        jobs.update(run.lay(output, [dots], {("dots", radius) for radius in run.RADII[1:]}))
        run.say(output, running=2, waiting=1, done=1)

    def half():
        seen.append((output / "index.html").read_text())
        run.finish(dots, jobs["dots"][1])
        run.say(output, running=2, done=2)

    def last():
        seen.append((output / "index.html").read_text())
        for job in jobs["dots"][2:]:
            run.finish(dots, job)
        run.say(output, "done", done=4)

    left = follow(monkeypatch, begin, half, last, lambda: None)
    code, out, err = urbe_report(capsys, output, "--watch")
    assert code == 0
    assert left == []
    assert out == f"The report is {output / 'index.html'}\n"
    assert err.splitlines() == [
        "waiting for a run to begin",
        "1 of 4 cells done, 2 running, about 2 min left",
        "2 of 4 cells done, 2 running, about 2 min left",
        "4 of 4 cells done",
    ]
    assert ["Drawn from 1 of 4" in seen[0], "Drawn from 2 of 4" in seen[1]] == [True, True]
    assert all('http-equiv="refresh" content="10"' in page for page in seen)
    final = (output / "index.html").read_text()
    assert "refresh" not in final.split("<style>")[0]
    assert "rows/dots.csv" in final


def test_watching_a_run_that_fails_says_so(dots, output, capsys, monkeypatch):
    run.lay(output, [dots], {("dots", 1.0)})
    run.say(output, running=1, done=3)
    follow(monkeypatch, lambda: run.say(output, "failed", failures=["dot-1"], done=3))
    code, out, err = urbe_report(capsys, output, "--watch")
    assert (code, out) == (1, "")
    assert "3 of 4 cells done, 1 failed; the run is not under way" in err
    assert "The run ended with 1 cells unfinished" in err
    source = (output / "index.html").read_text()
    assert "dots/dot-1 failed: ValueError: no" in source
    assert "refresh" not in source.split("<style>")[0]


def test_a_run_that_stands_still_is_waited_for(dots, output, capsys, monkeypatch):
    jobs = run.lay(output, [dots], {("dots", 1.0)})
    run.say(output, age=1000.0, running=1, done=3)
    follow(monkeypatch, lambda: None, lambda: run.finish(dots, jobs["dots"][2]), lambda: None)
    code, _, err = urbe_report(capsys, output, "--watch")
    assert code == 0
    assert err.splitlines()[0] == "3 of 4 cells done; the run is not under way"


def test_pages_are_not_written_more_often_than_asked(dots, output, capsys, monkeypatch):
    jobs = run.lay(output, [dots], {("dots", 1.0)})
    run.say(output, running=1, done=3)
    follow(monkeypatch, *[lambda: None] * 5, lambda: run.finish(dots, jobs["dots"][2]), *[lambda: None] * 20)
    clock = iter(range(1000))
    monkeypatch.setattr(report, "monotonic", lambda: float(next(clock)))
    pages = []
    real = urbe.paper.pages.write_page
    monkeypatch.setattr(urbe.paper.pages, "write_page", lambda *a, **k: pages.append(1) or real(*a, **k))
    assert urbe_report(capsys, output, "--watch", "--every", "6")[0] == 0
    assert len(pages) == 2  # at seconds 0 and 7, in seven looks


def test_a_terminal_shows_experiments_cells_and_failures(tmp_path):
    run.say(tmp_path, failures=["dot-0"], running=1, done=2)
    status = urbe.paper.pages.read_status(tmp_path)
    file = io.StringIO()
    Console(width=200, file=file).print(watching.layout("told", status, True, tmp_path / "index.html", (2, 4)))
    text = file.getvalue()
    assert text.startswith("told")
    assert "experiment" in text
    assert "dots/dot-1  25%" in text
    assert "dots/dot-0 failed: ValueError: no" in text
    assert "shows 2 of 4 cells" in text
