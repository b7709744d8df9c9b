"""Labels and budgets of deviations: all strategies of nature, reference numbers, reductions, errors."""

from dataclasses import replace
from itertools import product
from math import comb

import numpy as np
import pytest

import urbe
from urbe import BackwardInduction, Exact, L1Ball, LabelOption, Scenarios, labelled, limited_deviations
from urbe.envs import FiniteEnv
from urbe.testing import check_ambiguity_set


def random_model(seed, *, n=3, actions=2, discount=0.9, by_successor=False, initial=None):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n), size=(n, actions))
    reward = rng.normal(size=(n, actions, n) if by_successor else (n, actions))
    return urbe.MDP.from_dense(p, reward, discount=discount, keep_zeros=True, initial=initial)


def gamble():
    """Safe pays .6; risky pays 1, and nothing where nature sends it to the other state."""
    p, reward = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    p[..., 0] = 1.0
    reward[:, 0] = 0.6
    reward[:, 1, 0] = 1.0
    return urbe.MDP.from_dense(p, reward, discount=1.0, keep_zeros=True)


@pytest.mark.parametrize(
    ("stages", "budgets", "expected"),
    [(3, (0, 1, 2, 3), (3.0, 2.0, 1.8, 1.8)), (10, (0, 2, 4, 6), (10.0, 8.0, 6.0, 6.0))],
)
def test_the_numbers_of_the_specification(stages, budgets, expected):
    found = []
    for budget in budgets:
        model = limited_deviations(gamble(), L1Ball(2.0, support="all"), budget)
        solution = urbe.solve(model.mdp, model.set, BackwardInduction(stages))
        assert urbe.certify(solution).holds
        found.append(solution.value[0, model.state(0, budget)])
    assert found == pytest.approx(expected, abs=1e-12)


def worst_over_strategies(p, scenarios, reward, steps, budget):
    """The least expected return of one action over all of nature's strategies: a choice at every history of states.

    0 is the model, k the k-th scenario; strategies that may deviate more often than the budget are left out.
    """
    histories = [h for t in range(steps) for h in product(range(len(p)), repeat=t)]
    kernels = [p, *scenarios]
    least = np.inf
    for choices in product(range(len(kernels)), repeat=len(histories)):
        strategy = dict(zip(histories, choices, strict=True))
        total, allowed = 0.0, True
        for path in product(range(len(p)), repeat=steps):
            spent, chance, gained, at = 0, 1.0, 0.0, 0
            for t, to in enumerate(path):
                choice = strategy[path[:t]]
                spent += choice > 0
                chance *= kernels[choice][at, to]
                gained += reward[at, to]
                at = to
            allowed &= spent <= budget
            total += chance * gained
        if allowed:
            least = min(least, total)
    return least


@pytest.mark.parametrize("budget", [0, 1, 2, 3])
def test_no_strategy_of_nature_does_more_harm(budget):
    rng = np.random.default_rng(budget)
    p, other = rng.dirichlet(np.ones(2), size=(2, 2))
    reward = rng.normal(size=(2, 2))
    mdp = urbe.MDP.from_dense(p[:, None], reward[:, None], discount=1.0, keep_zeros=True)
    model = limited_deviations(mdp, Scenarios([other[:, None]]), budget)
    value = urbe.solve(model.mdp, model.set, BackwardInduction(3)).value[0, model.state(0, budget)]
    assert value == pytest.approx(worst_over_strategies(p, [other], reward, 3, budget), abs=1e-12)


@pytest.mark.parametrize("ball", [L1Ball(0.5), urbe.KLBall(0.2), Scenarios([random_model(5), random_model(6)])])
def test_no_budget_is_the_model_and_a_full_one_the_set(ball):
    mdp, steps = random_model(1), 4
    nominal, robust = urbe.solve(mdp, None, BackwardInduction(steps)), urbe.solve(mdp, ball, BackwardInduction(steps))
    last = nominal.value[0]
    for budget in range(steps + 2):
        model = limited_deviations(mdp, ball, budget)
        value = model.by_label(urbe.solve(model.mdp, model.set, BackwardInduction(steps)).value)[0, budget]
        assert (value <= last + 1e-12).all()
        last = value
        if budget == 0:
            assert value == pytest.approx(nominal.value[0], abs=1e-13)
        if budget >= steps and not isinstance(ball, Scenarios):
            assert value == pytest.approx(robust.value[0], abs=1e-12)
    if isinstance(ball, Scenarios):  # of which the model is none: nature may also stay with it
        both = Scenarios([*ball.kernels, mdp])
        assert last == pytest.approx(urbe.solve(mdp, both, BackwardInduction(steps)).value[0], abs=1e-12)


