"""Every example runs, and those of the README print the shown output."""

import re
import runpy
import shutil
import subprocess
import sys
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
def clone(tmp_path):
    """The root of a clone, to be written into."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


def test_the_readme_prints_what_it_shows_without_jax(clone):
    """Its first two examples need no more than the extra `plots`."""
    examples = shown_code()[:2]
    blocked = "import sys; sys.modules.update(dict.fromkeys(('jax', 'gymnasium', 'pandas', 'pyarrow')))\n"
    code = blocked + "".join(code for code, _ in examples)
    done = subprocess.run([sys.executable, "-c", code], cwd=clone, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == "".join(shown for _, shown in examples)
    assert (clone / "price.png").stat().st_size > 10_000


@pytest.mark.slow
def test_the_deep_example_of_the_readme_prints_what_it_shows(capsys):
    code, shown = shown_code()[2]
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == shown
