"""Quantiles computed without storing the draws equal those of the same draws, stored."""

import subprocess
import sys

import numpy as np
import pytest

import urbe
from urbe.planners import draws as module
from urbe.planners.draws import KeptDraws, StreamedDraws, quantiles
from urbe.posteriors.shared_draws import SharedDraws


def problem(seed=0, *, discount=0.9):
    mdp = urbe.library.garnet(8, 2, 3, seed=seed, discount=discount)
    counts = 50.0 * mdp.rows.probability
    return urbe.Posterior.before(mdp).with_counts(counts)


@pytest.mark.parametrize("rank", [1, 4])
def test_streamed_quantiles_are_those_of_the_same_draws_kept(rank):
    posterior, n = problem(), 500
    rows = posterior.model.rows
    every = SharedDraws(posterior, np.random.default_rng(7), n).lowest(
        np.arange(rows.n_rows), np.zeros(rows.n_entries), n
    )
    kept = KeptDraws(rows, np.ascontiguousarray(every.draw), rank)
    streamed = StreamedDraws(posterior, np.random.default_rng(7), n, rank)
    rng = np.random.default_rng(0)
    z = rng.normal(size=rows.n_entries)
    for step in (0.0, 1e-3, 1e-2, 0.1, 1.0, 1e-3):  # near and far from the values before
        z = z + step * rng.normal(size=len(z)) + step
        one, other = streamed.lowest(z), kept.lowest(z)
        assert one.value == pytest.approx(other.value, abs=1e-12)
        assert rows.row_sums(one.draw * z) == pytest.approx(one.value, abs=1e-12)
        assert rows.row_sums(one.draw) == pytest.approx(np.ones(rows.n_rows), abs=1e-12)


def test_nearby_values_need_no_new_draws(monkeypatch):
    posterior = problem()
    rows, asked = posterior.model.rows, []
    whole = SharedDraws.lowest
    monkeypatch.setattr(SharedDraws, "lowest", lambda self, c, z, n: asked.append(len(c)) or whole(self, c, z, n))
    streamed = StreamedDraws(posterior, np.random.default_rng(7), 2000, 1)
    z = np.random.default_rng(0).normal(size=rows.n_entries)
    streamed.lowest(z)
    streamed.lowest(z + 1e-4)
    streamed.lowest(z + 5.0)  # a constant shifts all draws alike
    assert asked == [rows.n_rows]
    moved = z.copy()
    moved[: rows.entry_start[2]] *= -1.0
    streamed.lowest(moved)
    assert asked[1] == 2  # the two rows whose values changed


def test_draws_are_kept_while_they_are_few(monkeypatch):
    posterior = problem()
    assert isinstance(quantiles(posterior, np.random.default_rng(0), 100, 1), KeptDraws)
    monkeypatch.setattr(module, "KEPT", 100)
    assert isinstance(quantiles(posterior, np.random.default_rng(0), 100, 1), StreamedDraws)


def test_plans_with_streamed_draws_hold_as_those_with_kept_ones(monkeypatch):
    posterior = problem(3)
    kept = urbe.plan(posterior, method=urbe.RSVF(), rng=np.random.default_rng(0), held_out=400)
    monkeypatch.setattr(module, "KEPT", 0)
    streamed = urbe.plan(posterior, method=urbe.RSVF(), rng=np.random.default_rng(0), held_out=400)
    assert not np.array_equal(streamed.worst_case, kept.worst_case)
    # quantiles of other draws: what they say differs by a few percent of how far they are from the mean model
    loss, other = (urbe.solve(posterior.mean()).value - x.worst_case for x in (kept, streamed))
    assert other == pytest.approx(loss, rel=0.15)
    again = urbe.plan(posterior, method=urbe.RSVF(), rng=np.random.default_rng(0), held_out=400)
    assert np.array_equal(again.worst_case, streamed.worst_case)


SIZE = """
import resource, numpy as np, urbe
mdp = urbe.library.garnet(1000, 5, 5, seed=0, discount=0.95)
posterior = urbe.Posterior.before(mdp).with_counts(1000.0 * mdp.rows.probability)
safe = urbe.plan(posterior, method={method}, rng=np.random.default_rng(0), held_out=0)
assert urbe.certify(safe.solution).holds
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["urbe.BCI()", "urbe.RSVF()"])
def test_five_thousand_pairs_fit_into_two_gigabytes(method):
    """About a minute each: 200,000 and 100,000 draws of 25,000 probabilities, which would be 40 and 20 GB."""
    ran = subprocess.run([sys.executable, "-c", SIZE.format(method=method)], capture_output=True, text=True, check=True)
    assert int(ran.stdout) < 2_000_000  # kilobytes
