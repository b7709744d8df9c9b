"""Properties of every method besides the value: stopping, messages, unmodified inputs."""

import copy
from dataclasses import fields

import numpy as np
import pytest

import urbe
from urbe import (
    MDP,
    BackwardInduction,
    L1Ball,
    ModifiedPolicyIteration,
    NotConverged,
    PartialPolicyIteration,
    ValueIteration,
    evaluate_policy,
    solve,
)
from urbe.solvers.certificate import certify
from urbe.testing import small_models

METHODS = (
    PartialPolicyIteration(tolerance=1e-7),
    PartialPolicyIteration(tolerance=1e-7, linear="always"),
    PartialPolicyIteration(tolerance=1e-7, linear="never"),
    ModifiedPolicyIteration(tolerance=1e-7),
    ModifiedPolicyIteration(tolerance=1e-7, rule="residual"),
    ModifiedPolicyIteration(tolerance=1e-7, sweeps=0),
    ValueIteration(tolerance=1e-7),
    ValueIteration(tolerance=1e-7, rule="residual"),
)
RIVER = urbe.library.riverswim(6, discount=0.95)
GARNET = urbe.library.garnet(60, 3, 5, seed=1, discount=0.97)


def arrays_of(solution):
    """Every array of a solution, nature's answer included."""
    kernel = [] if solution.value.ndim > 1 else [solution.kernel.rows.probability]
    return [solution.value, solution.q, solution.policy, solution.lower, solution.upper, *kernel]


def test_three_states_of_the_craam_tests():
    go, back = [1, 2, 2], [0, 0, 1]
    transition = np.stack([np.eye(3)[back], np.eye(3)[go]], axis=1)
    mdp = MDP.from_dense(transition, [[0.0, 0.0], [1.0, 0.0], [1.0, 1.1]], discount=0.9)
    for nature in (None, L1Ball(0.0), L1Ball(0.0, support="all")):
        for method in METHODS:
            solution = solve(mdp, nature, method)
            assert solution.value == pytest.approx([8.91, 9.9, 11.0], abs=1e-7)
            assert solution.policy.tolist() == [1, 1, 1]


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("nature", [None, L1Ball(0.4), L1Ball(0.4, support="all")], ids=str)
def test_methods_agree_within_their_gaps(method, nature):
    reference = solve(GARNET, nature, PartialPolicyIteration(tolerance=1e-9))
    solution = solve(GARNET, nature, method)
    assert solution.converged
    assert solution.gap <= 1e-7
    assert (solution.lower <= reference.upper).all()
    assert (reference.lower <= solution.upper).all()
    assert np.abs(solution.value - reference.value).max() <= 1e-7


def test_q_values_are_those_of_the_value():
    solution = solve(GARNET, L1Ball(0.4))
    rows = L1Ball(0.4).bind(GARNET).values(solution.value)
    assert np.abs(solution.q - GARNET.by_action(rows, fill=-np.inf)).max() <= 1e-6
    assert np.abs(solution.q.max(axis=1) - solution.value).max() <= 1e-6
    assert (np.take_along_axis(solution.q, solution.policy[:, None], axis=1)[:, 0] >= solution.q.max(axis=1)).all()


def test_absent_actions_have_no_value():
    mdp = MDP.from_transitions([0, 1, 1], [2, 0, 1], [1, 0, 1], [1.0] * 3, [1.0, 0.0, 0.5], discount=0.5)
    solution = solve(mdp)
    assert np.isneginf(solution.q).tolist() == [[True, True, False], [False, False, True]]
    assert solution.policy.tolist() == [2, 1]


