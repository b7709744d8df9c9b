"""Tutorials: pages and notebooks match their scripts, and running them prints what they show."""

import json
import os
import re
import runpy
import shutil
import sys
from types import ModuleType

import pytest

from fixtures.site_tools import tool

tutorials = tool("tutorials")
NAMES = pytest.mark.parametrize("name", tutorials.NAMES)


def notebook(name):
    return json.loads((tutorials.SCRIPTS / f"{name}.ipynb").read_text())


def masked(text):
    """Without numbers: those of trained networks depend on the machine."""
    return re.sub(r"-?\d[\d,]*\.?\d*", "#", re.sub(r"\[ +", "[", re.sub(r" +", " ", text)))


@NAMES
def test_page_and_notebook_have_every_cell_of_the_script(name):
    page, at = (tutorials.PAGES / f"{name}.md").read_text(), 0
    listed = notebook(name)["cells"]
    cells = tutorials.cells(tutorials.SCRIPTS / f"{name}.py")
    assert len(listed) == len(cells) > 10
    for cell, shown in zip(cells, listed, strict=True):
        text = f"```python\n{cell.text}\n```" if cell.code else cell.text
        assert text in page[at:], f"Run `make tutorials`: {text[:80]}"
        at = page.index(text, at) + len(text)
        source = "".join(shown["source"])
        assert shown["cell_type"] == ("code" if cell.code else "markdown")
        if cell.code:
            assert source.startswith(cell.text)


@NAMES
def test_notebooks_have_the_form_of_version_4_5(name):
    found = notebook(name)
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in found["cells"]}) == len(found["cells"])
    for cell in found["cells"]:
        expected = {"id", "metadata", "source", "cell_type"}
        assert set(cell) == expected | ({"outputs", "execution_count"} if cell["cell_type"] == "code" else set())
        for output in cell.get("outputs", ()):
            assert output["output_type"] in ("stream", "display_data")


@NAMES
def test_every_tutorial_shows_a_picture_and_announces_compilation(name):
    page = (tutorials.PAGES / f"{name}.md").read_text()
    pictures = re.findall(r"!\[[^]]{20,}\]\(([^)]+)\)", page)
    assert pictures
    assert all((tutorials.PAGES / picture).stat().st_size > 10_000 for picture in pictures)
    assert re.search(r"```text\n(.*\n)*?.*compiling", page)


def printed_by_notebook(name, folder, monkeypatch, capsys):
    """What each code cell prints when a notebook's cells are run in order, beside what it shows."""
    for path in tutorials.SCRIPTS.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    for module in ("room", "make_pumps"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    module = ModuleType(name)  # what it defines can be found again by name, as in a notebook
    monkeypatch.setitem(sys.modules, name, module)
    for cell in notebook(name)["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{name}.ipynb", "exec"), vars(module))
            shown = "".join(line for output in cell["outputs"] for line in output.get("text", ()))
            yield capsys.readouterr().out, shown


def test_the_notebook_of_operations_prints_what_it_shows(tmp_path, monkeypatch, capsys):
    for printed, shown in printed_by_notebook("operations", tmp_path, monkeypatch, capsys):
        assert printed == shown
    assert {"plan.png", "price.png", "pump_policy.csv"} <= set(os.listdir(tmp_path))


def test_the_promise_of_operations_is_kept():
    page = (tutorials.PAGES / "operations.md").read_text()
    promised, true, best = map(int, re.search(r"at least (-\d+)\ntrue value.*: (-\d+);.*: (-\d+)", page).groups())
    assert promised <= true <= best


@pytest.mark.slow
@pytest.mark.parametrize("name", ["research", "practice"])
def test_notebooks_that_train_print_what_they_show(name, tmp_path, monkeypatch, capsys):
    for printed, shown in printed_by_notebook(name, tmp_path, monkeypatch, capsys):
        assert masked(printed) == masked(shown)


def test_the_log_is_the_one_that_is_simulated(tmp_path):
    script = shutil.copy(tutorials.SCRIPTS / "make_pumps.py", tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert (tmp_path / "pumps.csv").read_bytes() == (tutorials.SCRIPTS / "pumps.csv").read_bytes()
