"""From a docstring of ours to Markdown: prose, equations as they stand, sections as lists, examples as code."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator

SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Yields")

Cite = Callable[[str], str]
"""From a key such as `Derman2019` to what stands in its place."""


def to_markdown(docstring: str, cite: Cite) -> str:
    """The whole docstring; indented blocks are equations or tables and keep every space."""
    return "\n\n".join(_parts(textwrap.dedent(docstring).strip("\n").splitlines(), cite))


def _parts(lines: list[str], cite: Cite) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif line.rstrip(":") in SECTIONS and line.endswith(":"):
            stop = _end(lines, at + 1, lambda each: bool(each.strip()) and not each.startswith(" "))
            yield _section(line.rstrip(":"), textwrap.dedent("\n".join(lines[at + 1 : stop])).splitlines(), cite)
            at = stop
        elif line.startswith(">>>"):
            stop = _end(lines, at, lambda each: not each.strip())
            yield _fence("pycon", lines[at:stop])
            at = stop
        elif line.startswith(" "):
            stop = _end(lines, at, lambda each: bool(each.strip()) and not each.startswith(" "))
            yield _fence("text", textwrap.dedent("\n".join(lines[at:stop])).strip("\n").splitlines())
            at = stop
        elif line.startswith("- "):
            stop = _end(lines, at, lambda each: not each.strip())
            yield "\n".join(prose(each, cite) for each in lines[at:stop])
            at = stop
        else:
            stop = _end(lines, at, lambda each: not each.strip() or each.startswith((" ", ">>>", "- ")))
            yield prose(" ".join(lines[at:stop]), cite)
            at = stop


def _end(lines: list[str], start: int, over: Callable[[str], bool]) -> int:
    return next((at for at in range(start, len(lines)) if over(lines[at])), len(lines))


def _section(title: str, lines: list[str], cite: Cite) -> str:
    """Entries `name: text`, whose text may go on, indented; other sections are plain text."""
    entries: list[list[str]] = []
    for line in lines:
        if line and not line.startswith(" "):
            entries.append([line])
        elif entries:
            entries[-1].append(line)
    shown = []
    for first, *rest in entries:
        found = re.match(r"([\w*, .]+): +(.*)", first)
        if found is None:
            shown.append(prose(" ".join([first, *map(str.strip, rest)]), cite))
            continue
        names = ", ".join(f"`{name.strip()}`" for name in found[1].split(","))
        body = [found[2], *textwrap.dedent("\n".join(rest)).splitlines()]
        shown.append(f"- {names}: " + textwrap.indent("\n\n".join(_parts(body, cite)), "  ").lstrip())
    return f"**{title}**\n\n" + ("\n".join if all("\n\n" not in each for each in shown) else "\n\n".join)(shown)


def _fence(language: str, lines: list[str]) -> str:
    return "\n".join([f"```{language}", *lines, "```"])


def prose(text: str, cite: Cite) -> str:
    """Text between backticks stays; elsewhere nothing but citations is markup."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else _plain(part, cite) for part in parts)


def _plain(text: str, cite: Cite) -> str:
    bullet, text = ("- ", text[2:]) if text.startswith("- ") else ("", text)
    text = re.sub(r"([*_<>$|{}~^\\])", r"\\\1", text)
    return bullet + re.sub(r"\[([A-Z][A-Za-z]+\d{4})\]", lambda found: cite(found[1]), text)
