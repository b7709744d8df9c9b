"""Parts of a page: fragments of `page.html` with their placeholders filled in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path, PurePosixPath
from string import Template

from urbe.report.content import Facts, Table


def fill(fragment: str, **values: object) -> str:
    """Fills the placeholders in a fragment of `page.html`; values are HTML already."""
    return _fragments()[fragment].substitute(values)


@cache
def _fragments() -> dict[str, Template]:
    _, *parts = re.split(r"^<!-- (\w+) -->\n", read("page.html"), flags=re.M)
    texts = (text.removesuffix("\n") for text in parts[1::2])
    return dict(zip(parts[::2], map(Template, texts), strict=True))


@cache
def read(name: str) -> str:
    """A file beside this module."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def below(*lines: str) -> str:
    """Joins lines, each after a line break, and leaves out empty ones."""
    return "".join(f"\n{line}" for line in lines if line)


def paragraph(text: str) -> str:
    """Plain text as a paragraph."""
    return fill("paragraph", text=escape(text))


def facts_html(facts: Facts) -> str:
    """A box of names and values; empty if there are none."""
    inner = "\n".join(fill("fact", name=escape(name), value=escape(value)) for name, value in facts)
    return fill("facts", inner=inner) if facts else ""


def table_html(table: Table) -> str:
    """A table in a box that scrolls when it is too wide; words are aligned left, numbers right."""
    words = [not all(_is_number(row[i]) for row in table.rows) for i in range(len(table.head))]
    kinds = [' class="words"' if is_words else "" for is_words in words]
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(table.head, kinds, strict=True))
    rows = []
    for row in table.rows:
        cells = [f'<th scope="row"{kinds[0]}>{escape(row[0])}</th>']
        cells += [f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(row[1:], kinds[1:], strict=True)]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return fill("table", title=escape(table.title), head=head, rows="\n".join(rows))


def _is_number(text: str) -> bool:
    """Whether a cell holds a number, a percentage, a number with its interval, or the dash for a missing one."""
    one = r"[+-]?(\d[\d,]*(\.\d+)?(e[+-]?\d+)?|inf)"
    return re.fullmatch(rf"{one}( \[\u2007*{one}, \u2007*{one}\]|\xa0%)?|-", text) is not None


def links_html(files: Sequence[str]) -> str:
    """Links to files beside the page, named by their format."""
    links = " ".join(
        fill("link", file=escape(file), name=escape(PurePosixPath(file).name), kind=_kind(file)) for file in files
    )
    return f' <span class="files">{links}</span>' if files else ""


def _kind(file: str) -> str:
    suffix = PurePosixPath(file).suffix[1:]
    return suffix.capitalize() if suffix == "parquet" else suffix.upper()
