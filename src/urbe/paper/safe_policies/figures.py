"""Figures, captions and tables of safe policies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from matplotlib.figure import Figure

from urbe.paper.models import MODELS
from urbe.paper.results import Results
from urbe.paper.safe_policies import (
    COMPARED,
    CONFIDENCE,
    DRAWS,
    METHODS,
    NOMINAL,
    OVERCONFIDENT,
    PERCENTILE,
    START_TRANSITIONS,
)
from urbe.paper.safe_policies.results import Guaranteed, Planned, from_start, planned, verdicts
from urbe.report import style
from urbe.report.content import Exhibit, Section, Table
from urbe.report.curves import draw_bands
from urbe.report.dots import ROW, draw_dots, rows_of
from urbe.report.figures import panels, styled
from urbe.report.numbers import interval_column, number, percent
from urbe.statistics.estimates import Band, ConfidenceInterval, mean_interval

TRUTHS = {
    "drawn": "true model drawn from the prior",
    "fixed": "true model fixed",
    "overconfident": "overconfident prior",
}

OPTIMUM = "oracle"

ALLOWED = 1.0 - CONFIDENCE


def sections(results: Results) -> list[Section]:
    """The summary, the guarantees from the start, then one section for each model."""
    outcomes, guarantees = planned(results), from_start(results)
    models = [(model, list(group)) for model, group in groupby(outcomes, key=lambda each: each.model)]
    with styled():
        sections = [_model(model, group) for model, group in models]
        start = [_start(guarantees)] if guarantees else []
        return [_summary(outcomes, guarantees), *start, *sections]


def _start(guarantees: Sequence[Guaranteed]) -> Section:
    """The section on guarantees from the start."""
    text = (
        "A policy is fixed given the data, so a low quantile of its own value over fresh posterior draws is a "
        "guarantee from the start, whatever the planner. "
        f"{PERCENTILE} chooses the policy with the highest one among the policies of all planners and many more. "
        f"Logs have {START_TRANSITIONS} transitions. Nothing is guaranteed for a fixed true model, nor under a wrong "
        "prior, which takes rows to be more uniform than they are: Dirichlet with concentration "
        f"{OVERCONFIDENT:g} on every successor, where truths are drawn with 1. With an action of known value the "
        "guarantee of its policy never fails."
    )
    head = ("model", "truth", *COMPARED)
    values = tuple(
        (_title(each), TRUTHS[each.truth], *interval_column([mean_interval(x) for x in each.guaranteed.values()]))
        for each in guarantees
    )
    failures = tuple(
        (_title(each), TRUTHS[each.truth], *interval_column([x.interval() for x in each.failures.values()]))
        for each in guarantees
    )
    tables = (
        Table("Guaranteed from the start, means over data sets", head, values),
        Table(f"Share of data sets in which it failed; {percent(ALLOWED)} are allowed", head, failures),
    )
    return Section("Guarantees from the start", (text,), tables=tables)


def _title(each: Guaranteed) -> str:
    return MODELS[each.model].title


def _summary(outcomes: Sequence[Planned], guarantees: Sequence[Guaranteed]) -> Section:
    question = (
        "How much value can a policy guarantee, given a log of transitions and a prior? Four planners return a policy "
        "and the worst case over a set of models; here both are compared with the true model."
    )
    text = (
        "VaR takes a low quantile of each action's value over posterior draws; RSVF fits L1 balls to the values that "
        "occur; BCI takes L1 balls that contain the true rows; Hoeffding does not use the posterior. "
        f"All guarantees have confidence {CONFIDENCE:g}. The nominal policy is optimal for the mean model; its stated "
        "value is its value there. Guarantees are about true models drawn from the prior; logs of one fixed model "
        "are reported separately, and only Hoeffding has a guarantee for those."
    )
    sets = {each.truth: each.data_sets for each in outcomes}
    compared = [f"{each.failures[PERCENTILE].trials} of {_title(each)}" for each in guarantees if each.truth == "drawn"]
    facts = (
        ("Data sets", ", ".join(f"{n} with the {TRUTHS[truth]}" for truth, n in sets.items()) + ", for each model"),
        *([("Data sets for guarantees from the start", ", ".join(compared))] if compared else []),
        ("Intervals", "95 %: Student's for means, paired for differences, Clopper and Pearson's for shares"),
        ("Posterior draws", f"{DRAWS}, the same for all planners of a data set"),
    )
    return Section("Summary", (question, text), verdicts=tuple(verdicts(outcomes, guarantees)), facts=facts)


def _model(model: str, outcomes: Sequence[Planned]) -> Section:
    demo = MODELS[model]
    summary = " ".join(_sentence(each) for each in outcomes)
    values = Exhibit(
        f"{model}-values",
        _values_figure(outcomes),
        f"Line charts of {demo.title}: guaranteed and true value of each planner against the log's length. {summary}",
        f"Values {demo.start}, means over data sets with their 95 % intervals. Left: the guaranteed value (for the "
        "nominal policy: the stated one). Right: the value under the true model; the oracle knows that model. "
        + summary,
        tuple(_values_table(each) for each in outcomes),
    )
    failures = Exhibit(
        f"{model}-failures",
        _failures_figure(outcomes),
        f"Dots of {demo.title}: how often each planner's guarantee failed, with intervals, and a line at the allowed "
        f"share. {_failure_sentence(outcomes)}",
        "Share of data sets in which the policy's true value was below the guaranteed one in some state, with Clopper "
        f"and Pearson's 95 % intervals; at most {percent(ALLOWED)} are allowed (dashed line). "
        f"{_failure_sentence(outcomes)}",
        tuple(_failures_table(each) for each in outcomes),
    )
    return Section(demo.title, (demo.story,), (values, failures))


def _values_figure(outcomes: Sequence[Planned]) -> Figure:
    figure, axes = panels(len(outcomes), 2, height=2.6, right=1.3)
    for row, each in zip(axes, outcomes, strict=True):
        bands = ({name: each.stated(name) for name in each.guaranteed}, each.value | {OPTIMUM: each.optimum})
        for panel, title, lines in zip(row, ("Guaranteed value", "True value"), bands, strict=True):
            panel.set_title(f"{title}, {TRUTHS[each.truth]}")
            panel.set_xscale("log")
            panel.set_xlabel("transitions in the log")
            draw_bands(panel, each.transitions.astype(float), lines)
        row[0].set_ylabel("value")
    return figure


def _failures_figure(outcomes: Sequence[Planned]) -> Figure:
    lengths = outcomes[0].transitions.tolist()
    height = ROW * (rows_of(len(METHODS), len(lengths)) + 1.0)
    figure, axes = panels(1, len(outcomes), height=height, right=0.3, top=0.75)
    for panel, each in zip(axes[0], outcomes, strict=True):
        draw_dots(
            panel,
            list(METHODS),
            {f"{n}": [each.failures[name][i].interval() for name in METHODS] for i, n in enumerate(lengths)},
        )
        panel.axvline(ALLOWED, color=style.MUTED, linestyle=style.DASHED, linewidth=1.2)
        panel.set_title(f"{TRUTHS[each.truth].capitalize()}; transitions in the log:", pad=26.0)
        panel.set_xlim(left=-0.005)
        panel.set_xlabel("share of data sets in which the guarantee failed")
    return figure


def _values_table(each: Planned) -> Table:
    head = ("planner", "value", *(f"{n} transitions" for n in each.transitions))
    rows = []
    for name in (*METHODS, NOMINAL):
        stated = "stated" if name == NOMINAL else "guaranteed"
        rows += [(name, stated, *_cells(each.stated(name))), (name, "true", *_cells(each.value[name]))]
    rows.append((OPTIMUM, "true", *_cells(each.optimum)))
    return Table(f"Values, {TRUTHS[each.truth]}", head, tuple(rows))


def _failures_table(each: Planned) -> Table:
    head = ("planner", *(f"{n} transitions" for n in each.transitions))
    shares = {name: [share.interval() for share in each.failures[name]] for name in (*METHODS, NOMINAL)}
    rows = tuple((name, *interval_column(intervals)) for name, intervals in shares.items())
    return Table(f"Share of data sets in which the stated value was missed, {TRUTHS[each.truth]}", head, rows)


def _cells(band: Band) -> tuple[str, ...]:
    return interval_column([ConfidenceInterval(*map(float, x)) for x in zip(*band, strict=True)])


def _sentence(each: Planned) -> str:
    order = sorted(METHODS, key=lambda name: -float(each.stated(name).estimate[-1]))
    listed = ", ".join(f"{name} {number(float(each.stated(name).estimate[-1]), 3)}" for name in order)
    nominal = number(float(each.value[NOMINAL].estimate[-1]), 3)
    best = number(float(each.value[order[0]].estimate[-1]), 3)
    return (
        f"With the {TRUTHS[each.truth]} and {each.transitions[-1]} transitions they guarantee {listed}; the policy of "
        f"{order[0]} is actually worth {best}, the nominal one {nominal}."
    )


def _failure_sentence(outcomes: Sequence[Planned]) -> str:
    parts = []
    for each in outcomes:
        worst = max(METHODS, key=lambda name: max(x.successes / x.trials for x in each.failures[name]))
        most = max(x.successes / x.trials for x in each.failures[worst])
        missed = max(x.successes / x.trials for x in each.failures[NOMINAL])
        kept = f"no guarantee failed in more than {percent(most, 1)} of them" if most > 0.0 else "no guarantee failed"
        parts.append(
            f"With the {TRUTHS[each.truth]}, {kept}; the nominal policy missed its stated value in {percent(missed)}."
        )
    return " ".join(parts)
