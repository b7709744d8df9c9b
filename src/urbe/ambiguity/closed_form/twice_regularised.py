"""Twice-regularised MDPs: norm balls around kernels and rewards, at the cost of solving a nominal model.

    U(s, a) = {(r - rho, p + x) : |rho| <= alpha, ||x||_p <= beta, sum_j x_j = 0}

    per pair:    V(s) = max_a   Q(s, a) - w(s, a)
    per state:   V(s) = max_pi  pi . Q - ||pi w||_q,           w = alpha + gamma beta kappa_q(V),    1 / p + 1 / q = 1

The robust value is that of the nominal model with a penalty on the policy and on the value: regularised twice
[DermanGeistMannor2021], with the penalty kappa_q(V) = min_c ||V - c||_q if the mass of a row is kept
[KumarLevyWangMannor2022]. Kernels need not be distributions: while no probability is driven below zero, the ball is
that of `L1Ball`, `L2Ball` and `LInfBall`; beyond, it is larger, and the operator is a contraction only for small balls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from urbe import checks
from urbe.ambiguity.closed_form.deviation import largest_entry, total_variation
from urbe.ambiguity.closed_form.nature import NormNature
from urbe.ambiguity.closed_form.operator import NormOperator
from urbe.ambiguity.interval import LInfBall
from urbe.ambiguity.l1 import L1Ball
from urbe.ambiguity.l2 import L2Ball
from urbe.ambiguity.rectangular import RectangularSet
from urbe.ambiguity.row_nature import require_all_rewards
from urbe.mdp.model import MDP
from urbe.types import FloatArray, IntArray, Support

MARGIN = 1e-12
"""Share of a radius by which probabilities must stay away from zero."""


@dataclass(frozen=True, eq=False)
class TwiceRegularised:
    """Norm balls around transitions and rewards, solved in closed form.

    Args:
      transition: radius beta of the transitions: a number, `(R,)`, `(S, A)` or `{(s, a): number}`, at least 0.
      reward: radius alpha of the rewards, in the same forms.
      norm: p of the balls: 1, 2 or inf.
      per: "pair" for a ball around every (s, a); "state" for a ball that the actions of a state share: the radii of
        action a are multiplied by t_a with ||t||_p <= 1. Optimal policies may then randomise.
      support: successors that may receive or lose mass: the row's own ("nominal"), or every state ("all").
      mass: "kept", or "free" if deviations of a row need not sum to zero, as in [DermanGeistMannor2021]: the penalty is
        then ||V||_q, which changes if a constant is added to V.

    >>> import urbe
    >>> mdp = urbe.library.riverswim(6, discount=0.9)
    >>> fast, exact = urbe.solve(mdp, TwiceRegularised(0.05, norm=2)), urbe.solve(mdp, urbe.L2Ball(0.05))
    >>> bool(abs(fast.value - exact.value).max() < 1e-6)
    True
    """

    transition: Any = 0.0
    reward: Any = 0.0
    norm: float = 2.0
    per: Literal["pair", "state"] = "pair"
    support: Support = "nominal"
    mass: Literal["kept", "free"] = "kept"

    def __post_init__(self) -> None:
        checks.numbers("transition", self.transition)
        checks.numbers("reward", self.reward)
        checks.one_of("per", self.per, ("pair", "state"))
        checks.one_of("support", self.support, ("nominal", "all"))
        checks.one_of("mass", self.mass, ("kept", "free"))
        if self.norm not in (1, 2, np.inf):
            raise ValueError(f"norm is {checks.shown(self.norm)}, expected 1, 2 or inf.")

    def operator(self, mdp: MDP) -> NormOperator:
        alpha, beta = mdp.per_row("reward", self.reward), mdp.per_row("transition", self.transition)
        checks.row_range("reward", alpha, 0.0, np.inf, mdp.row_name)
        checks.row_range("transition", beta, 0.0, np.inf, mdp.row_name)
        if self.support == "all":
            require_all_rewards(mdp)
        free, wide = self.mass == "free", self.support == "all"
        # with rewards of successors the penalty differs between rows, which must then list every state
        everywhere = wide and bool(beta.any()) and not mdp.rows.rewards_successors
        rows = mdp.rows if wide and mdp.rows.rewards_successors else mdp.rows.without_zeros
        nature = NormNature(rows, mdp.discount, alpha, beta, float(self.norm), everywhere, free)
        modulus = None if not beta.any() else self._modulus(mdp, nature)
        shared = self.per == "state" and self.norm != np.inf  # a maximum norm leaves each action its whole radius
        return NormOperator(mdp, nature, shared, modulus, self._relaxed(beta))

    def _modulus(self, mdp: MDP, nature: NormNature) -> float | None:
        """Returns None if no probability can become negative; else the modulus of the contraction, or raises.

        A kernel p + x has ||p + x||_1 <= 1 + ||x||_1, and at most 1 + 2 sum_j (beta max |x| - p_j)_+ if its sum is one.
        """
        rows, beta, free = nature.rows, nature.beta, nature.free
        n = np.full(rows.n_rows, float(rows.n_states)) if nature.everywhere else rows.length.astype(np.float64)
        most = beta * largest_entry(n, nature.norm, free)
        lacking = np.maximum(most[rows.entry_row] * (1.0 + MARGIN) - rows.probability, 0.0)
        below = rows.row_sums(lacking) + (n - rows.length) * most
        if not free and not below.any():
            return None
        stretch = beta * total_variation(n, nature.norm, free)
        if not free:
            stretch = np.minimum(stretch, 2.0 * below)
        worst = int(np.argmax(stretch))
        modulus = mdp.discount * (1.0 + float(stretch[worst])) * (1.0 + rows.mass_error)
        if modulus >= 1.0:
            smallest = _smallest(rows.probability, rows.entry_start, worst, n[worst] > rows.length[worst])
            kept = 0.0 if free else smallest / float(largest_entry(n[worst : worst + 1], nature.norm, free)[0])
            room = (1.0 / mdp.discount - 1.0) / float(total_variation(n[worst : worst + 1], nature.norm, free)[0])
            ball = f"{_NAMES[nature.norm]}({beta[worst]:g})"
            raise ValueError(
                f"transition of {mdp.row_name(worst)} is {beta[worst]:g}: nature's rows may then leave the simplex, "
                f"and the values need not converge, since the modulus {modulus:.4g} of the equation is not below 1. "
                f"Give less than {max(kept, room):.3g}, or a set that stays in the simplex, such as {ball}."
            )
        return modulus

    def _relaxed(self, beta: FloatArray) -> RectangularSet:
        """Returns the same balls, intersected with the simplex."""
        if self.norm == 1:
            return L1Ball(beta, support=self.support)
        return L2Ball(beta, support=self.support) if self.norm == 2 else LInfBall(beta, support=self.support)


_NAMES = {1.0: "L1Ball", 2.0: "L2Ball", np.inf: "LInfBall"}


def _smallest(probability: FloatArray, entry_start: IntArray, row: int, missing: bool) -> float:
    """The smallest probability of a row; zero if it does not list every state that may lose mass."""
    return 0.0 if missing else float(probability[entry_start[row] : entry_start[row + 1]].min())
