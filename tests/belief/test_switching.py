"""The filter against the enumeration of every path of the hidden member."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.belief.switching import Switching, of_hazards, of_members


def by_enumeration(prior, hazard, likelihoods):
    """P(member at the end | observations), summing over all paths of members; a jump precedes every observation."""
    k = len(prior)
    total = np.zeros(k)
    for path in itertools.product(range(k), repeat=len(likelihoods) + 1):
        weight = prior[path[0]]
        for before, after, likelihood in zip(path, path[1:], likelihoods, strict=False):
            weight *= ((1 - hazard) * (before == after) + hazard * prior[after]) * likelihood[after]
        total[path[-1]] += weight
    return total / total.sum(), total.sum()


@pytest.mark.parametrize("hazard", [0.0, 0.05, 0.7, 1.0])
@pytest.mark.parametrize("prior", [(0.5, 0.5), (0.2, 0.0, 0.8)])
def test_filter_is_bayes_rule(hazard, prior):
    rng = np.random.default_rng(3)
    likelihoods = rng.random((4, len(prior)))
    switching = Switching(hazard=hazard, prior=prior)
    log_b, evidence = switching.begin(len(prior)), 0.0
    for likelihood in likelihoods:
        log_b, log_evidence = switching.update(switching.jump(log_b), np.log(likelihood))
        evidence += log_evidence
    expected, total = by_enumeration(np.array(prior), hazard, likelihoods)
    np.testing.assert_allclose(of_members(log_b), expected, rtol=1e-12, atol=1e-15)
    assert np.exp(evidence) == pytest.approx(total, rel=1e-12)


def test_unknown_hazard_is_bayes_rule_over_hazards_too():
    rng = np.random.default_rng(4)
    prior, hazards, likelihoods = np.array([0.3, 0.7]), (0.0, 0.1, 0.6), rng.random((5, 2))
    switching = Switching(hazard=hazards, prior=tuple(prior))
    log_b = switching.begin(2)
    for likelihood in likelihoods:
        log_b, _ = switching.update(switching.jump(log_b), np.log(likelihood))
    each = [by_enumeration(prior, hazard, likelihoods) for hazard in hazards]
    evidence = np.array([total for _, total in each])
    np.testing.assert_allclose(of_hazards(log_b), evidence / evidence.sum(), rtol=1e-12)
    members = sum(total * belief for belief, total in each) / evidence.sum()
    np.testing.assert_allclose(of_members(log_b), members, rtol=1e-12)


def test_unlikely_runs_do_not_underflow():
    switching = Switching(hazard=1e-3)
    log_b = switching.begin(2)
    for _ in range(1000):
        log_b, evidence = switching.update(switching.jump(log_b), np.array([-800.0, -790.0]))
    assert np.isfinite(evidence)
    np.testing.assert_allclose(of_members(log_b).sum(), 1.0, rtol=1e-12)
    assert of_members(log_b)[1] > 0.99


def test_what_no_member_allows_leaves_the_belief():
    switching = Switching(prior=(0.25, 0.75))
    log_b, evidence = switching.update(switching.begin(2), np.array([-np.inf, -np.inf]))
    assert evidence == -np.inf
    np.testing.assert_allclose(of_members(log_b), [0.25, 0.75])


def test_temper_is_a_power():
    log_l = np.log([0.9, 0.3])
    log_b, _ = Switching(temper=0.5).update(Switching().begin(2), log_l)
    np.testing.assert_allclose(of_members(log_b), np.sqrt([0.9, 0.3]) / np.sqrt([0.9, 0.3]).sum())


@pytest.mark.parametrize("hazard", [0.0, 0.2, (0.0, 0.3, 1.0)])
def test_jax_and_numpy_agree(hazard):
    switching = Switching(hazard=hazard, prior=(0.1, 0.0, 0.9))
    log_l = np.log([0.5, 0.2, 0.7])

    def step(log_b):
        return switching.update(switching.jump(log_b), log_l if isinstance(log_b, np.ndarray) else jnp.asarray(log_l))

    ours, evidence = step(switching.begin(3))
    theirs, their_evidence = jax.jit(step)(jnp.asarray(switching.begin(3), jnp.float32))
    np.testing.assert_allclose(np.exp(ours), np.exp(np.asarray(theirs)), rtol=1e-5, atol=1e-7)
    assert float(their_evidence) == pytest.approx(float(evidence), rel=1e-5)
    many = jax.vmap(step)(jnp.tile(jnp.asarray(switching.begin(3), jnp.float32), (4, 1, 1)))[0]
    np.testing.assert_allclose(np.exp(np.asarray(many[2])), np.exp(np.asarray(theirs)), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hazard": 1.5}, "hazard is 1.5"),
        ({"hazard": ()}, "hazard is empty"),
        ({"hazard": (0.1, -1.0)}, r"hazard\[1\] is -1"),
        ({"prior": (0.5, 0.4)}, "prior"),
        ({"temper": 0.0}, "temper is 0"),
        ({"per": "day"}, "per is 'day'"),
    ],
)
def test_bad_assumptions_are_named(fields, message):
    with pytest.raises(ValueError, match=message):
        Switching(**fields)


def test_prior_of_other_length_is_named():
    with pytest.raises(ValueError, match="prior has 2 entries, expected 3"):
        Switching(prior=(0.5, 0.5)).begin(3)
