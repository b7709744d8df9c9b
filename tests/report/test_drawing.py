"""Figures divided into panels: they can be stacked, each panel is shown once, and nothing is cut."""

import re

import pytest

from fixtures import book
from urbe.report.drawing import split, svg
from urbe.report.figures import panels, styled


def boxes_of(figure):
    columns, parts = split(figure)
    return columns, [part.box for part in parts]


def test_panels_in_columns_are_parts_that_tile_the_figure_row_by_row():
    with styled():
        figure, _ = panels(2, 2)
    width, height = (72.0 * side for side in figure.get_size_inches())
    columns, boxes = boxes_of(figure)
    assert columns == 2
    assert [(left > 0, top > 0) for left, top, _, _ in boxes] == [
        (False, False), (True, False), (False, True), (True, True),
    ]  # fmt: skip
    assert sum(w * h for _, _, w, h in boxes) == pytest.approx(width * height, rel=1e-4)


def test_a_panel_across_all_columns_is_a_part_of_its_own():
    with styled():
        figure, _ = panels(1, 2, bottom=1.0)
        figure.add_axes((0.03, 0.02, 0.94, 0.05)).set_axis_off()
    columns, boxes = boxes_of(figure)
    assert columns == 2
    assert [round(box[2]) for box in boxes] == [360, 360, 720]


@pytest.mark.parametrize("kind", ["one", "text of the figure", "a label that crosses", "hidden"])
def test_other_figures_are_one_part(kind):
    with styled():
        figure, axes = panels(1, 1 if kind == "one" else 2)
        if kind == "text of the figure":
            figure.text(0.5, 0.5, "between")
        elif kind == "a label that crosses":
            axes[0][0].set_title("much too long for half of the figure " * 3)
        elif kind == "hidden":
            axes[0][1].set_visible(False)
    width, height = (72.0 * side for side in figure.get_size_inches())
    assert boxes_of(figure) == (1, [(0.0, 0.0, width, height)])


def test_every_panel_is_drawn_once_and_clip_paths_stay():
    figure = book.banded().figure
    drawing = svg(figure, "name", "words")
    left, right = drawing.split("<svg ")[1:]
    assert [part.count('id="name-axes_') for part in (left, right)] == [1, 1]
    assert set(re.findall(r"url\(#([^)]*)\)", drawing)) <= set(re.findall(r'id="([^"]*)"', drawing))
    assert 'viewBox="360 0 360' in right
