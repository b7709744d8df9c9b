"""Every set on adversarial rows, against the high-precision oracle: values, minimisers, distances and dual bounds.

The promise of `values` is `Nature.accuracy`, a multiple of the size of the values; a violation is reproduced by
`_violations(family, seed)`.
"""

import numpy as np
import pytest

import urbe
from fixtures import adversarial
from oracles import corpus
from oracles.high_precision import curves, divergences, shared
from oracles.high_precision.numbers import D, digits_right, dot, precise, rescaled
from oracles.high_precision.sets import oracle_of

MODELS = 40
ROUNDING = D(2) ** -53
OPTIMISTIC = [f"optimistic {name}" for name in adversarial.BY_ROW if name != "exact"]


@pytest.mark.parametrize("family", [*adversarial.BY_ROW, *OPTIMISTIC])
def test_rows_against_sixty_digits(family, record_property):
    wrong = {seed: found for seed in range(MODELS) if (found := _violations(family, seed))}
    record_property("corpus", (f"rows of {family}", MODELS, len(wrong)))
    assert not wrong, f"{len(wrong)} of {MODELS} models: {dict(list(wrong.items())[:5])}"


def _violations(family, seed):
    mdp, set_, rng = corpus.case(family, 10_000 + seed)
    found = []
    with precise(), np.errstate(all="ignore"):
        oracle = oracle_of(mdp, set_)
        nature = (urbe.Exact() if set_ is None else set_).bind(mdp)
        helps = isinstance(set_, urbe.Optimistic)
        for _ in range(2):  # the second sweep starts from the memory of the first
            v = adversarial.numbers(rng, (mdp.n_states,)) * adversarial.scale(rng)
            v[mdp.terminal] = 0.0
            swept, worst, dual = nature.values(v), nature.worst_case(v), nature.dual_bound(v)
            found += corpus.outside(mdp, oracle, worst.rows)
            for k, row in enumerate(oracle.rows):
                low, high, size = _truth(mdp, oracle, k, row, v)
                name = mdp.row_name(k)
                error = D(nature.accuracy) * size + 6 * ROUNDING * size + D("1e-320")
                if not _between(low - error, swept[k], high + error):
                    found.append(f"{name}: value {swept[k]!r}, truth {float(low)!r}, promised {float(error):.3g}")
                error = D("1e-11") * size + D("1e-320")
                if not _between(low - error, worst.value[k], high + error):
                    found.append(f"{name}: worst case {worst.value[k]!r}, truth {float(low)!r}")
                # rows whose sum is not one are rescaled by some bounds and not by others
                error = (D(nature.rows.mass_error) + 16 * ROUNDING) * size + D("1e-320")
                right = low - error if helps else high + error
                if not (D(float(dual[k])) >= right if helps else D(float(dual[k])) <= right):
                    found.append(f"{name}: dual bound {dual[k]!r} is on the wrong side of {float(low)!r}")
                if not abs(D(float(dual[k])) - low) <= D("1e-9") * size + D("1e-320"):
                    found.append(f"{name}: dual bound {dual[k]!r} is far from {float(low)!r}")
    return found


def _truth(mdp, oracle, k, row, v):
    """The enclosed value of row k, and the size its accuracy is relative to: that of the numbers it is computed from.

    Next to values 1e300 times as large, which have a power of two taken out of them, a row may lose its own.
    """
    gamma, w = D(mdp.discount), [D(float(v[s])) for s in row.states]
    by_successor = mdp.rows.rewards_successors
    z = [gamma * x + (r if by_successor else D(0)) for x, r in zip(w, row.reward, strict=True)]
    answer = oracle.answer(k, z)
    if not by_successor:
        answer = answer.plus(row.reward[0])
    largest = max(float(np.abs(v).max(initial=0.0)), mdp.rows.largest_reward)
    size = max(abs(x) for x in [*w, *row.reward])
    return answer.low, answer.high, size + D(largest) * D("1e-280")


def _between(low, number, high):
    return bool(np.isfinite(number)) and low <= D(float(number)) <= high


@pytest.mark.parametrize("name", ["kl", "likelihood", "chi2", "l2"])
def test_the_oracle_brackets_itself_to_sixty_digits(name):
    rng = np.random.default_rng(3)
    for radius in (0.0, 5e-324, 1e-100, 1e-16, 1e-3, 0.5, 3.0, 50.0, 1e6):
        for n in (2, 3, 6):
            p = [D(float(x)) for x in adversarial.weights(rng, n)]
            z = [D(float(x)) for x in adversarial.numbers(rng, (n,))]
            answer = getattr(divergences, name)(p, z, D(radius))
            with precise():
                assert 0 <= answer.high - answer.low <= max(abs(x) for x in z) * D("1e-58")


@pytest.mark.parametrize("curve", [curves.L1, curves.L2, curves.LInf, curves.Kl])
def test_the_oracle_of_shared_budgets_brackets_itself(curve):
    rng = np.random.default_rng(5)
    for budget in (0.0, 5e-324, 1e-16, 1e-8, 1e-3, 0.1, 0.5, 1.0, 2.0, 40.0, 1e-80):
        lengths = rng.integers(1, 6, int(rng.integers(1, 4)))
        with digits_right(30):
            p = {k: rescaled([D(float(x)) for x in adversarial.weights(rng, n)]) for k, n in enumerate(lengths)}
            z = {k: [D(float(x)) for x in adversarial.numbers(rng, (n,))] for k, n in enumerate(lengths)}
            slack = max(abs(x) for values in z.values() for x in values) * D("1e-26")
            low, high, policy, kernel = shared.improved(p, z, D(budget), curve)
            assert 0 <= high - low <= slack
            # the kernel holds every action to the level, and the policy is worth it against any kernel
            assert max(dot(kernel[k], z[k]) for k in p) <= high + slack
            taken = {k: p[k] for k in policy}
            least, most, _ = shared.evaluated(taken, {k: z[k] for k in policy}, policy, D(budget), curve)
            assert 0 <= most - least <= slack
            assert abs(least - low) <= slack


def test_the_oracle_knows_values_of_zero_exactly():
    p, z = {0: [D("0.5"), D("0.5")], 1: [D(1)]}, {0: [D(0), D(0)], 1: [D(0)]}
    assert shared.improved(p, z, D(1), curves.Kl)[:2] == (0, 0)
    assert shared.evaluated(p, z, {0: D("0.5"), 1: D("0.5")}, D(1), curves.Kl)[:2] == (0, 0)


def test_the_oracle_agrees_with_closed_forms():
    half, z = [D("0.5"), D("0.5")], [D(0), D(1)]
    with digits_right(60):
        # KL of (3/4, 1/4) from (1/2, 1/2), and the reverse; both are reached by a value of 1/4
        forward = D("0.75") * D("1.5").ln() + D("0.25") * D("0.5").ln()
        reverse = -(D("0.5") * D("1.5").ln() + D("0.5") * D("0.5").ln())
        assert abs(divergences.kl(half, z, forward).low - D("0.25")) < D("1e-58")
        assert abs(divergences.likelihood(half, z, reverse).low - D("0.25")) < D("1e-58")
        assert abs(divergences.chi2(half, z, D("0.25")).low - D("0.25")) < D("1e-58")
        assert abs(divergences.l2(half, z, D("0.125").sqrt()).low - D("0.25")) < D("1e-58")
        assert divergences.kl(half, z, D(1)).high == 0
