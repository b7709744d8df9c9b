"""The results of the study of safe policies: quantities, and the verdicts on models drawn from the prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from urbe.paper.models import MODELS
from urbe.paper.results import Results
from urbe.paper.safe_policies import COMPARED, CONFIDENCE, FROM_START, METHODS, NOMINAL, PERCENTILE
from urbe.report.claims import judge
from urbe.report.content import Verdict
from urbe.report.numbers import number, percent
from urbe.statistics.estimates import Band, mean_band
from urbe.statistics.verdicts import Mean, Question, Share, Test
from urbe.types import FloatArray, IntArray

TOLERATED = 0.001
"""Quantiles of different draws differ by chance: a guarantee may be below another by this share."""


@dataclass(frozen=True, eq=False)
class Planned:
    """All planners on one model and kind of truth, over n lengths of the log.

    Attributes:
      transitions: `(n,)` increasing.
      data_sets: number of data sets of each length.
      guaranteed: `(data sets, n)` guaranteed values for each method.
      value: true values, means over the data sets with 95 % intervals, for each method.
      optimum: the same for the best policy of each true model.
      failures: number of data sets with a failure, by length, for each method.
    """

    model: str
    truth: str
    transitions: IntArray
    data_sets: int
    guaranteed: dict[str, FloatArray]
    value: dict[str, Band]
    optimum: Band
    failures: dict[str, list[Share]]

    def stated(self, name: str) -> Band:
        """Means of the guaranteed values with 95 % intervals."""
        return mean_band(self.guaranteed[name])


def planned(results: Results) -> list[Planned]:
    """Returns the results of each model and kind of truth, in the order of the rows."""
    rows_of_planners = results.where(method=[*METHODS, NOMINAL])
    return [_planned(model, truth, rows) for (model, truth), rows in rows_of_planners.groups("model", "truth")]


def _planned(model: str, truth: str, rows: Results) -> Planned:
    names = [name for name in (*METHODS, NOMINAL) if name in rows.unique("method")]
    sets = len(rows.unique("data_set"))

    def table(name: str, field: str) -> FloatArray:
        """`(data sets, lengths)`."""
        return rows.where(method=name).pivot("data_set", "transitions", value=field)

    return Planned(
        model=model,
        truth=truth,
        transitions=np.array(sorted(rows.unique("transitions"))),
        data_sets=sets,
        guaranteed={name: table(name, "guaranteed") for name in names},
        value={name: mean_band(table(name, "value")) for name in names},
        optimum=mean_band(table(NOMINAL, "optimum")),
        failures={
            name: [Share(int(failed), sets, "data sets") for failed in table(name, "failed").sum(axis=0)]
            for name in names
        },
    )


@dataclass(frozen=True, eq=False)
class Guaranteed:
    """The guarantees from the start on one model and kind of truth.

    Attributes:
      guaranteed: `(data sets,)` for each planner of `COMPARED`.
      failures: number of data sets in which the policy was worth less from the start, for each planner.
    """

    model: str
    truth: str
    guaranteed: dict[str, FloatArray]
    failures: dict[str, Share]

    @property
    def advantage(self) -> FloatArray:
        """`(data sets,)` of Percentile over the best other planner, relative to the latter."""
        best = np.max([values for name, values in self.guaranteed.items() if name != PERCENTILE], axis=0)
        return np.asarray((self.guaranteed[PERCENTILE] - best) / np.abs(best))


def from_start(results: Results) -> list[Guaranteed]:
    """Returns the guarantees from the start, by model and kind of truth; empty if they were not computed."""
    names = {name: FROM_START.format(name) for name in COMPARED}
    found = []
    for (model, truth), rows in results.where(method=names.values()).groups("model", "truth"):
        tables = {name: rows.where(method=each) for name, each in names.items()}
        failures = {name: table.column("failed") for name, table in tables.items()}
        found.append(
            Guaranteed(
                model,
                truth,
                {name: table.pivot("data_set", value="guaranteed") for name, table in tables.items()},
                {name: Share(sum(failed), len(failed), "data sets") for name, failed in failures.items()},
            )
        )
    return found


def verdicts(table: Sequence[Planned], guarantees: Sequence[Guaranteed]) -> list[Verdict]:
    """Tests whether guarantees hold as often as stated, and which planner guarantees most."""
    drawn = [each for each in table if each.truth == "drawn"]
    promised = [each for each in guarantees if each.truth == "drawn"]
    return [
        *(verdict for name in METHODS for verdict in _keeps(drawn, name)),
        *(verdict for pair in pairwise(METHODS) for verdict in _more(drawn, *pair)),
        *_as_tight_as_stated(promised),
        *_never_below(promised),
    ]


def _as_tight_as_stated(promised: Sequence[Guaranteed]) -> list[Verdict]:
    """On all models together."""
    shares = [each.failures[PERCENTILE] for each in promised]
    allowed, questions = 1.0 - CONFIDENCE, []
    if shares:
        failed = Share(sum(x.successes for x in shares), sum(x.trials for x in shares), "data sets")
        title = "The share in which it failed"
        questions = [Question(title, failed, 0.5 * allowed), Question(title, failed, allowed, "below")]
    claim = (
        f"The guarantee of {PERCENTILE} from the start fails in at least {percent(0.5 * allowed)} of the data sets and "
        f"in less than the allowed {percent(allowed)}."
    )
    return judge(claim, [Test(questions)])


def _never_below(promised: Sequence[Guaranteed]) -> list[Verdict]:
    tests = [
        Test(
            [
                Question(
                    "Its mean advantage over the best other planner of each data set, in percent",
                    Mean(100.0 * each.advantage, of="data sets"),
                    -100.0 * TOLERATED,
                )
            ],
            reading=MODELS[each.model].title,
            note=f"The least advantage is {number(100.0 * float(each.advantage.min()), 2)} %.",
        )
        for each in promised
    ]
    claim = (
        f"From the start, {PERCENTILE} guarantees at least as much as the best other planner of each data set, up to "
        f"{100.0 * TOLERATED:g} %."
    )
    return judge(claim, tests)


def _keeps(drawn: Sequence[Planned], name: str) -> list[Verdict]:
    """Tests a planner's guarantee on all models together, for logs of every length."""
    lengths = drawn[0].transitions.tolist() if drawn else []
    questions = []
    for i, length in enumerate(lengths):
        shares = [each.failures[name][i] for each in drawn]
        trials = sum(share.trials for share in shares)
        kept = trials - sum(share.successes for share in shares)
        title = f"With {length} transitions, the share in which it held"
        questions.append(Question(title, Share(kept, trials, "data sets"), CONFIDENCE))
    return judge(f"{name} keeps its guarantee in more than {percent(CONFIDENCE)} of the data sets.", [Test(questions)])


def _more(drawn: Sequence[Planned], first: str, second: str) -> list[Verdict]:
    """On the longest logs."""
    tests = [
        Test(
            [
                Question(
                    f"With {each.transitions[-1]} transitions, the mean difference of the guaranteed values",
                    Mean(each.guaranteed[first][:, -1] - each.guaranteed[second][:, -1], of="data sets"),
                )
            ],
            reading=MODELS[each.model].title,
        )
        for each in drawn
    ]
    return judge(f"{first} guarantees more than {second}.", tests)
