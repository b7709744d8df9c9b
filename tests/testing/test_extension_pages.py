"""Pages of docs/extend: one per extension point, in four sections, whose files run and pass their check."""

import os
import re
import subprocess
import sys

import pytest

from fixtures.extension_pages import EXTEND, code_of, import_page
from urbe.testing import check_nature, check_variance

POINTS = (
    "ambiguity_set", "coupled_set", "agent", "deep_variance", "nature", "belief", "simulator", "adapter", "chapter",
)  # fmt: skip
COMPILED = ("deep_variance", "simulator", "adapter", "nature")
"""Pages that train in their last section, which takes long to compile."""


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Runs a page, up to a heading."""

    def load(name, until=None):
        monkeypatch.setitem(sys.modules, name, None)  # removed afterwards
        monkeypatch.chdir(tmp_path)
        return import_page(name, tmp_path, until)

    return load


def test_there_is_a_page_for_each_point_and_the_index_lists_it():
    assert {path.stem for path in EXTEND.glob("*.md")} == {*POINTS, "index"}
    assert set(re.findall(r"\((\w+)\.md\)", (EXTEND / "index.md").read_text())) == set(POINTS)


@pytest.mark.parametrize("name", POINTS[3:])
def test_pages_have_the_same_sections(name):
    titles = re.findall(r"^## (?:\d\. )?(.+)$", (EXTEND / f"{name}.md").read_text(), flags=re.MULTILINE)
    assert titles == ["The interface", "The file", "The check", "Using it"]


@pytest.mark.parametrize("name", ["coupled_set", "belief", "chapter"])
def test_pages_run(page, name):
    page(name)


def test_the_nature_passes_its_check_and_bad_ones_do_not(page, monkeypatch):
    found = page("nature", "## 4. Using it")
    with pytest.raises(ValueError, match=r"temperature is 0\.0, expected"):
        found.SoftWorst(0.0)

    honest = found.SoftWorst.weights
    monkeypatch.setattr(found.SoftWorst, "weights", lambda self, values: 2.0 * honest(self, values))
    with pytest.raises(AssertionError, match=r"the sum of the weights of 2 members.*expected 1\.0"):
        check_nature(found.SoftWorst(), members=(2,))


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_pages_that_train_run(page, name):
    page(name)


@pytest.mark.slow
def test_a_head_that_perturbs_without_noise_fails_its_check(page, monkeypatch):
    found = page("deep_variance", "## 3. The check")

    honest = found.Novelty.perturbed

    def biased(self, *given):
        q, w = honest(self, *given)
        return q + w, w

    monkeypatch.setattr(found.Novelty, "perturbed", biased)
    with pytest.raises(AssertionError, match="values without noise"):
        check_variance(found.Novelty())


def test_a_coupled_set_that_is_too_optimistic_fails_its_check(page, monkeypatch):
    found = page("coupled_set", "## 4. The check")
    checks = code_of("coupled_set")[len(code_of("coupled_set", "## 4. The check")) :]
    honest = found.FactoredOperator.values
    monkeypatch.setattr(found.FactoredOperator, "values", lambda self, v: honest(self, v) + 1e-6)
    with pytest.raises(AssertionError):
        exec(checks, vars(found))


@pytest.mark.slow
def test_the_chapter_is_run_by_processes_and_drawn(tmp_path):
    (tmp_path / "chapter.py").write_text(code_of("chapter").replace("range(8)", "range(2)"))
    code = "import chapter; print(chapter.main('results'))"
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths},
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = (tmp_path / "results" / "too_small_radius.html").read_text()
    assert "Planning for too little" in shown
    assert "2 random models" in shown
