"""The figure of the front page: values of the nominal and the robust policy as the model gets worse."""

from __future__ import annotations

from urbe.paper.models import MODELS
from urbe.paper.price_of_robustness.results import curves
from urbe.paper.results import Results
from urbe.report.content import Exhibit, Highlight
from urbe.report.curves import draw_bands
from urbe.report.figures import mark_gap, small, styled
from urbe.report.numbers import number
from urbe.report.price import best_radius
from urbe.report.style import ROBUST
from urbe.statistics.estimates import Band

SHOWN = ("inventory", "L1")
"""The model and the set: its policy changes early, and the insurance is seen at a glance."""


def highlight(results: Results) -> Highlight | None:
    """Worst-case values of both policies over the radius; None if the model was not solved."""
    chosen = [curve for curve in curves(results) if (curve.model, curve.set) == SHOWN]
    if not chosen or not chosen[0].insurance.max() > 0.0:
        return None
    (curve,) = chosen
    at = best_radius(curve.insurance)
    robust, nominal = curve.worst["robust"], curve.worst["nominal"]
    with styled():
        figure, (axes,) = small()
        axes.fill_between(curve.radius, nominal, robust, color=ROBUST, alpha=0.16, linewidth=0)
        draw_bands(axes, curve.radius, {"robust": Band(*[robust] * 3), "nominal": Band(*[nominal] * 3)})
        mark_gap(axes, curve.radius, robust, nominal, at, number(curve.insurance[at], 2))
        axes.set(xlabel="radius of the uncertainty set (L1)", title="worst-case value")
    gain, price = number(curve.insurance[at], 2), number(curve.price[at], 2)
    title = MODELS[curve.model].title
    caption = (
        f"{title}: value of both policies in the worst model within a radius of the nominal one. "
        f"At radius {curve.radius[at]:g} the robust policy is worth {gain} more; if the nominal model is "
        f"right, it is worth {price} less, of {number(curve.nominal['nominal'][at], 3)}."
    )
    message = f"Robustness costs {price} if the model is right and gains {gain} in the worst case."
    return Highlight(message, Exhibit("front", figure, caption, caption))
