"""Grids coloured by level: colours match the key, zones are in the right place, values are legible."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from urbe.report import style
from urbe.report.figures import styled
from urbe.report.maps import LEVELS, NAMES, Zone, draw_heatmap, draw_key
from urbe.report.values import panels_of


def drawn(shares, zones=None):
    with styled():
        figure = Figure(figsize=(3.0, 3.0))
        axes = figure.add_axes((0.1, 0.1, 0.8, 0.8))
        draw_heatmap(axes, np.asarray(shares), zones or {})
    return figure, axes


def colour_at(axes, row, column):
    """Of the patch that covers the middle of a cell; None when blank."""
    for patch in axes.patches:
        if not isinstance(patch, Rectangle) and to_hex(patch.get_facecolor(), keep_alpha=True)[7:] != "00":
            for polygon in patch.get_path().to_polygons():
                (left, top), (right, bottom) = polygon.min(axis=0), polygon.max(axis=0)
                if left < column + 0.5 < right and top < row + 0.5 < bottom:
                    return to_hex(patch.get_facecolor())
    return None


def test_each_level_has_its_colour_and_limits_belong_to_the_upper_one():
    shares = np.zeros((3, 4))
    shares[0] = (0.0, 0.00099, 0.001, 0.0029)
    shares[1] = (0.003, 0.01, 0.03, 0.0999)
    shares[2] = (0.1, 0.3, 1.0, 0.02)
    _, axes = drawn(shares)
    level = [[None, None, 0, 0], [1, 2, 3, 3], [4, 5, 5, 2]]
    for row in range(3):
        for column in range(4):
            expected = None if level[row][column] is None else style.HEAT[level[row][column]]
            assert colour_at(axes, row, column) == expected, (row, column)


def test_zones_are_outlined_and_named():
    _, axes = drawn(np.full((4, 4), 0.25), {"start": Zone(0, 0, 2, 3), "goal": Zone(3, 3)})
    outlines = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert [(p.get_x(), p.get_y(), p.get_width(), p.get_height()) for p in outlines] == [(0, 0, 3, 2), (3, 3, 1, 1)]
    assert [text.get_text() for text in axes.texts] == ["start", "goal"]


def test_values_can_be_read_cell_by_cell():
    figure, _ = drawn([[0.5, 0.125], [0.375, 0.0]])
    figure.canvas.draw()
    (panel,) = panels_of(figure)
    assert [series.name for series in panel.series] == ["row 1", "row 2"]
    assert panel.series[0].value == ("50 %", "12.5 %")
    assert panel.series[1].where == ("1", "2")
    upper, lower = panel.series
    assert upper.at[0, 1] < lower.at[0, 1]  # counted from the top


@pytest.mark.parametrize("mode", [1, 2])
def test_levels_go_from_the_page_towards_its_opposite(mode):
    def lightness(colour):
        rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
        return float(np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722))

    shades = [lightness(style.THEMED[colour][mode]) for colour in (style.CARD, *style.HEAT)]
    steps = np.diff(shades) if mode == 2 else -np.diff(shades)
    assert (steps > 0.0).all()


def test_the_key_names_every_level():
    with styled():
        figure = Figure(figsize=(10.0, 0.3))
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        draw_key(axes, "share of visits:")
    assert [text.get_text() for text in axes.texts] == ["share of visits:", "less", *NAMES]
    assert len(NAMES) == len(LEVELS) == len(style.HEAT)
