"""Every example runs, and those of the README print what it shows."""

import re
import runpy
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_example_runs(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def shown_code():
    """The examples of the README and what they print, in order."""
    text = (ROOT / "README.md").read_text()
    found = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert len(found) == len(re.findall("```python", text)) == 3
    return found


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """The root of a clone, to be written into."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_readme_prints_what_it_shows(clone, capsys):
    names = {}
    for code, shown in shown_code()[:2]:
        exec(compile(code, "README.md", "exec"), names)
        assert capsys.readouterr().out == shown
    assert (clone / "price.png").stat().st_size > 10_000


@pytest.mark.slow
def test_the_deep_example_of_the_readme_prints_what_it_shows(capsys):
    code, shown = shown_code()[2]
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == shown
