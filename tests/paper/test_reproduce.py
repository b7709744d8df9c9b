"""From cells to a page: processes, resuming, repair, failures, atomic results, and the page itself."""

import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from fixtures import dots
from fixtures.html_page import Page
from urbe.paper import CHAPTERS, CellsFailed, price_of_robustness, reproduce
from urbe.paper.chapter import everywhere
from urbe.paper.models import MODELS
from urbe.paper.price_of_robustness import CELLS, CHAPTER, N_RADII, PriceCell, Row
from urbe.paper.price_of_robustness.run import run
from urbe.paper.reproduce import reproduce as reproduce_function
from urbe.sweep import provenance
from urbe.sweep.local import LocalProcesses

RADII = (0.0, 0.5, 1.0, 1.5)


class Dots(SimpleNamespace):
    """The experiment of `fixtures.dots` with cells that log into a folder."""

    def __init__(self, log, deeds=None, radii=RADII, **changes):
        cells = tuple(dots.Dot(radius, str(log), (deeds or {}).get(radius, "")) for radius in radii)
        super().__init__(**{**vars(dots.chapter(cells)), **changes})
        self.log = log
        log.mkdir(exist_ok=True)
        (log / "deeds").touch()

    def ran(self):
        """Names of the cells in the order of their runs; forgets them."""
        found = sorted(self.log.glob("*.ran"), key=lambda path: int(path.name.split(".")[-2]))
        for path in found:
            path.unlink()
        return [path.name[: -len(".ran")].rsplit(".", 2)[0] for path in found]

    def behave(self):
        (self.log / "deeds").unlink()


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


@pytest.fixture
def output(tmp_path):
    return tmp_path / "results"


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def kept(output):
    """Names of the cells with rows, and of those with a folder of work."""
    folders = (output / "cells" / "dots").glob("*-*")
    found = [(path.name.rpartition("-")[0], {inner.name.split("-")[0] for inner in path.iterdir()}) for path in folders]
    return (
        {name for name, inner in found if "rows.safetensors" in inner},
        {name for name, inner in found if "work" in inner},
    )


def dot(output, radius):
    """Rows of a cell."""
    (path,) = (output / "cells" / "dots").glob(f"dot-{radius:g}-*/rows.safetensors")
    return path


def test_writes_page_rows_manifest_and_cells(tmp_path, log):
    page = reproduce(tmp_path / "new" / "folder", chapters=(Dots(log),))
    assert page == tmp_path / "new" / "folder" / "index.html"
    found = {name for name in files(page.parent) if not name.startswith("cells/")}
    rows = {"rows/dots.csv", "rows/dots.parquet"}
    assert found == rows | {
        "index.html",
        "dots.html",
        "claims.md",
        "manifest.json",
        "status.json",
        "sweep.json",
        "sweep.lock",
    }
    assert kept(page.parent) == ({"dot-0", "dot-0.5", "dot-1", "dot-1.5"}, set())
    directory = dot(page.parent, 0.5).parent
    assert {path.name for path in directory.iterdir()} == {"rows.safetensors", "record.json", "lock"}


def test_finished_cells_are_not_run_again_and_damaged_or_missing_ones_alone_are(output, log):
    experiment = Dots(log)
    reproduce(output, chapters=(experiment,), launcher=LocalProcesses(1))
    assert experiment.ran() == ["dot-0", "dot-0.5", "dot-1", "dot-1.5"]
    before = files(output)

    reproduce(output, chapters=(experiment,))
    assert experiment.ran() == []
    after = files(output)
    assert after["rows/dots.csv"] == before["rows/dots.csv"]
    assert json.loads(after["manifest.json"])["experiments"]["dots"]["reused"] == 4

    dot(output, 1.0).write_bytes(b"PK")
    dot(output, 0.0).unlink()
    reproduce(output, chapters=(experiment,), launcher=LocalProcesses(1))
    assert experiment.ran() == ["dot-0", "dot-1"]
    assert files(output)["rows/dots.csv"] == before["rows/dots.csv"]


