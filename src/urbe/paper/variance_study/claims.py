"""The claims about variances and their verdicts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from urbe.paper.variance_study.cells import COUNTS
from urbe.paper.variance_study.results import ENOUGH, Comparison, share_above
from urbe.report.content import Verdict

WANTED = {"jensen": (1.0, 4.0), "sharp": (0.8, 1.5)}


TITLES = {"jensen": "Jensen", "sharp": "sharp", "published": "published", "bound": "at the centre", "counted": "1 / N"}


def verdicts(table: Sequence[Comparison]) -> list[Verdict]:
    """On the calibrated forms, then on the published one."""
    return [*(_within(table, form) for form in WANTED), _inequality(table), _local_bound(table), _loose(table)]


def _within(table: Sequence[Comparison], form: str) -> Verdict:
    low, high = WANTED[form]
    medians = {
        f"{each.set} {each.radius:g}, {n} observations": float(np.median(each.ratio[form][each.observations == n]))
        for each in table
        for n in COUNTS
        if n >= ENOUGH
    }
    least, most = min(medians, key=medians.__getitem__), max(medians, key=medians.__getitem__)
    return Verdict(
        f"Calibrated variances, {TITLES[form]}: from {ENOUGH} observations on, the median ratio to the truth is "
        f"between {low:g} and {high:g} for every set and radius.",
        "holds" if low <= medians[least] and medians[most] <= high else "does not hold",
        f"The medians are from {medians[least]:.3g} ({least}) to {medians[most]:.3g} ({most}).",
    )


def _inequality(table: Sequence[Comparison]) -> Verdict:
    ratio = np.concatenate([each.ratio["published"] for each in table])
    held = int((ratio >= 1.0).sum())
    return Verdict(
        "The theorem's inequality holds: the published equation bounds the posterior variance from above.",
        "holds" if held == len(ratio) else "does not hold",
        f"It held for {held} of {len(ratio)} pairs; the smallest ratio is {ratio.min():.3g}.",
    )


def _local_bound(table: Sequence[Comparison]) -> Verdict:
    share = share_above([each for each in table if each.radius > 0.0])
    nominal = share_above([each for each in table if each.radius == 0.0], 0)
    return Verdict(
        "The published bound of the local term, Qmax^2 K / N, holds for worst-case rows.",
        "holds" if share.estimate == 0.0 else "does not hold",
        f"From {ENOUGH} observations on, {share.estimate:.0%} of the pairs exceed it "
        f"[{share.low:.0%}, {share.high:.0%}]; without a set, {nominal.estimate:.0%} do.",
    )


def _loose(table: Sequence[Comparison]) -> Verdict:
    ratio = np.concatenate([each.ratio["published"] for each in table])
    middle = float(np.median(ratio))
    return Verdict(
        "The published equation is of use as an estimate: its median ratio is below 10.",
        "holds" if middle < 10.0 else "does not hold",
        f"The median ratio is {middle:.3g}, the middle half {np.quantile(ratio, 0.25):.3g} to "
        f"{np.quantile(ratio, 0.75):.3g}: a standard deviation {np.sqrt(middle):.0f} times too large.",
    )
