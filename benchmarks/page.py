"""The benchmark page: each program writes its own section, and keeps the others."""

from __future__ import annotations

from pathlib import Path

FIRST = "# Benchmarks"
"""The section that opens the page; all others begin with `## `."""


def read_section(page: Path, heading: str) -> str:
    """Returns the text of a section with its heading; empty if there is none."""
    return _sections(page).get(heading, "")


def write_section(page: Path, text: str) -> None:
    """Replaces the section with the same heading, or appends a new one."""
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