def test_discounted_budgets_agree_over_methods_and_certificates():
    mdp = random_model(2, n=4, by_successor=True)
    model = limited_deviations(mdp, L1Ball(0.6), 3)
    solution = urbe.solve(model.mdp, model.set)
    assert urbe.certify(solution).holds
    for method in (urbe.ValueIteration(), urbe.PartialPolicyIteration(linear="always")):
        assert urbe.solve(model.mdp, model.set, method).value == pytest.approx(solution.value, abs=2e-6)
    assert urbe.evaluate_policy(solution.kernel, solution.policy).value == pytest.approx(solution.value, abs=2e-6)
    same = urbe.evaluate_policy(model.mdp, solution.policy, model.set)
    assert urbe.certify(same).holds
    assert same.value == pytest.approx(solution.value, abs=2e-6)
    by_label = model.by_label(solution.value)
    assert by_label[0] == pytest.approx(urbe.solve(mdp).value, abs=2e-6)
    assert (np.diff(by_label, axis=0) < 0.0).all()
    assert (by_label[3] >= urbe.solve(mdp, L1Ball(0.6)).lower).all()
    many = limited_deviations(mdp, L1Ball(0.6), 200)
    far = many.by_label(urbe.solve(many.mdp, many.set).value)[200]
    assert far == pytest.approx(urbe.solve(mdp, L1Ball(0.6)).value, abs=1e-5)


def test_evidence_bounds_a_step_from_both_sides():
    mdp = random_model(2, n=4)
    model = limited_deviations(mdp, L1Ball(0.6), 1)
    operator = model.set.operator(model.mdp)
    rng = np.random.default_rng(0)
    for _ in range(5):  # either option is the worst somewhere
        v = rng.normal(size=8)
        best = operator.improve(v)
        evidence = operator.evidence(operator.kernel(v, best.policy), optimal=True)
        for bound in (evidence.below, evidence.above):
            assert np.asarray(bound(v, best.policy), float) == pytest.approx(best.value, abs=1e-12)
        assert (evidence.below(v, best.policy) <= best.value + 1e-14).all()


def test_a_kernel_that_leads_to_two_labels_is_in_no_set():
    model = limited_deviations(random_model(2, n=4), L1Ball(0.6), 1)
    half = urbe.random_deviations(model, model.base, 0.5).rows
    excess = model.set.bind(model.mdp).excess(half)
    assert (excess[:8] == 0.0).all()  # without a budget nothing deviates
    assert np.isinf(excess[8:]).all()
    assert model.set.bind(model.mdp).evidence(half).outside[8:].all()


def test_certificates_refuse_kernels_that_deviate_without_a_budget():
    mdp = random_model(2, n=4)
    model = limited_deviations(mdp, L1Ball(0.6), 1)
    free, fixed = urbe.solve(model.mdp, model.set), limited_deviations(mdp, L1Ball(0.3), 1)
    assert "leaves the set" in urbe.certify(free, fixed.mdp, fixed.set).statement


def test_the_contract_of_sets():
    mdp = random_model(3)
    model = limited_deviations(mdp, L1Ball(0.5), 1)
    check_ambiguity_set(model.set, model.mdp, convex=False)
    there = np.array([[0, 1], [1, 0], [0, 0]])
    other = labelled(
        mdp, [[LabelOption(Exact(), 0), LabelOption(urbe.KLBall(0.1), there)], [LabelOption(L1Ball(0.2), there)]]
    )
    check_ambiguity_set(other.set, other.mdp, convex=False)


