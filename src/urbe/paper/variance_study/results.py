"""The results of the study of variances: ratios to the true variance, and verdicts.

Medians and extremes over the pairs of all models have no intervals: pairs of one model share its rows, so they are not
independent replicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from urbe.paper.results import Results
from urbe.paper.variance_study import COUNTS, FORMS, LAYERS
from urbe.report.claims import judge
from urbe.report.content import Verdict
from urbe.statistics.verdicts import ExactNumber, Question, Share, Test
from urbe.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class FormComparison:
    """One set and radius; arrays over all its rows.

    Attributes:
      observations, model: `(n,)` numbers of observations and of the model of each pair.
      ratio: for each form, `(n,)` its variance over the true variance.
      excess: `(n,)` the published local term over its published bound.
    """

    set: str
    radius: float
    observations: IntArray
    model: IntArray
    ratio: dict[str, FloatArray]
    excess: FloatArray


KNOWN = 1e-12
"""Pairs with a smaller variance, relative to the largest squared value, are omitted: only nature determines them."""


def comparisons(results: Results) -> list[FormComparison]:
    """Returns the results of each set and radius, in the order of the rows."""
    found = []
    for (name, radius), rows in results.groups("set", "radius"):
        truth = np.array(rows.column("truth"))
        keep = truth > KNOWN * (LAYERS**2)
        column = {
            field: np.array(rows.column(field))[keep] for field in (*FORMS, "observations", "model", "local", "limit")
        }
        ratio = {form: column[form] / truth[keep] for form in FORMS}
        excess = column["local"] / column["limit"]
        found.append(FormComparison(name, radius, column["observations"], column["model"], ratio, excess))
    return found


ENOUGH = 50
"""The calibrated forms must be in their ranges from this number of observations of a row on."""


def share_above(table: Sequence[FormComparison], least: int = ENOUGH) -> Share:
    """The share of pairs, with at least this many observations, whose local term exceeds its bound."""
    over = np.concatenate([each.excess[each.observations >= least] > 1.0 for each in table])
    return Share(int(over.sum()), len(over), "pairs")


WANTED = {"jensen": (1.0, 4.0), "sharp": (0.8, 1.5)}
"""Required ranges of the median ratios of the calibrated forms."""

TITLES = {"jensen": "Jensen", "sharp": "sharp", "published": "published", "bound": "at the centre", "counted": "1 / N"}


def verdicts(table: Sequence[FormComparison]) -> list[Verdict]:
    """Returns the verdicts on the calibrated forms, then on the published one."""
    return [
        *(verdict for form in WANTED for verdict in _within(table, form)),
        *_inequality(table),
        *_local_bound(table),
        *_loose(table),
    ]


def _within(table: Sequence[FormComparison], form: str) -> list[Verdict]:
    low, high = WANTED[form]
    medians = {
        f"{each.set} {each.radius:g}, {n} observations": float(np.median(each.ratio[form][each.observations == n]))
        for each in table
        for n in COUNTS
        if n >= ENOUGH
    }
    least, most = min(medians, key=medians.__getitem__), max(medians, key=medians.__getitem__)
    questions = [
        Question(f"The least median ({least})", ExactNumber(medians[least]), low),
        Question(f"The largest ({most})", ExactNumber(medians[most]), high, "below"),
    ]
    claim = (
        f"Calibrated variances, {TITLES[form]}: from {ENOUGH} observations on, the median ratio to the truth is "
        f"between {low:g} and {high:g} for every set and radius."
    )
    return judge(claim, [Test(questions)])


def _inequality(table: Sequence[FormComparison]) -> list[Verdict]:
    ratio = np.concatenate([each.ratio["published"] for each in table])
    question = Question("The smallest ratio to the truth", ExactNumber(float(ratio.min())), 1.0)
    note = f"It is above 1 for {int((ratio > 1.0).sum())} of {len(ratio)} pairs."
    claim = "The theorem's inequality holds: the published equation bounds the posterior variance from above."
    return judge(claim, [Test([question], note=note)])


def _local_bound(table: Sequence[FormComparison]) -> list[Verdict]:
    sets, nominal = ([each for each in table if (each.radius > 0.0) == robust] for robust in (True, False))
    largest = max(float(each.excess[each.observations >= ENOUGH].max()) for each in sets)
    above, without = share_above(sets), share_above(nominal, 0)
    note = f"{above.size} exceed the bound; without a set, {without.size} do."
    question = Question(
        f"From {ENOUGH} observations on, the largest ratio to the bound", ExactNumber(largest), 1.0, "below"
    )
    claim = "The published bound of the local term, Qmax^2 K / N, holds for worst-case rows."
    return judge(claim, [Test([question], note=note)])


def _loose(table: Sequence[FormComparison]) -> list[Verdict]:
    ratio = np.concatenate([each.ratio["published"] for each in table])
    middle = float(np.median(ratio))
    note = (
        f"The middle half is {np.quantile(ratio, 0.25):.3g} to {np.quantile(ratio, 0.75):.3g}: a standard deviation "
        f"{np.sqrt(middle):.0f} times too large."
    )
    claim = "The published equation is of use as an estimate: its median ratio is below 10."
    return judge(claim, [Test([Question("The median ratio", ExactNumber(middle), 10.0, "below")], note=note)])
