"""Options: plain loops with linear programs, semi-Markov equations, reductions, certificates, refusals."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import urbe
from oracles.worst_case import LP_TOLERANCE, l1
from urbe import BackwardInduction, KLBall, L1Ball, Optimistic, Option, ValueIteration, one_step, with_options
from urbe.ambiguity.operator import PolicyRows


def random_model(seed, *, n=3, actions=2, discount=0.9, terminal=()):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n, 0.6), size=(n, actions))
    return urbe.MDP.from_dense(p, rng.normal(size=(n, actions)), discount=discount, terminal=terminal)


def random_options(seed, n=3, actions=2, count=3):
    rng = np.random.default_rng(seed)
    policies = [rng.integers(0, actions, n), *rng.dirichlet(np.ones(actions), size=(count - 1, n))]
    return [Option(policy, rng.choice([0.0, 0.3, 1.0], size=n)) for policy in policies]


def table(policy, actions=2):
    return np.eye(actions)[policy] if np.ndim(policy) == 1 else np.asarray(policy)


@pytest.mark.parametrize("seed", range(4))
def test_solutions_satisfy_the_equations_row_by_row(seed):
    mdp, options = random_model(seed), random_options(seed)
    p, reward = mdp.to_dense()
    model = with_options(mdp, options, L1Ball(0.4))
    solution = urbe.solve(model.mdp, model.set, urbe.PartialPolicyIteration(1e-9))
    assert urbe.certify(solution).holds
    v, u = solution.value[:3], solution.value[3:].reshape(3, 3)
    best = np.full(3, -np.inf)
    for o, (policy, ends, _) in enumerate(options):
        ahead = (1 - ends) * u[o] + ends * v
        q = [[reward[s, a] + 0.9 * l1(p[s, a], ahead, 0.4) for a in range(2)] for s in range(3)]
        running = (table(policy) * q).sum(axis=1)
        on = ends < 1.0  # where it always ends nothing goes on
        assert u[o][on] == pytest.approx(running[on], abs=10 * LP_TOLERANCE)
        best = np.maximum(best, running)
    assert v == pytest.approx(best, abs=10 * LP_TOLERANCE)


def test_without_doubt_it_is_the_semi_markov_problem():
    """Reward and discounted end of an option by linear systems, then value iteration over options."""
    mdp, options = random_model(5, n=4), random_options(5, n=4)
    p, reward = mdp.to_dense()
    gain, lands = [], []
    for policy, ends, _ in options:
        own = np.einsum("sa,sat->st", table(policy), p)
        left = np.linalg.inv(np.eye(4) - 0.9 * own * (1 - ends))
        gain.append(left @ (table(policy) * reward).sum(axis=1))
        lands.append(left @ (0.9 * own * ends))
    v = np.zeros(4)
    for _ in range(2000):
        v = np.max([r + m @ v for r, m in zip(gain, lands, strict=True)], axis=0)
    model = with_options(mdp, options, urbe.Exact())
    assert urbe.solve(model.mdp, model.set, urbe.PartialPolicyIteration(1e-10)).value[:4] == pytest.approx(v, abs=1e-8)


@pytest.mark.parametrize("ball", [L1Ball(0.3), KLBall(0.05), urbe.Contamination(0.2)], ids=repr)
def test_options_of_one_step_are_the_actions(ball):
    mdp = random_model(1, n=5, actions=3)
    model = with_options(mdp, one_step(mdp), ball)
    found, plain = (
        urbe.solve(model.mdp, model.set, urbe.PartialPolicyIteration(1e-9)),
        urbe.solve(mdp, ball, urbe.PartialPolicyIteration(1e-9)),
    )
    assert found.value[:5] == pytest.approx(plain.value, abs=1e-8)
    assert found.policy[:5].tolist() == plain.policy.tolist()
    assert model.mdp.terminal[5:].all()  # nothing goes on


@pytest.mark.parametrize("ball", [L1Ball(0.3), KLBall(0.05)], ids=repr)
def test_an_option_that_never_ends_is_the_evaluation_of_its_policy(ball):
    mdp, policy = random_model(2, n=4), np.random.default_rng(0).dirichlet([1, 1], size=4)
    model = with_options(mdp, [Option(policy, 0.0)], ball)
    found = urbe.solve(model.mdp, model.set, urbe.PartialPolicyIteration(1e-9)).value
    wanted = urbe.evaluate_policy(mdp, policy, ball, urbe.PartialPolicyIteration(1e-9)).value
    assert found[:4] == pytest.approx(wanted, abs=1e-8)
    assert found[4:] == pytest.approx(wanted, abs=1e-8)


def test_actions_beside_options_leave_nothing_to_gain_and_more_options_never_harm():
    mdp, options = random_model(3, n=4), random_options(3, n=4)
    few, many = (with_options(mdp, each, L1Ball(0.3)) for each in (options, options + one_step(mdp)))
    fewer, more = (urbe.solve(each.mdp, each.set).value[:4] for each in (few, many))
    best = urbe.solve(mdp, L1Ball(0.3)).value
    assert (fewer <= more + 1e-6).all()
    assert more == pytest.approx(best, abs=3e-6)


def test_methods_horizons_and_policies_agree_with_their_certificates():
    mdp = random_model(4, n=4)
    model = with_options(mdp, random_options(4, n=4), L1Ball(0.3))
    solution = urbe.solve(model.mdp, model.set)
    assert urbe.solve(model.mdp, model.set, ValueIteration()).value == pytest.approx(solution.value, abs=3e-6)
    again = urbe.evaluate_policy(model.mdp, model.policy(solution.policy[:4]), model.set)
    assert again.value == pytest.approx(solution.value, abs=3e-6)
    ends = urbe.solve(model.mdp, model.set, BackwardInduction(3))
    assert all(urbe.certify(x).holds for x in (again, ends))
    helped = urbe.solve(model.mdp, Optimistic(model.set))
    assert urbe.certify(helped).holds
    assert (helped.value >= solution.value - 1e-6).all()


def test_total_reward_without_discounting():
    mdp = random_model(6, n=4, discount=1.0, terminal=[3])
    model = with_options(mdp, [Option([0, 1, 0, -1], 0.3), Option([1, 0, 1, -1], 1.0)], L1Ball(0.2))
    solution = urbe.solve(model.mdp, model.set)
    assert urbe.certify(solution).holds
    assert solution.policy[3] == -1
    far = urbe.solve(replace(model.mdp, discount=1.0), model.set, BackwardInduction(400)).value[0]
    assert solution.value == pytest.approx(far, abs=1e-5)


def test_options_begin_where_they_may():
    mdp = random_model(7)
    first = [Option([0, 0, -1], [0.5, 0.5, 1.0]), Option([1, 1, 1], 1.0, starts=[False, False, True])]
    model = with_options(mdp, first, L1Ball(0.2))
    assert urbe.solve(model.mdp, model.set).policy[:3].tolist() == [0, 0, 1]
    assert model.mdp.action[model.mdp.row_start[model.state(1, running=0)]] == 0


def test_certificates_refuse_kernels_that_no_nature_has():
    mdp = random_model(8)
    model = with_options(mdp, [Option([0, 1, 0], 0.3), Option(np.full((3, 2), 0.5), 0.3)], L1Ball(0.2))
    solution = urbe.solve(model.mdp, model.set)
    operator, rows = solution.operator, solution.kernel.rows
    assert operator.nature.excess(rows).max() < 1e-12

    def excess(entry, change):
        p = rows.probability.copy()
        p[entry] += change
        return operator.nature.excess(replace(rows, probability=p))

    for row in (0, 1):  # one action, and a mixture of two
        first = rows.entry_start[row]
        ended = np.flatnonzero(rows.successor[first : rows.entry_start[row + 1]] < 3) + first
        assert excess(ended[:2], [1e-3, -1e-3])[row] > 1e-4  # ends sooner or later than the option does
    wide = with_options(mdp, [Option([0, 1, 0], 0.3), Option(np.full((3, 2), 0.5), 0.3)], L1Ball(1.5))
    stray = urbe.solve(wide.mdp, wide.set).kernel.rows
    assert (operator.nature.excess(stray) > 1e-3).sum() >= 4
    worse = replace(solution, operator=wide.set.operator(wide.mdp))
    assert not urbe.certify(worse).holds


@pytest.mark.parametrize("discount", [0.9, 5e-324])
@pytest.mark.parametrize("ball", [urbe.Chi2Ball(1e300), urbe.WeightedL1Ball(1e-25, np.array([1.0, 2.0, 1e-20]))])
def test_certificates_measure_kernels_in_units_of_the_set_without_discounting(ball, discount):
    model = with_options(random_model(1, discount=discount), random_options(1), ball)
    for a_set in (model.set, Optimistic(model.set)):
        assert urbe.certify(urbe.solve(model.mdp, a_set)).holds


def test_bounds_on_a_step_account_for_rounding_of_the_reward():
    """At a discount of 2^-63 the last digits of a step are beyond extended precision."""
    mdp = urbe.MDP.from_dense([[[1.0]]], [[1.0 / 3.0]], discount=2.0**-63)
    model = with_options(mdp, [Option([0], 1.0)], urbe.Exact())
    evidence = model.set.operator(model.mdp).evidence(model.mdp.rows, optimal=True)
    for v in (np.array([1.0 / 3.0, 0.0]), np.array([-1.0 / 3.0, 0.0])):
        exact = Fraction(1.0 / 3.0) + Fraction(2.0**-63) * Fraction(float(v[0]))
        below, above = evidence.below(v, PolicyRows(np.array([0]))), evidence.above(v, PolicyRows(np.array([0])))
        assert fraction(below[0]) <= exact <= fraction(above[0])


def fraction(x):
    """A number of extended precision, exactly."""
    leading = float(x)
    return Fraction(leading) + Fraction(float(x - np.longdouble(leading)))


def test_operators_are_monotone_and_shift_with_constants():
    model = with_options(random_model(9), random_options(9), L1Ball(0.5))
    operator, rng = model.set.operator(model.mdp), np.random.default_rng(0)
    for v in rng.normal(size=(10, model.mdp.n_states)):
        v = np.where(model.mdp.terminal, 0.0, v)
        lower = operator.improve(v).value
        assert (lower <= operator.improve(v + rng.random(len(v))).value + operator.error(v)).all()
    q = operator.nature.values(v)
    assert operator.nature.values(v, 3.0) == pytest.approx(q + 2.7, abs=1e-14)
    assert operator.nature.worst_case(v).value == pytest.approx(q, abs=1e-14)
    assert (operator.nature.dual_bound(v) <= q + 1e-12).all()
    chosen = np.array([5, 0, 3])
    assert operator.nature.take(chosen).values(v).tolist() == q[chosen].tolist()


def test_errors_say_what_to_do():
    mdp, ball = random_model(1), L1Ball(0.2)
    with pytest.raises(ValueError, match=r"options is empty, expected a list of at least one"):
        with_options(mdp, [], ball)
    with pytest.raises(TypeError, match=r"options\[0\] is \[0, 1, 0\], expected Option"):
        with_options(mdp, [[0, 1, 0]], ball)
    with pytest.raises(ValueError, match=r"\[0\] has no action in state 1, but may continue there \(ends\[1\] is 0\.5"):
        with_options(mdp, [Option([0, -1, 0], 0.5)], ball)
    with pytest.raises(ValueError, match=r"No option may begin in state 2"):
        with_options(mdp, [Option([0, 0, 0], 0.5, starts=[True, True, False])], ball)
    with pytest.raises(ValueError, match=r"options\[0\] may start in state 1, where it has no action"):
        with_options(mdp, [Option([0, -1, 0], 1.0, starts=[True, True, True])], ball)
    with pytest.raises(ValueError, match=r"options\[0\]\.ends\[2\] is 1\.5, expected a probability"):
        with_options(mdp, [Option([0, 0, 0], [0, 0, 1.5])], ball)
    with pytest.raises(ValueError, match=r"options\[0\]\.ends has shape \(2,\)"):
        with_options(mdp, [Option([0, 0, 0], [0, 0])], ball)
    with pytest.raises(ValueError, match=r"options\[0\]\.policy\[1\] gives the actions of state 1 probability 0\.9"):
        with_options(mdp, [Option([[1, 0], [0.4, 0.5], [1, 0]], 0.5)], ball)
    with pytest.raises(ValueError, match=r"options\[0\]\.policy has shape \(2, 2\)"):
        with_options(mdp, [Option(np.full((2, 2), 0.5), 0.5)], ball)
    with pytest.raises(ValueError, match=r"set is .*is not solved row by row.*each of their actions"):
        with_options(mdp, one_step(mdp), urbe.SRectangular(ball))
    by_successor = urbe.MDP.from_dense(mdp.to_dense()[0], np.zeros((3, 2, 3)) + np.eye(3)[:, None], discount=0.9)
    with pytest.raises(ValueError, match=r"rewards of the model depend on the successor"):
        with_options(by_successor, one_step(mdp), ball)
    model = with_options(mdp, one_step(mdp), ball)
    with pytest.raises(ValueError, match=r"expected the model with options that belongs to this set, of 9 states"):
        urbe.solve(mdp, model.set)
    with pytest.raises(ValueError, match=r"running is 2, expected one of 0, \.\.\., 1"):
        model.state(0, running=2)
    with pytest.raises(ValueError, match=r"choice has 2 entries"):
        model.policy([0, 0])
    with pytest.raises(ValueError, match=r"posterior variance of values under options is not available"):
        model.set.operator(model.mdp).moments(np.zeros(9), np.zeros(9))


def test_names_of_states_are_kept_with_the_running_option():
    mdp = urbe.library.riverswim(3, discount=0.9).with_labels(["left", "middle", "right"])
    model = urbe.with_options(mdp, [urbe.Option([1] * 3, 0.5)], urbe.L1Ball(0.1))
    assert model.mdp.labels.state(1) == "middle"
    assert model.mdp.labels.state(model.state(1, running=0)) == "middle, option 0 running"
    assert repr(model) == f"OptionModel(1 options in {mdp!r})"


@pytest.mark.parametrize("options", [None, 3, urbe.Option([1] * 3, 0.5)])
def test_options_that_are_no_list_are_an_error(options):
    with pytest.raises(TypeError, match=r"options is .*expected a list of at least one option"):
        urbe.with_options(urbe.library.riverswim(3, discount=0.9), options, urbe.L1Ball(0.1))