def test_one_label_is_the_set_itself_bit_for_bit():
    mdp = random_model(4)
    for ball in (L1Ball(0.4), urbe.Chi2Ball(0.3), urbe.ValueAtRisk([random_model(5), random_model(6)], 0.4)):
        model = labelled(mdp, [[LabelOption(ball, 0)]])
        one, other = urbe.solve(model.mdp, model.set), urbe.solve(mdp, ball)
        assert np.array_equal(one.value, other.value)
        assert np.array_equal(one.policy, other.policy)
        assert urbe.certify(one).holds


def plain_step(mdp, options, v):
    """`(k, S)` one step backwards by loops, with scenarios given as dense kernels and labels by state."""
    _, reward = mdp.to_dense()
    out = np.full(v.shape, -np.inf)
    for i, s, a in product(range(len(v)), range(mdp.n_states), range(mdp.n_actions)):
        worst = np.inf
        for kernels, labels in options[i]:
            for kernel in kernels:
                worst = min(worst, reward[s, a] + mdp.discount * kernel[s, a] @ v[labels[s]])
        out[i, s] = max(out[i, s], worst)
    return out


def test_labels_may_follow_from_the_state():
    mdp = random_model(7)
    p = mdp.to_dense()[0]
    kernels = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 3, 2))
    to, back = np.array([0, 1, 2]), np.array([2, 0, 0])
    options = [[([p], to), (kernels, back)], [(kernels, to)], [([p], back), (kernels[:1], to), (kernels[1:], back)]]
    given = [[LabelOption(Scenarios(list(np.asarray(x))), labels) for x, labels in each] for each in options]
    model = labelled(mdp, given)
    v = np.random.default_rng(1).normal(size=(3, 3))
    found = model.set.operator(model.mdp).improve(v.ravel()).value
    assert model.by_label(found) == pytest.approx(plain_step(mdp, options, v), abs=1e-13)
    assert urbe.certify(urbe.solve(model.mdp, model.set)).holds


def test_total_reward_without_discounting():
    p = np.array([[[0.5, 0.5, 0.0]], [[0.2, 0.3, 0.5]], [[0.0, 0.0, 1.0]]])
    mdp = urbe.MDP.from_dense(p, [[-1.0], [-2.0], [0.0]], discount=1.0, terminal=[2])
    model = limited_deviations(mdp, L1Ball(0.4), 2)
    solution = urbe.solve(model.mdp, model.set)
    assert urbe.certify(solution).holds
    assert model.by_label(solution.value)[0] == pytest.approx(urbe.solve(mdp).value, abs=1e-6)


def walk(world, policy, steps, episodes, rng):
    """`(steps + 1, episodes)` the states that a policy goes through."""
    replicates = FiniteEnv.of(world).start([np.random.default_rng(x) for x in rng.integers(0, 2**31, episodes)])
    state, path = replicates.begin(0), []
    for _ in range(steps):
        path.append(state)
        state = replicates.step(np.arange(episodes), state, policy[state]).next_state
    return np.array([*path, state])


def test_simulations_never_overspend_the_budget():
    mdp = random_model(8, initial=[0.5, 0.5, 0.0])
    ball, budget = L1Ball(0.8), 3
    model = limited_deviations(mdp, ball, budget)
    solution = urbe.solve(model.mdp, model.set)
    worst = urbe.solve(mdp, ball).kernel
    chance = urbe.random_deviations(model, worst, 0.4)
    for world in (solution.kernel, chance):
        left = walk(world, solution.policy, 40, 200, np.random.default_rng(0)) // 3
        assert (left[0] == budget).all()
        assert left.min() == 0
        assert set(np.unique(np.diff(left, axis=0))) <= {0, -1}
    struck = budget - walk(chance, solution.policy, 1, 20_000, np.random.default_rng(1))[1] // 3
    assert struck.mean() == pytest.approx(0.4, abs=0.02)  # five standard errors
    # the value under chance is at least the guaranteed one, and that of the model without deviations
    assert (urbe.evaluate_policy(chance, solution.policy).value >= solution.lower - 1e-9).all()
    calm = urbe.random_deviations(model, worst, 0.0)
    expected = urbe.evaluate_policy(model.mdp, solution.policy).value
    assert urbe.evaluate_policy(calm, solution.policy).value == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(
    ("steps", "rate", "confidence"), [(50, 0.02, 0.95), (10, 0.5, 0.9), (7, 0.0, 0.5), (5, 1.0, 0.99)]
)
def test_the_budget_is_the_smallest_that_is_enough(steps, rate, confidence):
    found = urbe.deviation_budget(steps, rate, confidence)

    def more_than(d):
        return sum(comb(steps, k) * rate**k * (1 - rate) ** (steps - k) for k in range(d + 1, steps + 1))

    assert more_than(found) <= 1 - confidence + 1e-12
    assert found == 0 or more_than(found - 1) > 1 - confidence


