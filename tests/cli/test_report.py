"""`urbe report` from the command line; for --watch the test controls the clock."""

import pytest

import urbe.paper
from fixtures import finished_run as run
from urbe.cli import main, report


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
    expected = urbe_report(capsys, output, "--to", tmp_path / "copy", "--formats", "svg", "csv")
    assert expected == (0, f"The report is {tmp_path / 'copy' / 'index.html'}\n", "")
    assert [path.name for path in (tmp_path / "copy" / "figures").iterdir()] == ["dots-lines.svg"]


def test_says_that_parquet_is_left_out(dots, output, capsys, monkeypatch):
    for module in ("urbe.paper.pages", "urbe.cli.reproduce"):
        monkeypatch.setattr(f"{module}.find_spec", lambda _: None)
    run.lay(output, [dots])
    _, out, _ = urbe_report(capsys, output)
    assert out.startswith('Rows are written as CSV only: Parquet needs pyarrow, pip install "urbe[logs]".\n')


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no sweep was run into"),
        (("--only", "stars"), "--only stars is not a chapter, expected one of dots; or module:CHAPTER of your own."),
        (("--formats", "svg", "gif"), "--formats gif is not a format, expected some of png, svg, pdf, csv, parquet."),
        (("--watch", "--to", "elsewhere"), "--watch cannot be combined with --to or --formats"),
        (("--watch", "--every", "0"), "--every is 0, expected a positive number of seconds."),
    ],
)
@pytest.mark.usefixtures("dots")
def test_what_is_wrong_is_named(output, capsys, arguments, message):
    code, out, err = urbe_report(capsys, output, *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_without_matplotlib_it_says_so(dots, output, capsys, monkeypatch):
    run.lay(output, [dots])
    monkeypatch.setattr("urbe.extras.find_spec", lambda _: None)
    code, _, err = urbe_report(capsys, output)
    assert code == 2
    assert 'pip install "urbe[plots]"' in err


def follow(monkeypatch, *scenes):
    """While watching, each pause plays the next scene; too many pauses are an error."""
    left = list(scenes)
    monkeypatch.setattr(report, "sleep", lambda _: left.pop(0)())
    return left


def test_watching_begins_before_the_run_and_ends_with_it(dots, output, capsys, monkeypatch):
    seen = []
    jobs = {}

    def begin():
        jobs.update(run.lay(output, [dots], {("dots", radius) for radius in run.RADII[1:]}))
        run.say(output, running=2, waiting=1, done=1)

    def half():
        seen.append((output / "dots.html").read_text())
        run.finish(dots, jobs["dots"][1])
        run.say(output, running=2, done=2)

    def last():
        seen.append((output / "dots.html").read_text())
        for job in jobs["dots"][2:]:
            run.finish(dots, job)
        run.say(output, "done", done=4)

    left = follow(monkeypatch, begin, half, last, lambda: None)
    code, out, err = urbe_report(capsys, output, "--watch")
    assert code == 0
    assert left == []
    assert out == f"The report is {output / 'index.html'}\n"
    assert err.splitlines()[0] == "urbe report: 1 of 4 cells, 2 min 5 s left, dot-1, dot-1."
    assert err.splitlines()[-1].startswith("urbe report: 4 of 4 cells in ")
    assert ["Drawn from 1 of 4" in seen[0], "Drawn from 2 of 4" in seen[1]] == [True, True]
    assert "rows/dots.csv" in (output / "dots.html").read_text()


def test_watching_a_run_that_fails_says_so(dots, output, capsys, monkeypatch):
    run.lay(output, [dots], {("dots", 1.0)})
    run.say(output, running=1, done=3)
    follow(monkeypatch, lambda: run.say(output, "failed", failures=["dot-1"], done=3))
    code, out, err = urbe_report(capsys, output, "--watch")
    assert (code, out) == (1, "")
    assert "The run ended with 1 cells unfinished" in err
    source = (output / "index.html").read_text()
    assert "dots/dot-1 failed: ValueError: no" in source


def test_a_run_that_stands_still_is_waited_for(dots, output, capsys, monkeypatch):
    jobs = run.lay(output, [dots], {("dots", 1.0)})
    run.say(output, age=1000.0, running=1, done=3)

    def finish():
        run.finish(dots, jobs["dots"][2])
        run.say(output, "done", done=4)

    follow(monkeypatch, lambda: None, finish, lambda: None)
    assert urbe_report(capsys, output, "--watch")[0] == 0
    assert "4 of 4" not in (output / "index.html").read_text()  # nothing is missing
