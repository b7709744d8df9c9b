"""Pages and notebooks of the tutorials, from their scripts: `python docs/site/tutorials.py [name ...]`.

A script in examples/tutorials is divided by lines `# %%` into cells of code and, by `# %% [markdown]`, of text. The
code is run in the script's folder; the output of a cell and the figure that it saves follow the cell.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "examples" / "tutorials"
PAGES = ROOT / "docs" / "tutorials"
NAMES = ("operations", "research", "practice")
PICTURE = re.compile(r'^(\w+)\.savefig\(folder / "([\w.]+)"', flags=re.MULTILINE)


class Cell(NamedTuple):
    """Text or code."""

    code: bool
    text: str


class Shown(NamedTuple):
    """The output of a cell, and the names of the figures it saved."""

    text: str
    pictures: tuple[str, ...]


def cells(script: Path) -> list[Cell]:
    """Splits a script into cells; comment signs are removed from text."""
    parts = re.split(r"^# %%(.*)\n", script.read_text(), flags=re.MULTILINE)
    found = []
    for kind, body in zip(parts[1::2], parts[2::2], strict=True):
        code = "[markdown]" not in kind
        text = body if code else re.sub(r"^# ?", "", body, flags=re.MULTILINE)
        found.append(Cell(code, text.strip("\n")))
    return found


def run(name: str, folder: Path) -> list[Shown]:
    """Runs the code of a tutorial in a copy of its files, and returns the output of each cell."""
    for path in SCRIPTS.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    script, shown = folder / f"{name}.py", []
    before, path = Path.cwd(), sys.path[:]
    module = ModuleType(name)  # what it defines can be found again by name, as that of a script can
    module.__file__, sys.modules[name] = str(script), module
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        for cell in cells(script):
            printed = io.StringIO()
            if cell.code:
                with contextlib.redirect_stdout(printed):
                    exec(compile(cell.text, str(script), "exec"), vars(module))
            pictures = tuple(found[1] for found in PICTURE.findall(cell.text)) if cell.code else ()
            shown.append(Shown(printed.getvalue(), pictures))
    finally:
        os.chdir(before)
        sys.path[:] = path
        del sys.modules[name]
    return shown


def page(name: str, shown: list[Shown]) -> str:
    """The tutorial as Markdown."""
    return "\n\n".join(_page_parts(name, shown)) + "\n"


def _page_parts(name: str, shown: list[Shown]) -> Iterator[str]:
    for cell, result in zip(cells(SCRIPTS / f"{name}.py"), shown, strict=True):
        yield f"```python\n{cell.text}\n```" if cell.code else cell.text
        if result.text:
            yield f"```text\n{result.text.rstrip()}\n```"
        for picture in result.pictures:
            yield f"![{_caption(cell.text)}](figures/{name}_{picture})"


def _caption(code: str) -> str:
    """Returns the caption, which is the comment on the line that saves the figure."""
    found = re.search(r"\.savefig\(.*\)  # (.+)", code)
    return found[1] if found else "The figure that this cell saves"


def notebook(name: str, shown: list[Shown], pictures: Path) -> str:
    """The tutorial as a notebook with its outputs; a figure that a cell saves is its last value, to be shown."""
    listed: list[dict[str, Any]] = []
    for at, (cell, result) in enumerate(zip(cells(SCRIPTS / f"{name}.py"), shown, strict=True)):
        base = {"id": f"{name}-{at}", "metadata": {}}
        if not cell.code:
            text = re.sub(r"\]\((?![a-z]+:|#)([^)\s]+)\)", r"](../../docs/tutorials/\1)", cell.text)
            listed.append({"cell_type": "markdown", **base, "source": text.splitlines(keepends=True)})
            continue
        outputs: list[dict[str, Any]] = []
        if result.text:
            lines = result.text.splitlines(keepends=True)
            outputs.append({"output_type": "stream", "name": "stdout", "text": lines})
        for picture in result.pictures:
            data = {"image/png": b64encode((pictures / picture).read_bytes()).decode(), "text/plain": ["<Figure>"]}
            outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
        figures = [found[0] for found in PICTURE.findall(cell.text)]
        source = "\n".join([cell.text, *figures[-1:]])
        listed.append({"cell_type": "code", **base, "execution_count": None, "outputs": outputs,
                       "source": source.splitlines(keepends=True)})  # fmt: skip
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return json.dumps({"cells": listed, "metadata": about, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def write(name: str) -> None:
    """Runs one tutorial and writes its page, its pictures and its notebook."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shown = run(name, folder)
        (PAGES / "figures").mkdir(parents=True, exist_ok=True)
        (PAGES / f"{name}.md").write_text(page(name, shown))
        (SCRIPTS / f"{name}.ipynb").write_text(notebook(name, shown, folder))
        for picture in (each for result in shown for each in result.pictures):
            shutil.copy(folder / picture, PAGES / "figures" / f"{name}_{picture}")


if __name__ == "__main__":
    for given in sys.argv[1:] or NAMES:
        print(f"Running examples/tutorials/{given}.py", flush=True)
        write(given)
