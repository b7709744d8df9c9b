"""A small page with one of everything: claims, curves, dots, strips, maps, tables wide and long."""

from __future__ import annotations

import numpy as np

from urbe.report import style
from urbe.report.content import Chapter, Exhibit, Section, Table, Verdict
from urbe.report.curves import draw_bands, mark_changes
from urbe.report.dots import ROW, draw_dots, draw_strips, rows_of
from urbe.report.figures import Line, draw_lines, draw_map, styled
from urbe.report.panels import panels
from urbe.statistics.estimates import Band, Interval

AGENTS = ("URBE", "UBE", "PSRL", "oracle")


def chapters():
    """Two chapters; every kind of drawing and every outcome occurs."""
    return (
        Chapter(
            "curves",
            "Agents that learn",
            (
                Section("", ("What opens the chapter.",), facts=(("Replicates", "10 seeds"),)),
                Section("Verdicts", ("Two readings.",), verdicts=verdicts()),
                Section("Over time", (), (banded(), dotted()), (wide(),)),
            ),
            (("Commit", "abcdef"),),
        ),
        Chapter(
            "maps",
            "Maps & <policies>",
            (Section("Policies", (), (mapped(), lined()), (long(),)), Section("Visits", (), (heated(), bare()))),
        ),
    )


def verdicts():
    told = "URBE minus UBE is 1.00 [0.40, 1.60]."
    return (
        Verdict("URBE earns more than UBE.", "holds", told, "Fig. 2b", "direct reading"),
        Verdict("URBE earns more than UBE.", "does not hold", told, "Fig. 2b", "chain reading"),
        Verdict("Robust agents are flatter over p.", "undecided", told, "Fig. 3"),
        Verdict("The paper's weights do it too.", "not testable", "They were not published.", "Fig. 3"),
        *(
            Verdict("Everything is faster here.", "holds", told, "Fig. 5", each)
            for each in ("seconds", "steps", "episodes")
        ),
        Verdict("A claim of our own.", "holds", told),
    )


def banded():
    x = np.arange(1.0, 301.0)
    with styled():
        figure, axes = panels(1, 2, top=0.75, right=1.1)
        for panel in axes[0]:
            bands = {name: Band((4 - i) * x, (4 - i) * x - 9.0, (4 - i) * x + 9.0) for i, name in enumerate(AGENTS)}
            panel.set_title("a belief", pad=26.0)
            panel.set_xlabel("episode")
            panel.set_ylabel("reward")
            draw_bands(panel, x, bands)
            mark_changes(panel, [1, 100, 200], ["0.1", "0.8", "0.1"])
    return Exhibit("bands", figure, "Four lines rise, URBE most.", "Mean and 95 % intervals.")


def dotted():
    with styled():
        figure, axes = panels(2, height=ROW * (rows_of(4, 2) + 1), left=1.2, right=0.3, top=0.6)
        intervals = [Interval(float(i), i - 0.5, i + 0.5) for i in range(4)]
        draw_dots(axes[0][0], AGENTS, {"first": intervals, "second": [*intervals[:3], None]})
        draw_strips(axes[1][0], AGENTS, {"": [np.arange(50.0) + i for i in range(4)]})
        for row in axes:
            row[0].set_xlabel("total")
    return Exhibit("dots", figure, "Totals of four agents.", "Dots and strips.")


def mapped():
    with styled():
        figure, axes = panels(left=1.0, right=0.3, height=1.2)
        draw_map(
            axes[0][0], np.linspace(0.0, 1.0, 11), np.arange(33).reshape(3, 11) // 5 % 2, ["s0", "s1", "s2"],
            ["left", "right"], style.ACTIONS[:2],
        )  # fmt: skip
        axes[0][0].set_xlabel("radius")
    table = Table("Actions", ("state", "action"), (("s0", "left"), ("s1", "right")))
    return Exhibit("policies", figure, "Actions of three states.", "Who goes where.", (table,))


def lined():
    x = np.linspace(0.0, 2.0, 9)
    with styled():
        figure, axes = panels()
        draw_lines(axes[0][0], x, [Line(x**k, name, c) for k, (name, c) in enumerate(PAIRS, start=1)])
        axes[0][0].set_xlabel("radius")
    return Exhibit("lines", figure, "A line and a parabola.", "Powers.")


PAIRS = (("robust", style.ROBUST), ("nominal", style.NOMINAL))


def heated():
    with styled():
        figure, axes = panels(1, 2, left=0.6, right=0.6)
        axes[0][0].imshow(np.arange(12.0).reshape(3, 4), cmap="cividis")
        axes[0][1].pcolormesh(np.arange(12.0).reshape(3, 4), cmap="cividis")
        for panel in axes[0]:
            panel.set_title("visits")
            panel.set_xlabel("column")
    return Exhibit("heat", figure, "Visits of twelve cells.", "Darker is rarer.")


def bare():
    """A drawing without numbers to read."""
    with styled():
        figure, _ = panels(height=0.8)
    return Exhibit("bare", figure, "An empty panel.", "Nothing.")


def wide():
    head = ("agent", *(f"odds {0.1 * i:.1f}" for i in range(9)))
    return Table("Wide", head, tuple((name, *("1.234 [0.912, 1.456]",) * 9) for name in AGENTS))


def long():
    return Table("Long", ("cell", "value"), tuple((f"cell {i}", f"{i / 7:.3f}") for i in range(90)))
