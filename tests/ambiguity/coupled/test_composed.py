"""Sets made of other sets accept every set that chooses its rows independently: values, certificates, warm starts."""

from dataclasses import replace

import numpy as np
import pytest

import urbe
from urbe.solvers.solution import Solution

S, A, GAMMA = 4, 2, 0.9
RNG = np.random.default_rng(3)
ROWS = RNG.dirichlet(np.ones(S), size=(S, A))
MDP = urbe.MDP.from_dense(ROWS, RNG.normal(size=(S, A)), discount=GAMMA)
DRAWS = [urbe.MDP.from_dense(RNG.dirichlet(np.ones(S), size=(S, A)), 0.0, discount=GAMMA) for _ in range(5)]

INNER = {
    "KL": urbe.KLBall(0.2),
    "quantile": urbe.ValueAtRisk(DRAWS, 0.4),
    "tail": urbe.ConditionalValueAtRisk(DRAWS, 0.4),
    "moments": urbe.MomentSet(mean_error=0.1, deviation=0.15),
    "helping L1": urbe.Optimistic(urbe.L1Ball(0.4)),
    "helping KL": urbe.Optimistic(urbe.KLBall(0.2)),
    "helping quantile": urbe.Optimistic(urbe.ValueAtRisk(DRAWS, 0.4)),
    "nested": urbe.NestedSets((urbe.L1Ball(0.1), urbe.KLBall(0.3)), [0.5, 1.0]),
    "nested twice": urbe.NestedSets(
        (urbe.Exact(), urbe.NestedSets((urbe.L1Ball(0.2), urbe.KLBall(0.3)), [0.5, 1.0])), [0.5, 1.0]
    ),
    "by row": urbe.PerRow((urbe.KLBall(0.2), urbe.Optimistic(urbe.L1Ball(0.3))), [[0, 1]] * S),
    "nested by row": urbe.PerRow(
        (urbe.Exact(), urbe.NestedSets((urbe.L1Ball(0.1), urbe.KLBall(0.3)), [0.5, 1.0])), [[0, 1]] * S
    ),
}


def rows_of(a_set, v):
    return a_set.bind(MDP).values(np.ascontiguousarray(v)).reshape(S, A)


def labelled(a_set):
    """Nature deviates at most once in a row."""
    calm, off = urbe.LabelOption(urbe.Exact(), 0), urbe.LabelOption(a_set, 1)
    found = urbe.labelled(MDP, [[calm, off], [calm]])

    def backup(v):
        calm, off = v[:S], v[S:]
        q = rows_of(urbe.Exact(), calm)
        return np.concatenate([np.minimum(q, rows_of(a_set, off)).max(axis=1), q.max(axis=1)])

    return found.mdp, found.set, backup


def limited(a_set):
    found = urbe.limited_deviations(MDP, a_set, 1)

    def backup(v):
        none, one = rows_of(urbe.Exact(), v[:S]), rows_of(urbe.Exact(), v[S:])
        return np.concatenate([none.max(axis=1), np.minimum(one, rows_of(a_set, v[:S])).max(axis=1)])

    return found.mdp, found.set, backup


def nested(a_set):
    mixed = urbe.NestedSets((urbe.Exact(), a_set), [0.4, 1.0])
    return MDP, mixed, lambda v: (0.4 * rows_of(urbe.Exact(), v) + 0.6 * rows_of(a_set, v)).max(axis=1)


def by_row(a_set):
    some = urbe.PerRow((urbe.Exact(), a_set), [[0, 1]] * S)
    return MDP, some, lambda v: np.stack([rows_of(urbe.Exact(), v)[:, 0], rows_of(a_set, v)[:, 1]], axis=1).max(axis=1)


