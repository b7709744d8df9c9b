"""CVaR of the total reward: all history-dependent policies, the distribution of the return, limits, errors."""

from itertools import product

import numpy as np
import pytest

import urbe
from urbe import BackwardInduction, cvar_of_return


def random_model(seed, *, n=2, actions=2, terminal=(), by_successor=True):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n), size=(n, actions))
    reward = rng.integers(-2, 4, size=(n, actions, n) if by_successor else (n, actions)).astype(float)
    return urbe.MDP.from_dense(p, 0.5 * reward, discount=1.0, terminal=terminal, keep_zeros=True)


def lowest_mean(outcomes, chances, level):
    """The mean of the lowest `level` of the outcomes, by sorting them."""
    total, left = 0.0, level
    for x, chance in sorted(zip(outcomes, chances, strict=True)):
        taken = min(chance, left)
        total, left = total + taken * x, left - taken
    return total / level


def law(mdp, choose, start, steps):
    """Outcomes and probabilities of the total reward, path by path; `choose(step, state, so_far)` acts."""
    p = mdp.to_dense()[0]
    reward = np.zeros_like(p)
    rows = mdp.rows
    at = rows.entry_row
    reward[mdp.row_state[at], mdp.action[at], rows.successor] = (
        rows.row_reward[at] if rows.entry_reward is None else rows.entry_reward
    )
    paths = [(start, 0.0, 1.0)]
    for step in range(steps):
        after = []
        for state, gained, chance in paths:
            if mdp.terminal[state]:
                after.append((state, gained, chance))
                continue
            a = choose(step, state, gained)
            after += [
                (s, gained + reward[state, a, s], chance * p[state, a, s])
                for s in range(mdp.n_states)
                if p[state, a, s]
            ]
        paths = after
    return [gained for _, gained, _ in paths], [chance for _, _, chance in paths]