def test_rows_do_not_depend_on_the_number_of_processes_and_each_has_one_thread(tmp_path, log, monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    for processes in (1, 3):
        reproduce(tmp_path / str(processes), chapters=(Dots(log),), launcher=LocalProcesses(processes))
    first, second = ((tmp_path / name / "rows" / "dots.csv").read_bytes() for name in "13")
    assert first == second
    with (tmp_path / "1" / "rows" / "dots.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["count"] for row in rows] == ["0", "1", "2"] * 4
    assert {row["threads"] for row in rows} == {"1"}
    assert os.environ["OPENBLAS_NUM_THREADS"] == "7"
    assert [float(row["value"]) for row in rows] == [r * 1e-9 / 3.0 + i for r in RADII for i in range(3)]


def test_cells_that_raise_or_crash_are_named_and_cost_no_other(output, log):
    experiment = Dots(log, {0.0: "raise", 0.5: "kill", 1.5: "exit"}, radii=(*RADII, 2.0))
    with pytest.raises(CellsFailed) as failed:
        reproduce(output, chapters=(experiment,), launcher=LocalProcesses(2, retries=1))
    assert kept(output) == ({"dot-1", "dot-2"}, {"dot-0", "dot-0.5", "dot-1.5"})
    assert not (output / "index.html").exists()
    assert Counter(experiment.ran()) == {"dot-0": 1, "dot-0.5": 2, "dot-1": 1, "dot-1.5": 2, "dot-2": 1}
    text = str(failed.value)
    assert "3 of 5 cells failed" in text
    assert "dots/dot-0: ValueError: dot-0 does not feel like it" in text
    assert "dots/dot-0.5: Its process was killed by signal 9 (SIGKILL)" in text
    assert "memory. That was attempt 2, the last." in text
    assert "dots/dot-1.5: Its process ended with code 7" in text
    assert "Traceback" in text
    assert [failure.job.cell.name for failure in failed.value.failures] == ["dot-0", "dot-0.5", "dot-1.5"]

    status = json.loads((output / "status.json").read_text())
    assert [status[key] for key in ("state", "done", "failed", "lost")] == ["failed", 2, 3, 2]
    assert status["failures"][0]["text"] == "ValueError: dot-0 does not feel like it"

    experiment.behave()
    reproduce(output, chapters=(experiment,), launcher=LocalProcesses(1))
    assert experiment.ran() == ["dot-0", "dot-0.5", "dot-1.5"]


def test_code_that_changes_under_way_is_noticed(output, log, monkeypatch):
    monkeypatch.setitem(reproduce_function.__globals__, "code_digest", lambda _: "of yesterday")
    with pytest.raises(CellsFailed, match="The code changed during the run"):
        reproduce(output, chapters=(Dots(log, radii=(0.0,)),))
    assert kept(output)[0] == set()


INTERRUPTED = """\
import sys
from pathlib import Path
from types import SimpleNamespace
from fixtures import dots
from urbe.paper import reproduce
from urbe.sweep.local import LocalProcesses
from urbe.paper.chapter import everywhere

if __name__ == "__main__":
    cells = tuple(dots.Dot(r, sys.argv[1], "wait" if r == 1.0 else "listen") for r in (0.0, 0.5, 1.0))
    try:
        experiment = dots.chapter(cells)
        reproduce(Path(sys.argv[2]), chapters=(experiment,), launcher=LocalProcesses(2))
    except KeyboardInterrupt:
        sys.exit(130)
"""


def _until(condition):
    """Whether it came true within ten minutes: on any machine, if ever."""
    end = time.monotonic() + 600.0
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _is_gone(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def _is_gone_process(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.skipif(os.name != "posix", reason="sends the signal of Ctrl-C to a process group")
def test_ctrl_c_stops_every_process_and_keeps_what_finished(tmp_path, output, log):
    Dots(log)
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, str(script), str(log), str(output)],
        env={**os.environ, "PYTHONPATH": paths}, start_new_session=True, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    _until(lambda: kept(output) == ({"dot-0", "dot-0.5"}, {"dot-1"}) and list(log.glob("dot-1.*.ran")))
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=600.0)
    assert process.returncode == 130
    assert err == ""
    assert _until(lambda: _is_gone(process.pid))
    assert kept(output) == ({"dot-0", "dot-0.5"}, {"dot-1"})
    assert json.loads((output / "status.json").read_text())["state"] == "stopped"


def test_an_interrupt_leaves_no_process_and_no_half_file_behind(output, log):
    def interrupt(status):
        if status["done"] and status["state"] == "running":
            _until(lambda: list(log.glob(".half*")))
            raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        reproduce(
            output, interrupt, chapters=(Dots(log, {0.5: "write"}, radii=(0.0, 0.5)),), launcher=LocalProcesses(2)
        )
    pids = {path.name.rsplit(".", 3)[1] for path in log.glob("*.ran")}
    assert pids
    assert all(_is_gone_process(int(pid)) for pid in pids)
    assert time.monotonic() - begun < 1800.0  # the cell would have written for an hour
    assert kept(output)[0] == {"dot-0"}
    assert list(log.glob("*half*")) == []


def test_a_failed_drawing_leaves_the_old_results(output, log):
    reproduce(output, chapters=(Dots(log),))
    before = files(output)

    def plot(_):
        raise RuntimeError("no ink")

    with pytest.raises(RuntimeError, match="no ink"):
        reproduce(output, chapters=(Dots(log, sections=plot),))
    assert {**files(output), "status.json": before["status.json"]} == before


def test_callbacks_see_the_beginning_and_the_end(output, log):
    expected = []
    experiment = Dots(log, radii=RADII[:2])
    for _ in range(2):
        reproduce(output, expected.append, chapters=(experiment,), launcher=LocalProcesses(1))
        assert json.loads((output / "status.json").read_text()) == expected[-1]
    ends = [(s["state"], s["waiting"], s["done"], s["experiments"]["dots"]["kept"], s["left"]) for s in expected]
    assert ends[0] == ("running", 2, 0, 0, 2.0)  # a second each: they do not say what they cost
    assert ends[-2:] == [("running", 0, 2, 2, 0.0), ("done", 0, 2, 2, 0.0)]
    assert ("done", 0, 2, 0, 0.0) in ends


def test_without_matplotlib_it_says_so_before_running(output, log, monkeypatch):
    monkeypatch.setattr("urbe.extras.find_spec", lambda _: None)
    experiment = Dots(log)
    with pytest.raises(ModuleNotFoundError, match=r"urbe\[plots\]"):
        reproduce(output, chapters=(experiment,))
    assert experiment.ran() == []
    assert not output.exists()


def test_output_that_is_a_file_is_named(tmp_path, log):
    taken = tmp_path / "taken"
    taken.write_text("")
    with pytest.raises(OSError, match="taken"):
        reproduce(taken, chapters=(Dots(log),))


@pytest.mark.parametrize("processes", [0, -1, 1.5])
def test_a_senseless_number_of_processes_is_refused(processes):
    with pytest.raises(ValueError, match="processes"):
        LocalProcesses(processes)


def test_an_unknown_scale_is_named(output, log):
    with pytest.raises(ValueError, match="scale is 'huge', expected one of quick, medium, paper"):
        reproduce(output, chapters=(Dots(log),), scale="huge")
    assert not output.exists()


@pytest.fixture(scope="module")
def coarse(tmp_path_factory):
    """The real experiment on the first, middle and last radius, and the dots."""
    folder = tmp_path_factory.mktemp("coarse")
    cells = tuple(cell for i, cell in enumerate(CELLS["quick"]) if i % N_RADII % 10 == 0)
    experiment = replace(CHAPTER, cells=everywhere(cells))
    return reproduce(folder, chapters=(experiment, Dots(folder / "log")), launcher=LocalProcesses(1))


PAGES = ("index.html", "price_of_robustness.html", "dots.html")


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_well_formed_and_refer_to_nothing_outside(coarse, name):
    source = (coarse.parent / name).read_text()
    page = Page(source)
    ids = page.ids()
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]*)\)", source)) <= set(ids)
    references = [v for _, attributes in page.tags for k, v in attributes.items() if k in ("href", "src", "xlink:href")]
    inside = {reference for reference in references if reference.startswith("#")}
    assert {reference[1:] for reference in inside} <= set(ids)
    beside = {reference.partition("#")[0] for reference in set(references) - inside}
    assert all((coarse.parent / reference).is_file() for reference in beside)
    assert "http" not in source
    if name == "index.html":
        assert {"price_of_robustness.html", "dots.html"} <= beside
    else:
        assert {f"rows/{Path(name).stem}.{suffix}" for suffix in ("csv", "parquet")} <= beside
        assert sum(reference.endswith(".pdf") for reference in beside) == len(page.all("figure"))


