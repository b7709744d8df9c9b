"""Every example runs, and the README's example prints what it shows."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_example_runs(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_readme_example_prints_what_it_shows(capsys):
    text = (ROOT / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)
    shown = re.search(r"```text\n(.*?)```", text, re.DOTALL).group(1)
    exec(compile(code, "README.md", "exec"), {})
    assert _without_last_digits(capsys.readouterr().out) == _without_last_digits(shown)


def _without_last_digits(text):
    """The gap is what rounding leaves, and values are certain only up to it."""
    text = re.sub(r"within \S+ of", "within GAP of", text)
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number.group()):.5f}", text)
