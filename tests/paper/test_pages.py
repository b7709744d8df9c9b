"""Pages from finished cells of complete and unfinished runs, with their files; nothing is run or drawn twice."""

import csv
import json

import pytest

from fixtures import finished_run as run
from fixtures.html_page import Page
from urbe.paper import pages
from urbe.paper.pages import write_report


@pytest.fixture
def output(tmp_path):
    return tmp_path / "results"


def beside(source):
    """Links to other files."""
    return [a["href"] for a in Page(source).all("a") if not a["href"].startswith("#")]


def facts_of(source):
    read = Page(source)
    return dict(zip(read.text["dt"], read.text["dd"], strict=True))


def test_a_finished_run_is_a_front_page_and_a_chapter_with_files_and_no_state(output):
    dots = run.experiment()
    run.lay(output, [dots])
    page = write_report(output, [dots])
    assert page == output / "index.html"
    source, chapter = page.read_text(), (output / "dots.html").read_text()
    for text in (source, chapter):
        assert "State of the run" not in text
        assert "http" not in text
    assert beside(source) == ["dots.html"]
    figures = [f"figures/dots-lines.{kind}" for kind in ("png", "svg", "pdf")]
    assert beside(chapter) == ["index.html", *figures, "rows/dots.csv", "rows/dots.parquet"]
    assert all((output / path).stat().st_size > 100 for path in (*beside(source), *beside(chapter)))
    facts = facts_of(source)
    assert facts["Scale"] == "quick"
    assert facts["Time"] == "6 min in cells"
    assert facts["Commit"] == "a" * 12
    assert facts["Machine"] == "abacus, 2 cores, Linux, Python 3.11"
    assert facts["Command"] == "urbe reproduce --scale quick --only dots"
    assert "Computing time" in facts_of(chapter)
    manifest = json.loads((output / "manifest.json").read_text())
    assert manifest["scale"] == "quick"
    assert manifest["experiments"]["dots"]["cell_seconds"] == 360.0


def test_nothing_makes_kept_cells_look_stale(output, monkeypatch):
    dots = run.experiment()
    run.lay(output, [dots])
    fresh = write_report(output, [dots]).read_text(), (output / "dots.html").read_text()
    monkeypatch.setattr("urbe.paper.drawn.code_digest", lambda _: "of tomorrow")
    assert (write_report(output, [dots]).read_text(), (output / "dots.html").read_text()) == fresh
    assert len(json.loads((output / "manifest.json").read_text())["experiments"]["dots"]["of_other_code"]) == 4


