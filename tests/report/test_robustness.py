"""Figures of evaluations: the drawn numbers are the evaluated ones, in the colours of the agents."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex

from urbe.evaluation.episodes import Episodes
from urbe.evaluation.table import Evaluation
from urbe.report import style
from urbe.report.robustness import draw_robustness


def evaluation(mean, noisy, name="half_length", values=(1.0, 0.5, 2.0)):
    rng = np.random.default_rng(0)
    p = len(values)
    episodes = [
        Episodes(rng.normal(mean, 5.0, (p, 20)), np.ones((p, 20), np.int32), np.ones((p, 20), np.bool_))
        for _ in range(1 + noisy)
    ]
    points = tuple({name: value} for value in values)
    return Evaluation(points, (name,), episodes[0], episodes[1] if noisy else None, 0, 0.9, 0.1)


@pytest.fixture(scope="module")
def drawn():
    found = {"dqn": evaluation(100.0, False), "dqn-urbe": evaluation(150.0, True), "mine": evaluation(50.0, False)}
    return found, draw_robustness(found)


def test_lines_are_means_and_worst_episodes_in_order_of_the_parameter(drawn):
    found, figure = drawn
    top, bottom = figure.axes
    assert "greedily" in top.get_title(loc="left")
    assert "noise" in bottom.get_title(loc="left")
    for axes, way, names in ((top, "greedy", ["dqn", "dqn-urbe", "mine"]), (bottom, "noisy", ["dqn-urbe"])):
        heights = {tuple(line.get_ydata()) for line in axes.lines}
        for name in names:
            table = found[name].table()
            order = np.argsort(table["half_length"][table["acting"] == way])
            for column in ("mean", "worst"):
                assert tuple(table[column][table["acting"] == way][order]) in heights
        assert all(line.get_xdata().tolist() == [0.5, 1.0, 2.0] for line in axes.lines)
        assert [text.get_text() for text in axes.texts] == names
        assert len(axes.collections) == len(names)  # the bands


def test_agents_have_their_colours_and_strangers_others(drawn):
    _, figure = drawn
    colours = {text.get_text(): to_hex(text.get_color()) for text in figure.axes[0].texts}
    assert colours["dqn"] == style.DEEP["dqn"].colour
    assert colours["dqn-urbe"] == style.METHODS["calibrated URBE"].colour
    assert colours["mine"] not in (colours["dqn"], colours["dqn-urbe"])
    assert len({look[:2] for look in style.DEEP.values()}) == len(style.DEEP)


def test_everything_fits_into_the_picture(drawn):
    _, figure = drawn
    renderer = FigureCanvasAgg(figure).get_renderer()
    for axes in figure.axes:
        for text in (*axes.texts, axes._left_title, axes.xaxis.label):
            box = text.get_window_extent(renderer)
            assert figure.bbox.x0 <= box.x0
            assert box.x1 <= figure.bbox.x1


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({}, "evaluations is empty"),
        ({"one": evaluation(1.0, False, values=(1.0,))}, "In 'one' half_length has 1 value, expected at least 2"),
        (
            {"one": evaluation(1.0, False), "two": evaluation(1.0, False, values=(1.0, 2.0))},
            "'two' and 'one' are over different parameters",
        ),
        ({"one": evaluation(1.0, False), "two": evaluation(1.0, False, name="force")}, "over different parameters"),
    ],
)
def test_what_cannot_be_drawn_is_refused(others, message):
    with pytest.raises(ValueError, match=message):
        draw_robustness(others)


def test_one_parameter_must_vary():
    first = evaluation(1.0, False)
    both = Evaluation(
        tuple({"a": 1.0, "b": value} for value in (1.0, 2.0, 3.0)), ("a", "b"), first.greedy, None, 0, 0.9, 0.1
    )
    with pytest.raises(ValueError, match="In 'both' the parameters that vary are a, b, expected one"):
        draw_robustness({"both": both})
