"""The whole way from cells to a page: resume, repair, atomic results, and the page itself."""

import csv
import json
import re
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from oracles.html_page import Page
from urbe.experiments import FIGURES, Row, price_of_robustness, provenance, reproduce
from urbe.experiments.reproduce import reproduce as reproduce_function
from urbe.report.page import Section, Table


@dataclass(frozen=True)
class Dot:
    radius: float

    @property
    def name(self):
        return f"dot-{self.radius:g}"


@dataclass
class Counting:
    """An experiment of a few numbers that remembers what it ran; `fail_at` breaks one cell, `fail_plot` the drawing."""

    CELLS: tuple = tuple(Dot(0.5 * i) for i in range(4))
    NAME: str = "dots"
    ran: list = field(default_factory=list)
    fail_at: str | None = None
    fail_plot: bool = False

    def run(self, cell):
        if cell.name == self.fail_at:
            raise KeyboardInterrupt
        self.ran.append(cell.name)
        return [Row(self.NAME, cell.name, "dot", "L1", cell.radius, "robust", "gap", cell.radius * 1e-9)]

    def analyse(self, rows):
        return [(f"{row.radius:g}", f"{row.value:g}") for row in rows]

    def plot(self, table):
        if self.fail_plot:
            raise RuntimeError("no ink")
        return [Section("Dots", (), (), (Table("Dots", ("radius", "gap"), tuple(table)),))]


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_writes_page_rows_manifest_and_cells(tmp_path):
    page = reproduce(tmp_path / "new" / "folder", figures=(Counting(),))
    assert page == tmp_path / "new" / "folder" / "index.html"
    names = {"index.html", "rows.csv", "manifest.json", *(f"cells/dots-dot-{r}.json" for r in ("0", "0.5", "1", "1.5"))}
    assert set(files(page.parent)) == names


def test_finished_cells_are_not_run_again(tmp_path):
    experiment = Counting()
    reproduce(tmp_path, figures=(experiment,))
    assert len(experiment.ran) == 4
    before = files(tmp_path)
    page = reproduce(tmp_path, figures=(experiment,))
    assert len(experiment.ran) == 4
    after = files(tmp_path)
    assert after["rows.csv"] == before["rows.csv"]
    assert json.loads(after["manifest.json"])["counts"]["reused"] == 4
    assert "4 of them kept from an earlier run" in page.read_text()


def test_damaged_and_missing_cells_alone_are_run_again(tmp_path):
    experiment = Counting()
    reproduce(tmp_path, figures=(experiment,))
    rows = (tmp_path / "rows.csv").read_bytes()
    (tmp_path / "cells" / "dots-dot-1.json").write_text("{")
    (tmp_path / "cells" / "dots-dot-0.json").unlink()
    experiment.ran.clear()
    reproduce(tmp_path, figures=(experiment,))
    assert experiment.ran == ["dot-0", "dot-1"]
    assert (tmp_path / "rows.csv").read_bytes() == rows


def test_an_interrupted_run_continues(tmp_path):
    experiment = Counting(fail_at="dot-1")
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path, figures=(experiment,))
    assert set(files(tmp_path)) == {"cells/dots-dot-0.json", "cells/dots-dot-0.5.json"}
    experiment.fail_at = None
    reproduce(tmp_path, figures=(experiment,))
    assert experiment.ran == ["dot-0", "dot-0.5", "dot-1", "dot-1.5"]


def test_a_failed_drawing_leaves_the_old_results(tmp_path):
    reproduce(tmp_path, figures=(Counting(),))
    before = files(tmp_path)
    with pytest.raises(RuntimeError, match="no ink"):
        reproduce(tmp_path, figures=(Counting(fail_plot=True),))
    assert files(tmp_path) == before


def test_progress_counts_up_to_the_total(tmp_path):
    calls = []
    reproduce(tmp_path, lambda done, total, what: calls.append((done, total, what)), figures=(Counting(),))
    assert [done for done, _, _ in calls] == [0, 1, 2, 3, 4, 5]
    assert {total for _, total, _ in calls} == {5}
    assert [what for _, _, what in calls] == ["dot-0", "dot-0.5", "dot-1", "dot-1.5", "drawing", "done"]


def test_without_matplotlib_it_says_so_before_running(tmp_path, monkeypatch):
    monkeypatch.setitem(reproduce_function.__globals__, "find_spec", lambda _: None)
    experiment = Counting()
    with pytest.raises(ModuleNotFoundError, match=r"urbe\[plots\]"):
        reproduce(tmp_path, figures=(experiment,))
    assert experiment.ran == []
    assert files(tmp_path) == {}


