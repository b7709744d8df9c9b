"""Rows that are mixtures of factors: brute force over policies and factors, reductions, certificates, errors."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy.sparse import csr_array

import urbe
from urbe import BackwardInduction, FactorSet, L1Ball, ModifiedPolicyIteration, ValueIteration, memory
from urbe.ambiguity.operator import LinearSystem, LowRank
from urbe.solvers.linear import plan, solve_system


def problem(seed, *, n=4, actions=2, factors=2, ball=None, discount=0.9, terminal=()):
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.ones(factors), size=(n, actions))
    centre = rng.dirichlet(np.ones(n), size=factors)
    a_set = FactorSet(share, centre, L1Ball(0.4) if ball is None else ball)
    return a_set.model(rng.normal(size=(n, actions)), discount=discount, terminal=terminal), a_set


def extremes(centre, radius):
    """Where an L1 ball puts a factor for some order of the states: all it may move, from the first ones to the last."""
    out = []
    for order in permutations(range(len(centre))):
        w, left = centre.copy(), min(radius / 2, 1.0 - centre[order[-1]])
        w[order[-1]] += left
        for s in order[:-1]:
            step = min(left, w[s])
            w[s], left = w[s] - step, left - step
        out.append(w)
    return np.unique(np.round(out, 13), axis=0)


def values_of_all(mdp, a_set, radius):
    """`(policies, choices of factors, S)` the value of every deterministic policy against every choice of extremes."""
    n, actions = mdp.n_states, mdp.n_actions
    choices = list(product(*(extremes(np.asarray(w), radius) for w in a_set.factors)))
    share, reward = np.asarray(a_set.coefficients), mdp.rows.row_reward.reshape(n, actions)
    out = np.empty((actions**n, len(choices), n))
    for i, policy in enumerate(product(range(actions), repeat=n)):
        u, r = share[np.arange(n), policy], reward[np.arange(n), policy]
        for j, w in enumerate(choices):
            out[i, j] = np.linalg.solve(np.eye(n) - mdp.discount * u @ np.array(w), r)
    return out


def test_the_numbers_of_the_specification():
    share = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])
    a_set = FactorSet(share, [[0.8, 0.2], [0.3, 0.7]], L1Ball(0.2))
    mdp = a_set.model([[0.0, 0.2], [1.0, 0.5]], discount=0.9)
    solution = urbe.solve(mdp, a_set)
    assert solution.value == pytest.approx([5.251613, 6.283871], abs=1e-6)
    assert solution.policy.tolist() == [1, 0]
    assert urbe.solve(mdp).value == pytest.approx([6.180645, 7.212903], abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_brute_force_over_policies_and_factors_finds_no_duality_gap(seed):
    mdp, a_set = problem(seed, n=3)
    solution = urbe.solve(mdp, a_set)
    values = values_of_all(mdp, a_set, 0.4)
    worst = values.min(axis=1)
    assert worst.max(axis=0) == pytest.approx(solution.value, abs=1e-6)  # max min, state by state
    assert values.max(axis=0).min(axis=0) == pytest.approx(solution.value, abs=1e-6)  # min max
    best = np.array(list(product(range(2), repeat=3))).tolist().index(solution.policy.tolist())
    assert worst[best] == pytest.approx(solution.value, abs=1e-6)  # one policy is best in every state
    for policy, expected in zip(product(range(2), repeat=3), worst, strict=True):
        assert urbe.evaluate_policy(mdp, list(policy), a_set).value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "ball",
    [L1Ball(0.3), L1Ball(0.3, support="all"), urbe.KLBall(0.1), urbe.Chi2Ball(0.2), urbe.Contamination(0.1)],
    ids=lambda ball: type(ball).__name__,
)
def test_a_factor_for_each_pair_is_the_rectangular_set(ball):
    rng = np.random.default_rng(1)
    p, reward = rng.dirichlet(np.full(4, 0.5), size=(4, 2)), rng.normal(size=(4, 2))
    mdp = urbe.MDP.from_dense(p, reward, discount=0.9)
    one, other = urbe.solve(mdp, FactorSet(np.eye(8), p.reshape(8, 4), ball)), urbe.solve(mdp, ball)
    assert one.value == pytest.approx(other.value, abs=2e-6)
    assert np.array_equal(one.policy, other.policy)
    v = rng.normal(size=4)
    assert one.operator.improve(v).q == pytest.approx(other.operator.improve(v).q, abs=1e-12)


def test_with_one_factor_actions_differ_by_their_rewards_alone():
    mdp, a_set = problem(2, factors=1)
    solution = urbe.solve(mdp, a_set)
    future = solution.q - mdp.rows.row_reward.reshape(4, 2)
    assert np.ptp(future) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_states_between_decisions_give_the_same_values(seed):
    """Pairs lead to states that stand for factors, without ambiguity; these lead on. Half a step each."""
    mdp, a_set = problem(seed, n=5, factors=3, discount=0.81)
    n, share = 5, a_set.coefficients
    p = np.zeros((n + 3, 2, n + 3))
    p[:n, :, n:] = share
    p[n:, 0, :n] = a_set.factors
    reward = np.zeros((n + 3, 2))
    reward[:n] = mdp.rows.row_reward.reshape(n, 2)
    available = np.ones((n + 3, 2), dtype=bool)
    available[n:, 1] = False
    wide = urbe.MDP.from_dense(p, reward, discount=0.9, available=available)
    choice = (wide.row_state >= n).astype(float)
    expected = urbe.solve(wide, urbe.PerRow((urbe.Exact(), L1Ball(0.4)), choice))
    assert urbe.solve(mdp, a_set).value == pytest.approx(expected.value[:n], abs=3e-6)


def test_factors_with_conflicting_directions_guarantee_more_than_balls_around_rows():
    """Half of what a worn machine may do is break down, which nature cannot make worse."""
    share = [
        [[1.0, 0.0, 0.0], [0.0, 0.1, 0.9]],
        [[0.5, 0.5, 0.0], [0.0, 0.1, 0.9]],
        [[0.1, 0.5, 0.4], [0.0, 0.1, 0.9]],
    ]
    ball = L1Ball(0.2, support="all")
    a_set = FactorSet(share, np.eye(3), ball)
    mdp = a_set.model([[0.0, -2.0], [1.0, -2.0], [1.5, -2.0]], discount=0.9)
    gain = urbe.solve(mdp, a_set).lower - urbe.solve(mdp, ball).upper
    assert (gain > 0.54).all()  # of 1.11, 2.50 and 3.87
    assert gain == pytest.approx([0.542493, 0.556352, 0.598458], abs=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_methods_and_certificates_agree(seed):
    mdp, a_set = problem(seed, n=6, factors=3)
    solution = urbe.solve(mdp, a_set)
    for method in (ValueIteration(), ModifiedPolicyIteration(), urbe.PartialPolicyIteration(linear="always")):
        assert urbe.solve(mdp, a_set, method).value == pytest.approx(solution.value, abs=2e-6)
    assert urbe.certify(solution).holds
    assert urbe.certify(urbe.solve(mdp, a_set, BackwardInduction(4))).holds
    mixed = np.full((6, 2), 0.5)
    assert urbe.certify(urbe.evaluate_policy(mdp, mixed, a_set)).holds
    assert urbe.evaluate_policy(solution.kernel, solution.policy).value == pytest.approx(solution.value, abs=2e-6)
    assert (solution.value >= urbe.solve(mdp, L1Ball(0.4, support="all")).lower).all()  # which contains it
    high = replace(solution, lower=solution.lower + 1e-3, upper=solution.upper + 1e-3, value=solution.value + 1e-3)
    assert "lower bound" in urbe.certify(high).statement


def test_certificates_refuse_kernels_of_another_set():
    mdp, a_set = problem(0, n=6, factors=3)
    solution = urbe.solve(mdp, a_set)
    assert "leaves its set" in urbe.certify(solution, mdp, replace(a_set, set=L1Ball(0.1))).statement
    other = replace(a_set, coefficients=np.roll(a_set.coefficients, 1, axis=0))
    assert "from mixtures of factors" in urbe.certify(solution, mdp, other).statement


@pytest.mark.parametrize(
    "inner",
    [
        urbe.Optimistic(L1Ball(0.3)),
        urbe.Optimistic(urbe.KLBall(0.1)),
        urbe.NestedSets((urbe.Exact(), urbe.Optimistic(L1Ball(0.4))), [0.5, 1.0]),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_certificates_take_helping_factors_that_the_kernel_does_not_determine(inner, seed):
    rng = np.random.default_rng(seed)
    many = FactorSet(rng.dirichlet(np.ones(9), size=(3, 2)), rng.dirichlet(np.ones(3), size=9), inner)
    certificate = urbe.certify(urbe.solve(many.model(rng.normal(size=(3, 2)), discount=0.9), many))
    assert certificate.holds, certificate.statement


def test_certificates_refuse_members_that_are_not_the_worst():
    mdp, a_set = problem(0, n=6, factors=3)
    solution = urbe.solve(mdp, a_set)
    solution.__dict__["kernel"] = mdp
    assert "upper bound" in urbe.certify(solution).statement


def test_certificates_take_factors_that_rounding_spoils():
    """Twins of a factor, one whose coefficient is lost beside the others, and one with a probability below rounding."""
    share = np.array([[[0.25, 0.25, 0.5, 0.0]], [[0.5, 0.5, 0.0, 1e-255]]])
    factors = [[0.9, 0.1], [0.2, 0.8], [1.0, 1e-282], [0.5, 0.5]]
    for each in (urbe.Contamination(1e-8), urbe.KLBall(0.5), urbe.LikelihoodRegion(36.0), urbe.Chi2Ball(0.1)):
        a_set = FactorSet(share, factors, each)
        mdp = a_set.model([[0.0], [1.0]], discount=0.9)
        assert urbe.certify(urbe.solve(mdp, a_set, throw=False)).holds


def test_certificates_refuse_rows_that_no_distributions_mix_to_however_large_the_set():
    a_set = FactorSet([[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]], urbe.Chi2Ball([0.0, 1e300]))
    mdp = a_set.model([[1.0], [1.0]], discount=0.9)  # worth 10 under every kernel
    solution = urbe.solve(mdp, a_set)
    assert urbe.certify(solution).holds
    bad = mdp.rows.matrix().toarray()
    bad[0] = [1.0, 0.0]  # half of it comes from the first factor, so that the second would be (1.5, -0.5)
    solution.__dict__["kernel"] = urbe.MDP.from_dense(bad[:, None], mdp.rows.row_reward[:, None], discount=0.9)
    assert "factor 1 leaves its set" in urbe.certify(solution).statement


def test_certificates_take_factors_whose_distance_magnifies_rounding():
    """A chi-square distance of 1e300 from a probability of 5e-324, and a trace of a factor that leads elsewhere."""
    vast = urbe.Chi2Ball([0.0, 1e300])
    sets = [
        FactorSet([[a, 1.0 - a], [0.0, 1.0], [1.0 - a, a]], [[x, 0.0, 1.0 - x], [1.0, 0.0, 5e-324]], vast)
        for a, x in product((0.3, 0.4), (0.6, 2.0 / 3.0))
    ]
    share = [[0.02, 0.84, 0.14, 0.0], [1.0, 0.0, 0.0, 8e-11], [0.0, 0.22, 0.47, 0.31]]
    factors = [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.375, 0.25, 0.375], [0.4, 0.6, 0.0]]
    sets.append(FactorSet(share, factors, urbe.L2Ball([0.001, 1.0, 0.1, 1.0])))
    for a_set in sets:
        mdp = a_set.model([[0.0], [-1.0], [-2.0]], discount=0.9)
        assert urbe.certify(urbe.solve(mdp, a_set, throw=False)).holds


def test_certificates_take_factors_that_are_not_unique_whatever_nature_aims_at():
    share = np.repeat([[[0.1, 0.2, 0.3, 0.4]], [[0.4, 0.3, 0.2, 0.1]]], 2, axis=1)
    factors = [[0.9, 0.1], [0.2, 0.8], [1.0, 0.0], [0.5, 0.5]]
    parts = (L1Ball(0.3), urbe.PerRow((urbe.KLBall(0.2), urbe.Optimistic(urbe.KLBall(0.2))), [0, 1, 0, 1]))
    for each in (*parts, *(urbe.Optimistic(part) for part in parts)):
        a_set = FactorSet(share, factors, each)
        assert urbe.certify(urbe.solve(a_set.model([[0.0, 0.1], [1.0, 0.5]], discount=0.9), a_set)).holds


def test_factors_that_no_row_uses_change_nothing():
    mdp, a_set = problem(3)
    wider = FactorSet(
        np.concatenate([a_set.coefficients, np.zeros((4, 2, 1))], axis=2), [*a_set.factors, np.eye(4)[0]], a_set.set
    )
    solution = urbe.solve(mdp, wider)
    assert solution.value == pytest.approx(urbe.solve(mdp, a_set).value, abs=2e-6)
    assert urbe.certify(solution).holds


def exact_step(a_set, mdp, v, radius):
    """T v in rational numbers; coefficients and factors divided by their sums."""
    v = [Fraction(x) for x in v]
    order = sorted(range(len(v)), key=lambda s: -v[s])
    f = []
    for factor in np.asarray(a_set.factors):
        w = [Fraction(x) for x in factor]
        w = [x / sum(w) for x in w]
        left = min(Fraction(radius) / 2, 1 - w[order[-1]])
        w[order[-1]] += left
        for s in order[:-1]:
            step = min(left, w[s])
            w[s], left = w[s] - step, left - step
        f.append(sum(x * y for x, y in zip(w, v, strict=True)))
    rows = []
    for u, r in zip(np.asarray(a_set.coefficients).reshape(-1, len(f)), mdp.rows.row_reward, strict=True):
        share = [Fraction(x) for x in u]
        mean = sum(x * y for x, y in zip(share, f, strict=True)) / sum(share)
        rows.append(Fraction(r) + Fraction(mdp.discount) * mean)
    return [max(rows[s * 2 : s * 2 + 2]) for s in range(mdp.n_states)]


@pytest.mark.parametrize("scale", [1.0, 1e8])
def test_the_stated_rounding_error_covers_a_step_in_rational_numbers(scale):
    mdp, a_set = problem(5, n=6, factors=3)
    operator = a_set.operator(mdp)
    rng = np.random.default_rng(0)
    for shift in (0.0, 1e6):
        v = scale * rng.normal(size=6) + shift
        found, exact = operator.improve(v).value, exact_step(a_set, mdp, v, 0.4)
        allowed = operator.error(v)
        assert all(abs(Fraction(x) - y) <= allowed for x, y in zip(found, exact, strict=True))
        assert allowed < 1e-13 * (scale + shift + 10.0)


def test_operators_are_monotone_and_shift_with_constants():
    mdp, a_set = problem(6, n=5)
    operator, rng = a_set.operator(mdp), np.random.default_rng(1)
    v = rng.normal(size=5)
    value = operator.improve(v).value
    assert (operator.improve(v + rng.uniform(size=5)).value >= value - 1e-14).all()
    assert operator.improve(v + 3.0).value == pytest.approx(value + 2.7, abs=1e-12)
    moments = operator.moments(v, np.ones(5))
    assert moments.value == pytest.approx(value, abs=1e-14)
    assert moments.carried == pytest.approx(np.ones(10), abs=1e-12)
    assert not moments.scatter.any()


def test_total_reward_without_discounting():
    mdp, a_set = problem(4, n=5, discount=1.0, terminal=[4])
    share = a_set.coefficients[:4].reshape(-1, 2)
    solution = urbe.solve(mdp, replace(a_set, coefficients=share))
    assert urbe.certify(solution).holds
    assert solution.gap < 1e-6
    assert solution.value == pytest.approx(urbe.solve(mdp, a_set).value, abs=2e-6)  # pairs of terminal states unread


def test_sparse_arrays_are_read_as_dense_ones_are():
    mdp, a_set = problem(7, n=6, factors=3)
    sparse = FactorSet(csr_array(a_set.coefficients.reshape(12, 3)), csr_array(a_set.factors), a_set.set)
    assert urbe.solve(mdp, sparse).value == pytest.approx(urbe.solve(mdp, a_set).value, abs=1e-9)
    assert sparse.nominal(mdp).rows.probability == pytest.approx(mdp.rows.probability, abs=1e-15)


def test_nature_may_help():
    mdp, a_set = problem(8, n=3, ball=urbe.Optimistic(L1Ball(0.4)))
    solution = urbe.solve(mdp, a_set)
    assert urbe.certify(solution).holds
    assert values_of_all(mdp, a_set, 0.4).max(axis=(0, 1)) == pytest.approx(solution.value, abs=1e-6)


def test_variances_take_it():
    mdp, a_set = problem(5)
    posterior = urbe.Posterior.before(mdp, 20.0 * mdp.rows.probability)
    plan_ = urbe.value_variance(posterior, a_set, horizon=3)
    assert plan_.value == pytest.approx(urbe.solve(posterior.mean(), a_set, BackwardInduction(3)).value, abs=1e-12)
    assert not plan_.local.any()  # the factors do not move with the data
    assert (urbe.value_variance(posterior, a_set, local=urbe.Count(beta=0.5)).value_variance > 0.0).all()


def test_thin_systems_are_solved_as_listed_ones():
    rng = np.random.default_rng(0)
    left, right, reward = rng.dirichlet(np.ones(3), size=9), rng.dirichlet(np.ones(9), size=3), rng.normal(size=9)
    expected = np.linalg.solve(np.eye(9) - 0.99 * left @ right, reward)
    for thin in (LowRank(left, right), LowRank(csr_array(left), csr_array(right)), LowRank(left, csr_array(right))):
        assert solve_system(thin, reward, 0.99, plan(thin)) == pytest.approx(expected, abs=1e-10)


def test_thin_systems_of_some_states_are_those_of_the_listed_matrix():
    rng = np.random.default_rng(1)
    thin = LinearSystem(LowRank(rng.random((6, 2)), csr_array(rng.random((2, 6)))), rng.normal(size=6))
    some = np.array([1, 3, 4])
    part = thin.among(some)
    assert part.listed().toarray() == pytest.approx(thin.listed().toarray()[np.ix_(some, some)])
    assert np.array_equal(part.reward, thin.reward[some])


def test_evidence_bounds_a_step_from_both_sides_whatever_the_kernel():
    mdp, a_set = problem(3, n=5, factors=3)
    operator, v = a_set.operator(mdp), np.random.default_rng(0).normal(size=5)
    best = operator.improve(v)
    for kernel in (mdp.rows, operator.kernel(v, best.policy), None):  # the centre, the worst, none
        evidence = operator.evidence(kernel, optimal=True)
        assert evidence.failure is None
        assert (evidence.below(v, best.policy) <= best.value + 1e-14).all()
        assert np.asarray(evidence.below(v, best.policy), float) == pytest.approx(best.value, abs=1e-12)
        assert (evidence.above(v, best.policy) >= best.value - 1e-14).all()
    assert np.isinf(np.asarray(operator.evidence(None, optimal=True).above(v, best.policy), float)).all()
    assert (operator.evidence(mdp.rows, optimal=True).above(v, best.policy) > best.value + 1e-3).all()


def test_what_a_sweep_learned_is_kept_when_a_policy_is_followed():
    mdp, a_set = problem(3, n=5, factors=3)
    operator = a_set.operator(mdp)
    _, _, policy, learned = operator.improve(np.arange(5.0))
    before = learned.copy()
    following, known = operator.against(policy, learned)
    following.apply(-np.arange(5.0), known)
    assert np.array_equal(learned, before)


def test_a_slow_chain_of_factors_is_solved_by_newton_steps_on_factors():
    """Factors on blocks of states that are left rarely; 400 states, 8 factors."""
    rng = np.random.default_rng(0)
    block = np.repeat(np.arange(8), 50)
    centre = np.zeros((8, 400))
    centre[block, np.arange(400)] = 0.02
    share = 0.999 * np.eye(8)[np.repeat(block, 2)] + 0.001 * rng.dirichlet(np.ones(8), size=800)
    a_set = FactorSet(share, centre, L1Ball(0.2))
    mdp = a_set.model(rng.normal(size=(400, 2)), discount=0.999)
    solution = urbe.solve(mdp, a_set)
    assert solution.sweeps < 200
    assert urbe.certify(solution).holds
    assert solution.value == pytest.approx(urbe.solve(mdp, a_set, ValueIteration(tolerance=1e-5)).value, abs=1e-4)


def test_a_model_too_large_to_list_is_solved_and_its_kernel_refused(monkeypatch):
    mdp, a_set = problem(9, n=6)
    bare = a_set.model(mdp.rows.row_reward.reshape(6, 2), discount=0.9, listed=False)
    assert bare.rows.n_entries == 12
    solution = urbe.solve(bare, a_set)
    assert solution.value == pytest.approx(urbe.solve(mdp, a_set).value, abs=2e-6)
    share = np.asarray(a_set.coefficients).reshape(12, 2)
    expected = solution.kernel.rows.probability.reshape(12, 6)
    assert share @ solution.operator.factors(solution.at) == pytest.approx(expected, abs=1e-14)
    again = urbe.solve(bare, a_set)
    monkeypatch.setattr(memory, "UNNOTICED", 0)
    monkeypatch.setattr(memory, "available", lambda: 10)
    with pytest.raises(memory.NotEnoughMemory, match=r"12 rows over 6 states.*listed=False.*operator\.factors"):
        urbe.certify(again)
    with pytest.raises(memory.NotEnoughMemory, match=r"coefficients of 2 factors in 12 rows.*sparse array"):
        urbe.solve(bare, a_set)


def test_errors_say_what_to_do():
    mdp, a_set = problem(1)
    with pytest.raises(ValueError, match=r"is not solved row by row.*NP-hard"):
        FactorSet(a_set.coefficients, a_set.factors, urbe.SRectangular(L1Ball(0.2)))
    with pytest.raises(TypeError, match=r"set is 0\.2, expected a set that chooses each row"):
        FactorSet(a_set.coefficients, a_set.factors, 0.2)
    with pytest.raises(ValueError, match=r"terminal\[0\] is 9, expected a 0-based state below 4"):
        a_set.model(np.zeros((4, 2)), discount=0.9, terminal=[9])
    with pytest.raises(ValueError, match=r"coefficients has shape \(3, 2\), expected one row for each pair"):
        urbe.solve(mdp, replace(a_set, coefficients=np.full((3, 2), 0.5)))
    wrong = np.full((8, 2), 0.5)
    wrong[1, 0] = 1.0
    with pytest.raises(ValueError, match=r"coefficients of state 0, action 1 sum to 1\.5, expected 1\. 1 of 8 rows is"):
        urbe.solve(mdp, replace(a_set, coefficients=wrong))
    with pytest.raises(ValueError, match=r"factors of factor 0 sum to 0\.8, expected 1"):
        urbe.solve(mdp, replace(a_set, factors=np.full((2, 4), 0.2)))
    with pytest.raises(ValueError, match=r"factors of factor 1 are all zero"):
        urbe.solve(mdp, replace(a_set, factors=[[1.0, 0.0, 0.0, 0.0], [0.0] * 4]))
    with pytest.raises(ValueError, match=r"factors has 3 columns, expected one for each of 4 states"):
        urbe.solve(mdp, replace(a_set, factors=np.full((2, 3), 1 / 3)))
    with pytest.raises(ValueError, match=r"factors has shape \(4,\), expected two dimensions"):
        urbe.solve(mdp, replace(a_set, factors=np.full(4, 0.25)))
    with pytest.raises(ValueError, match=r"coefficients\[0, 0\] is -0\.5, expected at least 0"):
        urbe.solve(mdp, replace(a_set, coefficients=np.tile([-0.5, 1.5], (4, 2, 1))))
    with pytest.raises(ValueError, match=r"2 factors \(below, factor i is state 0, action i\): radius is 3"):
        urbe.solve(mdp, replace(a_set, set=L1Ball([0.1, 3.0])))
    with pytest.raises(ValueError, match=r"reward has 3 rows, expected one for each of 4 states"):
        a_set.model(np.zeros((3, 2)), discount=0.9)
    p = np.full((4, 2, 4), 0.25)
    with pytest.raises(ValueError, match=r"rewards of the model depend on the successor"):
        urbe.solve(urbe.MDP.from_dense(p, np.random.default_rng(0).normal(size=p.shape), discount=0.9), a_set)


def test_inputs_stay_untouched():
    mdp, a_set = problem(1)
    sparse = csr_array(a_set.coefficients.reshape(8, 2))
    before = [np.array(x) for x in (a_set.coefficients, a_set.factors, sparse.data)]
    urbe.solve(mdp, replace(a_set, coefficients=sparse))
    urbe.solve(mdp, a_set)
    for old, new in zip(before, (a_set.coefficients, a_set.factors, sparse.data), strict=True):
        assert np.array_equal(old, new)


def test_kernels_are_mixtures_however_little_a_row_takes_of_a_factor():
    """Coefficients of 3e-14 are not zero: a factor is found from the kernel, but to few digits."""
    share = [[0.0, 1.56019255e-07, 1.0 - 1.56019255e-07], [0.4, 0.6, 0.0], [3.0087044e-14, 0.0, 1.0]]
    factors = [[0.590232997, 0.409767003, 0.0], [1.0, 0.0, 0.0], [1.0, 1.42957176e-11, 0.0]]
    few = urbe.FactorSet(share, factors, urbe.LikelihoodRegion([800.0, 40.0, 24.97106109]))
    solution = urbe.solve(few.model([[0.0], [-1.0], [-2.0]], discount=0.9), few)
    assert urbe.certify(solution).holds
