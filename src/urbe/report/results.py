"""Draw results: values of states with their bounds and actions, safe plans, posterior deviations.

The methods `plot()` of `Solution`, `SafePlan`, `ValueVariance`, `Sensitivity` and `Evaluation` end here. Figures have a
white background: `figure.savefig("name.png")` writes them, notebooks show them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from urbe.planners.safe_plan import SafePlan
from urbe.report import style, values
from urbe.report.dots import ROW, draw_strips, rows_of
from urbe.report.figures import WIDTH, Figure, panels, styled
from urbe.report.maps import draw_map, draw_shares, ramp
from urbe.report.numbers import number
from urbe.report.price import ROW as STRIP
from urbe.report.price import TITLES, PriceCurves, draw_price, strip_margin
from urbe.solvers.sensitivity import Sensitivity
from urbe.solvers.solution import Solution
from urbe.types import FloatArray
from urbe.variance.value_variance import ValueVariance

if TYPE_CHECKING:
    from urbe.deep.adaptive.session import Session
    from urbe.evaluation.compare import AgentComparison
    from urbe.evaluation.seeds import SeedEvaluation
    from urbe.evaluation.table import Evaluation

MOST_STATES = 40
"""A figure shows at most this many states, the first ones."""

FEW_STATES = 12
"""For larger models, only states whose action changes are drawn."""

SAFE, MEAN = "safe policy", "mean-model policy"


LETTERS = 36
"""Longer names of states and actions are shortened in the middle; margins have room for this many letters."""

HALF = 14
"""The same where two names stand beside each other."""

LETTER = 0.082
"""Width of a letter of a title in inches, a wide one on average."""


class StateRows(NamedTuple):
    """The drawing of each state, one row each.

    Attributes:
      names: names of the rows.
      value: `(n,)`.
      low, high: `(n,)` ends of a line through it.
      actions: text beside each row.
    """

    names: Sequence[str]
    value: FloatArray
    low: FloatArray
    high: FloatArray
    actions: Sequence[str]


def draw_solution(solution: Solution) -> Figure:
    """Draws the value of each state (at the first step) with its certified bounds and its action."""
    mdp = solution.operator.mdp
    n = min(mdp.n_states, MOST_STATES)
    value, lower, upper = (np.atleast_2d(x)[0][:n] for x in (solution.value, solution.lower, solution.upper))
    actions = [short(solution.action_text(state)) for state in range(n)]
    rows = StateRows([*map(short, mdp.labels.state_texts(range(n)))], value, lower, upper, actions)
    what = "Optimal value" if solution.optimal else "Value of the policy"
    worst = "" if solution.operator.singleton else " in the worst case"
    step = "" if solution.value.ndim == 1 else f", at the first of {len(solution.policy)} steps"
    title = f"{what}{worst}, and the action of each state{step}{_rest(mdp.n_states)}"
    with styled():
        figure, (axes,) = _stacked([(n, title)], rows.names, rows.actions)
        draw_states(axes, rows)
        axes.set_xlabel("value")
    return figure


def draw_plan(plan: SafePlan) -> Figure:
    """Draws the values of the safe and the mean-model policy on drawn models, and the guarantee in each state."""
    mdp = plan.model
    n = min(mdp.n_states, MOST_STATES)
    labels = mdp.labels
    pairs = zip(labels.action_texts(plan.policy[:n]), labels.action_texts(plan.nominal_policy[:n]), strict=True)
    actions = [
        short(mine) if mine == other else f"{short(mine, HALF)} (mean model: {short(other, HALF)})"
        for mine, other in pairs
    ]
    guaranteed = plan.guaranteed[:n]
    names = [*map(short, labels.state_texts(range(n)))]
    rows = StateRows(names, guaranteed, guaranteed, guaranteed, actions)
    values_title = (
        f"Value on {len(plan.held_out.values)} models drawn from the posterior, from {_literal(plan.start_text)}; "
        f"dashed, {number(plan.guaranteed_at_start, 4)} guaranteed"
    )
    states_title = f"Guaranteed at confidence {plan.confidence:g} in every state at once{_rest(mdp.n_states)}"
    with styled():
        figure, (above, below) = _stacked(
            [(rows_of(2), values_title), (n, states_title)], (*rows.names, MEAN), rows.actions
        )
        draw_strips(above, (SAFE, MEAN), {"": (plan.held_out.values, plan.nominal_held_out.values)})
        above.axvline(plan.guaranteed_at_start, color=style.ROBUST, linewidth=1.2, linestyle=style.DASHED)
        above.set_xlabel("value: median, middle half, 5 % to 95 %")
        draw_states(below, rows)
        below.set_xlabel("guaranteed value")
    return figure


def draw_variance(found: ValueVariance) -> Figure:
    """Draws the value of each state (at the first step), plus and minus its posterior standard deviation."""
    mdp = found.model
    n = min(mdp.n_states, MOST_STATES)
    value, variance = (np.atleast_2d(x)[0][:n] for x in (found.value, found.value_variance))
    deviation = np.sqrt(np.maximum(variance, 0.0))
    names = [*map(short, mdp.labels.state_texts(range(n)))]
    texts = [f"± {number(float(each), 3)}" for each in deviation]
    with styled():
        title = f"Value and its posterior standard deviation{_rest(mdp.n_states)}"
        figure, (axes,) = _stacked([(n, title)], names, texts)
        draw_states(axes, StateRows(names, value, value - deviation, value + deviation, texts))
        axes.set_xlabel("value")
    return figure


def draw_sensitivity(found: Sensitivity) -> Figure:
    """Draws price and insurance over the radius, and below the policy: a strip for each state that changes."""
    if len(found.radius) < 2:
        raise ValueError(f"There is one radius, {found.radius[0]:g}, expected at least two to draw over.")
    shown = _shown_states(found)
    labels = found.model.labels
    states = [*map(short, labels.state_texts(shown))]
    n_actions = found.model.n_actions
    margin, height, top, bottom = strip_margin(states), 2.15, 0.4, 0.55
    strips = STRIP * len(states)
    whole = 2.0 * (top + bottom) + height + strips
    with styled():
        figure = Figure(figsize=(WIDTH, whole), facecolor="white")
        half, floor = 0.5 * WIDTH, whole - top - height
        pair = [
            figure.add_axes(((k * half + 0.85) / WIDTH, floor / whole, (half - 1.7) / WIDTH, height / whole))
            for k in range(2)
        ]
        curves = PriceCurves(
            found.set_name, found.radius, (found.robust_worst, found.nominal_worst),
            (found.robust_nominal, found.nominal_nominal),
        )  # fmt: skip
        draw_price(pair[0], pair[1], curves)
        for panel, title in zip(pair, TITLES, strict=True):
            panel.set_title(title)
        axes = figure.add_axes((margin / WIDTH, bottom / whole, (WIDTH - margin - 0.2) / WIDTH, strips / whole))
        colours = style.ACTIONS[:n_actions] if n_actions <= len(style.ACTIONS) else ramp(n_actions)
        steps = np.diff(found.radius)
        even = np.ptp(steps) <= 1e-9 * steps.max()
        x = found.radius if even else np.arange(len(found.radius), dtype=np.float64)
        names = [short(labels.action(a)) for a in range(n_actions)]
        draw_map(axes, x, found.first_actions[1:, shown].T, states, names, colours)
        if not even:
            axes.set_xticks(x, [f"{r:g}" for r in found.radius])
        axes.set_xlabel(f"{found.set_name} radius")
        axes.set_title(_strips_title(found, len(shown)))
    return figure


def _shown_states(found: Sensitivity) -> list[int]:
    """The non-terminal states; if there are many, only those whose action changes, if any."""
    first = found.first_actions
    live = first[0] >= 0
    changes = live & (first[1:] != first[0]).any(axis=0)
    chosen = changes if live.sum() > FEW_STATES and changes.any() else live
    return [int(state) for state in np.flatnonzero(chosen)[:MOST_STATES]]


def _strips_title(found: Sensitivity, n_shown: int) -> str:
    policies = found.first_actions
    n_live = int((policies[0] >= 0).sum())
    which = "" if n_shown == n_live else f" ({n_shown} of {n_live} states)"
    which += "" if found.horizon is None else f", step 1 of {found.horizon}"
    first = np.flatnonzero((policies[1:] != policies[0]).any(axis=1))
    if not len(first):
        return f"The robust policy: it never changes{which}"
    return f"The robust policy: it first changes at radius {found.radius[first[0]]:g}{which}"


def draw_evaluation(evaluation: Evaluation) -> Figure:
    """Draws mean returns over the parameter that varies; see `urbe.report.robustness.draw_robustness`."""
    from urbe.report.robustness import draw_robustness  # needs JAX; the other pictures do not

    figure = draw_robustness({"policy": evaluation})
    figure.set_facecolor("white")
    return figure


def draw_seeds(agents: Mapping[str, SeedEvaluation]) -> Figure:
    """Draws means over training seeds; see `urbe.report.comparison.draw_seeds`."""
    from urbe.report import comparison

    figure = comparison.draw_seeds(agents)
    figure.set_facecolor("white")
    return figure


def draw_comparison(compared: AgentComparison) -> Figure:
    """Compares agents; see `urbe.report.comparison.draw_comparison`."""
    from urbe.report import comparison

    figure = comparison.draw_comparison(compared)
    figure.set_facecolor("white")
    return figure


def draw_session(session: Session) -> Figure:
    """Draws the belief over the members and the surprise after each step, and the returns of episodes."""
    if not session.log:
        raise ValueError("The session has no steps, expected at least one to draw: act and observe first.")
    columns, names = session.columns(), session.member_names
    ended = columns["terminated"] | columns["truncated"]
    total = np.cumsum(columns["reward"])[ended]
    limit = session.policy.watch.limit
    with styled():
        figure, ((above,), (between,), (below,)) = panels(3, height=1.9, left=1.7, right=0.4)
        draw_shares(above, columns["belief"].T)
        above.set_yticks(range(len(names)), names, fontsize=6.5)
        above.set_title("belief over the members after each step, used for decisions")
        between.plot(columns["surprise"], color=style.ROBUST, linewidth=1.2)
        between.axhline(limit, color=style.MUTED, linewidth=0.8, linestyle=style.DASHED)
        between.set_title("surprise in nats; above the dashed line no member explains the observations")
        between.set_ylim(top=min(max(1.2 * limit, float(columns["surprise"].max())), 3.0 * limit))
        below.plot(np.flatnonzero(ended), np.diff(total, prepend=0.0), ".", markersize=4.0, color=style.ROBUST)
        below.set_title("return of each episode, at its last step")
        below.set_xlabel("step")
        for panel in (between, below):
            panel.set_xlim(above.get_xlim())
    figure.set_facecolor("white")
    return figure


def draw_states(axes: Axes, rows: StateRows) -> None:
    """Draws a dot for each state with a line from low to high, its name on the left and its action on the right."""
    for at, (name, value, low, high, action) in enumerate(zip(*rows, strict=True)):
        axes.plot([low, high], [at, at], color=style.ROBUST, linewidth=1.6)
        axes.plot([value], [at], color=style.ROBUST, marker="o", markersize=4.5)
        axes.annotate(
            action, xy=(1.0, at), xycoords=("axes fraction", "data"), xytext=(8.0, 0.0), textcoords="offset points",
            va="center_baseline", fontsize=9.0, annotation_clip=False,
        )  # fmt: skip
        values.note(axes, values.point(name, float(value), float(at), f"{number(float(value))}, {action}"))
    axes.set_yticks(range(len(rows.names)), rows.names)
    axes.set_ylim(len(rows.names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0.0)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.spines["left"].set_visible(False)


def short(name: str, most: int = LETTERS) -> str:
    """The name of a state or an action as text for figures: a long one loses its middle, and `$` begins no formula.

    >>> short("intensive care, bed beside the window, after surgery, 3")
    'intensive care, be…after surgery, 3'
    """
    cut = name if len(name) <= most else f"{name[: most // 2].rstrip()}…{name[1 - most // 2 :].lstrip()}"
    return _literal(cut)


def _literal(text: str) -> str:
    return text.replace("$", r"\$")


def _stacked(
    parts: Sequence[tuple[float, str]], left: Sequence[str], right: Sequence[str]
) -> tuple[Figure, list[Axes]]:
    """Makes stacked panels.

    Args:
      parts: rows and title of each panel; panels are as high as their rows need, titles as many lines as they need.
      left, right: the names beside the panels.
    """
    margin, beyond = 0.4 + 0.085 * _longest(left), 0.4 + 0.085 * _longest(right)
    titles = [textwrap.wrap(title, int((WIDTH - margin) / LETTER)) for _, title in parts]
    heights = [ROW * (rows + 1) for rows, _ in parts]
    tops, bottom = [0.4 + 0.19 * (len(lines) - 1) for lines in titles], 0.55
    whole = sum(heights) + sum(tops) + bottom * len(heights)
    figure = Figure(figsize=(WIDTH, whole), facecolor="white")
    panels, at = [], whole
    for height, top, lines in zip(heights, tops, titles, strict=True):
        at -= top + height
        axes = figure.add_axes((margin / WIDTH, at / whole, (WIDTH - margin - beyond) / WIDTH, height / whole))
        axes.set_title("\n".join(lines))
        panels.append(axes)
        at -= bottom
    return figure, panels


def _longest(texts: Sequence[str]) -> int:
    return max(map(len, texts), default=0)


def _rest(n_states: int) -> str:
    return f" (the first {MOST_STATES} of {n_states} states)" if n_states > MOST_STATES else ""
