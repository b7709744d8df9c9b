"""The decomposition by level against the distribution of the return, and where it fails as an optimisation."""

import numpy as np
import pytest

import urbe
from urbe.mdp.evaluate import policy_value


def tail_mean(outcomes, probability, level):
    order = np.argsort(outcomes)
    mass = np.diff(np.minimum(np.cumsum(np.append(0.0, probability[order])), level))
    return float(mass @ outcomes[order] / level)


def returns(mdp, policy, state, steps):
    """All returns of `steps` decisions with their probabilities, by enumeration."""
    if steps == 0 or mdp.terminal[state]:
        return np.zeros(1), np.ones(1)
    rows = mdp.rows
    outcomes, mass = [], []
    for row in range(mdp.row_start[state], mdp.row_start[state + 1]):
        for entry in range(rows.entry_start[row], rows.entry_start[row + 1]):
            later, q = returns(mdp, policy, rows.successor[entry], steps - 1)
            outcomes.append(rows.reward[entry if rows.rewards_successors else row] + mdp.discount * later)
            mass.append(policy[state, mdp.action[row]] * rows.probability[entry] * q)
    return np.concatenate(outcomes), np.concatenate(mass)


def small(seed, by_successor):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3), size=(3, 2))
    reward = rng.normal(size=(3, 2, 3) if by_successor else (3, 2))
    return urbe.MDP.from_dense(p, reward, discount=0.7), rng.dirichlet(np.ones(2), size=3)


@pytest.mark.parametrize("by_successor", [False, True])
def test_evaluation_is_the_cvar_of_all_returns(by_successor):
    """A fine grid errs upwards, by little."""
    mdp, policy = small(1, by_successor)
    found = urbe.cvar_by_level(mdp, policy, horizon=3, levels=np.arange(1, 401) / 400)
    assert found.exact
    for s in range(3):
        outcomes, mass = returns(mdp, policy, s, 3)
        for level in (0.05, 0.1, 0.5, 1.0):
            exact = tail_mean(outcomes, mass, level)
            assert -1e-9 <= found.at(level)[s] - exact <= 0.02


def test_level_one_is_the_expectation_and_level_zero_the_worst_outcome():
    mdp, policy = small(2, True)
    found = urbe.cvar_by_level(mdp, policy)
    np.testing.assert_allclose(found.at(1.0), policy_value(mdp, policy), atol=1e-6)
    best = urbe.cvar_by_level(mdp)
    np.testing.assert_allclose(best.at(1.0), urbe.solve(mdp).value, atol=1e-6)
    worst = urbe.solve(mdp, urbe.Contamination(1.0), urbe.BackwardInduction(3)).value[0]
    lowest = urbe.cvar_by_level(mdp, horizon=3, levels=np.geomspace(1e-12, 1.0, 400))
    np.testing.assert_allclose(lowest.value[:, 0], worst, atol=0.01)


def test_evaluation_agrees_with_simulation():
    mdp = urbe.library.machine_replacement(6, discount=0.8)
    policy = urbe.solve(mdp).policy
    found = urbe.cvar_by_level(mdp, policy, levels=np.arange(1, 201) / 200)
    rng = np.random.default_rng(0)
    p, r = mdp.to_dense()
    n, state, total = 40_000, np.zeros(40_000, dtype=int), np.zeros(40_000)
    for t in range(60):
        a = policy[state]
        total += 0.8**t * (r[state, a] if r.ndim == 2 else 0.0)
        state = (rng.uniform(size=(n, 1)) > np.cumsum(p[state, a], axis=1)).sum(axis=1).clip(max=5)
    for level in (0.1, 0.5):
        tail = np.sort(total)[: int(level * n)]
        assert found.at(level)[0] == pytest.approx(tail.mean(), abs=5 * tail.std() / np.sqrt(len(tail)) + 0.02)


def test_optimisation_claims_more_than_any_policy_attains():
    """A bet after a lottery, where the best thing to do depends on what the lottery did to the reward so far [Hau2023].

    The exact search is the oracle: what the decomposition claims is an upper bound, here a strict one.
    """
    rng = np.random.default_rng(0)
    gaps = []
    for _ in range(20):
        p = rng.dirichlet(np.ones(3), size=(3, 2))
        mdp = urbe.MDP.from_dense(p, rng.integers(-3, 4, size=(3, 2, 3)).astype(float), discount=1.0)
        claimed = urbe.cvar_by_level(mdp, horizon=3, levels=np.arange(1, 201) / 200).at(0.3)
        exact = urbe.cvar_of_return(mdp, 0.3, 3, unit=1.0).value
        assert (claimed >= exact - 1e-9).all()
        gaps.append((claimed - exact).max())
    assert max(gaps) > 0.1
    assert not urbe.cvar_by_level(mdp, horizon=3).exact


def test_mistakes_are_named():
    mdp = urbe.library.riverswim(3, discount=1.0)
    with pytest.raises(ValueError, match="horizon="):
        urbe.cvar_by_level(mdp)
    with pytest.raises(ValueError, match="levels is"):
        urbe.cvar_by_level(mdp, horizon=2, levels=[0.5, 0.1, 1.0])
    with pytest.raises(ValueError, match="level is 0"):
        urbe.cvar_by_level(mdp, horizon=2).at(0.0)
