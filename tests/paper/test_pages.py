"""Pages from finished cells: of whole and unfinished runs, with their files; nothing is run, nothing drawn twice."""

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


def test_a_finished_run_is_a_page_with_files_and_no_state(output):
    dots = run.experiment()
    run.lay(output, [dots])
    page = write_report(output, [dots])
    assert page == output / "index.html"
    source = page.read_text()
    read = Page(source)
    assert "State of the run" not in source
    assert "http" not in source
    beside = [a["href"] for a in read.all("a") if not a["href"].startswith("#")]
    assert beside == ["rows/dots.csv", "rows/dots.parquet", *(f"figures/dots-lines.{k}" for k in ("png", "svg", "pdf"))]
    assert all((output / path).stat().st_size > 100 for path in beside)
    facts = dict(zip(read.text["dt"], read.text["dd"], strict=True))
    assert facts["Scale"] == "quick"
    assert facts["Time"] == "6 min in cells"
    assert facts["Commit"] == "a" * 12
    assert facts["Machine"] == "abacus, 2 cores, Linux, Python 3.11"
    assert "Computing" in facts
    manifest = json.loads((output / "manifest.json").read_text())
    assert manifest["scale"] == "quick"
    assert manifest["experiments"]["dots"]["cell_seconds"] == 360.0


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
    assert "parquet" not in write_report(output, [dots]).read_text()
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
    assert len(written[0]) == 4 * 2 + 2 + 2 + 3 + 3


def test_files_of_an_earlier_page_are_deleted_and_nobody_elses(output):
    dots, others = run.experiment(), run.experiment("others")
    run.lay(output, [dots, others])
    write_report(output, [dots, others])
    (output / "figures" / "mine.png").touch()
    (output / "mine.csv").touch()
    old = json.loads((output / "manifest.json").read_text())
    old["files"] += ["../results/figures/mine.png", "figures/../../results/mine.csv", "mine.csv", "figures/gone.pdf"]
    (output / "manifest.json").write_text(json.dumps(old))
    write_report(output, [dots])
    assert {path.name for path in (output / "figures").iterdir()} == {
        "dots-lines.png", "dots-lines.svg", "dots-lines.pdf", "mine.png",
    }  # fmt: skip
    assert {path.name for path in (output / "rows").iterdir()} == {"dots.csv", "dots.parquet"}
    assert (output / "mine.csv").exists()


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
    beside = [a["href"] for a in Page(page.read_text()).all("a") if not a["href"].startswith("#")]
    assert beside == ["rows/dots.parquet", "figures/dots-lines.svg"]
    files = {str(path.relative_to(page.parent)) for path in page.parent.rglob("*") if path.is_file()}
    assert files == {*beside, "index.html", "claims.md", "manifest.json"}
    assert set(json.loads((page.parent / "manifest.json").read_text())["files"]) == files
    assert not (output / "index.html").exists()


def test_what_is_missing_is_said_in_its_place(output):
    part, none, whole = run.experiment("part"), run.experiment("none"), run.experiment("whole")
    run.lay(output, [part, none, whole], {("part", 0.5)} | {("none", radius) for radius in run.RADII})
    source = write_report(output, [part, none, whole]).read_text()
    assert "7 of 12 cells done" in source
    assert "Drawn from 3 of 4 cells" in source
    assert "None of the 4 cells of this chapter is finished yet" in source
    assert none.sections.drawn == 0
    assert f"urbe reproduce --scale quick --only part none whole --output {output}" in source
    assert Page(source).text["h2"] == ["Dots"] * 3
    assert json.loads((output / "manifest.json").read_text())["experiments"]["none"]["finished"] == []


def test_too_few_cells_to_draw_are_no_error_but_a_drawing_that_fails_is(output):
    def plot(_):
        raise ValueError("no <ink>.")

    dots = run.experiment(sections=plot)
    jobs = run.lay(output, [dots], {("dots", 1.0)})
    source = write_report(output, [dots]).read_text()
    assert "3 of 4 cells are finished, too few to draw this chapter from (ValueError: no &lt;ink&gt;)." in source
    run.finish(dots, jobs["dots"][2])
    with pytest.raises(ValueError, match="no <ink>"):
        write_report(output, [dots])


def test_cells_of_other_code_are_drawn_and_counted(output, monkeypatch):
    dots = run.experiment()
    run.lay(output, [dots])
    monkeypatch.setattr("urbe.paper.drawn.code_digest", lambda _: "of tomorrow")
    assert "4 of other code than today" in write_report(output, [dots]).read_text()


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
    assert "The run is not under way; it goes on with: urbe reproduce --scale quick --only dots" in stopped


def test_experiments_that_were_not_run_are_left_out(output):
    dots = run.experiment()
    run.lay(output, [dots])
    assert Page(write_report(output, [run.experiment("other"), dots]).read_text()).text["h2"] == ["Dots"]


def test_a_folder_without_a_run_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no sweep was run into"):
        pages.write_report(tmp_path, [run.experiment()])
