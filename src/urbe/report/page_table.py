"""Tables on a page: heads that name columns and rows, words to the left, numbers to the right."""

from __future__ import annotations

import re
from html import escape

from urbe.report.content import Table


def table_html(table: Table) -> str:
    """The table, in a box that scrolls when it is too wide."""
    words = [not all(_numeric(row[i]) for row in table.rows) for i in range(len(table.head))]
    kinds = [' class="words"' if is_words else "" for is_words in words]
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(table.head, kinds, strict=True))
    lines = [
        f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(table.title)}"><table>',
        f"<caption>{escape(table.title)}</caption>",
        f"<thead><tr>{head}</tr></thead>",
        "<tbody>",
    ]
    for row in table.rows:
        cells = [f'<th scope="row"{kinds[0]}>{escape(row[0])}</th>']
        cells += [f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(row[1:], kinds[1:], strict=True)]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    lines.append("</tbody></table></div>")
    return "\n".join(lines)


def _numeric(text: str) -> bool:
    """Whether a cell holds a number, a number with its interval, or the dash of a missing one."""
    one = r"-?(\d+(\.\d+)?(e[+-]?\d+)?|inf)"
    return re.fullmatch(rf"{one}( \[\u2007*{one}, \u2007*{one}\])?|-", text) is not None
