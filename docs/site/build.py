"""Builds the site: `python docs/site/build.py [--output build/site]`. It opens from disk and needs no network.

The sources are copied to a separate folder: the Markdown pages of docs/, the reference from the docstrings, and files
outside docs/ to which pages link. Sphinx converts them to HTML; a warning is an error.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCS, ROOT = HERE.parent, HERE.parents[1]
PROJECT = ("CHANGELOG.md", "CONTRIBUTING.md")
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
REPORT = re.compile(r"\[([^]]*)\]\((\w+\.html(?:#[^)\s]*)?)\)")
"""Links of docs/results to the pages of the report, which are no sources of Sphinx."""


def lay_out(stage: Path) -> None:
    """Writes the sources into `stage`, which is emptied first."""
    from reference import write_reference, write_references

    shutil.rmtree(stage, ignore_errors=True)
    shutil.copytree(DOCS, stage, ignore=shutil.ignore_patterns("site", "__pycache__"))
    report = stage / "extra" / "results"
    report.mkdir(parents=True)
    for page in (DOCS / "results").glob("*.html"):
        shutil.copy(page, report / page.name)
        (stage / "results" / page.name).unlink()
    for kind in ("figures", "rows"):
        shutil.copytree(DOCS / "results" / kind, report / kind)
    for name in ("claims.md", "manifest.json"):
        shutil.copy(DOCS / "results" / name, report / name)
    claims = stage / "results" / "claims.md"
    claims.write_text(f"# The claims of the paper\n\n{claims.read_text()}")
    (stage / "project").mkdir()
    for name in PROJECT:
        shutil.copy(ROOT / name, stage / "project" / name)
    write_reference(stage / "reference", DOCS / "references.bib")
    write_references(stage / "references.md", DOCS / "references.bib")
    for page in stage.rglob("*.md"):
        home = page.relative_to(stage)
        source = ROOT / home.name if home.parts[0] == "project" else DOCS / home
        if source.is_file() and "extra" not in home.parts:
            text = page.read_text()
            if home.parts[0] == "results":
                text = REPORT.sub(r'<a href="\2">\1</a>', text)
            text = LINK.sub(_relinked(stage, page, source), text)
            page.write_text(_cited(text, os.path.relpath(stage / "references.md", page.parent)))
    _add_menu(stage)


def _relinked(stage: Path, page: Path, source: Path) -> Callable[[re.Match[str]], str]:
    """Returns a function that rewrites links of `source` for `page`; files outside the pages are copied."""

    def moved(found: re.Match[str]) -> str:
        target = (source.parent / found[2]).resolve()
        if ":" in found[2] or not target.exists():
            return found[0]
        if target.is_relative_to(DOCS):
            there = stage / target.relative_to(DOCS)
        elif target.name in PROJECT and target.parent == ROOT:
            there = stage / "project" / target.name
        else:
            there = stage / "files" / target.relative_to(ROOT)
            there.parent.mkdir(parents=True, exist_ok=True)
            if target.is_file():
                shutil.copy(target, there)
        return f"{found[1]}{os.path.relpath(there, page.parent)}{found[3]}"

    return moved


def _cited(text: str, references: str) -> str:
    """Links citations outside of code to the page of references."""
    parts = re.split(r"(^```.*?^```|`[^`\n]*`)", text, flags=re.MULTILINE | re.DOTALL)
    cite = re.compile(r"\[([A-Z][A-Za-z]+\d{4})\](?!\()")
    parts[::2] = [cite.sub(lambda key: f"[\\[{key[1]}\\]]({references}#{key[1].lower()})", part) for part in parts[::2]]
    return "".join(parts)


def _add_menu(stage: Path) -> None:
    """The menu stands here and not in index.md, which is read in plain view too."""
    lines = []
    for caption, section in tomllib.loads((HERE / "navigation.toml").read_text()).items():
        lines += ["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *section["pages"], "```"]
    index = stage / "index.md"
    index.write_text(index.read_text() + "\n".join(lines) + "\n")
    pages = ["command_line", "basics", *(path.stem for path in sorted((stage / "reference").glob("urbe*.md")))]
    menu = ["", "```{toctree}", ":hidden:", "", *pages, "```"]
    reference = stage / "reference" / "index.md"
    reference.write_text(reference.read_text() + "\n".join(menu) + "\n")


def build(output: Path, *, quiet: bool = False) -> None:
    """Builds the site into `output`; sources and Sphinx's cache are beside it.

    Raises:
      SystemExit: when Sphinx warned of something.
    """
    from sphinx.cmd.build import main

    os.environ["COLUMNS"] = "100"  # the width of the help of commands
    stage = output.parent / f"{output.name}-sources"
    lay_out(stage)
    shutil.rmtree(output, ignore_errors=True)
    options = ["-W", "--keep-going", "-b", "html", "-c", str(HERE), "-d", str(stage / ".doctrees")]
    options += ["-D", f"html_extra_path={stage / 'extra'}", *["-q"] * quiet]
    if main([*options, str(stage), str(output)]):
        sys.exit("The site was not built: each warning above is an error.")
    (output / ".buildinfo").unlink(missing_ok=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "site")
    given = parser.parse_args().output.resolve()
    sys.path.insert(0, str(HERE))
    build(given)
    print(f"Open {given / 'index.html'}")