def test_a_tolerance_below_rounding_is_refused_with_valid_bounds():
    mdp = RIVER.with_discount(0.9999)
    for method in (PartialPolicyIteration(tolerance=1e-14), ValueIteration(tolerance=1e-14)):
        with pytest.raises(
            NotConverged, match=r"rounding in double precision accounts for .*cannot be certified"
        ) as error:
            solve(mdp, L1Ball(0.1), method)
        solution = error.value.solution
        assert not solution.converged
        assert solution.gap > 1e-14
        assert certify(solution).holds
        # the tolerance it recommends is one it reaches
        asked = float(str(error.value).split("Ask for ")[1].split(" or more")[0])
        assert solve(mdp, L1Ball(0.1), type(method)(tolerance=asked)).converged


@pytest.mark.parametrize("linear", ["auto", "always", "never"])
def test_large_values_without_a_chance_end_all_the_same(linear):
    mdp = small_models()["negative rewards"].with_discount(0.9999)
    solution = solve(
        mdp, L1Ball(0.5, support="all"), PartialPolicyIteration(0.0, max_steps=50, linear=linear), throw=False
    )
    assert not solution.converged
    assert certify(solution).holds


def test_running_out_of_steps_raises_or_returns():
    method = ValueIteration(max_steps=3)
    with pytest.raises(NotConverged, match=r"Gave up after 3 steps at a gap of .*, wanted 1e-06") as error:
        solve(GARNET, L1Ball(0.4), method)
    assert error.value.solution.steps == 3
    returned = solve(GARNET, L1Ball(0.4), method, throw=False)
    assert not returned.converged
    assert returned.status in str(error.value)
    assert (returned.lower <= solve(GARNET, L1Ball(0.4)).value).all()
    assert certify(returned).holds
    with pytest.raises(NotConverged):
        evaluate_policy(RIVER, [0, 1, 0, 1, 0, 1], L1Ball(0.1), method)
    assert not evaluate_policy(RIVER, [0, 1, 0, 1, 0, 1], L1Ball(0.1), method, throw=False).converged


def test_a_start_is_used_checked_and_left_alone():
    first = solve(GARNET, L1Ball(0.4))
    start = first.value.copy()
    again = solve(GARNET, L1Ball(0.4), start=start)
    assert again.steps <= 2
    assert np.array_equal(start, first.value)
    far = solve(GARNET, L1Ball(0.4), start=np.full(60, 1e6))
    assert np.abs(far.value - first.value).max() <= 1e-6
    with pytest.raises(ValueError, match="start has 3 entries, expected one for each of 60 states"):
        solve(GARNET, start=[0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="start"):
        solve(GARNET, start=np.full(60, np.nan))


@pytest.mark.parametrize("nature", [None, urbe.ValueAtRisk(np.full((2, 60, 3, 60), 1 / 60), 0.5)], ids=["exact", "var"])
def test_a_start_beyond_all_values_is_cut(nature):
    mdp = urbe.library.garnet(60, 3, 5, seed=0, discount=0.9999)
    far = 1e307 * np.random.default_rng(0).choice([-1.0, 1.0], 60)
    solution = solve(mdp, nature, start=far)
    assert solution.lower.max() <= mdp.rows.largest_reward / (1.0 - mdp.discount) + 1.0


def test_no_tolerance_where_spreads_are_the_smallest_numbers():
    p = np.array([[0.9996, 0.0004], [0.57, 0.43]])
    mdp = MDP.from_dense(p[:, None], [[1e-310], [1e-320]], discount=0.9)
    expected = np.linalg.solve(np.eye(2) - 0.9 * p, [1.0, 1e-10]) * 1e-310
    for tolerance in (0.0, 1e-322):
        solution = solve(mdp, method=PartialPolicyIteration(tolerance, max_steps=60), throw=False)
        assert (solution.lower <= expected).all()
        assert (solution.upper >= expected).all()
        assert solution.gap < 1e-316


def test_a_start_says_nothing_about_terminal_states():
    mdp = MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=0.9, terminal=[1])
    solution = solve(mdp, start=[0.0, 1e3])
    assert solution.value == pytest.approx([1.0 / 0.55, 0.0], abs=1e-6)


