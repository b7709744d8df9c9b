"""The benchmark page: each program writes its own section and leaves the others unchanged."""

from __future__ import annotations

from pathlib import Path

FIRST = "# Benchmarks"
"""The section that opens the page; all others begin with `## `."""


def read_section(page: Path, heading: str) -> str:
    """The text of a section, heading included; empty if there is none."""
    return _sections(page).get(heading, "")


def write_section(page: Path, text: str) -> None:
    """Puts a section in the place of the one with the same heading, or at the end."""
    sections = _sections(page)
    sections[text.splitlines()[0]] = text
    first = sections.pop(FIRST, f"{FIRST}\n")
    unfinished = page.with_suffix(".unfinished")
    unfinished.write_text("\n".join(section.strip() + "\n" for section in (first, *sections.values())))
    unfinished.replace(page)


def _sections(page: Path) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    heading = FIRST
    for line in page.read_text().splitlines() if page.exists() else []:
        heading = line if line.startswith(("# ", "## ")) else heading
        found.setdefault(heading, []).append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}