def test_stationary_deviations_are_refused_where_states_come_back():
    with pytest.raises(ValueError, match=r"state 0 may be visited twice.*intractable.*stationary=False"):
        limited_deviations(random_model(1), L1Ball(0.5), 1, stationary=True)
    ahead = np.zeros((4, 1, 4))
    ahead[0, 0, [1, 2]] = ahead[1, 0, [2, 3]] = 0.5
    ahead[2, 0, 3] = ahead[3, 0, 3] = 1.0
    mdp = urbe.MDP.from_dense(ahead, [1.0, 2.0, 3.0, 0.0], discount=1.0, terminal=[3])
    lasting = limited_deviations(mdp, L1Ball(0.5), 1, stationary=True)  # no state comes back: nothing to refuse
    assert lasting.mdp.n_states == 8
    with pytest.raises(ValueError, match=r"may be visited twice"):
        limited_deviations(mdp, L1Ball(0.5, support="all"), 1, stationary=True)
    ahead[1, 0] = [0.0, 0.5, 0.0, 0.5]
    lingers = urbe.MDP.from_dense(ahead, [1.0, 2.0, 3.0, 0.0], discount=1.0, terminal=[3])
    with pytest.raises(ValueError, match=r"state 1 may be visited twice"):
        limited_deviations(lingers, L1Ball(0.5), 1, stationary=True)


def test_states_may_be_named():
    model = limited_deviations(random_model(1).with_labels(states=["dry", "wet", "flood"]), L1Ball(0.5), 2)
    assert model.state("wet", 2) == model.state(1, 2) == 7
    with pytest.raises(ValueError, match=r"state\[0\] is 'mud', expected a state: 'dry', 'wet', 'flood'"):
        model.state("mud", 0)


def test_errors_say_what_to_do():
    mdp = random_model(1)
    with pytest.raises(ValueError, match=r"budget is -1, expected a whole number of at least 0"):
        limited_deviations(mdp, L1Ball(0.5), -1)
    with pytest.raises(TypeError, match=r"options\[0\]\[0\]\.set is 0\.5, expected a set that chooses each row"):
        labelled(mdp, [[LabelOption(0.5, 0)]])
    with pytest.raises(TypeError, match=r"options\[0\]\[0\] is L1Ball.*expected LabelOption"):
        labelled(mdp, [[L1Ball(0.5)]])
    with pytest.raises(ValueError, match=r"options is empty"):
        labelled(mdp, [])
    with pytest.raises(ValueError, match=r"options\[1\] is empty, expected a list of at least one option"):
        labelled(mdp, [[LabelOption(Exact(), 0)], []])
    with pytest.raises(ValueError, match=r"options\[0\]\[0\]\.next_label\[0\] is 4, expected a 0-based label below 1"):
        labelled(mdp, [[LabelOption(Exact(), 4)]])
    with pytest.raises(ValueError, match=r"options\[0\]\[0\]\.next_label has shape \(2,\)"):
        labelled(mdp, [[LabelOption(Exact(), [0, 0])]])
    with pytest.raises(ValueError, match=r"initial_label is 2, expected one of 0, \.\.\., 0"):
        labelled(mdp, [[LabelOption(Exact(), 0)]], initial_label=2)
    model = limited_deviations(mdp, L1Ball(0.5), 1)
    with pytest.raises(ValueError, match=r"expected the labelled model that belongs to this set, of 6 states"):
        urbe.solve(mdp, model.set)
    with pytest.raises(ValueError, match=r"label is 2, expected one of 0, \.\.\., 1"):
        model.state(0, 2)
    with pytest.raises(ValueError, match=r"state is 3, expected one of 0, \.\.\., 2"):
        model.state(3, 0)
    with pytest.raises(ValueError, match=r"values has shape \(5,\), expected an axis of 6 states"):
        model.by_label(np.zeros(5))
    with pytest.raises(ValueError, match=r"rate is 1\.5, expected a number in \[0, 1\]"):
        urbe.random_deviations(model, mdp, 1.5)
    with pytest.raises(ValueError, match=r"kernel is .*expected the same states and actions"):
        urbe.random_deviations(model, model.mdp, 0.5)
    with pytest.raises(ValueError, match=r"confidence is 1\.0, expected a number in \(0, 1\)"):
        urbe.deviation_budget(5, 0.1, 1.0)