def test_output_that_is_a_file_is_named(tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("")
    with pytest.raises(OSError, match="taken"):
        reproduce(taken, figures=(Counting(),))


@pytest.fixture(scope="module")
def coarse(tmp_path_factory):
    """The real experiment on the first, middle and last radius."""
    real = price_of_robustness
    cells = tuple(cell for i, cell in enumerate(real.CELLS) if i % real.N_RADII % 10 == 0)
    experiment = SimpleNamespace(NAME=real.NAME, CELLS=cells, run=real.run, analyse=real.analyse, plot=real.plot)
    return reproduce(tmp_path_factory.mktemp("coarse"), figures=(experiment,))


def test_the_page_is_well_formed_and_refers_to_nothing_outside(coarse):
    source = coarse.read_text()
    page = Page(source)
    ids = page.ids()
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]*)\)", source)) <= set(ids)
    references = [v for _, attributes in page.tags for k, v in attributes.items() if k in ("href", "src", "xlink:href")]
    assert {reference.removeprefix("#") for reference in references} <= set(ids)
    assert "http" not in source
    assert "<script" not in source


def test_the_page_shows_every_model_with_captions_and_numbers(coarse):
    page = Page(coarse.read_text())
    titles = [demo.title for demo in price_of_robustness.MODELS.values()]
    assert page.text["h2"] == ["Summary", *titles]
    assert len(page.all("figure")) == len(page.all("figcaption")) == len(page.all("svg")) == 2 * len(titles)
    assert all(svg["aria-label"] for svg in page.all("svg"))
    assert all("certified" in caption or "policy" in caption for caption in page.text["figcaption"])
    assert len(page.all("table")) == 1 + 4 * len(titles)
    assert "unknown" not in page.text["dl"][0] or provenance.commit() is None


def test_rows_and_manifest_tell_what_was_done(coarse):
    with (coarse.parent / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["figure", "cell", "model", "set", "radius", "policy", "metric", "value"]
    manifest = json.loads((coarse.parent / "manifest.json").read_text())
    config = manifest["config"]["price_of_robustness"]
    assert {(c["model"], c["set"], c["radius"]) for c in config} == {
        (row["model"], row["set"], float(row["radius"])) for row in rows
    }
    gaps = [float(row["value"]) for row in rows if row["metric"] == "gap"]
    assert manifest["largest_certified_gap"] == max(gaps)
    assert manifest["counts"]["cells"] == len(config)
    assert set(manifest["versions"]) >= {"urbe", "numpy", "scipy", "numba"}
    assert manifest["machine"]["python"]


def test_a_large_model_whose_policy_never_changes_is_drawn_whole(tmp_path):
    real = price_of_robustness
    cells = tuple(real.PriceCell("garnet", "L1", radius) for radius in (0.0, 1e-3, 2e-3))
    experiment = SimpleNamespace(NAME=real.NAME, CELLS=cells, run=real.run, analyse=real.analyse, plot=real.plot)
    page = Page(reproduce(tmp_path, figures=(experiment,)).read_text())
    values, policies = page.text["figcaption"]
    assert "the nominal policy is robust at every radius shown" in values
    assert "never changes" in policies
    assert "not drawn" not in policies
    assert sum(text.strip().startswith("state ") for text in page.text["text"]) == 20


def test_the_list_of_figures():
    assert list(FIGURES) == [price_of_robustness]


def test_the_commit_is_a_hash_or_unknown(monkeypatch):
    found = provenance.commit()
    assert found is None or re.fullmatch(r"[0-9a-f]{40}( \+ changes)?", found)
    monkeypatch.setenv("PATH", "")
    assert provenance.commit() is None


def test_the_commit_of_a_surrounding_repository_is_not_ours(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    assert provenance.commit() is None


def test_code_digest_sees_the_sources_that_numbers_depend_on(tmp_path, monkeypatch):
    (tmp_path / "solvers").mkdir()
    (tmp_path / "report").mkdir()
    (tmp_path / "solvers" / "a.py").write_text("x = 1")
    (tmp_path / "report" / "b.py").write_text("y = 1")
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    digest = provenance.code_digest.__wrapped__
    first = digest()
    (tmp_path / "report" / "b.py").write_text("y = 2")
    assert digest() == first
    (tmp_path / "solvers" / "a.py").write_text("x = 2")
    assert digest() != first
