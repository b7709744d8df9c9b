"""Plans: initial states, untried pairs, seeds, labels, tables."""

import re

import numpy as np
import pytest

import urbe
from urbe.planners import plan
from urbe.rng import stream

COLUMNS = {
    "state": ["new", "new", "old", "old", "new", "worn"],
    "action": ["run", "run", "mend", "run", "run", "mend"],
    "reward": [5.0, 5.0, -2.0, 1.0, 5.0, -3.0],
    "next_state": ["new", "old", "new", "worn", "new", "new"],
}


@pytest.fixture(scope="module")
def posterior():
    return urbe.Posterior.fit(urbe.Transitions.from_columns(COLUMNS), discount=0.9)


def test_a_seed_is_a_stream_and_the_default_is_zero(posterior):
    by_seed, by_rng = plan(posterior, seed=3), plan(posterior, rng=stream(3, "plan"))
    assert by_seed.guaranteed.tolist() == by_rng.guaranteed.tolist()
    assert plan(posterior).guaranteed_at_start == plan(posterior, seed=0).guaranteed_at_start
    assert plan(posterior).guaranteed_at_start != by_seed.guaranteed_at_start
    with pytest.raises(ValueError, match="rng and seed=1 are both given, expected one of them"):
        plan(posterior, rng=stream(3, "plan"), seed=1)


@pytest.mark.parametrize(
    ("start", "weights", "text"),
    [
        (None, [1 / 3] * 3, "all 3 states that are not terminal, with equal weight"),
        ("old", [0, 1, 0], "state old"),
        ({"new": 0.75, "worn": 0.25}, [0.75, 0, 0.25], "states by probability: new 0.75, worn 0.25"),
        ([0.0, 0.5, 0.5], [0, 0.5, 0.5], "states by probability: old 0.5, worn 0.5"),
    ],
)
def test_the_start_is_given_and_stated(posterior, start, weights, text):
    found = plan(posterior, start=start, seed=0)
    assert found.start == pytest.approx(weights)
    assert found.start_text == text
    assert f"The start: {text}." in str(found)
    # the same draws, weighed by the start: of every state at once the guarantee is lower
    assert found.guaranteed_at_start >= found.start @ found.guaranteed


def test_another_start_changes_the_guarantee(posterior):
    found = {start: plan(posterior, start=start, seed=0).guaranteed_at_start for start in ("new", "worn")}
    assert found["new"] > found["worn"]


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("gone", "start[0] is 'gone', expected a state: 'new', 'old', 'worn'."),
        ({"new": 0.5}, "start sums to 0.5, expected 1."),
        ([1.0], "start has 1 entries, expected 3."),
    ],
)
def test_a_start_that_is_none(posterior, start, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        plan(posterior, start=start)


def test_pairs_never_tried_are_listed(posterior):
    without, absent = posterior.untried()
    assert without.tolist() == []
    assert absent.tolist() == [[0, 0], [2, 1]]
    text = "are in neither log nor model, so the policy never takes them: mend in new, run in worn."
    assert text in str(plan(posterior))
    log = urbe.Transitions.from_columns(COLUMNS)
    every = urbe.Posterior.fit(log, discount=0.9, feasible="all", n_actions=2, rewards=urbe.NormalGamma())
    assert [pairs.tolist() for pairs in every.untried()] == [[[0, 0], [2, 1]], []]
    assert "without data, only with the prior: mend in new, run in worn." in str(plan(every))


def test_tables_and_text_have_labels(posterior):
    found = plan(posterior)
    table = found.table()
    assert table["state"].tolist() == ["new", "old", "worn"]
    assert set(table["action"]) <= {"run", "mend"}
    assert np.array_equal(table["guaranteed"], found.guaranteed)
    assert str(found).splitlines()[-3].split()[:2] == ["new", "run"]


def test_a_weak_prior_is_on_the_scale_of_the_rewards():
    rewards = np.random.default_rng(0).normal(1000.0, 50.0, size=400)
    prior = urbe.NormalGamma.around(rewards)
    assert (prior.mean, prior.weight) == (rewards.mean(), 1.0)
    assert prior.rate / (prior.shape - 1.0) == pytest.approx(rewards.var())
    assert urbe.NormalGamma.around([2.0, 2.0]).rate == 1.0
    with pytest.raises(ValueError, match="rewards is empty"):
        urbe.NormalGamma.around([])
