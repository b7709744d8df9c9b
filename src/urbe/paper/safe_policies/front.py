"""The figure of the front page: the shares of data sets in which stated values are too high."""

from __future__ import annotations

from urbe.paper.models import MODELS
from urbe.paper.results import Results
from urbe.paper.safe_policies import CONFIDENCE, METHODS, NOMINAL
from urbe.paper.safe_policies.results import planned
from urbe.report import style
from urbe.report.content import Exhibit, Highlight
from urbe.report.dots import draw_dots
from urbe.report.figures import small, styled

SHOWN = ("riverswim", "drawn")


def highlight(results: Results) -> Highlight | None:
    """Shares of data sets in which a policy was worth less than stated; None if the model was not run."""
    chosen = [each for each in planned(results) if (each.model, each.truth) == SHOWN]
    if not chosen:
        return None
    (found,) = chosen
    names = [NOMINAL, *METHODS]
    with styled():
        figure, (axes,) = small(left=1.0, right=0.25)
        draw_dots(axes, names, {"": [found.failures[name][0].interval() for name in names]})
        axes.axvline(1.0 - CONFIDENCE, color=style.MUTED, linestyle=style.DASHED, linewidth=1.2)
        axes.set(xlabel="share of data sets", title="policy worth less than stated", xlim=(-0.03, 1.0))
    missed = found.failures[NOMINAL][0]
    kept = max(found.failures[name][0].successes for name in METHODS)
    message = (
        f"A policy planned on the mean of the data was worth less than stated in {missed.successes} of "
        f"{missed.trials} data sets; safe planners failed in at most {kept}."
    )
    caption = (
        f"{MODELS[found.model].title}, {found.transitions[0]} logged transitions: share of data sets in which the true "
        f"value was below the stated one in some state, with 95 % intervals. The dashed line is the share that a "
        f"guarantee with confidence {CONFIDENCE:g} allows."
    )
    return Highlight(message, Exhibit("front", figure, caption, caption))