def test_csv_and_parquet_hold_the_same_rows(output):
    parquet = pytest.importorskip("pyarrow.parquet")
    dots = run.experiment()
    run.lay(output, [dots])
    write_report(output, [dots])
    table = parquet.read_table(output / "rows" / "dots.parquet")
    assert [str(field.type) for field in table.schema] == ["double", "string", "string", "int64", "double"]
    with (output / "rows" / "dots.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [{k: str(v) for k, v in row.items()} for row in table.to_pylist()] == written
    assert len(written) == 12


def test_without_pyarrow_there_is_no_parquet_and_no_link_to_it(output, monkeypatch):
    monkeypatch.setattr(pages, "find_spec", lambda _: None)
    dots = run.experiment()
    run.lay(output, [dots])
    write_report(output, [dots])
    assert "parquet" not in (output / "dots.html").read_text()
    assert [path.name for path in (output / "rows").iterdir()] == ["dots.csv"]


def test_written_again_all_files_have_the_same_bytes(output):
    dots = run.experiment()
    run.lay(output, [dots])
    run.say(output, "done", done=4)
    written = []
    for _ in range(2):
        write_report(output, [dots])
        written.append({path: path.read_bytes() for path in output.rglob("*") if path.is_file()})
    assert written[0] == written[1]
    assert len(written[0]) == 4 * 2 + 2 + 2 + 3 + 4


def test_files_of_an_earlier_page_are_deleted_and_nobody_elses(output):
    dots, others = run.experiment(), run.experiment("others")
    run.lay(output, [dots, others])
    write_report(output, [dots, others])
    (output / "figures" / "mine.png").touch()
    (output / "mine.csv").touch()
    (output / "mine.html").touch()
    old = json.loads((output / "manifest.json").read_text())
    old["files"] += [
        "../results/figures/mine.png",
        "figures/../../results/mine.csv",
        "mine.csv",
        "mine.html",
        "figures/gone.pdf",
    ]
    (output / "manifest.json").write_text(json.dumps(old))
    write_report(output, [dots])
    assert {path.name for path in (output / "figures").iterdir()} == {
        "dots-lines.png", "dots-lines.svg", "dots-lines.pdf", "mine.png",
    }  # fmt: skip
    assert {path.name for path in (output / "rows").iterdir()} == {"dots.csv", "dots.parquet"}
    assert (output / "mine.csv").exists()
    assert {path.name for path in output.glob("*.html")} == {"index.html", "dots.html", "mine.html"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": 3}', '{"files": [3]}', "\0"])
def test_a_manifest_of_somebody_else_is_replaced(output, text):
    dots = run.experiment()
    run.lay(output, [dots])
    (output / "manifest.json").write_text(text)
    write_report(output, [dots])
    assert json.loads((output / "manifest.json").read_text())["command"] == "urbe reproduce --scale quick --only dots"


def test_a_light_copy_leads_to_its_own_files_alone(output, tmp_path):
    dots = run.experiment()
    run.lay(output, [dots])
    page = write_report(output, [dots], tmp_path / "kept" / "here", ("svg", "parquet"))
    assert page == tmp_path / "kept" / "here" / "index.html"
    found = beside(page.with_name("dots.html").read_text())
    assert found == ["index.html", "figures/dots-lines.svg", "rows/dots.parquet"]
    files = {str(path.relative_to(page.parent)) for path in page.parent.rglob("*") if path.is_file()}
    assert files == {*found, "dots.html", "claims.md", "manifest.json"}
    assert set(json.loads((page.parent / "manifest.json").read_text())["files"]) == files
    assert not (output / "index.html").exists()


def test_what_is_missing_is_said_in_its_place(output):
    part, none, whole = run.experiment("part"), run.experiment("none"), run.experiment("whole")
    run.lay(output, [part, none, whole], {("part", 0.5)} | {("none", radius) for radius in run.RADII})
    source = write_report(output, [part, none, whole]).read_text()
    assert "7 of 12 cells done" in source
    assert "Drawn from 3 of 4 cells" in (output / "part.html").read_text()
    assert "None of the 4 cells of this chapter is finished yet" in (output / "none.html").read_text()
    assert none.sections.drawn == 0
    assert f"urbe reproduce --scale quick --only part none whole --output {output}" in source
    assert beside(source) == ["part.html", "none.html", "whole.html"]
    assert json.loads((output / "manifest.json").read_text())["experiments"]["none"]["finished"] == []


def test_too_few_cells_to_draw_are_no_error_but_a_drawing_that_fails_is(output):
    def plot(_):
        raise ValueError("no <ink>.")

    dots = run.experiment(sections=plot)
    jobs = run.lay(output, [dots], {("dots", 1.0)})
    write_report(output, [dots])
    source = (output / "dots.html").read_text()
    assert "3 of 4 cells are finished, too few to draw this chapter (ValueError: no &lt;ink&gt;)." in source
    run.finish(dots, jobs["dots"][2])
    with pytest.raises(ValueError, match="no <ink>"):
        write_report(output, [dots])


def test_the_head_of_an_unfinished_run_has_counts_time_and_failures(output):
    dots = run.experiment()
    run.lay(output, [dots], {("dots", 1.0), ("dots", 1.5)})
    run.say(output, failures=[f"dot-{i}" for i in range(7)], running=2)
    running = write_report(output, [dots]).read_text()
    assert "2 of 4 cells done, 2 running, 7 failed, about 2 min left" in running
    assert "dots/dot-4 failed: ValueError: no" in running
    assert "dots/dot-5 failed" not in running
    assert "2 more failed." in running
    assert "not under way" not in running
    run.say(output, "stopped", running=2)
    stopped = write_report(output, [dots]).read_text()
    assert "<strong>2 of 4 cells done</strong>" in stopped
    assert "The run is not under way. Continue it with: urbe reproduce --scale quick --only dots" in stopped


def test_experiments_that_were_not_run_are_left_out(output):
    dots = run.experiment()
    run.lay(output, [dots])
    assert beside(write_report(output, [run.experiment("other"), dots]).read_text()) == ["dots.html"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_copy_is_drawn_again_from_its_rows(output, tmp_path, kind):
    dots, others = run.experiment(), run.experiment("others")
    run.lay(output, [dots, others])
    kept, again = tmp_path / "kept", tmp_path / "again"
    write_report(output, [dots, others], kept, ("svg", kind))
    write_report(kept, [dots, others], again, ("svg", kind))
    files = {path.relative_to(kept) for path in kept.rglob("*") if path.is_file()}
    assert files == {path.relative_to(again) for path in again.rglob("*") if path.is_file()}
    assert [str(path) for path in files if (kept / path).read_bytes() != (again / path).read_bytes()] == [
        "manifest.json"
    ]
    manifest = json.loads((again / "manifest.json").read_text())
    assert set(manifest.pop("drawn_by")) == {"commit", "versions", "machine"}
    assert manifest == json.loads((kept / "manifest.json").read_text())
    write_report(kept, [dots, others], formats=("svg", kind))  # in place
    assert (kept / "index.html").read_bytes() == (again / "index.html").read_bytes()


def test_a_copy_of_other_columns_or_without_rows_is_refused(output, tmp_path):
    dots, kept = run.experiment(), tmp_path / "kept"
    run.lay(output, [dots])
    write_report(output, [dots], kept, ("csv",))
    (kept / "rows" / "dots.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"dots\.csv has the columns a, b, expected radius"):
        write_report(kept, [dots])
    (kept / "rows" / "dots.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"dots\.parquet and .*dots\.csv are missing"):
        write_report(kept, [dots])
    (kept / "manifest.json").write_text("{}")
    with pytest.raises(ValueError, match="is not the manifest of a report"):
        write_report(kept, [dots])


def test_a_folder_without_a_run_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no sweep was run into"):
        pages.write_report(tmp_path, [run.experiment()])