@pytest.mark.parametrize("nature", [None, L1Ball(0.4), L1Ball(0.4, support="all")], ids=str)
def test_threads_change_no_bit(monkeypatch, nature):
    single = arrays_of(solve(GARNET, nature, PartialPolicyIteration(linear="never")))
    blocks = []
    monkeypatch.setattr(urbe.workers, "SMALLEST_BLOCK", 10)
    run = urbe.workers.Workers.run

    def counting(self, entry_start, task):
        run(self, entry_start, lambda a, b: (blocks.append((a, b)), task(a, b)))

    monkeypatch.setattr(urbe.workers.Workers, "run", counting)
    double = arrays_of(solve(GARNET, nature, PartialPolicyIteration(linear="never"), threads=2))
    assert any(a > 0 for a, _ in blocks)  # the rows were cut
    assert all(np.array_equal(x, y) for x, y in zip(single, double, strict=True))


@pytest.mark.parametrize("method", [*METHODS, BackwardInduction(4)], ids=str)
def test_the_same_call_twice_gives_the_same_bits(method):
    once, twice = (arrays_of(solve(GARNET, L1Ball(0.4), method)) for _ in range(2))
    assert all(np.array_equal(x, y) for x, y in zip(once, twice, strict=True))


@pytest.mark.parametrize("method", [*METHODS, BackwardInduction(4)], ids=str)
def test_inputs_stay_untouched(method):
    mdp, radius = copy.deepcopy(GARNET), np.full(GARNET.n_rows, 0.4)
    solve(mdp, L1Ball(radius), method)
    assert np.array_equal(radius, np.full(GARNET.n_rows, 0.4))
    for name in ("entry_start", "successor", "probability", "reward"):
        assert np.array_equal(getattr(mdp.rows, name), getattr(GARNET.rows, name))


@pytest.mark.parametrize("method", [*METHODS, BackwardInduction(4)], ids=str)
def test_progress_is_reported_after_every_step(method):
    expected = []
    solution = solve(GARNET, L1Ball(0.4), method, progress=lambda step, gap: expected.append((step, gap)))
    assert [step for step, _ in expected] == list(range(1, solution.steps + 1))
    assert 0.0 <= expected[-1][1] <= max(solution.gap, 1e-300)


def test_a_solution_tells_itself():
    mdp = MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=0.9, terminal=[1], initial=[0.5, 0.5])
    solution = solve(mdp)
    assert solution.value_at_start() == pytest.approx(0.5 / 0.55, abs=1e-6)
    assert solve(RIVER.with_rows(RIVER.rows)).steps > 0
    assert repr(solution).startswith("Solution(2 states, gap ")
    lines = str(solution).splitlines()
    assert lines[0] == solution.status
    assert [line.split()[:2] for line in lines[2:]] == [["0", "0"], ["1", "end"]]
    assert "... 48 more states" in str(solve(GARNET))


def test_wrong_parameters_are_named():
    for wrong, message in (
        (lambda: PartialPolicyIteration(tolerance=-1.0), "tolerance"),
        (lambda: PartialPolicyIteration(linear="sometimes"), "linear"),
        (lambda: ModifiedPolicyIteration(sweeps=-1), "sweeps"),
        (lambda: ValueIteration(rule="spam"), "rule"),
        (lambda: ValueIteration(max_steps=0), "max_steps"),
        (lambda: BackwardInduction(0), "horizon"),
        (lambda: solve(RIVER, threads=0), "threads"),
        (lambda: solve(RIVER, L1Ball(2.5)), "radius"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()


def test_a_discount_too_near_one_is_refused():
    with pytest.raises(ValueError, match="too near 1 for certified bounds"):
        solve(RIVER.with_discount(float(np.nextafter(1.0, 0.0))))


@pytest.mark.parametrize("method", [PartialPolicyIteration, ModifiedPolicyIteration, ValueIteration, BackwardInduction])
def test_every_argument_of_a_method_is_explained(method):
    for each in fields(method):
        assert f"  {each.name}: " in method.__doc__
