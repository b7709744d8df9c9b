"""Comparisons of agents: numbers by definition, intervals over seeds, and errors."""

import csv

import numpy as np
import pytest
from scipy import stats

import urbe
from urbe.evaluation.episodes import Episodes
from urbe.evaluation.seeds import SeedEvaluation
from urbe.evaluation.table import Evaluation


def evaluation(scores, spread=0.0, name="length", noisy=False):
    """An evaluation whose mean returns are `scores`, with two episodes each, `spread` apart."""
    means = np.asarray(scores, np.float64)
    returns = np.stack([means - spread / 2, means + spread / 2], axis=1)
    episodes = Episodes(returns, np.ones(returns.shape, np.int32), np.zeros(returns.shape, np.bool_))
    points = tuple({name: float(k), "mass": 1.0} for k in range(len(means)))
    return Evaluation(points, (name,), episodes, episodes if noisy else None, 0, 0.95, 0.5)


def drawn(seed, shape, centre=0.0):
    return np.random.default_rng(seed).normal(centre, 1.0, shape)


def test_the_numbers_are_those_of_their_definitions():
    scores = drawn(0, (7, 8))
    found = urbe.compare({"mine": [evaluation(row) for row in scores]}, share=0.25)
    aggregates = found.aggregates("mine")
    flat = np.sort(scores.ravel())
    assert aggregates["iqm"].estimate == pytest.approx(flat[14:42].mean())
    for name, per_seed in {
        "mean": scores.mean(axis=1),
        "worst case": scores.min(axis=1),
        "cvar": np.sort(scores, axis=1)[:, :2].mean(axis=1),
    }.items():
        half = stats.t.ppf(0.975, 6) * per_seed.std(ddof=1) / np.sqrt(7)
        assert tuple(aggregates[name]) == pytest.approx(
            (per_seed.mean(), per_seed.mean() - half, per_seed.mean() + half)
        ), name


def test_whole_seeds_are_drawn_anew():
    """Parameters of a seed move together: its interval is as wide as that of one parameter, not narrower."""
    luck = drawn(1, (10, 1))
    alone = urbe.compare({"a": [evaluation(row) for row in luck]}).aggregates("a")["iqm"]
    many = urbe.compare({"a": [evaluation(row) for row in np.repeat(luck, 12, axis=1)]}).aggregates("a")["iqm"]
    assert many.estimate == pytest.approx(alone.estimate)
    assert many.high - many.low == pytest.approx(alone.high - alone.low, rel=0.1)


def test_intervals_of_the_iqm_cover():
    """95 % intervals of 20 seeds with correlated parameters, over 100 experiments, cover about that often."""
    covered = 0
    for k in range(100):
        scores = drawn(100 + k, (20, 1)) + 0.3 * drawn(300 + k, (20, 5))
        interval = urbe.compare({"a": [evaluation(row) for row in scores]}, seed=k).aggregates("a")["iqm"]
        covered += not interval.excludes(0.0)
    assert 84 <= covered <= 99


def test_profiles_are_shares_above_thresholds():
    scores = drawn(2, (6, 5))
    found = urbe.compare({"mine": [evaluation(row) for row in scores]})
    levels, band = found.profile("mine", np.array([-1.0, 0.0, 9.0]))
    assert band.estimate == pytest.approx([(scores > level).mean() for level in levels])
    assert (band.low <= band.estimate).all()
    assert (band.estimate <= band.high).all()
    levels, band = found.profile("mine")
    assert (band.estimate[0], band.estimate[-1]) == (1.0, 0.0)


def test_one_seed_has_no_interval_and_no_test():
    found = urbe.compare({"a": evaluation([1.0, 3.0]), "b": [evaluation([2.0, 2.0])]})
    assert found.aggregates("a")["worst case"].estimate == 1.0
    assert np.isnan(found.aggregates("a")["mean"].low)
    assert "Differences are tested only between agents that share at least two seeds." in str(found)
    with pytest.raises(ValueError, match=r"The agents have the seeds a: 0; b: 0; expected the same, at least two"):
        found.differences()


