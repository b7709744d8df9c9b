"""Posteriors updated online, against counts from scratch; counts of different replicates never mix."""

import numpy as np
import pytest

from oracles.plans import random_model
from urbe import Posterior
from urbe.posteriors.beliefs import Forgetting, Stationary, Visit, Window

REPLICATES, HORIZON = 5, 3
KINDS = {
    "stationary": Stationary(),
    "forgetting": Forgetting(0.9),
    "forgetting, mixed": Forgetting([1.0, 0.9, 0.5, 0.0, 0.98]),
    "window": Window(3),
    "window, mixed": Window([1, 2, 7, 100, 3]),
}


def weight(kind, b, age):
    """What a visit counts for replicate b, `age` episodes having ended since."""
    if isinstance(kind, Forgetting):
        return np.broadcast_to(kind.factor, REPLICATES)[b] ** age
    return 1.0 if isinstance(kind, Stationary) else float(age <= np.broadcast_to(kind.episodes, REPLICATES)[b])


def random_visit(rng, model, step):
    """Some of the replicates at random pairs."""
    replicate = np.flatnonzero(rng.random(REPLICATES) < 0.7)
    entry = rng.integers(model.rows.n_entries, size=len(replicate))
    return Visit(replicate, model.rows.entry_row[entry], entry, np.full(len(replicate), step))


def episodes(rng, model, n):
    return [[random_visit(rng, model, step) for step in range(HORIZON)] for _ in range(n)]


@pytest.fixture(params=[1, HORIZON], ids=["pooled", "per step"])
def layers(request):
    return request.param


@pytest.fixture
def prior():
    rng = np.random.default_rng(0)
    model = random_model(rng)
    return Posterior.before(model, rng.choice([1e-20, 0.1, 1.0, 50.0], model.rows.n_entries))


@pytest.mark.parametrize("kind", KINDS)
def test_concentrations_are_counted_anew(kind, layers, prior):
    rng, belief = np.random.default_rng(1), KINDS[kind].start(prior, REPLICATES, layers)
    past = []
    for visits in episodes(rng, prior.model, 12):
        past.append(visits)
        for visit in visits:
            belief.observe(visit)
        belief.end_episode()
        seen = np.zeros((REPLICATES, layers, prior.model.rows.n_entries))
        for back, older in enumerate(reversed(past), start=1):
            for visit in older:
                for b, entry, step in zip(visit.replicate, visit.entry, visit.step, strict=True):
                    seen[b, min(step, layers - 1), entry] += weight(KINDS[kind], b, back)
        np.testing.assert_allclose(belief.alpha, prior.concentration + seen, rtol=1e-13)
        sums = np.add.reduceat(belief.alpha, prior.model.rows.entry_start[:-1], axis=2)
        np.testing.assert_allclose(belief.total, sums, rtol=1e-13)
        assert (belief.alpha >= prior.concentration).all()


@pytest.mark.parametrize("kind", ["stationary", "window"])
def test_what_is_forgotten_leaves_no_trace(kind, prior):
    """Whole counts stay whole: a prior far below the rounding of a count is there again when the count is gone."""
    belief = KINDS[kind].start(prior, REPLICATES)
    for visits in episodes(np.random.default_rng(2), prior.model, 40):
        for visit in visits:
            belief.observe(visit)
        belief.end_episode()
    seen = belief.alpha - prior.concentration
    np.testing.assert_allclose(seen, np.round(seen), atol=1e-13)
    if kind == "window":
        for _ in range(4):
            belief.end_episode()
        assert np.array_equal(belief.alpha, np.broadcast_to(prior.concentration, belief.alpha.shape))
        assert np.array_equal(belief.total, np.broadcast_to(prior.total, belief.total.shape))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_change_are_touched(kind, layers, prior):
    rng, belief = np.random.default_rng(3), KINDS[kind].start(prior, REPLICATES, layers)
    assert belief.touched.all()
    for visits in episodes(rng, prior.model, 10):
        for change in [*(lambda visit=visit: belief.observe(visit) for visit in visits), belief.end_episode]:
            belief.touched[:] = False
            alpha, total = belief.alpha.copy(), belief.total.copy()
            change()
            moved = np.add.reduceat(alpha != belief.alpha, prior.model.rows.entry_start[:-1], axis=2) > 0
            moved |= total != belief.total
            assert (belief.touched | ~moved.any(axis=1)).all()
            if kind == "stationary":
                assert np.array_equal(belief.touched, moved.any(axis=1))


@pytest.mark.parametrize("kind", KINDS)
def test_state_goes_on_bit_for_bit(kind, layers, prior):
    rng, belief = np.random.default_rng(4), KINDS[kind].start(prior, REPLICATES, layers)
    first, second = episodes(rng, prior.model, 6), episodes(rng, prior.model, 6)
    for visits in first:
        for visit in visits:
            belief.observe(visit)
        belief.end_episode()
    belief.observe(second[0][0])
    saved = belief.state()
    other = KINDS[kind].start(prior, REPLICATES, layers)
    other.load(saved)
    for one in (belief, other):
        for visits in second:
            for visit in visits:
                one.observe(visit)
            one.end_episode()
    assert np.array_equal(belief.alpha, other.alpha)
    assert np.array_equal(belief.total, other.total)
    assert np.array_equal(belief.touched, other.touched)


def test_a_fresh_state_can_be_loaded(prior):
    """Nothing seen yet: no visits to split."""
    belief, other = (KINDS["window"].start(prior, REPLICATES) for _ in range(2))
    other.load(belief.state())
    other.end_episode()
    assert np.array_equal(belief.alpha, other.alpha)


def test_reductions(prior):
    """A factor of one is stationary; of zero, nothing but the prior between episodes."""
    rng = np.random.default_rng(5)
    one, still, zero = Forgetting(1.0).start(prior, 5), Stationary().start(prior, 5), Forgetting(0.0).start(prior, 5)
    for visits in episodes(rng, prior.model, 5):
        for visit in visits:
            for belief in (one, still, zero):
                belief.observe(visit)
        for belief in (one, still, zero):
            belief.end_episode()
    assert np.array_equal(one.alpha, still.alpha)
    assert np.array_equal(zero.alpha, np.broadcast_to(prior.concentration, zero.alpha.shape))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Forgetting(1.5), "factor is 1.5, expected a number in"),
        (Forgetting([0.5, -0.1]), r"factor\[1\] is -0.1"),
        (Forgetting([0.5] * 3), r"factor has shape \(3,\), expected a number or one per replicate \(2,\)"),
        (Window(0), "episodes is 0, expected a number in"),
        (Window([2.5, 1]), "episodes is 2.5, expected whole numbers"),
    ],
)
def test_refusals(kind, message, prior):
    with pytest.raises(ValueError, match=message):
        kind.start(prior, 2)
