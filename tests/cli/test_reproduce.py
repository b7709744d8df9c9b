"""`urbe reproduce` from the command line."""

import sys

import pytest

import urbe.paper
from fixtures import dots
from urbe.cli import main, reproduce


@pytest.fixture
def figures(tmp_path, monkeypatch):
    """Two experiments instead of the real ones; the second fails while log/deeds exists."""
    log = tmp_path / "log"
    log.mkdir()
    chosen = []
    for name, deed in (("quiet", ""), ("loud", "raise")):
        cells = (dots.Dot(1.0, str(log)), dots.Dot(2.0, str(log), deed))
        chosen.append(dots.chapter(cells, name))
    monkeypatch.setattr(urbe.paper, "CHAPTERS", chosen)
    return log


def run(capsys, *arguments):
    code = main(["reproduce", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_says_where_the_report_is(figures, tmp_path, capsys):
    output = tmp_path / "results"
    code, out, err = run(capsys, "--output", output, "--processes", 1)
    assert code == 0
    assert out == f"The report is {output / 'index.html'}\n"
    lines = err.splitlines()  # no terminal here: a line at the start, now and then, and at the end
    assert lines[0].startswith("urbe reproduce: 0 of 4 cells")
    assert lines[-1].startswith("urbe reproduce: 4 of 4 cells in ")
    assert {path.name for path in (output / "rows").iterdir()} == {
        f"{n}.{kind}" for n in ("quiet", "loud") for kind in ("csv", "parquet")
    }
    assert len(list(figures.glob("*.ran"))) == 4


def test_a_chapter_of_the_user_is_run_and_drawn_by_its_name(figures, tmp_path, capsys, monkeypatch):
    own = "from fixtures import dots\nCHAPTER = dots.chapter((dots.Dot(1.0, {!r}),), 'mine')\n"
    (tmp_path / "own_chapter.py").write_text(own.format(str(figures)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    code, out, _ = run(capsys, "--output", "results", "--only", "own_chapter:CHAPTER", "--processes", 1)
    assert (code, out) == (0, f"The report is {tmp_path / 'results' / 'index.html'}\n")
    assert "This report tests the claims" not in (tmp_path / "results" / "index.html").read_text()
    page = tmp_path / "results" / "mine.html"
    before = page.read_bytes()
    page.unlink()
    assert main(["report", "results", "--only", "own_chapter:CHAPTER"]) == 0
    assert page.read_bytes() == before
    assert len(list(figures.glob("*.ran"))) == 1


@pytest.mark.usefixtures("figures")
def test_says_that_parquet_is_left_out(tmp_path, capsys, monkeypatch):
    for module in ("urbe.paper.pages", "urbe.cli.reproduce"):
        monkeypatch.setattr(f"{module}.find_spec", lambda _: None)
    _, out, _ = run(capsys, "--output", tmp_path / "results", "--only", "quiet", "--processes", 1)
    assert out.startswith("Rows are written as CSV only")


def test_only_runs_what_is_named(figures, tmp_path, capsys):
    output = tmp_path / "results"
    (figures / "deeds").touch()
    code, _, _ = run(capsys, "--output", output, "--only", "quiet")
    assert code == 0
    assert {path.name for path in (output / "rows").iterdir()} == {"quiet.csv", "quiet.parquet"}


def test_a_failed_cell_is_named_and_the_exit_code_says_so(figures, tmp_path, capsys):
    (figures / "deeds").touch()
    output = tmp_path / "results"
    code, out, err = run(capsys, "--output", output, "--processes", 1)
    assert code == 1
    assert out == ""
    assert "loud/dot-2: ValueError: dot-2 does not feel like it" in err
    assert not (output / "index.html").exists()
    assert len(list((output / "cells").rglob("rows.safetensors"))) == 3


def test_list_runs_nothing(figures, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, "--list")
    assert code == 0
    assert out == "quiet      2 cells  Dots\nloud       2 cells  Dots\n"
    assert list(figures.glob("*.ran")) == []
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "unheard"), "--only unheard is not a chapter, expected one of quiet, loud"),
        (("--processes", 0), "processes is 0"),
        (("--address", "head-node:6379"), "--address head-node:6379 names a Ray cluster. Add --launcher ray"),
    ],
)
@pytest.mark.usefixtures("figures")
def test_bad_requests_exit_2_with_one_sentence(tmp_path, capsys, arguments, message):
    code, out, err = run(capsys, "--output", tmp_path / "results", *arguments)
    assert code == 2
    assert out == ""
    assert err.splitlines()[-1].startswith("urbe: ")
    assert message in err
    assert not (tmp_path / "results").exists()


@pytest.mark.usefixtures("figures")
def test_ray_that_is_not_installed_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("urbe.extras.find_spec", lambda package: None if package == "ray" else package)
    code, _, err = run(capsys, "--output", tmp_path / "results", "--launcher", "ray")
    assert code == 2
    assert 'pip install "urbe[ray]"' in err
    assert not (tmp_path / "results").exists()


def test_the_bar_counts_cells_and_names_those_that_run():
    shown = []

    def show(done, note, **numbers):
        shown.append((done, note, numbers))

    counts = {"done": 4, "failed": 1, "waiting": 2, "running": 3, "left": 12.5}
    reproduce.show_status(show, {**counts, "state": "running", "cells": [{"cell": name} for name in "abc"]})
    reproduce.show_status(show, {**counts, "running": 0, "waiting": 0, "left": 0.0, "state": "done", "cells": []})
    assert shown == [
        (5, "a, b and 1 more", {"total": 10, "left": 12.5}),
        (5, "drawing", {"total": 5, "left": None}),
    ]


def test_help_teaches(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    options = ("--only", "--scale", "--list", "--processes", "--output", "--launcher", "--address")
    for word in (*options, "index.html", "resumes when", "examples:"):
        assert word in out
