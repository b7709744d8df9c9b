"""The study of variances on few cells: its ground truth, its laws, and verdicts that follow the numbers."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from oracles.layered import robust_q
from urbe.paper.results import Results
from urbe.paper.variance_study import CELLS, COUNTS, LAYERS, SETS, WIDTH, Row, VarianceCell, figures
from urbe.paper.variance_study.results import comparisons
from urbe.paper.variance_study.results import verdicts as all_verdicts
from urbe.paper.variance_study.run import drawn_values, layered_model, run
from urbe.posteriors import Posterior
from urbe.rng import stream


def small(name, radius, count, **options):
    return VarianceCell(name, radius, count, **{"models": 2, "draws": 60} | options)


@pytest.fixture(scope="module")
def rows():
    cells = [small(name, radius, n) for name, (_, radii) in SETS.items() for radius in radii for n in COUNTS]
    few = [cell for cell in cells if cell.set in ("nominal", "L1", "chi-square")]
    return [row for cell in few for row in run(cell, Path())]


@pytest.fixture(scope="module")
def table(rows):
    return comparisons(Results.of(rows, Row))


@pytest.mark.parametrize("name", SETS)
def test_draws_solved_at_once_are_those_solved_one_by_one(name):
    make, radii = SETS[name]
    mdp = layered_model(stream(0, "model"))
    posterior = Posterior.before(mdp, 20.0 * mdp.rows.probability)
    draws = posterior.draws(stream(0, "draws"), 4)
    policy = np.random.default_rng(1).integers(0, 2, size=(LAYERS, mdp.n_states))
    found = drawn_values(posterior, draws, lambda n: make(radii[-1], n * mdp.n_states), policy)
    for q, centre in zip(found, draws, strict=True):
        expected = robust_q(posterior.model_with(centre), make(radii[-1], mdp.n_states), policy, LAYERS)
        assert q == pytest.approx(expected, rel=1e-10)


def test_models_are_layered():
    mdp = layered_model(stream(0, "model"))
    states, to = mdp.row_state[mdp.rows.entry_row], mdp.rows.successor
    assert (np.minimum(states // WIDTH, LAYERS - 1) + 1 == to // WIDTH).all()
    assert mdp.n_states == LAYERS * WIDTH + 1


def test_same_seed_same_rows_other_seed_others():
    cell = small("KL", 0.2, 20, models=1, draws=20)
    assert run(cell, Path()) == run(cell, Path())
    assert run(cell, Path()) != run(dataclasses.replace(cell, seed=1), Path())


def test_models_and_draws_do_not_depend_on_the_set():
    one, other = (run(small(name, 0.2, 20, models=1, draws=20), Path()) for name in ("L1", "weighted L1"))
    assert [row.limit for row in one] == [row.limit for row in other]
    assert [row.truth for row in one] != [row.truth for row in other]


def test_rows_obey_the_laws_of_the_equations(rows):
    for row in rows:
        assert row.sharp <= row.jensen * (1.0 + 1e-9)
        assert row.published >= row.local >= 0.0
        assert row.bound > row.counted > 0.0
        assert row.truth >= 0.0


def test_cells_cover_sets_radii_and_counts():
    assert (
        len(CELLS["quick"])
        == len({cell.name for cell in CELLS["quick"]})
        == sum(len(radii) for _, radii in SETS.values()) * 5
    )


def test_verdicts_follow_the_numbers(table):
    def verdicts(changed):
        return [verdict.outcome for verdict in all_verdicts(changed)]

    assert verdicts(table) == ["holds", "holds", "holds", "does not hold", "does not hold"]

    def scaled(form, factor):
        return [dataclasses.replace(each, ratio=each.ratio | {form: factor * each.ratio[form]}) for each in table]

    assert verdicts(scaled("jensen", 5.0))[0] == "does not hold"
    assert verdicts(scaled("jensen", 0.5))[0] == "does not hold"
    assert verdicts(scaled("sharp", 2.0))[1] == "does not hold"
    tight = scaled("published", 1e-4)
    assert verdicts(tight)[2] == "does not hold"
    assert verdicts(tight)[4] == "holds"
    assert (
        verdicts([dataclasses.replace(each, excess=0.5 * each.excess / each.excess.max()) for each in table])[3]
        == "holds"
    )


def test_pairs_decided_by_nature_alone_are_left_out(rows):
    known = [row._replace(truth=0.0) if row.pair == rows[0].pair else row for row in rows]
    for each, all_of_them in zip(comparisons(Results.of(known, Row)), comparisons(Results.of(rows, Row)), strict=True):
        assert len(each.excess) < len(all_of_them.excess)
        assert all(np.isfinite(ratio).all() for ratio in each.ratio.values())


def test_sections_have_figures_tables_and_words(rows):
    sections = figures.sections(Results.of(rows, Row))
    assert [section.title for section in sections] == ["Summary", "Calibrated variances", "The published equation"]
    for exhibit in (exhibit for section in sections for exhibit in section.exhibits):
        assert exhibit.alt
        assert exhibit.caption
        assert exhibit.tables
