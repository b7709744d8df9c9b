"""The contract of ambiguity sets, and small models to test it on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from urbe.ambiguity.rectangular import RectangularSet
from urbe.mdp.model import MDP
from urbe.testing import set_laws
from urbe.types import FloatArray


def check_ambiguity_set(
    ambiguity_set: RectangularSet | Callable[[MDP], RectangularSet],
    mdp: MDP | None = None,
    *,
    oracle: Callable[[FloatArray, FloatArray], float] | None = None,
    seed: int = 0,
    convex: bool = True,
    tight: bool = True,
    center_moves: bool = True,
    optimistic: bool = False,
    tolerance: float = 1e-9,
    oracle_tolerance: float = 1e-6,
) -> None:
    """Tests that a set fulfils the contract of `urbe.ambiguity.nature`, on one model or on several small ones.

    Args:
      ambiguity_set: the set, or a function from a model to the set if the set depends on the model's shape.
      mdp: the model to check on; by default those of `small_models`: ties, single successors, one state, terminal
        states, negative rewards, rewards r(s, a, s').
      oracle: `(p, z) -> float`, the value of one row by other means. p and z are `(S,)`, over all states; where the
        model lists no transition p is zero, and z is NaN if rewards depend on the successor.
      seed: of the values at which the laws are tested.
      convex: whether Q is a minimum over a set of kernels, hence concave in v, and `excess` rejects all other kernels.
      tight: whether `dual_bound` attains the value.
      center_moves: whether to compare the sensitivity with difference quotients of the set bound to nearby models.
      optimistic: for sets whose nature maximises: `dual_bound` is an upper bound, and Q convex in v.
      tolerance: of all comparisons, as a multiple of 1 + max |z|.
      oracle_tolerance: the same for the oracle; linear programs are good to about 1e-6.

    Raises:
      AssertionError: with the broken law, the model and the row.

    >>> from urbe.ambiguity.exact import Exact
    >>> check_ambiguity_set(Exact(), oracle=lambda p, z: p @ z)
    """
    rng = np.random.default_rng(seed)
    models = small_models(seed) if mdp is None else {"the given model": mdp}
    compared, differed = False, False
    for name, model in models.items():
        a_set = ambiguity_set(model) if callable(ambiguity_set) else ambiguity_set
        case = set_laws.Case(name, model, a_set, a_set.bind(model), tolerance, -1.0 if optimistic else 1.0)
        set_laws.check_form(case)
        points = set_laws.trial_values(model, rng)
        for v in points:
            set_laws.check_inputs_untouched(case, v)
            set_laws.check_monotone(case, v, rng)
            set_laws.check_shift(case, v)
            worst = set_laws.check_worst_case(case, v)
            set_laws.check_dual(case, v, tight)
            set_laws.check_take(case, v, rng)
            set_laws.check_threads(case, v)
            set_laws.check_output(case, v)
            if convex:
                set_laws.check_excess_sees_outside(case, v)
            if oracle is not None:
                set_laws.check_oracle(case, v, oracle, oracle_tolerance)
            if center_moves and (model.rows.length > 1).any():
                compared = True
                differed = set_laws.check_sensitivity(case, v, worst, rng) or differed
        set_laws.check_memory(case, points)
        set_laws.check_operator(case, points)
        if convex:
            set_laws.check_concave(case, points)
    if compared and not differed:
        raise AssertionError(
            "sensitivity: every row has a kink at every value tried, so nothing was compared. Try another seed, "
            "or center_moves=False for sets that are nowhere smooth."
        )


def small_models(seed: int = 0) -> dict[str, MDP]:
    """Difficult small models by name; probabilities are zero or at least 0.02."""
    rng = np.random.default_rng(seed)

    def random_rows(n_states: int, n_actions: int, zeros: float) -> FloatArray:
        raw = rng.uniform(0.1, 1.0, size=(n_states, n_actions, n_states))
        raw *= rng.uniform(size=raw.shape) >= zeros
        raw[..., 0] += raw.sum(axis=-1) == 0.0
        return np.asarray(raw / raw.sum(axis=-1, keepdims=True))

    ring = np.roll(np.eye(4), 1, axis=1)[:, None]
    reward = rng.normal(size=(4, 2))
    return {
        "sparse rows": MDP.from_dense(random_rows(5, 2, 0.5), rng.normal(size=(5, 2)), discount=0.9),
        "negative rewards": MDP.from_dense(random_rows(4, 2, 0.0), -10.0 - reward, discount=0.5),
        "ties": MDP.from_dense(np.full((4, 1, 4), 0.25), 1.0, discount=1.0),
        "single successors": MDP.from_dense(ring, [0.0, 1.0, 0.0, -1.0], discount=0.9),
        "one state": MDP.from_dense([[[1.0]]], [[2.0]], discount=0.9),
        "terminal states": MDP.from_dense(random_rows(4, 2, 0.2), reward, discount=0.95, terminal=[0, 3]),
        "rewards of successors": MDP.from_dense(
            random_rows(3, 2, 0.3), rng.normal(size=(3, 2, 3)), discount=0.8, keep_zeros=True
        ),
    }
