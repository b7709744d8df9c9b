"""The facts stated in the library's docstrings, by pen and paper or slow computations."""

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oracles.mdp import exact_policy_value, value_iteration
from urbe import MDP
from urbe.mdp import library
from urbe.mdp.evaluate import occupancy, policy_value


def greedy(mdp: MDP, sweeps: int) -> list[int]:
    """The greedy policy of `sweeps` sweeps of value iteration, -1 at terminal states."""
    q = mdp.rows.expected_reward() + mdp.discount * (mdp.matrix() @ value_iteration(mdp, sweeps))
    table = mdp.by_action(q, fill=-np.inf)
    return [-1 if ended else int(a) for a, ended in zip(table.argmax(axis=1), mdp.terminal, strict=True)]


def test_riverswim_has_the_published_numbers() -> None:
    p, r = library.riverswim().to_dense()
    assert p[:, 0].argmax(axis=1).tolist() == [0, 0, 1, 2, 3, 4]
    assert (p[:, 0].max(axis=1) == 1.0).all()
    assert p[0, 1].tolist() == [0.4, 0.6, 0, 0, 0, 0]
    assert p[3, 1].tolist() == [0, 0, 0.05, 0.6, 0.35, 0]
    assert p[5, 1].tolist() == [0, 0, 0, 0, 0.4, 0.6]
    assert r.tolist() == [[0.005, 0.0]] + [[0.0, 0.0]] * 4 + [[0.0, 1.0]]


def test_riverswim_is_worth_swimming_only_with_patience() -> None:
    assert greedy(library.riverswim(discount=0.95), 400) == [1] * 6
    assert greedy(library.riverswim(discount=0.5), 60)[0] == 0
    drift = policy_value(library.riverswim(discount=0.5), [0] * 6)
    # left all the way: s steps, then 5/1000 forever
    np.testing.assert_allclose(drift, [0.01 * 0.5**s for s in range(6)], rtol=1e-14)


def test_riverswim_may_be_short() -> None:
    p, _ = library.riverswim(2).to_dense()
    assert p[:, 1].tolist() == [[0.4, 0.6], [0.4, 0.6]]


def test_machine_replacement_has_the_published_numbers() -> None:
    mdp = library.machine_replacement()
    p, r = mdp.to_dense()
    assert r[:, 0].tolist() == r[:, 1].tolist() == [0, 0, 0, 0, 0, 0, 0, -20, -2, -10]
    assert p[3, 0].tolist() == [0, 0, 0, 0.2, 0.8, 0, 0, 0, 0, 0]
    assert p[3, 1].tolist() == [0, 0, 0, 0, 0.3, 0, 0, 0, 0.6, 0.1]
    assert p[7, 0, 7] == 1.0
    assert p[7, 1].tolist() == [0, 0, 0, 0, 0, 0, 0, 0.3, 0.6, 0.1]
    assert p[8, 0].tolist() == [0.8, 0, 0, 0, 0, 0, 0, 0, 0.2, 0]
    assert p[8, 1, 8] == p[9, 0, 9] == 1.0
    assert p[9, 1].tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 0.6, 0.4]


def test_machine_replacement_by_hand() -> None:
    mdp = library.machine_replacement()
    idle = policy_value(mdp, [0] * 10)
    assert idle[7] == pytest.approx(-20 / 0.05, rel=1e-13)  # broken forever
    assert idle[9] == pytest.approx(-10 / 0.05, rel=1e-13)  # a long repair that nobody ends
    assert policy_value(mdp, [1] * 10)[8] == pytest.approx(-2 / 0.05, rel=1e-13)
    best = greedy(mdp, 400)
    assert best[7:] == [1, 0, 1]  # repair the broken machine, leave after R1, move R2 on
    assert best[:4] == [0, 0, 0, 0]


def test_inventory_is_the_textbook_one() -> None:
    mdp = library.inventory(3, demand=[0.25, 0.5, 0.25])
    p, _ = mdp.to_dense()
    by_stock = [[1, 0, 0, 0], [0.75, 0.25, 0, 0], [0.25, 0.5, 0.25, 0], [0, 0.25, 0.5, 0.25]]
    for row in range(mdp.n_rows):
        s, a = mdp.row_state[row], mdp.action[row]
        assert p[s, a].tolist() == by_stock[s + a]
    assert mdp.n_rows == 4 + 3 + 2 + 1


