"""Figures, captions and tables of the study of variances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from urbe.paper.results import Results
from urbe.paper.variance_study import COUNTS, DRAWS, MODELS
from urbe.paper.variance_study.results import ENOUGH, TITLES, WANTED, FormComparison, comparisons, share_above, verdicts
from urbe.report import style
from urbe.report.content import Exhibit, Section, Table
from urbe.report.curves import draw_bands
from urbe.report.dots import ROW, draw_dots, draw_strips, rows_of
from urbe.report.figures import panels, styled
from urbe.report.numbers import interval_column, number, percent
from urbe.statistics.estimates import Band
from urbe.types import FloatArray


def sections(results: Results) -> list[Section]:
    """Verdicts, then the calibrated forms, then the published one."""
    table = comparisons(results)
    with styled():
        return [_summary(table), _calibrated(table), _published(table)]


def _summary(table: Sequence[FormComparison]) -> Section:
    question = (
        "A robust value computed from data is itself uncertain: another draw from the posterior would give another "
        "centre of the set, and another value. How well do the uncertainty Bellman equations estimate its variance?"
    )
    text = (
        "The truth is the variance of a pair's robust value over posterior draws, each solved on its own. Calibrated: "
        "the local term is the variance of the worst case linearised in the centre of the set; successors' variances "
        "are averaged (Jensen, an upper bound to first order) or taken to be uncorrelated (sharp). Published: the "
        "local term Qmax^2 sum var / E of the worst-case rows of the draws. At the centre: the same for the rows "
        "themselves. 1 / N: a count with a scale of its own. A ratio of 1 is right; that of "
        "standard deviations is its square root."
    )
    facts = (
        ("Models", f"{MODELS} random layered ones, the same for every set, radius and amount of data"),
        ("Pairs", "18 of each model at the first step; those of a model share its rows, and are not independent"),
        ("Truth", f"{DRAWS} draws: each variance is known to about {percent(np.sqrt(2.0 / DRAWS))}"),
        ("Intervals", "Clopper and Pearson's 95 % for shares, as if pairs were independent; quartiles elsewhere"),
    )
    return Section("Summary", (question, text), verdicts=tuple(verdicts(table)), facts=facts)


def _calibrated(table: Sequence[FormComparison]) -> Section:
    summary = " ".join(_sentence(table, form) for form in WANTED)
    by_set = Exhibit(
        "calibrated-by-set",
        _strips(table, ("jensen", "sharp"), "linear"),
        f"Strips: ratio of calibrated variances to the truth for every set. {summary}",
        f"Calibrated variances divided by the truth, from {ENOUGH} observations on, all radii together: median, "
        f"middle half, and 5 % to 95 %. {summary}",
        (_quantile_table(table, ("jensen", "sharp")),),
    )
    over_data = Exhibit(
        "calibrated-over-data",
        _over_data(table, ("jensen", "sharp")),
        "Lines: median ratio against observations of a row, at small and at large radii. " + summary,
        "Median and middle half of the pairs of all sets, against the pseudo-observations of a row. At few "
        "observations draws reach kinks of the worst case, which no derivative at the mean can capture.",
        (_data_table(table, ("jensen", "sharp")),),
    )
    return Section("Calibrated variances", (), (by_set, over_data))


def _published(table: Sequence[FormComparison]) -> Section:
    forms = ("published", "bound", "counted")
    by_set = Exhibit(
        "published-by-set",
        _strips(table, forms, "log"),
        "Strips on a logarithmic scale: ratio of the published variances to the truth for every set. "
        + " ".join(_sentence(table, form) for form in forms),
        f"The same for equations that bound or count, on a logarithmic scale, from {ENOUGH} observations on. The scale "
        "of 1 / N is arbitrary; what counts is the spread of its ratios, since one beta has to serve all pairs. "
        + _apart(table),
        (_quantile_table(table, forms),),
    )
    groups = {
        size: [share_above([each]).interval() for each in _with_radius(table, i)]
        for i, size in enumerate(("small radius", "large radius"))
    }
    names = [each.set for each in _with_radius(table, 0)]
    figure, axes = panels(1, 1, height=ROW * (rows_of(len(names), 2) + 1.0), left=1.35, right=0.6, top=0.6)
    draw_dots(axes[0][0], names, groups)
    axes[0][0].set_xlim(left=-0.005)
    axes[0][0].set_xlabel("share of pairs whose local term exceeds its published bound")
    worst = max(
        (
            (share.estimate, name, size)
            for size, shares in groups.items()
            for name, share in zip(names, shares, strict=True)
        )
    )
    summary = f"Most often, for {percent(worst[0])} of the pairs, with {worst[1]} at the {worst[2]}."
    exceeded = Exhibit(
        "local-bound",
        figure,
        f"Dots with intervals: share of pairs whose local term exceeds its bound, by set and radius. {summary}",
        f"Qmax^2 sum var / E of worst-case rows against the bound Qmax^2 K / N, from {ENOUGH} observations on. In a "
        f"worst case, the mean of a successor can be tiny and its variance less so. {summary}",
        (
            Table(
                "Share of pairs above the bound",
                ("set", *groups),
                tuple(zip(names, *(interval_column(shares) for shares in groups.values()), strict=True)),
            ),
        ),
    )
    return Section("The published equation", (), (by_set, exceeded))


def _strips(table: Sequence[FormComparison], forms: Sequence[str], scale: str) -> Figure:
    names = list(dict.fromkeys(each.set for each in table))
    height = ROW * (rows_of(len(names), len(forms)) + 1.0)
    figure, axes = panels(1, 1, height=height, left=1.35, right=0.6, top=0.6)
    panel = axes[0][0]
    panel.set_xscale(scale)
    draw_strips(panel, names, {TITLES[form]: [_pooled(table, name, form) for name in names] for form in forms})
    panel.axvline(1.0, color=style.MUTED, linestyle=style.DASHED, linewidth=1.2)
    panel.set_xlabel("variance of the equation / true variance")
    return figure


def _over_data(table: Sequence[FormComparison], forms: Sequence[str]) -> Figure:
    figure, axes = panels(1, 2, height=2.6, right=1.15)
    for panel, i, title in zip(axes[0], (0, 1), ("Small radii", "Large radii"), strict=True):
        panel.set_title(title)
        panel.set_xscale("log")
        panel.axhline(1.0, color=style.MUTED, linestyle=style.DASHED, linewidth=1.2)
        bands = {TITLES[form]: _band(_with_radius(table, i), form) for form in forms}
        panel.set_ylim(0.0, 1.1 * max(float(band.high.max()) for band in bands.values()))
        draw_bands(panel, np.array(COUNTS, dtype=float), bands)
        panel.set_xticks(COUNTS, [str(n) for n in COUNTS])
        panel.minorticks_off()
        panel.set_xlabel("observations of a row")
    axes[0][0].set_ylabel("variance / truth")
    return figure


def _with_radius(table: Sequence[FormComparison], which: int) -> list[FormComparison]:
    """The smaller (0) or larger (1) radius of every set that has two."""
    sets: dict[str, list[FormComparison]] = {}
    for each in table:
        sets.setdefault(each.set, []).append(each)
    return [sorted(group, key=lambda each: each.radius)[which] for group in sets.values() if len(group) > 1]


def _band(table: Sequence[FormComparison], form: str) -> Band:
    columns = [np.concatenate([each.ratio[form][each.observations == n] for each in table]) for n in COUNTS]
    middle, low, high = (np.array([np.quantile(x, level) for x in columns]) for level in (0.5, 0.25, 0.75))
    return Band(middle, low, high)


def _pooled(table: Sequence[FormComparison], name: str, form: str) -> FloatArray:
    return np.concatenate([each.ratio[form][each.observations >= ENOUGH] for each in table if each.set == name])


def _quantile_table(table: Sequence[FormComparison], forms: Sequence[str]) -> Table:
    head = ("set", "radius", "equation", "median", "quartiles", "5 % to 95 %", "least", "most")
    rows = []
    for each in table:
        for form in forms:
            x = each.ratio[form][each.observations >= ENOUGH]
            q = [number(float(y), 3) for y in np.quantile(x, (0.5, 0.25, 0.75, 0.05, 0.95))]
            ends = (number(float(x.min()), 3), number(float(x.max()), 3))
            rows.append(
                (each.set, f"{each.radius:g}", TITLES[form], q[0], f"{q[1]} to {q[2]}", f"{q[3]} to {q[4]}", *ends)
            )
    return Table(f"Ratio to the truth, from {ENOUGH} observations on", head, tuple(rows))


def _data_table(table: Sequence[FormComparison], forms: Sequence[str]) -> Table:
    head = ("set", "radius", "equation", *(f"{n} observations" for n in COUNTS))
    rows = tuple(
        (
            each.set,
            f"{each.radius:g}",
            TITLES[form],
            *(number(float(np.median(each.ratio[form][each.observations == n])), 3) for n in COUNTS),
        )
        for each in table
        for form in forms
    )
    return Table("Median ratio to the truth", head, rows)


def _sentence(table: Sequence[FormComparison], form: str) -> str:
    x = np.concatenate([each.ratio[form][each.observations >= ENOUGH] for each in table])
    low, middle, high = (number(float(y), 3) for y in np.quantile(x, (0.05, 0.5, 0.95)))
    return f"{TITLES[form]}: median {middle}, 90 % of the pairs between {low} and {high}."


def _apart(table: Sequence[FormComparison]) -> str:
    """The spread of the ratios of each form, regardless of scale."""
    parts = []
    for form in ("sharp", "jensen", "counted", "bound"):
        x = np.concatenate([each.ratio[form][each.observations >= ENOUGH] for each in table])
        low, high = np.quantile(x, (0.05, 0.95))
        parts.append(f"{number(float(high / low), 2)} ({TITLES[form]})")
    return f"The 95 % quantile of the ratios over the 5 % quantile: {', '.join(parts)}."