def test_every_experiment_has_a_page_with_its_facts(coarse):
    front, price, last = (Page((coarse.parent / name).read_text()) for name in PAGES)
    assert front.text["h2"][-2:] == ["Chapters", "How this was computed"]
    titles = [demo.title for demo in MODELS.values()]
    assert price.text["h2"] == ["Summary", *titles, "How this was computed"]
    assert last.text["h2"] == ["Radii", "How this was computed"]
    assert "Machine" in front.text["dl"][-1]
    (of_price,), (of_last,) = price.text["dl"], last.text["dl"]
    for facts in (of_price, of_last):
        assert "Cells" in facts
        assert "Computing" in facts
        assert "unknown" not in facts or provenance.commit() is None
    assert "Largest certified gap" in of_price
    assert "Replicates" in of_last
    assert "4, with 12 rows" in of_last


def test_a_chapter_shows_every_model_with_captions_and_numbers(coarse):
    page = Page((coarse.parent / "price_of_robustness.html").read_text())
    n_models = len(MODELS)
    assert len(page.all("figure")) == len(page.all("figcaption")) == 2 * n_models
    assert len(page.all("svg")) >= 2 * n_models
    assert all("certified" in caption or "policy" in caption for caption in page.text["figcaption"])
    assert len(page.all("table")) == 1 + 4 * n_models


