"""Hand-written loops give the results of the loops generated from each set's row function."""

from dataclasses import replace

import numpy as np
import pytest

import urbe
from urbe.ambiguity.row_nature import RowNature
from urbe.testing import small_models

MODELS = small_models() | {"longer rows": urbe.library.garnet(40, 2, 30, seed=3, discount=0.9)}
FAST = ("sweep", "minimise", "moments", "sweep_and_moments")


def sets(mdp):
    n = mdp.n_states
    out = {"boxes": urbe.Interval(0.0, 1.0)}
    for radius in (0.0, 1e-6, 0.3, 2.0):
        out |= {
            f"L1 {radius}": urbe.L1Ball(radius),
            f"weighted L1 {radius}": urbe.WeightedL1Ball(radius, 0.5 + np.arange(n) % 3),
            f"L2 {radius}": urbe.L2Ball(radius / 2),
            f"L-infinity {radius}": urbe.LInfBall(radius / 2),
            f"KL {radius}": urbe.KLBall(radius),
            f"likelihood {radius}": urbe.LikelihoodRegion(radius),
            f"chi-square {radius}": urbe.Chi2Ball(radius),
            f"contamination {radius}": urbe.Contamination(radius / 2),
        }
        if not mdp.rows.rewards_successors:
            out |= {
                f"L1 anywhere {radius}": urbe.L1Ball(radius, support="all"),
                f"likelihood anywhere {radius}": urbe.LikelihoodRegion(radius, support="all"),
                f"contamination anywhere {radius}": urbe.Contamination(radius / 2, support="all"),
            }
    return out


def row_nature(nature) -> RowNature:
    return nature if isinstance(nature, RowNature) else nature.inner  # dense L1 balls wrap one


def generated(nature: RowNature) -> RowNature:
    """The same nature by its minimiser alone."""
    return replace(nature, kernel=nature.kernel._replace(**dict.fromkeys(FAST)))


@pytest.mark.parametrize("name", MODELS)
def test_fast_loops_give_the_answers_of_generated_ones(name):
    mdp = MODELS[name]
    rng = np.random.default_rng(0)
    for label, each in sets(mdp).items():
        fast = each.bind(mdp)
        slow = generated(row_nature(fast))
        for v in (rng.normal(size=mdp.n_states), 1e4 * rng.normal(size=mdp.n_states), np.zeros(mdp.n_states)):
            size = mdp.rows.largest_reward + mdp.discount * np.abs(v).max() + 1e-300
            # both are within the accuracy that is stated of the exact value
            allowed = 2.0 * max(fast.accuracy, slow.accuracy) * size
            assert np.abs(fast.values(v, 0.3) - slow.values(v, 0.3)).max() <= allowed + 1e-15, label
            one, other = fast.worst_case(v), slow.worst_case(v)
            assert np.abs(one.value - other.value).max() <= 2.0 * allowed + 1e-15, label
            if name == "ties" or not v.any():
                continue  # nature has several answers
            u = rng.random(mdp.n_states)
            found, expected = fast.moments(v, 0.3, u), slow.moments(v, 0.3, u)
            # 1e-6: sweeps of divergences stop where the value no longer changes, half the digits of a minimiser
            assert np.abs(found.scatter - expected.scatter).max() <= 1e-6 * size**2, label
            assert np.abs(found.carried - expected.carried).max() <= 2e-6, label


def test_every_loop_of_every_kernel_was_generated_here():
    kernels = [row_nature(each.bind(MODELS["sparse rows"])).kernel for each in sets(MODELS["sparse rows"]).values()]
    assert {name for kernel in kernels for name in FAST if getattr(kernel, name) is not None} == set(FAST)
    assert all(kernel.sweep is not None for kernel in kernels)