@pytest.mark.parametrize("demand", [3.5, [0.1, 0.2, 0.0, 0.3, 0.15, 0.05, 0.0, 0.2], [0.5, 0.5], 0.0])
def test_inventory_by_enumeration_of_the_demand(demand: Any) -> None:
    """Every demand up to 80, one at a time; beyond it Poisson(3.5) has less than 1e-70."""
    if np.ndim(demand):
        chances = list(demand)
    else:
        chances = [math.exp(-demand) * demand**k / math.factorial(k) for k in range(80)]
    mdp = library.inventory(
        5, demand=demand, price=7.0, fixed_order=3.0, unit_order=1.5, holding=0.25, lost_sale=2.0, discount=0.9
    )
    p, r = mdp.to_dense()
    pairs = set()
    for s in range(6):
        for a in range(6 - s):
            pairs.add((s, a))
            stock, wanted, gain = s + a, np.zeros(6), -(3.0 * (a > 0)) - 1.5 * a - 0.25 * (s + a)
            for d, chance in enumerate(chances):
                wanted[max(stock - d, 0)] += chance
                gain += chance * (7.0 * min(d, stock) - 2.0 * max(d - stock, 0))
            np.testing.assert_allclose(p[s, a], wanted, rtol=1e-12, atol=1e-15)
            assert r[s, a] == pytest.approx(gain, rel=1e-12, abs=1e-12)
    assert {(int(s), int(a)) for s, a in zip(mdp.row_state, mdp.action, strict=True)} == pairs
    assert (mdp.rows.probability > 0.0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"capacity": 0}, "capacity is 0, expected a whole number of at least 1."),
        ({"demand": -1.0}, "demand is -1.0, expected a number in [0, inf)."),
        ({"demand": [0.5, 0.4]}, "demand sums to 0.9, expected 1."),
        ({"holding": np.inf}, "holding is inf, expected a number in [0, inf)."),
        ({"price": -2.0}, "price is -2.0, expected a number in [0, inf)."),
    ],
)
def test_inventory_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        library.inventory(**arguments)


def bold_play(goal: int, heads: Fraction) -> list[Fraction]:
    """Exact chance to reach the goal when staking all that is useful, from the table of the game itself."""
    transition = [[[Fraction(0)] * (goal + 1)] for _ in range(goal + 1)]
    for s in range(1, goal):
        stake = min(s, goal - s)
        transition[s][0][s + stake] += heads
        transition[s][0][s - stake] += 1 - heads
    reward = [[[int(s < goal and t == goal) for t in range(goal + 1)]] for s in range(goal + 1)]
    return exact_policy_value(transition, reward, 1, [-1] + [0] * (goal - 1) + [-1])


def test_gambler_at_two_fifths_is_best_off_with_bold_play() -> None:
    heads, goal = Fraction(2, 5), 100
    exact = bold_play(goal, heads)
    # 1/4, 1/2 and 3/4 of the goal: p^2, p, p + (1 - p) p
    assert (exact[25], exact[50], exact[75]) == (Fraction(4, 25), Fraction(2, 5), Fraction(16, 25))
    worth = [*exact[:-1], Fraction(1)]
    for s in range(1, goal):  # no stake gains: bold play is optimal, exactly
        for a in range(1, min(s, goal - s) + 1):
            assert heads * worth[s + a] + (1 - heads) * worth[s - a] <= worth[s]
    mdp = library.gambler()
    bold = [-1, *(min(s, goal - s) for s in range(1, goal)), -1]
    np.testing.assert_allclose(policy_value(mdp, bold), np.array(exact, dtype=float), rtol=1e-12)
    # sweeps over the model itself come to the same from below
    few, exact_few = value_iteration(library.gambler(12), 200), bold_play(12, heads)
    np.testing.assert_allclose(few, np.array(exact_few, dtype=float), rtol=1e-9)


def test_gambler_has_stakes_that_make_sense() -> None:
    mdp = library.gambler(7, 0.3)
    assert mdp.terminal.tolist() == [True, *[False] * 6, True]
    for s in range(1, 7):
        assert mdp.action[mdp.row_start[s] : mdp.row_start[s + 1]].tolist() == list(range(1, min(s, 7 - s) + 1))
    assert mdp.rows.rewards_successors
    assert np.array_equal(mdp.rows.reward == 1.0, mdp.rows.successor == 7)
    fair = policy_value(library.gambler(8, 0.5), [-1, 1, 1, 1, 1, 1, 1, 1, -1])
    np.testing.assert_allclose(fair[1:-1], np.arange(1, 8) / 8, rtol=1e-13)  # a martingale
    assert value_iteration(library.gambler(8, 1.0), 8)[1:-1].tolist() == [1.0] * 7


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_haddad_monmege_values(n: int) -> None:
    mdp = library.haddad_monmege(n)
    p, _ = mdp.to_dense()
    enters = np.zeros_like(p)
    enters[..., 2 * n] = 1.0
    policy = [-1] + [0] * (2 * n - 1) + [-1]
    exact = exact_policy_value(p, enters, 1, policy)
    half = Fraction(1, 2)
    up = [half * (1 + Fraction(1, 2 ** (n - k))) for k in range(1, n)]
    assert exact == [0, *(1 - v for v in reversed(up)), half, *up, 0]
    # the chain lasts about 2^n steps, which costs log10(2^12) of 16 digits
    np.testing.assert_allclose(policy_value(mdp, policy), np.array(exact, dtype=float), rtol=1e-12, atol=0)
    ends = occupancy(mdp, policy)
    assert ends[0] == pytest.approx(0.5, rel=1e-11)
    assert ends[2 * n] == pytest.approx(0.5, rel=1e-11)


