"""Recorded numbers of figures: those drawn, at the pixels where they are drawn, and as tables."""

import json
import re

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from fixtures import book
from urbe.report import values
from urbe.report.content import Exhibit
from urbe.report.curves import draw_bands
from urbe.report.drawing import svg
from urbe.report.exhibits import exhibit_html
from urbe.report.figures import Figure, panels, styled
from urbe.statistics.estimates import Band

EXACT = Band(*[np.arange(3.0)] * 3)


def read(exhibit):
    svg(exhibit.figure, "f", "words")
    return values.panels_of(exhibit.figure)


def test_places_are_those_of_the_points_in_the_drawing():
    exhibit = book.lined()
    drawn = svg(exhibit.figure, "f", "words")
    points = [tuple(map(float, point)) for point in re.findall(r"[ML] ([\d.]+) ([\d.]+)", drawn)]
    (panel,) = values.panels_of(exhibit.figure)
    for series in panel.series:
        assert len(series.at) == 9
        for place in series.at:
            assert np.abs(np.array(points) - place).max(axis=1).min() < 0.01


def test_places_hold_when_an_aspect_moves_the_panel():
    """A map of equal aspect is shrunk only when it is drawn."""
    left, _ = read(book.heated())
    figure = book.heated().figure
    FigureCanvasAgg(figure).draw()
    axes = figure.axes[0]
    wanted = axes.transData.transform((3.5, 2.5)) * 72.0 / figure.dpi
    last = left.series[-1].at[-1]
    assert last == pytest.approx((wanted[0], 72.0 * figure.get_size_inches()[1] - wanted[1]))


def test_curves_tell_values_with_intervals():
    left, right = read(book.banded())
    assert [s.name for s in left.series] == [s.name for s in right.series] == list(book.AGENTS)
    first = left.series[0]
    assert len(first.at) == values.MOST < 300
    assert (first.where[0], first.where[-1]) == ("1", "300")
    assert (first.value[0], first.value[-1]) == ("4 [-5, 13]", "1200 [1191, 1209]")
    assert left.across == "episode"
    assert left.title == "a belief (reward)"


def test_dots_and_strips_are_named_by_category_and_group_and_what_is_missing_is_left_out():
    dots, strips = read(book.dotted())
    firsts = [f"{agent}, first" for agent in book.AGENTS]
    assert [s.name for s in dots.series] == [*firsts, "URBE, second", "UBE, second", "PSRL, second"]
    assert dots.series[1].value == ("1.00 [0.50, 1.50]",)
    low, middle, high = np.quantile(np.arange(50.0), (0.05, 0.5, 0.95))
    assert strips.series[0].value == (f"{middle:.4g} [{low:.4g}, {high:.4g}]",)


def test_maps_of_actions_tell_the_action():
    (panel,) = read(book.mapped())
    assert [s.name for s in panel.series] == ["s0", "s1", "s2"]
    codes = np.arange(33).reshape(3, 11) // 5 % 2
    for series, row in zip(panel.series, codes, strict=True):
        assert series.value == tuple(("left", "right")[code] for code in row)
    assert panel.series[0].where[3] == "0.3"


def test_notes_do_not_change_the_drawing():
    def drawn(noting):
        with styled():
            figure, axes = panels()
            draw_bands(axes[0][0], np.arange(3.0), {"up": EXACT})
            if not noting:
                for artist in list(axes[0][0].artists):
                    artist.remove()
            canvas = FigureCanvasAgg(figure)
            canvas.draw()
        return np.asarray(canvas.buffer_rgba()).copy()

    assert np.array_equal(drawn(True), drawn(False))


def test_what_is_read_is_json_that_cannot_end_the_script():
    with styled():
        figure, axes = panels()
        draw_bands(axes[0][0], np.arange(3.0), {"</script><b>": EXACT})
        axes[0][0].set_xlabel("time")
    text = values.as_json(read(Exhibit("e", figure, "", "")))
    assert "<" not in text
    ((title, across, ((name, points),)),) = json.loads(text)
    assert (title, across, name) == ("", "time", "</script><b>")
    assert [point[2:] for point in points] == [["0", "0"], ["1", "1"], ["2", "2"]]


def test_tables_show_the_same_numbers_and_fit_a_page():
    left, _ = values.tables_of(read(book.banded()))
    assert left.head == ("episode", *book.AGENTS)
    assert len(left.rows) == values.MOST_ROWS
    assert left.rows[0] == ("1", "4 [-5, 13]", "3 [-6, 12]", "2 [-7, 11]", "1 [-8, 10]")
    assert left.rows[-1][0] == "300"
    dots, _ = values.tables_of(read(book.dotted()))
    assert dots.head == ("", "total")
    assert dots.rows[1] == ("UBE, first", "1.00 [0.50, 1.50]")


def test_series_without_a_point_where_others_have_one_leave_a_dash():
    figure = Figure()
    axes = figure.add_subplot()
    values.note(axes, values.curve("a", [1, 2], [1.0, 2.0]))
    values.note(axes, values.curve("b", [2, 10], [3.0, 4.0]))
    (table,) = values.tables_of(read(Exhibit("e", figure, "", "")))
    assert table.rows == (("1", "1", "-"), ("2", "2", "3"), ("10", "-", "4"))


def test_a_figure_has_its_own_tables_or_those_of_the_drawing():
    assert "Actions" in exhibit_html(book.mapped(), "f", ())
    assert "<caption>Values</caption>" in exhibit_html(book.lined(), "f", ())
    nothing = exhibit_html(book.bare(), "f", ())
    assert "<details" not in nothing
    assert "<script" not in nothing