def test_rows_and_manifest_tell_what_was_done(coarse):
    with (coarse.parent / "rows" / "price_of_robustness.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["model", "set", "radius", "policy", "metric", "value"]
    manifest = json.loads((coarse.parent / "manifest.json").read_text())
    record = manifest["experiments"]["price_of_robustness"]
    assert {(c["model"], c["set"], c["radius"]) for c in record["config"]} == {
        (row["model"], row["set"], float(row["radius"])) for row in rows
    }
    assert record["cells"] == len(record["config"])
    assert record["rows"] == len(rows)
    assert record["reused"] == 0
    assert 0.0 < record["cell_seconds"] < manifest["wall_seconds"]
    assert manifest["experiments"]["dots"]["rows"] == 12
    assert set(manifest["versions"]) >= {"urbe", "numpy", "scipy", "numba"}
    assert manifest["machine"]["python"]


def test_floats_of_the_csv_are_those_of_the_run(coarse):
    with (coarse.parent / "rows" / "price_of_robustness.csv").open(newline="") as file:
        rows = [Row(*(kind(text) for kind, text in zip((str, str, float, str, str, float), row, strict=True)))
                for row in list(csv.reader(file))[1:]]  # fmt: skip
    first = run(CELLS["quick"][0], Path())
    assert rows[: len(first)] == first
    assert not any(math.isnan(row.value) for row in rows)


def test_a_large_model_whose_policy_never_changes_is_drawn_whole(tmp_path):
    cells = tuple(PriceCell("garnet", "L1", radius) for radius in (0.0, 1e-3, 2e-3))
    experiment = replace(CHAPTER, cells=everywhere(cells))
    front = reproduce(tmp_path, chapters=(experiment,), launcher=LocalProcesses(1))
    page = Page((front.parent / "price_of_robustness.html").read_text())
    values, policies = page.text["figcaption"]
    assert "the nominal policy is robust at every radius shown" in values
    assert "never changes" in policies
    assert "not drawn" not in policies
    assert sum(text.strip().startswith("state ") for text in page.text["text"]) == 20


def test_the_list_of_figures():
    assert price_of_robustness.CHAPTER in CHAPTERS
    assert len({chapter.name for chapter in CHAPTERS}) == len(CHAPTERS)


def test_the_commit_is_a_hash_or_unknown(monkeypatch):
    found = provenance.commit()
    assert found is None or re.fullmatch(r"[0-9a-f]{40}( \+ changes)?", found)
    monkeypatch.setenv("PATH", "")
    assert provenance.commit() is None