def test_haddad_monmege_fools_small_changes() -> None:
    mdp = library.haddad_monmege(20)
    before, after = value_iteration(mdp, 20), value_iteration(mdp, 21)
    assert np.abs(after - before).max() <= 2.0**-20
    assert after[20] < 1e-5  # the truth is 1/2


def steps_on_a_grid(rows: int, columns: int, slip: float, goal: tuple[int, int]) -> np.ndarray:
    """`[s][a][t]` of the grid, one cell and one direction at a time."""
    moves = [(-1, 0), (0, 1), (1, 0), (0, -1)]
    p = np.zeros((rows * columns, 4, rows * columns))
    for y in range(rows):
        for x in range(columns):
            for a in range(4):
                for turn, chance in ((0, 1.0 - slip), (-1, slip / 2), (1, slip / 2)):
                    dy, dx = moves[(a + turn) % 4]
                    inside = 0 <= y + dy < rows and 0 <= x + dx < columns
                    target = (y + dy, x + dx) if inside else (y, x)
                    if (y, x) != goal:
                        p[y * columns + x, a, target[0] * columns + target[1]] += chance
    return p


@pytest.mark.parametrize(
    ("rows", "columns", "slip", "goal"),
    [(3, 4, 0.1, (2, 3)), (1, 5, 0.3, (0, 0)), (4, 1, 0.2, (2, 0)), (3, 3, 0.0, (1, 1)), (2, 3, 1.0, (0, 2))],
)
def test_grid_world_by_loops(rows: int, columns: int, slip: float, goal: tuple[int, int]) -> None:
    mdp = library.grid_world(rows, columns, slip, goal=goal, step_cost=2.0)
    p, r = mdp.to_dense()
    wanted = steps_on_a_grid(rows, columns, slip, goal)
    np.testing.assert_allclose(p, wanted, rtol=1e-15)
    assert np.array_equal(p > 0, wanted > 0)
    assert mdp.rows.n_entries == (wanted > 0).sum()  # steps against the border are merged, zeros not listed
    end = goal[0] * columns + goal[1]
    assert np.flatnonzero(mdp.terminal).tolist() == [end]
    assert (np.delete(r, end, axis=0) == -2.0).all()
    assert mdp.initial is not None
    assert mdp.initial.tolist() == [1.0] + [0.0] * (rows * columns - 1)


def test_grid_world_without_slip_counts_steps() -> None:
    mdp = library.grid_world(4, 5, 0.0, discount=1.0)
    y, x = np.divmod(np.arange(20), 5)
    assert value_iteration(mdp, 8).tolist() == (-((3 - y) + (4 - x))).tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: library.riverswim(1), "n_states is 1, expected a whole number of at least 2."),
        (lambda: library.machine_replacement(2), "n_states is 2, expected a whole number of at least 3."),
        (lambda: library.gambler(1), "goal is 1, expected a whole number of at least 2."),
        (lambda: library.gambler(10, 1.5), "heads is 1.5, expected a number in [0, 1]."),
        (lambda: library.haddad_monmege(0), "n is 0, expected a whole number of at least 1."),
        (lambda: library.grid_world(1, 1), "rows and columns are both 1, expected at least two cells"),
        (lambda: library.grid_world(0, 3), "rows is 0, expected a whole number of at least 1."),
        (lambda: library.grid_world(2, 3, -0.1), "slip is -0.1, expected a number in [0, 1]."),
        (lambda: library.grid_world(2, 3, goal=(2, 0)), "goal is (2, 0), expected a cell of the 2 x 3 grid."),
        (lambda: library.grid_world(2, 3, goal=(-1, 0)), "goal is (-1, 0), expected a cell of the 2 x 3 grid."),
        (lambda: library.grid_world(2, 3, step_cost=-1.0), "step_cost is -1.0, expected a number in [0, inf)."),
        (lambda: library.riverswim(discount=2.0), "discount is 2.0, expected a number in [0, 1]."),
    ],
)
def test_refuses_other_sizes(call: Callable[[], MDP], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