def test_differences_are_of_the_same_seeds_in_whatever_order():
    scores = drawn(3, (5, 4))
    evaluations = [evaluation(row) for row in scores]
    shuffled = [3, 0, 4, 1, 2]
    better = SeedEvaluation(tuple(evaluation(scores[i] + 1.0) for i in shuffled), tuple(shuffled))
    found = urbe.compare({"better": better, "base": SeedEvaluation(tuple(evaluations), tuple(range(5)))})
    for aggregate in ("mean", "worst case", "cvar"):
        (difference,) = found.differences(aggregate)
        assert tuple(difference.alone) == pytest.approx((1.0, 1.0, 1.0))
    assert "Worst case of better - base: 1 [1, 1]" in str(found)
    by_hand = urbe.compare({**found.agents, "by hand": evaluation([0.0] * 4)})
    assert len(by_hand.differences()) == 1  # one of a single seed is left out


def test_tables_and_files(tmp_path):
    found = urbe.compare({name: [evaluation(row) for row in drawn(k, (3, 2))] for k, name in enumerate("ab")})
    found.write(tmp_path / "t.csv")
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [(row["agent"], row["aggregate"]) for row in rows] == [
        (agent, name) for agent in "ab" for name in ("iqm", "mean", "worst case", "cvar")
    ]
    assert found.to_frame().shape == (8, 6)
    assert str(found).splitlines()[0].split() == ["agent", "seeds", "iqm", "mean", "worst", "case", "cvar", "0.25"]


def test_seeds_of_one_agent_are_one_table(tmp_path):
    scores = drawn(4, (4, 3))
    group = SeedEvaluation(tuple(evaluation(row, 1.0, noisy=True) for row in scores), (5, 6, 7, 8))
    table = group.table()
    assert table["acting"].tolist() == ["greedy"] * 3 + ["noisy"] * 3
    assert table["mean"][:3] == pytest.approx(scores.mean(axis=0))
    assert table["worst_seed"][:3] == pytest.approx(scores.min(axis=0))
    assert table["cvar"][:3] == pytest.approx((scores - 0.5).mean(axis=0))
    half = stats.t.ppf(0.975, 3) * scores.std(axis=0, ddof=1) / 2.0
    assert table["high"][:3] == pytest.approx(scores.mean(axis=0) + half)
    assert "4 seeds (5, 6, 7, 8), 2 episodes each" in str(group)
    group.write(tmp_path / "seeds.csv")
    assert group.to_frame().shape == (6, 9)


def test_pictures_are_drawn_with_and_without_a_parameter_to_draw_over():
    group = {name: [evaluation(row) for row in drawn(k, (3, 4))] for k, name in enumerate(["dqn", "mine"])}
    assert len(urbe.compare(group).plot().axes) == 3
    single = urbe.compare({"dqn": evaluation([1.0, 2.0])})
    assert len(single.plot().axes) == 3
    assert len(SeedEvaluation(tuple(group["dqn"]), (0, 1, 2)).plot().axes) == 1
    flat = evaluation([1.0, 2.0])
    object.__setattr__(flat, "varied", ())
    assert len(urbe.compare({"dqn": flat}).plot().axes) == 2


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        ({}, "agents is empty or not a mapping"),
        ({"a": evaluation([1.0]), "b": evaluation([1.0, 2.0])}, "'b' was evaluated over other parameters"),
        ({"a": evaluation([1.0]), "b": evaluation([1.0], name="mass_")}, "'b' was evaluated over other parameters"),
        ({"a": [evaluation([1.0]), evaluation([1.0, 2.0])]}, r"evaluations\[1\] is over other parameters"),
        ({"a": []}, "evaluations is empty"),
    ],
)
def test_what_does_not_fit_is_refused(agents, message):
    with pytest.raises(ValueError, match=message):
        urbe.compare(agents)


def test_ways_of_acting_and_shares_are_checked():
    with pytest.raises(ValueError, match="acting is 'noisy', expected one of 'greedy', as played"):
        urbe.compare({"a": evaluation([1.0])}, acting="noisy")
    with pytest.raises(ValueError, match="share is 0"):
        urbe.compare({"a": evaluation([1.0])}, share=0.0)
    with pytest.raises(ValueError, match=r"seeds is \[1, 1\], expected each once"):
        SeedEvaluation((evaluation([1.0]), evaluation([1.0])), (1, 1))
