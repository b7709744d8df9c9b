"""The belief MDP against the tree of all histories, at every level, with and without jumps."""

import numpy as np
import pytest

import urbe
from urbe.belief import Switching, tail_weights
from urbe.planners import solve_belief

DISCOUNT = 0.3


def random_members(seed, n_states=3, n_actions=2, n_members=2, discount=DISCOUNT, terminal=()):
    rng = np.random.default_rng(seed)
    reward = rng.normal(size=(n_states, n_actions))
    return [
        urbe.MDP.from_dense(
            rng.dirichlet(np.full(n_states, 0.4), size=(n_states, n_actions)),
            reward,
            discount=discount,
            terminal=terminal,
        )
        for _ in range(n_members)
    ]


def by_histories(members, state, belief, hazard, prior, level, depth):
    """The value over `depth` steps by the tree of all histories; what is cut off is within the returned error."""
    dense = [member.to_dense() for member in members]
    reward = dense[0][1]
    largest = np.abs(reward).max() / (1.0 - DISCOUNT)

    def value(s, b, left):
        if left == 0 or members[0].terminal[s]:
            return 0.0
        c = (1.0 - hazard) * b + hazard * prior
        found = []
        for a in range(reward.shape[1]):
            y = np.full(len(members), reward[s, a])
            for successor in range(members[0].n_states):
                p = np.array([transition[s, a, successor] for transition, _ in dense])
                if c @ p > 0.0:
                    y = y + p * DISCOUNT * value(successor, c * p / (c @ p), left - 1)
            found.append(tail_weights(c, y, level) @ y)
        return max(found)

    return value(state, belief, depth), largest * DISCOUNT**depth


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("level", [1.0, 0.6, 0.0])
@pytest.mark.parametrize("hazard", [0.0, 0.2])
def test_bounds_hold_the_value_of_all_histories(seed, level, hazard):
    members = random_members(seed)
    prior = np.array([0.4, 0.6])
    plan = solve_belief(members, 0, switching=Switching(hazard=hazard, prior=tuple(prior)), level=level, tolerance=1e-3)
    exact, error = by_histories(members, 0, prior, hazard, prior, level, depth=5)
    assert plan.lower <= exact + error
    assert plan.upper >= exact - error
    assert plan.gap <= 1e-3 + 1e-9
    assert plan.status.startswith("The bounds are within")