@pytest.mark.parametrize("level", [0.05, 0.3, 0.75])
def test_no_policy_that_remembers_has_a_higher_cvar_and_the_one_returned_has_it(level):
    mdp = random_model(1)
    found = cvar_of_return(mdp, level, 2, unit=0.5)
    rows = mdp.rows
    for start in range(2):
        first_step = mdp.row_state[rows.entry_row] == start
        nodes = sorted(
            {(1, int(s), g) for s, g in zip(rows.successor[first_step], rows.reward[first_step], strict=True)}
        )
        best = -np.inf
        for first, later in product(range(2), product(range(2), repeat=len(nodes))):
            plan = dict(zip(nodes, later, strict=True))
            outcomes, chances = law(
                mdp, lambda t, s, g, first=first, plan=plan: first if t == 0 else plan[1, s, g], start, 2
            )
            best = max(best, lowest_mean(outcomes, chances, level))
            if best > found.value[start] + 1e-9:
                break
        assert found.value[start] == pytest.approx(best, abs=1e-12)
        own = law(mdp, lambda t, s, g, x=found.threshold[start]: found.action(t, s, x - g), start, 2)
        assert lowest_mean(*own, level) == pytest.approx(found.value[start], abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_a_given_policy_has_the_cvar_of_its_law(seed):
    mdp = random_model(seed, n=3, terminal=[2], by_successor=seed > 0)
    policy = np.array([1, 0, -1])
    for level in (0.1, 0.4, 1.0):
        found = cvar_of_return(mdp, level, 4, unit=0.5, policy=policy)
        for start in range(2):
            outcomes, chances = law(mdp, lambda t, s, g: int(policy[s]), start, 4)  # noqa: ARG005
            assert found.value[start] == pytest.approx(lowest_mean(outcomes, chances, level), abs=1e-12)
        assert found.value[2] == 0.0
        assert (found.value <= cvar_of_return(mdp, level, 4, unit=0.5).value + 1e-12).all()
    same = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    assert cvar_of_return(mdp, 0.4, 4, unit=0.5, policy=same).value == pytest.approx(
        cvar_of_return(mdp, 0.4, 4, unit=0.5, policy=policy).value, abs=1e-14
    )


@pytest.mark.parametrize("level", [0.1, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_acting_by_what_is_missing_has_the_value_stated(seed, level):
    mdp = random_model(10 + seed, n=3, terminal=[2] if seed else ())
    found = cvar_of_return(mdp, level, 4, unit=0.5)
    for start in range(2):
        own = law(mdp, lambda t, s, g, x=found.threshold[start]: found.action(t, s, x - g), start, 4)
        assert lowest_mean(*own, level) == pytest.approx(found.value[start], abs=1e-12)


def test_rewards_above_zero_and_an_early_end():
    p = np.array([[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    mdp = urbe.MDP.from_dense(p, [[2.0, 3.0], [0.0, 0.0]], discount=1.0, terminal=[1])
    outcomes, chances = [2.0, 4.0, 6.0], [0.5, 0.25, 0.25]
    stays = cvar_of_return(mdp, 0.6, 3, unit=1.0, policy=[0, -1])
    assert stays.value[0] == pytest.approx(lowest_mean(outcomes, chances, 0.6), abs=1e-12)
    assert cvar_of_return(mdp, 0.5, 3, unit=1.0).value[0] == pytest.approx(3.0, abs=1e-12)  # ends at once, with 3


def test_the_whole_law_is_the_expectation_and_almost_nothing_of_it_the_worst_outcome():
    mdp = random_model(5, n=3)
    mean = urbe.solve(mdp, None, BackwardInduction(5)).value[0]
    assert cvar_of_return(mdp, 1.0, 5, unit=0.5).value == pytest.approx(mean, abs=1e-12)
    worst = urbe.solve(mdp, urbe.L1Ball(2.0), BackwardInduction(5)).value[0]
    assert cvar_of_return(mdp, 1e-9, 5, unit=0.5).value == pytest.approx(worst, abs=1e-6)
    levels = [cvar_of_return(mdp, level, 5, unit=0.5).value for level in (0.01, 0.1, 0.5, 0.9, 1.0)]
    assert (np.diff(levels, axis=0) >= -1e-12).all()


def test_a_finer_unit_changes_nothing():
    mdp = random_model(6, n=3)
    coarse, fine = (cvar_of_return(mdp, 0.3, 3, unit=unit) for unit in (0.5, 0.125))
    assert coarse.value == pytest.approx(fine.value, abs=1e-12)


def test_errors_say_what_to_do():
    mdp = random_model(1)
    with pytest.raises(ValueError, match=r"discount is 0\.9, expected 1: use mdp\.with_discount"):
        cvar_of_return(mdp.with_discount(0.9), 0.5, 2, unit=0.5)
    with pytest.raises(ValueError, match=r"The reward of state 0, action \d, successor \d is .*multiple of unit 2"):
        cvar_of_return(mdp, 0.5, 2, unit=2.0)
    with pytest.raises(ValueError, match=r"level is 0, expected a number in \(0, 1\]"):
        cvar_of_return(mdp, 0.0, 2, unit=0.5)
    with pytest.raises(ValueError, match=r"unit is -1, expected a number above 0"):
        cvar_of_return(mdp, 0.5, 2, unit=-1)
    with pytest.raises(ValueError, match=r"horizon is 0, expected a whole number of at least 1"):
        cvar_of_return(mdp, 0.5, 0, unit=0.5)


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ((2, 0, 0.0), r"step is 2, expected one of 0, \.\.\., 1"),
        ((-1, 0, 0.0), r"step is -1, expected one of 0"),
        ((0, 5, 0.0), r"state is 5, expected one of 0"),
        ((0, 0, np.nan), r"missing is nan, expected"),
        ((0, 0, "1"), r"missing is '1', expected a number, without quotes"),
    ],
)
def test_actions_are_looked_up_within_the_table(at, message):
    mdp = urbe.MDP.from_dense([[[1.0, 0.0], [0.5, 0.5]]] * 2, [[1.0, 2.0]] * 2, discount=1.0)
    with pytest.raises(ValueError, match=message):
        urbe.cvar_of_return(mdp, 0.5, horizon=2, unit=1.0).action(*at)
    with pytest.raises(ValueError, match=r"A policy was given"):
        urbe.cvar_of_return(mdp, 0.5, horizon=2, unit=1.0, policy=[0, 0]).action(0, 0, 0.0)