def test_names_of_states_are_kept_with_the_label():
    named = random_model(1)
    named = named.with_labels(
        [f"place {s}" for s in range(named.n_states)], [f"move {a}" for a in range(named.n_actions)]
    )
    made = limited_deviations(named, L1Ball(0.5), 1)
    solution = urbe.solve(made.mdp, made.set)
    assert made.mdp.labels.state(made.state(2, 1)) == "place 2, label 1"
    assert {"place 0, label 0", "place 0, label 1"} <= set(solution.table()["state"])
    assert solution.action_text(0).startswith("move ")
    assert repr(made) == f"LabelledModel(2 labels of {named!r})"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: urbe.labelled(m, None), r"options is None, expected nature's options"),
        (
            lambda m: urbe.labelled(m, {0: [LabelOption(L1Ball(0.5), 0)]}),
            r"options is a dict, expected nature's options",
        ),
        (
            lambda m: urbe.labelled(m, [LabelOption(L1Ball(0.5), 0)]),
            r"options\[0\] is .*LabelOption.*expected a list of",
        ),
        (lambda m: urbe.random_deviations(m, m, 0.1), r"model is MDP.*expected a model of limited_deviations"),
        (
            lambda m: urbe.random_deviations(limited_deviations(m, L1Ball(0.5), 1), None, 0.1),
            r"kernel is None, expected",
        ),
        (lambda m: limited_deviations(m, L1Ball(0.5), 1).state(0.5, 0), r"state is 0\.5, expected one of 0"),
        (lambda m: limited_deviations(m, L1Ball(0.5), 1).state("a", 0), r"state is 'a', expected one of 0"),
    ],
)
def test_arguments_of_another_kind_are_named(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(random_model(1))


def test_a_budget_too_large_for_memory_is_an_error_before_anything_is_listed():
    with pytest.raises(urbe.memory.NotEnoughMemory, match=r"Use fewer labels \(a smaller budget\)"):
        limited_deviations(random_model(1), L1Ball(0.5), 10**12)


def test_a_kernel_is_evidence_for_each_option_that_holds_it():
    """Distances of one option may be tiny in its own units where those of another, whose kernel it is, are rounding."""
    p = np.random.default_rng(2).dirichlet(np.ones(3))  # whose answer is off by a last place
    kernel = np.concatenate([[p], np.eye(3)[1:]])[:, None]
    mdp = urbe.MDP.from_dense(kernel, [[1.0], [0.0], [0.5]], discount=0.5)
    narrow = urbe.WeightedL1Ball(1e-100, [1e-35, 1e-35, 1e15])
    for options in ((L1Ball(0.028), narrow), (narrow, L1Ball(0.028))):
        made = urbe.labelled(mdp, [[LabelOption(each, 0) for each in options]])
        solution = urbe.solve(made.mdp, made.set)
        certificate = urbe.certify(solution)
        assert certificate.holds, certificate
        rows = solution.kernel.rows
        tampered = replace(solution)
        tampered.__dict__["kernel"] = made.mdp.with_rows(replace(rows, probability=np.array([0.1, 0.3, 0.6, 1, 1])))
        assert not urbe.certify(tampered).holds


def test_a_kernel_is_as_far_outside_as_from_the_nearest_option():
    mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=0.5)
    for options in ((L1Ball(0.4), L1Ball(0.1)), (L1Ball(0.1), L1Ball(0.4))):
        made = urbe.labelled(mdp, [[LabelOption(each, 0) for each in options]])
        kernel = urbe.solve(made.mdp, made.set).kernel.rows
        assert made.set.bind(made.mdp).excess(kernel)[0] == pytest.approx(0.0, abs=1e-12)