def options(a_set):
    """A single option of both actions, which ends with probability 0.3."""
    found = urbe.with_options(MDP, [urbe.Option(np.full((S, A), 0.5), 0.3), *urbe.one_step(MDP)], a_set)

    def backup(v):
        begin, goes_on = v[:S], v[S : 2 * S]
        mixing = rows_of(a_set, 0.3 * begin + 0.7 * goes_on).mean(axis=1)
        out = np.zeros(len(v))
        out[:S] = np.maximum(mixing, rows_of(a_set, begin).max(axis=1))
        out[S : 2 * S] = mixing
        return out

    return found.mdp, found.set, backup


WRAPPERS = [labelled, limited, nested, by_row, options]


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", INNER)
def test_values_solve_the_equations_and_certificates_hold(wrapper, name):
    mdp, a_set, backup = wrapper(INNER[name])
    solution = urbe.solve(mdp, a_set)
    np.testing.assert_allclose(backup(solution.value), solution.value, atol=1e-6)
    certificate = urbe.certify(solution)
    assert certificate.holds, certificate.statement
    over_steps = urbe.solve(mdp, a_set, urbe.BackwardInduction(3))
    np.testing.assert_allclose(backup(over_steps.value[1]), over_steps.value[0], atol=1e-9)
    certificate = urbe.certify(over_steps)
    assert certificate.holds, certificate.statement


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", INNER)
def test_wrong_bounds_and_kernels_are_found(wrapper, name):
    mdp, a_set, _ = wrapper(INNER[name])
    solution = urbe.solve(mdp, a_set)
    assert not urbe.certify(replace(solution, lower=solution.lower + 0.01)).holds
    assert not urbe.certify(replace(solution, upper=solution.upper - 0.01)).holds
    over_steps = urbe.solve(mdp, a_set, urbe.BackwardInduction(3))
    elsewhere = _Elsewhere(**vars(over_steps))
    certificate = urbe.certify(elsewhere)
    assert not certificate.holds
    assert "leaves the set" in certificate.statement


class _Elsewhere(Solution):
    """A solution whose kernel moves every state to the last one with certainty, which no set here allows."""

    def kernel_at(self, step):
        kernel = super().kernel_at(step)
        rows = kernel.rows
        last = np.zeros(rows.n_entries)
        last[rows.entry_start[1:] - 1] = 1.0
        return replace(kernel, rows=replace(rows, probability=last))


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", INNER)
def test_a_warm_start_never_changes_a_value(wrapper, name):
    mdp, a_set, _ = wrapper(INNER[name])
    nature = a_set.bind(mdp)
    memory = nature.fresh()
    for seed in range(4):
        v = np.random.default_rng(seed).normal(size=mdp.n_states)
        np.testing.assert_allclose(nature.values(v, memory=memory), nature.values(v), atol=1e-9)
        if memory is not None:
            half = np.arange(0, mdp.n_rows, 2)
            part = nature.take(half).worst_case(v, np.ascontiguousarray(memory[half]))
            np.testing.assert_allclose(part.value, nature.worst_case(v).value[half], atol=1e-9)


def test_models_whose_states_are_all_terminal_are_worth_nothing():
    ends = urbe.MDP.from_dense(np.zeros((2, 1, 2)), np.zeros((2, 1)), discount=0.9, terminal=[0, 1])
    nested = urbe.NestedSets((urbe.Exact(), urbe.KLBall(0.3)), [0.4, 1.0])
    budget = urbe.limited_deviations(ends, nested, 1)
    moments = urbe.MomentSet(mean_error=0.1, deviation=0.2)
    for mdp, a_set in ((ends, nested), (ends, moments), (ends, urbe.PerRow((nested,), 0)), (budget.mdp, budget.set)):
        solution = urbe.solve(mdp, a_set)
        assert not solution.value.any()
        assert urbe.certify(solution).holds
    assert urbe.solve_constrained(ends, 1.0, 0.5).value == 0.0
    plan = urbe.plan(urbe.Posterior.before(ends), method=urbe.Percentile(), seed=0, held_out=0)
    assert plan.guaranteed_at_start == 0.0