@pytest.mark.parametrize("level", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("by_successor", [False, True])
def test_rewards_of_successors_that_only_some_members_reach(level, by_successor):
    pays = np.array([[0.0, 1.0, -5.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])

    def member(p):
        keep = np.flatnonzero(p)
        state, successor = np.append(np.zeros(len(keep), int), [1, 2]), np.append(keep, [0, 0])
        return urbe.MDP.from_transitions(
            state, np.zeros_like(state), successor, np.append(p[keep], [1.0, 1.0]), pays[state, successor], discount=0.3
        )

    first = [0.0, 0.5, 0.5] if by_successor else [0.0, 1.0, 0.0]
    for rows in ([first, [0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0], first]):
        members = [member(np.array(row)) for row in rows]
        plan = solve_belief(members, 0, level=level, tolerance=1e-6)
        kernels = [np.array([row, [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]) for row in rows]

        def value(s, b, left, kernels=kernels):
            if left == 0:
                return 0.0
            y = np.zeros(2)
            for after in range(3):
                p = np.array([kernel[s, after] for kernel in kernels])
                if b @ p > 0.0:
                    y += p * (pays[s, after] + DISCOUNT * value(after, b * p / (b @ p), left - 1))
            return tail_weights(b, y, level) @ y

        exact = value(0, np.array([0.5, 0.5]), 9)
        error = 5.0 * DISCOUNT**9 / (1.0 - DISCOUNT)
        assert plan.lower <= plan.upper
        assert plan.lower <= exact + error
        assert plan.upper >= exact - error


def test_one_member_is_its_own_optimum():
    (member,) = random_members(1, n_members=1, discount=0.9)
    plan, solution = solve_belief([member], 0), urbe.solve(member)
    assert plan.lower <= solution.upper[0]
    assert plan.upper >= solution.lower[0]


def test_without_a_future_the_best_reward_counts():
    members = random_members(10, discount=0.0)
    plan = solve_belief(members, 0, tolerance=1e-9)
    best = members[0].to_dense()[1][0].max()
    assert plan.lower <= best <= plan.upper
    assert plan.gap < 1e-6


def test_a_hazard_of_one_is_the_mean_model():
    members = random_members(2, discount=0.8)
    mean = urbe.MDP.from_dense(
        sum(member.to_dense()[0] for member in members) / 2.0, members[0].to_dense()[1], discount=0.8
    )
    plan = solve_belief(members, 0, switching=Switching(hazard=1.0))
    assert plan.lower - 1e-9 <= urbe.solve(mean).value[0] <= plan.upper + 1e-9


def test_a_hazard_of_one_at_level_zero_is_the_robust_value():
    members = random_members(3, discount=0.8)
    plan = solve_belief(members, 0, switching=Switching(hazard=1.0), level=0.0)
    robust = urbe.solve(members[0], urbe.Scenarios(members))
    assert plan.lower - 1e-9 <= robust.value[0] <= plan.upper + 1e-9


def test_caution_costs():
    members = random_members(4, discount=0.5)
    easy, careful, worst = (solve_belief(members, 0, level=level, tolerance=1e-2) for level in (1.0, 0.7, 0.3))
    assert careful.lower <= easy.upper
    assert worst.lower <= careful.upper


def test_the_plan_earns_its_lower_bound():
    members = random_members(5, discount=0.7)
    plan = solve_belief(members, 0, tolerance=1e-3)
    rng, totals = np.random.default_rng(0), []
    transition, reward = np.stack([m.to_dense()[0] for m in members]), members[0].to_dense()[1]
    for _ in range(400):
        k, s, belief, total, weight = rng.integers(2), 0, np.array([[0.5, 0.5]]), 0.0, 1.0
        for _ in range(15):
            a = plan.act(s, belief)
            after = int(rng.choice(3, p=transition[k, s, a]))
            total, weight = total + weight * reward[s, a], weight * 0.7
            belief, s = plan.after(s, a, after, belief), after
        totals.append(total)
    error = 4.0 * np.std(totals) / np.sqrt(len(totals)) + 0.7**15 * np.abs(reward).max() / 0.3
    assert np.mean(totals) >= plan.lower - error
    assert np.mean(totals) <= plan.upper + error


def test_unknown_hazards_lie_between_known_ones():
    members = random_members(6)
    both = solve_belief(members, 0, switching=Switching(hazard=(0.0, 0.5)))
    seen = [solve_belief(members, 0, switching=Switching(hazard=h)) for h in (0.0, 0.5)]
    assert both.lower <= np.mean([plan.upper for plan in seen]) + 1e-9


def test_terminal_states_are_worth_nothing():
    members = random_members(7, terminal=[2])
    plan = solve_belief(members, 2)
    assert plan.lower <= 0.0 <= plan.upper
    assert plan.gap < 1e-6
    with pytest.raises(ValueError, match="not terminal"):
        plan.act(2, [0.5, 0.5])


def test_few_pairs_give_wide_bounds_and_say_so():
    members = random_members(8, discount=0.95)
    plan = solve_belief(members, 0, tolerance=1e-9, most_pairs=50)
    assert plan.gap > 1e-9
    assert "most_pairs, 50" in plan.status
    narrow = solve_belief(members, 0, tolerance=0.05)
    assert plan.lower <= narrow.upper
    assert plan.upper >= narrow.lower


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: solve_belief(m[:0], 0), "members is empty"),
        (
            lambda m: solve_belief([m[0], m[1].with_discount(0.5)], 0),
            r"members\[1\] has the discount 0.5, expected 0.3",
        ),
        (
            lambda m: solve_belief([m[0], random_members(0, n_states=4)[0]], 0),
            r"members\[1\] is .*expected the same states and actions as members\[0\]",
        ),
        (lambda m: solve_belief([m[0], random_members(9)[0]], 0), r"members\[1\] pays"),
        (lambda m: solve_belief(m, 5), "start is 5, expected a state below 3"),
        (lambda m: solve_belief(m, 0, level=2.0), "level is 2"),
        (lambda m: solve_belief(m, 0, switching=Switching(hazard=0.1, per="episode")), 'per="step"'),
        (lambda m: solve_belief([each.with_discount(1.0) for each in m], 0), "expected one below 1"),
    ],
)
def test_bad_input_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        change(random_members(0))
