"""Dots with intervals and strips of distributions: positions and colours."""

import numpy as np
import pytest

from urbe.report import style
from urbe.report.dots import draw_dots, draw_strips, rows_of
from urbe.report.figures import panels, styled
from urbe.statistics.estimates import ConfidenceInterval

AGENTS = ("URBE", "UBE", "PSRL")


def axes_of(draw, *arguments, scale="linear"):
    with styled():
        axes = panels()[1][0][0]
        axes.set_xscale(scale)
        draw(axes, *arguments)
    return axes


def test_one_group_is_coloured_by_category():
    intervals = [ConfidenceInterval(float(i), i - 0.5, i + 1.0) for i in range(3)]
    axes = axes_of(draw_dots, AGENTS, {"": intervals})
    bars, dots = axes.lines[::2], axes.lines[1::2]
    assert [list(bar.get_xdata()) for bar in bars] == [[i - 0.5, i + 1.0] for i in range(3)]
    assert [list(dot.get_xdata()) for dot in dots] == [[0.0], [1.0], [2.0]]
    assert [dot.get_color() for dot in dots] == [style.METHODS[name].colour for name in AGENTS]
    assert [dot.get_ydata()[0] for dot in dots] == list(axes.get_yticks())
    assert [label.get_text() for label in axes.get_yticklabels()] == list(AGENTS)
    low, high = axes.get_ylim()
    assert low > high  # the first on top
    assert axes.get_legend() is None


def test_variants_look_like_their_method():
    axes = axes_of(
        draw_dots, ("UBE, greedy", "URBE, greedy", "UBE, noisy"), {"": [ConfidenceInterval(1.0, 0.0, 2.0)] * 3}
    )
    dots = axes.lines[1::2]
    looks = [style.METHODS[name] for name in ("UBE", "URBE", "UBE")]
    assert [(dot.get_color(), dot.get_marker()) for dot in dots] == [(look.colour, look.marker) for look in looks]


def test_groups_are_coloured_by_group_and_named_above():
    interval = ConfidenceInterval(1.0, 0.0, 2.0)
    groups = {"RSVF": [interval, interval], "BCI": [interval, None]}
    axes = axes_of(draw_dots, ("river", "machine"), groups)
    assert [line.get_color() for line in axes.lines[1::2]] == [
        style.METHODS["RSVF"].colour, style.METHODS["RSVF"].colour, style.METHODS["BCI"].colour,
    ]  # fmt: skip
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["RSVF", "BCI"]
    heights = [line.get_ydata()[0] for line in axes.lines[1::2]]
    assert len(set(heights)) == 3
    first, second = axes.get_yticks()
    assert first == pytest.approx(np.mean([heights[0], heights[2]]))
    assert second - first == rows_of(1, 2)


def test_strips_show_quantiles():
    samples = np.arange(101.0) + 1.0
    axes = axes_of(draw_strips, ("URBE", "UBE"), {"": [samples, np.array([])]}, scale="log")
    outer, inner, middle = axes.lines
    assert list(outer.get_xdata()) == [6.0, 96.0]
    assert list(inner.get_xdata()) == [26.0, 76.0]
    assert list(middle.get_xdata()) == [51.0]
    assert inner.get_linewidth() > outer.get_linewidth()


def test_strips_on_a_logarithmic_axis_need_positive_samples():
    with pytest.raises(ValueError, match="A sample of 'UBE' is 0, expected positive numbers"):
        axes_of(draw_strips, ("UBE",), {"": [np.array([1.0, 0.0])]}, scale="log")
    axes_of(draw_strips, ("UBE",), {"": [np.array([1.0, 0.0])]})


def test_a_missing_entry_is_named():
    with pytest.raises(ValueError, match="groups\\['RSVF'\\] has 1 entries, expected one for each of 2 categories"):
        axes_of(draw_dots, ("river", "machine"), {"RSVF": [None]})
