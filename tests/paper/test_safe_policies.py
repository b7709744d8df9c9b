"""Safe policies: logs with the stated distribution, laws between planners on real cells, tables and figures."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

import urbe
from urbe.paper.chapter import check_chapters
from urbe.paper.models import MODELS
from urbe.paper.results import Results
from urbe.paper.safe_policies import (
    CELLS,
    CHAPTER,
    COMPARED,
    FROM_START,
    METHODS,
    NOMINAL,
    PERCENTILE,
    Row,
    SafeCell,
    StartCell,
    figures,
)
from urbe.paper.safe_policies.results import Guaranteed, from_start, planned, verdicts
from urbe.paper.safe_policies.run import logged, run
from urbe.statistics.verdicts import Share

COARSE = [
    replace(cell, data_sets=3)
    for cell in CELLS["quick"]
    if isinstance(cell, SafeCell) and cell.transitions in (100, 1000)
]
START = [
    StartCell("riverswim", "drawn", 0, 2),
    StartCell("riverswim", "drawn", 2, 1),
    StartCell("riverswim", "fixed", 0, 2),
]


@pytest.fixture(scope="module")
def rows():
    return [row for cell in COARSE for row in run(cell, Path())]


@pytest.fixture(scope="module")
def start_rows():
    return [row for cell in START for row in run(cell, Path())]


@pytest.fixture(scope="module")
def outcomes(rows):
    return planned(Results.of(rows, Row))


def test_names_and_rows_are_fit_for_files():
    check_chapters([CHAPTER])
    assert len(CELLS["quick"]) == 12 + 4 + 4
    drawn = [cell for cell in CELLS["medium"] if isinstance(cell, StartCell) and cell.truth == "drawn"]
    assert sum(cell.data_sets for cell in drawn) == 1000
    numbers = [(cell.model, k) for cell in drawn for k in range(cell.first, cell.first + cell.data_sets)]
    assert len(set(numbers)) == 1000


def test_every_planner_is_there_on_every_data_set(rows):
    assert len(rows) == len(COARSE) * 3 * (len(METHODS) + 1)
    assert {row.method for row in rows} == {*METHODS, NOMINAL}


def test_no_policy_is_better_than_the_best(rows):
    for row in rows:
        assert row.value <= row.optimum + 1e-5 * abs(row.optimum)


def test_a_guarantee_fails_where_the_truth_is_below_it(rows):
    for row in rows:
        assert row.failed == 1 or row.value >= row.guaranteed - 1e-6
    share = {name: np.mean([row.failed for row in rows if row.method == name]) for name in (*METHODS, NOMINAL)}
    assert max(share[name] for name in METHODS) < 0.2 < share[NOMINAL]


def test_planners_are_ordered_on_every_data_set(rows):
    found = {(row.model, row.truth, row.transitions, row.data_set, row.method): row.guaranteed for row in rows}
    for (*where, method), value in found.items():
        others = {name: found[*where, name] for name in METHODS}
        if method == "VaR":  # the same draws as RSVF: no chance involved
            assert value >= others["RSVF"] - 1e-6
        if method == "BCI":
            assert others["VaR"] >= value - 1e-6
            assert value >= others["Hoeffding"] - 1e-6


def test_guarantees_from_the_start_have_truths_of_their_own(start_rows):
    found = from_start(Results.of(start_rows, Row))
    assert [(each.model, each.truth) for each in found] == [("riverswim", "drawn"), ("riverswim", "fixed")]
    drawn, _ = found
    assert all(len(values) == 3 for values in drawn.guaranteed.values())
    optima = {truth: {row.optimum for row in start_rows if row.truth == truth} for truth in ("drawn", "fixed")}
    assert len(optima["drawn"]) == 3
    assert optima["fixed"] == {urbe.solve(MODELS["riverswim"].build()).value[0]}
    for each in found:
        mine = [row for row in start_rows if (row.truth, row.method) == (each.truth, FROM_START.format("BCI"))]
        assert each.guaranteed["BCI"].tolist() == [row.guaranteed for row in mine]
        assert each.failures["BCI"].successes == sum(row.value < row.guaranteed - 1e-9 for row in mine)
        best = np.max([each.guaranteed[name] for name in COMPARED if name != PERCENTILE], axis=0)
        assert each.advantage == pytest.approx(each.guaranteed[PERCENTILE] / best - 1.0)
        assert (each.advantage > -0.01).all()  # 2000 draws choose between close policies by chance


def guaranteed(failures, advantage):
    others = {name: np.full(len(advantage), -2.0) for name in COMPARED}
    return Guaranteed(
        "riverswim",
        "drawn",
        others | {PERCENTILE: -2.0 + 2.0 * np.array(advantage)},
        {name: Share(failures, 1000, "data sets") for name in COMPARED},
    )


@pytest.mark.parametrize(
    ("failures", "advantage", "tight", "never_below"),
    [
        (75, [0.01, 0.011, 0.01], "holds", "holds"),
        (5, [-0.05, -0.05, -0.051], "does not hold", "does not hold"),
        (120, [-0.01, 0.02, 0.0], "undecided", "undecided"),
        (150, [0.1, 0.1, 0.1], "does not hold", "holds"),
    ],
)
def test_claims_about_percentile_are_decided_by_the_common_rule(failures, advantage, tight, never_below):
    found = verdicts([], [guaranteed(failures, advantage)])
    one, other = found[-2:]
    assert (one.outcome, other.outcome) == (tight, never_below)
    assert f"{failures} of 1000 data sets" in one.evidence
    assert other.reading == "RiverSwim"


def test_longer_logs_continue_the_shorter_ones():
    river = MODELS["riverswim"].build()
    short, long = (logged(river, n, np.random.default_rng(3)) for n in (100, 1000))
    assert short.sum() == 100.0
    assert (long >= short).all()
    assert not np.array_equal(logged(river, 100, np.random.default_rng(4)), short)


def test_logs_follow_the_model_and_the_uniform_policy():
    machine = MODELS["machine_replacement"].build()
    counts = logged(machine, 50_000, np.random.default_rng(0))
    visits = machine.rows.row_sums(counts)
    expected = visits[machine.rows.entry_row] * machine.rows.probability
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = machine.rows.n_entries - machine.n_rows
    assert statistic < chi2.isf(1e-6, freedom)  # false alarm 1e-6, if rows were independent
    by_state = np.bincount(machine.row_state, visits)
    halves = visits[0::2] - 0.5 * by_state  # two actions everywhere
    assert (halves**2 / (0.25 * by_state)).sum() < chi2.isf(1e-6, machine.n_states)


def test_models_that_end_cannot_be_logged():
    with pytest.raises(ValueError, match="no terminal state"):
        logged(urbe.library.grid_world(3, 3, 0.1, discount=0.9), 10, np.random.default_rng(0))


def test_cells_are_reproducible_and_their_truths_shared_by_all_lengths(rows):
    again = run(COARSE[0], Path())
    assert again == [row for row in rows if (row.model, row.truth, row.transitions) == ("riverswim", "drawn", 100)]
    assert run(replace(COARSE[0], seed=1), Path()) != again
    optima = {}
    for row in rows:
        optima.setdefault((row.model, row.truth, row.data_set), set()).add(row.optimum)
    assert all(len(each) == 1 for each in optima.values())


def test_order_of_rows_does_not_matter(rows, outcomes):
    shuffled = list(rows)
    random.Random(3).shuffle(shuffled)
    again = {(each.model, each.truth): each for each in planned(Results.of(shuffled, Row))}
    for each in outcomes:
        other = again[each.model, each.truth]
        for name in METHODS:
            assert np.array_equal(each.stated(name).estimate, other.stated(name).estimate)
            assert each.failures[name] == other.failures[name]


def test_tables_are_means_and_frequencies_of_rows(rows, outcomes):
    for each in outcomes:
        for i, n in enumerate(each.transitions):
            mine = [
                r for r in rows if (r.model, r.truth, r.transitions, r.method) == (each.model, each.truth, n, "BCI")
            ]
            assert each.stated("BCI").estimate[i] == pytest.approx(np.mean([r.guaranteed for r in mine]))
            assert each.value["BCI"].estimate[i] == pytest.approx(np.mean([r.value for r in mine]))
            assert each.failures["BCI"][i].interval().estimate == np.mean([r.failed for r in mine])


def test_sections_hold_verdicts_figures_and_tables(rows, start_rows):
    sections = figures.sections(Results.of(rows + start_rows, Row))
    titles = ["Summary", "Guarantees from the start", "RiverSwim", "Machine replacement"]
    assert [section.title for section in sections] == titles
    assert len(sections[0].verdicts) == len(METHODS) + 2 * (len(METHODS) - 1) + 2
    for table in sections[1].tables:
        assert [row[:2] for row in table.rows] == [("RiverSwim", figures.TRUTHS[x]) for x in ("drawn", "fixed")]
        assert all(len(row) == len(table.head) for row in table.rows)
    for section in sections[2:]:
        values, failures = section.exhibits
        assert len(values.figure.axes) == 4
        assert len(failures.figure.axes) == 2
        for exhibit in (values, failures):
            assert len(exhibit.tables) == 2
            assert all(len(row) == len(table.head) for table in exhibit.tables for row in table.rows)
