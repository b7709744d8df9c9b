"""Tables of evaluations: every number by other means, CVaR by its definition, files, messages."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import linprog

from urbe.evaluation.episodes import Episodes
from urbe.evaluation.grids import points_of
from urbe.evaluation.table import SHOWN, Evaluation
from urbe.simulators import CartPole, UncertaintySet
from urbe.statistics.estimates import cvar, paired_difference
from urbe.tables import write_table

samples = st.lists(st.integers(-20, 20).map(lambda k: k / 4), min_size=1, max_size=30)  # ties are common
shares = st.floats(1e-3, 1.0)


@given(samples, shares)
def test_cvar_is_what_its_definition_says(x, share):
    """max_c c - mean (c - x)^+ / share, which is piecewise linear in c with corners at the samples."""
    x = np.array(x)
    wanted = max(c - np.maximum(c - x, 0.0).mean() / share for c in x)
    assert cvar(x, share) == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@given(samples, shares)
def test_cvar_is_the_worst_mean_under_bounded_weights(x, share):
    """min w . x over 0 <= w <= 1 / (share n), sum w = 1; HiGHS accepts 1e-7 of infeasibility."""
    n = len(x)
    found = linprog(x, A_eq=np.ones((1, n)), b_eq=[1.0], bounds=(0.0, 1.0 / (share * n))).fun
    assert cvar(x, share) == pytest.approx(found, abs=1e-5)


@given(samples, shares, shares)
def test_cvar_grows_with_the_share_from_the_minimum_to_the_mean(x, one, two):
    low, high = sorted((one, two))
    assert min(x) - 1e-9 <= cvar(x, low) <= cvar(x, high) + 1e-9
    assert cvar(x, 1.0) == pytest.approx(np.mean(x), abs=1e-12)
    assert cvar(x, 1.0 / len(x)) == pytest.approx(min(x), abs=1e-12)


def test_cvar_by_hand():
    x = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert cvar(x, 0.4) == pytest.approx((1 + 2) / 2)
    assert cvar(x, 0.5) == pytest.approx((1 + 2 + 3 / 2) / 2.5)
    assert cvar(np.array([x, x]).T, 0.4).tolist() == pytest.approx([1.5, 1.5])
    for bad, message in [((x, 0.0), "share is 0.0"), ((x, 1.1), "share is 1.1"), (([], 0.5), r"shape \(0,\)")]:
        with pytest.raises(ValueError, match=message):
            cvar(*bad)


@pytest.fixture(scope="module")
def found():
    """Made up: two parameters, three sets of them, five episodes."""
    rng = np.random.default_rng(0)
    points = points_of([{"half_length": h, "masspole": m} for h, m in ((0.5, 0.1), (1.0, 0.1), (1.0, 0.3))], CartPole())
    parts = [
        Episodes(rng.normal(10.0 * k, 1.0, (3, 5)), rng.integers(1, 9, (3, 5)), rng.random((3, 5)) < 0.5)
        for k in (2, 1)
    ]
    return Evaluation(points.points, points.varied, *parts, seed=7, confidence=0.9, cvar=0.3)


def test_the_table_has_a_row_for_each_way_and_parameter(found):
    table = found.table()
    assert list(table) == ["half_length", "masspole", "acting", "episodes", "mean", "low", "high", "worst", "cvar",
                           "median", "std", "mean_length", "terminated"]  # fmt: skip
    assert table["half_length"].tolist() == [0.5, 1.0, 1.0] * 2
    assert table["masspole"].tolist() == [0.1, 0.1, 0.3] * 2
    assert table["acting"].tolist() == ["greedy"] * 3 + ["noisy"] * 3
    assert table["episodes"].tolist() == [5] * 6
    for row in range(6):
        way, k = (found.greedy, row) if row < 3 else (found.noisy, row - 3)
        x = way.returns[k]
        low, high = stats.t.interval(0.9, 4, loc=x.mean(), scale=stats.sem(x))
        assert table["mean"][row] == pytest.approx(x.mean())
        assert (table["low"][row], table["high"][row]) == pytest.approx((low, high))
        assert table["worst"][row] == sorted(x)[0]
        assert table["cvar"][row] == pytest.approx((sorted(x)[0] + 0.5 * sorted(x)[1]) / 1.5)
        assert table["median"][row] == sorted(x)[2]
        assert table["std"][row] == pytest.approx(np.sqrt(((x - x.mean()) ** 2).sum() / 4))
        assert table["mean_length"][row] == way.lengths[k].mean()
        assert table["terminated"][row] == way.terminated[k].sum() / 5


def test_every_episode_has_a_row(found):
    table = found.episodes()
    assert len(table["return"]) == 2 * 3 * 5
    at = (table["acting"] == "noisy") & (table["half_length"] == 1.0) & (table["masspole"] == 0.3)
    assert table["return"][at].tolist() == found.noisy.returns[2].tolist()
    assert table["length"][at].tolist() == found.noisy.lengths[2].tolist()
    assert table["terminated"][at].tolist() == found.noisy.terminated[2].tolist()
    assert table["episode"][at].tolist() == [0, 1, 2, 3, 4]


def test_the_worst_parameter_has_the_lowest_mean(found):
    for way in ("greedy", "noisy"):
        worst, means = found.worst(way), found.played[way].returns.mean(axis=1)
        assert worst["mean"] == means.min()
        assert worst["half_length"] == found.param("half_length")[means.argmin()]
        assert worst["acting"] == way
    alone = Evaluation(found.points, found.varied, found.greedy, None, 0, 0.95, 0.1)
    with pytest.raises(ValueError, match="acting is 'noisy', expected one of 'greedy', as played"):
        alone.worst("noisy")
    with pytest.raises(ValueError, match="name is 'length', expected one of half_length, masspole"):
        found.param("length")


def test_it_prints_a_table(found):
    lines = str(found).splitlines()
    assert lines[0].split() == ["half_length", "masspole", "acting", "mean", "low", "high", "worst", "cvar", "0.3",
                                "median", "std", "length", "ended"]  # fmt: skip
    assert len({len(line) for line in lines[:7]}) == 1
    assert lines[1].split()[:3] == ["0.5", "0.1", "greedy"]
    assert lines[6].split()[:4] == ["1", "0.3", "noisy", f"{found.noisy.returns[2].mean():.4g}"]
    assert lines[7:] == [
        "5 episodes each, seed 7; low and high are Student's 90 % interval of the mean.",
        "All have masscart 1, gravity 9.8, force 10.",
    ]
    assert repr(found) == "Evaluation(3 x 5 episodes, greedy and noisy)"


def test_long_tables_are_cut_and_one_episode_has_no_interval():
    points = points_of({"half_length": np.linspace(0.1, 5, 70)}, CartPole())
    one = Episodes(np.ones((70, 1)), np.ones((70, 1), np.int32), np.zeros((70, 1), np.bool_))
    found = Evaluation(points.points, points.varied, one, None, 0, 0.95, 0.1)
    assert f"... {70 - SHOWN} more rows" in str(found)
    table = found.table()
    assert np.isnan(table["low"]).all()
    assert np.isnan(table["std"]).all()
    assert (table["mean"] == 1.0).all()
    assert (table["cvar"] == 1.0).all()
    assert table["half_length"][-1] == 5.0  # the upper end is there


def test_evaluations_with_one_seed_are_compared_in_pairs(found):
    difference = paired_difference(found.greedy.returns[0], found.noisy.returns[0])
    assert difference.estimate == pytest.approx(found.table()["mean"][0] - found.table()["mean"][3])


def test_combinations_come_in_the_order_asked_for():
    points = points_of({"masspole": (0.3, 0.1), "half_length": (1.0, 0.5)}, CartPole())
    assert [(p["masspole"], p["half_length"]) for p in points.points] == [
        (0.3, 1.0),
        (0.3, 0.5),
        (0.1, 1.0),
        (0.1, 0.5),
    ]
    assert points.varied == ("masspole", "half_length")
    assert points.fixed == {"masscart": 1.0, "gravity": 9.8, "force": 10.0}
    poles = UncertaintySet.grid(CartPole(), half_length=(0.25, 0.3))
    assert [p["half_length"] for p in points_of(poles, CartPole()).points] == [0.5, 0.25, 0.3]
    assert points_of(poles.members(), CartPole()).points == points_of(poles, CartPole()).points
    assert points_of([{}], CartPole()).varied == ()


def test_tables_in_csv_read_back_to_the_same_bits(found, tmp_path):
    path = tmp_path / "table.csv"
    write_table(path, found.table() | {"name": np.array(['a "b", c'] * 6)})
    rows = list(csv.DictReader(path.read_text().splitlines()))
    for name, column in found.table().items():
        read = [row[name] for row in rows]
        assert read == column.tolist() if name == "acting" else np.array_equal(np.array(read, float), column)
    assert rows[0]["name"] == 'a "b", c'
    write_table(path, found.episodes())
    assert {row["terminated"] for row in csv.DictReader(path.read_text().splitlines())} == {"0", "1"}
    assert list(tmp_path.iterdir()) == [path]


def test_tables_in_parquet(found, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    write_table(tmp_path / "table.parquet", found.table())
    read = parquet.read_table(tmp_path / "table.parquet").to_pydict()
    assert {name: column.tolist() for name, column in found.table().items()} == read


@pytest.mark.parametrize(
    ("name", "columns", "message"),
    [
        ("t.txt", {"a": np.zeros(2)}, "ends in '.txt', expected one of .csv, .parquet"),
        ("t.csv", {}, "columns is empty"),
        ("t.csv", {"a": np.zeros((2, 2))}, r"columns\['a'\] has type float64 and shape \(2, 2\)"),
        ("t.csv", {"a": np.array([None])}, r"columns\['a'\] has type object"),
        ("t.csv", {"a": np.zeros(2), "b": np.zeros(3)}, "a has 2, b has 3"),
    ],
)
def test_tables_that_are_none_are_refused(tmp_path, name, columns, message):
    with pytest.raises(ValueError, match=message):
        write_table(tmp_path / name, columns)
    assert not list(tmp_path.iterdir())
