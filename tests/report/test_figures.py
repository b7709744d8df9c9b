"""Drawing: labels that do not overlap, legible colours, no global state."""

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from urbe.report import style
from urbe.report.curves import draw_bands
from urbe.report.drawing import svg
from urbe.report.figures import Figure, mark_gap, spread, styled
from urbe.report.maps import draw_map, on_colour, ramp
from urbe.statistics.estimates import Band


@given(st.lists(st.floats(-50, 150), min_size=1, max_size=7), st.floats(1, 14))
def test_spread_keeps_distance_order_and_bounds(wanted, distance):
    wanted = np.array(wanted)
    placed = spread(wanted, distance, 100.0)
    order = np.argsort(wanted, kind="stable")
    assert (np.diff(placed[order]) >= distance - 1e-9).all()
    assert placed.min() >= -1e-9
    assert placed.max() <= 100.0 + 1e-9  # seven times 14 fits


def test_spread_leaves_alone_what_is_apart_and_centres_what_is_not():
    assert spread(np.array([10.0, 30.0, 90.0]), 15.0, 100.0) == pytest.approx([10.0, 30.0, 90.0])
    assert spread(np.array([50.0, 50.0]), 10.0, 100.0) == pytest.approx([45.0, 55.0])


def panel(first, second, at=None):
    """A panel of two lines; returns the figure, its axes, and the pixel boxes of the names."""
    x = np.linspace(0.0, 2.0, len(first))
    with styled():
        figure = Figure(figsize=(5.0, 2.5))
        axes = figure.add_axes((0.2, 0.2, 0.6, 0.7))
        draw_bands(axes, x, {"robust": Band(first, first, first), "nominal": Band(second, second, second)})
        if at is not None:
            mark_gap(axes, x, first, second, at, "insurance")
        renderer = FigureCanvasAgg(figure).get_renderer()
        boxes = {text.get_text(): text.get_window_extent(renderer) for text in axes.texts}
    return figure, axes, boxes


@pytest.mark.parametrize("distance", [0.0, 1e-9, 0.05, 0.5])
def test_names_at_line_ends_do_not_touch_and_stay_in_the_figure(distance):
    figure, axes, boxes = panel(np.linspace(1, 0, 21), np.linspace(1, -distance, 21))
    assert not boxes["robust"].overlaps(boxes["nominal"])
    assert boxes["robust"].y0 > boxes["nominal"].y0  # the first on top
    assert min(box.x0 for box in boxes.values()) > axes.bbox.x1
    assert max(box.x1 for box in boxes.values()) < figure.bbox.x1


@pytest.mark.parametrize("at", [4, 10, 16, 20])
@pytest.mark.parametrize("power", [0.2, 0.5, 1.0, 3.0])
def test_the_name_of_a_gap_touches_no_line(at, power):
    x = np.linspace(0.0, 1.0, 21)
    _, axes, boxes = panel(-(x ** (power + 0.4)), -(x**power) * 1.6, at)
    if "insurance" in boxes:
        for line in axes.lines[:2]:
            points = axes.transData.transform(np.column_stack(line.get_data()))
            dense = np.column_stack([np.interp(np.linspace(0, 20, 400), np.arange(21), points[:, i]) for i in (0, 1)])
            box = boxes["insurance"]
            within = (abs(dense[:, 0] - (box.x0 + box.x1) / 2) < box.width / 2) & (
                abs(dense[:, 1] - (box.y0 + box.y1) / 2) < box.height / 2
            )
            assert not within.any()
        assert not boxes["insurance"].overlaps(boxes["robust"])


def test_a_gap_with_room_is_named_and_one_too_thin_is_not():
    x = np.linspace(0.0, 1.0, 21)
    assert "insurance" in panel(-x, -3.0 * x, 12)[2]
    assert "insurance" not in panel(-x, -x - 1e-6, 12)[2]


def test_map_covers_every_cell_once_in_its_colour():
    codes = np.array([[0, 0, 1, 1, 0], [1, 1, 1, 1, 1]])
    with styled():
        figure = Figure(figsize=(6.0, 2.0))
        axes = figure.add_axes((0.2, 0.2, 0.7, 0.7))
        draw_map(axes, np.linspace(0.0, 1.0, 5), codes, ("s0", "s1"), ("left", "right"), style.ACTIONS[:2])
    drawn = {}
    for bars in axes.collections:
        for path in bars.get_paths():
            (x0, y0), (x1, y1) = path.get_extents().get_points()
            columns = range(round(x0 * 4 + 0.5), round(x1 * 4 + 0.5))
            for column in columns:
                key = (round((y0 + y1) / 2), column)
                assert key not in drawn
                drawn[key] = matplotlib.colors.to_hex(bars.get_facecolor()[0])
    assert drawn == {(s, i): style.ACTIONS[codes[s, i]] for s in range(2) for i in range(5)}
    assert sorted(text.get_text() for text in axes.texts) == ["left", "left", "right", "right"]


def luminance(colour):
    """Relative luminance, WCAG 2."""
    total = 0.0
    for i, weight in ((1, 0.2126), (3, 0.7152), (5, 0.0722)):
        c = int(colour[i : i + 2], 16) / 255
        total += weight * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
    return total


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", [1, 2])
def test_writing_is_readable_on_light_and_dark(mode):
    card = style.THEMED[style.CARD][mode]
    for colour in (style.INK, style.MUTED, style.ROBUST, style.NOMINAL):
        assert contrast(style.THEMED[colour][mode], card) >= 4.5  # WCAG AA for text


@pytest.mark.parametrize("colour", [*style.ACTIONS, *ramp(12)])
def test_writing_is_readable_on_every_action(colour):
    assert contrast(on_colour(colour), colour) >= 4.5


def test_no_global_settings_change():
    before = dict(matplotlib.rcParams)
    figure, _, _ = panel(np.linspace(1, 0, 5), np.linspace(1, -1, 5), 3)
    svg(figure, "name", "words")
    assert dict(matplotlib.rcParams) == before
