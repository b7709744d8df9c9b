"""Figures of results: their content and texts, for few and for many states."""

import io

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import urbe
from fixtures.machines import NAMES, messy_rows, numeric
from urbe.evaluation.episodes import Episodes
from urbe.evaluation.table import Evaluation
from urbe.report.results import MOST_STATES


@pytest.fixture(scope="module")
def posterior():
    log = urbe.Transitions.from_columns(numeric(messy_rows()), names=NAMES, missing="drop")
    return urbe.Posterior.fit(log, discount=0.9, rewards=urbe.NormalGamma.around(log.reward))


def texts(figure):
    found = [text.get_text() for axes in figure.axes for text in (*axes.texts, *axes.get_yticklabels())]
    return found + [axes.get_title(loc="left") for axes in figure.axes]


def png(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=30)
    return buffer.getvalue()


def test_a_solution_shows_states_actions_and_values(posterior):
    solution = urbe.solve(posterior.mean(), urbe.L1Ball(0.2))
    figure = solution.plot()
    shown = texts(figure)
    assert {"good", "worn", "broken"} <= set(shown)
    assert {"run", "repair"} <= set(shown)
    assert "Optimal value in the worst case, and the action of each state" in shown
    dots = [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert dots == solution.value.tolist()
    assert png(figure) == png(solution.plot())
    assert figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)


def test_a_plan_shows_what_is_guaranteed(posterior):
    plan = urbe.plan(posterior, start="good", held_out=50)
    figure = plan.plot()
    shown = texts(figure)
    assert any("from state good; dashed" in text for text in shown)
    assert {"safe policy", "mean-model policy", "good"} <= set(shown)
    lines = [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert lines == [plan.guaranteed_at_start]
    assert png(figure)


def test_a_plan_without_held_out_draws_is_drawn(posterior):
    assert png(urbe.plan(posterior, held_out=0).plot())


def test_variances_are_lines_of_one_deviation(posterior):
    found = urbe.value_variance(posterior)
    figure = found.plot()
    ends = [line.get_xdata() for line in figure.axes[0].lines if line.get_marker() != "o"]
    assert [0.5 * (high - low) for low, high in ends] == pytest.approx((found.value_variance**0.5).tolist())


def test_of_many_states_the_first_are_drawn():
    figure = urbe.solve(urbe.library.garnet(60, 2, 3, seed=0, discount=0.9)).plot()
    assert len(figure.axes[0].get_yticks()) == MOST_STATES
    assert any(text.endswith(f"(the first {MOST_STATES} of 60 states)") for text in texts(figure))


def test_an_evaluation_is_drawn_over_what_varies():
    returns = np.arange(12.0).reshape(3, 4)
    episodes = Episodes(returns, np.ones((3, 4), np.int32), np.ones((3, 4), bool))
    points = tuple({"length": x} for x in (0.5, 1.0, 2.0))
    figure = Evaluation(points, ("length",), episodes, None, 0, 0.95, 0.1).plot()
    assert figure.axes[0].get_xlabel() == "length"
    assert png(figure)


NAMED = ("intensive care, bed beside the window, 2nd day after the operation", "WARD $5", "HOME & $6")


def outside(figure):
    """Texts that do not fit into the figure, after drawing it."""
    FigureCanvasAgg(figure).draw()
    width, height = figure.get_size_inches() * figure.dpi
    found = []
    for axes in figure.axes:
        for text in (*axes.texts, *axes.get_yticklabels(), axes.title, axes._left_title, axes.xaxis.label):
            box = text.get_window_extent()
            inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
            if any(map(str.isalpha, text.get_text())) and not inside:
                found.append(text.get_text())
    return found


@pytest.fixture(scope="module")
def wordy():
    actions = ["TRANSFER TO ANOTHER WARD THAT HAS MORE NURSES", "wait and decide again on the next day, at eight"]
    model = urbe.library.garnet(3, 2, 2, seed=1, discount=0.9)
    return model.with_labels(states=NAMED, actions=actions)


def test_long_names_fit_into_figures(wordy):
    posterior = urbe.Posterior.before(wordy).with_counts(np.arange(1, wordy.rows.n_entries + 1))
    start = dict.fromkeys(NAMED, 1 / 3)
    plan = urbe.plan(posterior, seed=0, start=start, held_out=5)
    for result in (
        urbe.solve(wordy, urbe.L1Ball(0.3)), plan, urbe.value_variance(posterior),
        urbe.sensitivity(wordy, urbe.L1Ball, [0.0, 0.5, 1.0]),
    ):  # fmt: skip
        assert outside(result.plot()) == []


def test_names_are_text_and_no_formulas(wordy):
    figure = urbe.solve(wordy).plot()
    png(figure)
    shown = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert shown[1:] == [r"WARD \$5", r"HOME & \$6"]  # matplotlib draws \$ as $
    assert shown[0].startswith("intensive care,")
    assert shown[0].endswith("the operation")


def test_a_finite_horizon_says_which_step_is_drawn(wordy):
    figure = urbe.solve(wordy, urbe.L1Ball(0.1), urbe.BackwardInduction(4)).plot()
    assert any("the action of each state, at the first of 4 steps" in text.replace("\n", " ") for text in texts(figure))
