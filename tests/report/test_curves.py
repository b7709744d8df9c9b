"""Curves with bands: names, and marks where something changed."""

import re
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from urbe.report import style
from urbe.report.curves import draw_bands, mark_changes
from urbe.report.drawing import svg
from urbe.report.figures import WIDTH, panels, styled
from urbe.statistics.estimates import Band


def box_of_words(annotation, renderer):
    """Without the leader, which is in an annotation's own extent."""
    annotation.update_positions(renderer)
    return Text.get_window_extent(annotation, renderer)


def banded(names, x, scale="linear"):
    with styled():
        figure, axes = panels(top=0.6)
        panel = axes[0][0]
        panel.set_xscale(scale)
        panel.set_yscale(scale)
        bands = {name: Band(x + i, 0.9 * x + i, 1.1 * x + i) for i, name in enumerate(names)}
        draw_bands(panel, x, bands)
        renderer = FigureCanvasAgg(figure).get_renderer()
        boxes = {text.get_text(): box_of_words(text, renderer) for text in panel.texts}
    return figure, panel, boxes


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_bands_are_named_at_their_ends_without_touching(scale):
    names = [name for name in style.METHODS if len(name) < 16][:9]
    figure, panel, boxes = banded(names, np.arange(1.0, 50.0), scale)
    assert list(boxes) == names
    placed = sorted(boxes.values(), key=lambda box: box.y0)
    assert all(below.y1 <= above.y0 + 1.0 for below, above in pairwise(placed))
    assert max(box.x1 for box in placed) <= figure.bbox.x1
    assert any(text.arrow_patch is not None for text in panel.texts)  # some stand far from their ends
    assert [line.get_color() for line in panel.lines] == [style.METHODS[name].colour for name in names]


def test_an_end_on_a_logarithmic_axis_is_named_at_its_height():
    _, panel, boxes = banded(["PSRL"], np.arange(1.0, 1000.0), "log")
    _, height = panel.transData.transform((1.0, 999.0))
    box = boxes["PSRL"]
    assert box.y0 < height < box.y1
    assert panel.texts[0].arrow_patch is None


def test_a_broken_line_is_named_at_its_last_point():
    x = np.arange(10.0)
    y = np.where(x < 5, 2.0 * x, np.nan)
    with styled():
        _, axes = panels()
        draw_bands(axes[0][0], x, {"UBE": Band(y, y, y), "PSRL": Band(x, x, x)})
    assert [text.get_text() for text in axes[0][0].texts] == ["UBE", "PSRL"]


def test_a_thin_line_leads_from_a_line_that_ends_early_to_its_name():
    x = np.arange(10.0)
    y = np.where(x < 5, 2.0 * x, np.nan)
    with styled():
        _, axes = panels()
        draw_bands(axes[0][0], x, {"UBE": Band(y, y, y), "PSRL": Band(x, x, x)})
    *_, lead = axes[0][0].lines
    assert lead.get_xydata().tolist() == [[4.0, 8.0], [9.0, 8.0]]
    assert lead.get_linewidth() < 1.0
    assert lead.get_color() == style.METHODS["UBE"].colour


def test_logarithmic_abscissae_must_be_positive():
    with pytest.raises(ValueError, match=r"x\[0\] is 0.0, expected a positive"):
        banded(["UBE"], np.arange(10.0), "log")


def test_changes_are_ruled_and_their_names_do_not_touch():
    figure, panel, _ = banded(["URBE"], np.arange(1000.0))
    at, names = [100, 500, 540, 800], ["arm fails", "a second arm", "all recovers", "the end"]
    mark_changes(panel, at, names)
    rules = [line.get_xdata()[0] for line in panel.lines[1:]]
    assert rules == at
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [text.get_window_extent(renderer) for text in panel.texts if text.get_text() in names]
    assert len(boxes) == 4
    assert all(box.y0 >= panel.bbox.y1 and box.y1 <= figure.bbox.y1 for box in boxes)
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 3)])
def test_panels_have_the_sizes_asked_for(rows, columns):
    figure, axes = panels(rows, columns, height=2.0, left=0.5, right=0.7, top=0.3, bottom=0.4)
    assert figure.get_size_inches() == pytest.approx((WIDTH, rows * 2.7))
    for i, row in enumerate(axes):
        for j, panel in enumerate(row):
            box = panel.get_position()
            assert box.height * rows * 2.7 == pytest.approx(2.0)
            assert box.width * WIDTH == pytest.approx(WIDTH / columns - 1.2)
            assert box.x0 * WIDTH == pytest.approx(j * WIDTH / columns + 0.5)
            assert (1.0 - box.y1) * rows * 2.7 == pytest.approx(i * 2.7 + 0.3)


def test_coordinates_carry_two_decimals():
    drawing = svg(banded(["URBE"], np.linspace(1.0, 2.0, 50) ** 3)[0], "name", "words")
    paths = re.findall(r'\bd="([^"]*)"', drawing)
    assert paths
    assert not any(re.search(r"\.\d{3}", path) for path in paths)
