"""Write figures as inline SVG; panels in a grid are separate images, so that a page can stack them on a phone."""

from __future__ import annotations

import io
import re
from html import escape
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from urbe.report import style
from urbe.report.markup import fill
from urbe.types import FloatArray

_SLACK = 1.5
"""A label may extend beyond its part by this many points, half the width of a stroke."""


class Part(NamedTuple):
    """A rectangle of a figure.

    Attributes:
      axes: indices of the axes that it shows.
      box: left, top, width and height in points, from the upper left corner of the figure.
    """

    axes: tuple[int, ...]
    box: tuple[float, float, float, float]


def svg(figure: Figure, name: str, alt: str) -> str:
    """Returns the figure as a `<div role="img">` with one themed `<svg>` per part; ids are prefixed by `name`."""
    body = _body(figure, name)
    columns, parts = split(figure)
    pieces = [body] if len(parts) == 1 else _pieces(body, [part.axes for part in parts])
    narrowest = min(part.box[2] for part in parts)
    images = "\n".join(
        fill(
            "image",
            box=" ".join(f"{number:g}" for number in part.box),
            kind=' class="wide"' if part.box[2] > narrowest + 1.0 else "",
            body=piece,
        )
        for part, piece in zip(parts, pieces, strict=True)
    )
    kind = f' class="grid columns-{columns}"' if columns > 1 else ""
    return fill("drawing", alt=escape(alt), kind=kind, images=images)


def split(figure: Figure) -> tuple[int, list[Part]]:
    """The number of columns of panels, and the parts that can be shown one below the other.

    Panels are a grid if they are in two or more columns of equal width and nothing that belongs to a panel crosses the
    borders between columns and rows. Axes across all columns, such as a key, are a part of their own. Any other figure
    is one part.
    """
    width, height = (72.0 * side for side in figure.get_size_inches())
    whole = Part(tuple(range(len(figure.axes))), (0.0, 0.0, width, height))
    shown = [axes for axes in figure.axes if axes.get_visible()]
    if len(shown) < 2 or figure.texts or figure.legends:
        return 1, [whole]
    extents = _extents(figure)
    places = np.array([axes.get_position().extents for axes in shown]) * (width, height, width, height)
    for columns in (2, 3, 4):
        parts = _grid(extents, places, columns, width, height)
        if parts:
            index = [figure.axes.index(axes) for axes in shown]
            return columns, [Part(tuple(index[i] for i in part.axes), part.box) for part in parts]
    return 1, [whole]


def _extents(figure: Figure) -> FloatArray:
    """`(n, 4)` left, bottom, right and top of each visible panel with its labels, in points from the lower left."""
    canvas, before = FigureCanvasAgg(figure), figure.canvas
    try:
        renderer = canvas.get_renderer()
        boxes = [axes.get_tightbbox(renderer) for axes in figure.axes if axes.get_visible()]
    finally:
        figure.set_canvas(before)
    found: FloatArray = np.array([box.extents if box is not None else [0.0] * 4 for box in boxes]) * 72.0 / figure.dpi
    return found


def _grid(extents: FloatArray, places: FloatArray, columns: int, width: float, height: float) -> list[Part]:
    """The parts of a figure whose panels form a grid with this number of columns, row by row; else an empty list."""
    each = width / columns
    first = np.floor((places[:, 0] + 0.5) / each).astype(int)
    last = np.floor((places[:, 2] - 0.5) / each).astype(int)
    across = (first == 0) & (last == columns - 1)
    if not (across | (first == last)).all() or len(np.unique(first[~across])) < columns:
        return []
    inside = (extents[:, 0] >= first * each - _SLACK) & (extents[:, 2] <= (last + 1) * each + _SLACK)
    if not inside.all():
        return []
    rows: list[list[int]] = []
    for i in np.argsort(-extents[:, 3], kind="stable"):
        if rows and extents[i, 3] > min(extents[k, 1] for k in rows[-1]) + _SLACK:
            rows[-1].append(int(i))
        else:
            rows.append([int(i)])
    low = [min(extents[k, 1] for k in row) for row in rows]
    high = [max(extents[k, 3] for k in row) for row in rows]
    edges = [height, *(0.5 * (low[k] + high[k + 1]) for k in range(len(rows) - 1)), 0.0]
    parts = []
    for row, top, bottom in zip(rows, edges, edges[1:], strict=False):
        if any(across[k] for k in row) and len(row) > 1:
            return []
        for k in sorted(row, key=lambda k: int(first[k])):
            left, right = first[k] * each, (last[k] + 1) * each
            parts.append(
                Part((k,), (round(left, 2), round(height - top, 2), round(right - left, 2), round(top - bottom, 2)))
            )
    cells = [(part.box[0], part.box[1]) for part in parts]
    return parts if len(set(cells)) == len(cells) else []


def _body(figure: Figure, name: str) -> str:
    """What is inside matplotlib's `<svg>`, with the colours of the page."""
    buffer = io.StringIO()
    with matplotlib.rc_context({**style.RC, "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    inner = text[text.index("<svg") :]
    body = inner[inner.index(">") + 1 : inner.rindex("</svg>")].strip() + "\n"
    body = body.replace("xlink:href=", "href=").replace("'DejaVu Sans', sans-serif", "var(--font)")
    body = body.replace("'DejaVu Sans'", "var(--font)")

    body = re.sub(r'\bd="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), body)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'href="#', f'href="#{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body)
    for colour, (variable, _, _) in style.THEMED.items():
        body = body.replace(colour, f"var(--{variable})")
    return body


def _pieces(body: str, wanted: list[tuple[int, ...]]) -> list[str]:
    """The body of each part: its axes, and with the first part everything that belongs to none (styles, clip paths)."""
    groups, rest, at = [], [], 0
    for opening in re.finditer(r'<g id="[^"]*-axes_\d+">', body):
        if opening.start() < at:
            continue
        rest.append(body[at : opening.start()])
        depth = 0
        for tag in re.finditer(r"<g\b[^>]*>|</g>", body[opening.start() :]):
            depth += -1 if tag[0] == "</g>" else not tag[0].endswith("/>")
            if depth == 0:
                at = opening.start() + tag.end()
                break
        groups.append(body[opening.start() : at])
    rest.append(body[at:])
    # axes that are not shown are not written, so groups are those of the parts, in the order of the figure
    order = {index: k for k, index in enumerate(sorted(index for indices in wanted for index in indices))}
    pieces = ["\n".join(groups[order[index]] for index in indices) + "\n" for indices in wanted]
    return ["".join(rest[:1]) + pieces[0] + "".join(rest[1:]), *pieces[1:]]
