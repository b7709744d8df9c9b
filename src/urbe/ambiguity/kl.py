"""Kullback-Leibler balls around a model's own rows.

    minimise  q . z   subject to  KL(q || p) = sum_j q_j log(q_j / p_j) <= radius

With y_j = z_j - min z and K(beta) = log sum_j p_j exp(-beta y_j), the dual is

    max_{beta > 0}  min z - (K(beta) + radius) / beta,          q_j = p_j exp(-beta y_j - K(beta)),

attained where D(beta) = KL(q || p) = beta K' - K equals the radius; D' = beta K''. KL is infinite for mass outside the
row, so the support is always the nominal one. A sweep starts from last time's beta and usually ends there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.extending import register_jitable

from urbe import checks
from urbe.ambiguity.exponential import LOG2_E, power_of_two
from urbe.ambiguity.row_nature import RowKernel, RowNature, bind_rows
from urbe.ambiguity.sweep import make_minimiser, make_sweep
from urbe.ambiguity.zoom import highest
from urbe.mdp.model import MDP
from urbe.types import FloatArray, Support

TOLERANCE = 2.0**-48
"""Largest error of a row's value left by the search for beta, as a multiple of the row's span."""

TINY = 2.0**-100
"""Radii below change no value by more than sqrt(radius / 2) = 2^-50.5 spans (Pinsker's inequality)."""

# Error of a row's value, in units of span <= 2 max |z| and u = 2^-53: TOLERANCE = 32 u from the search. Rounding moves
# y, beta y and 2^t by a few u relative: a change of y by u relative moves the value by at most u. The sum behind K is
# of terms of one sign and K / beta <= span: its error counts up to 1.5 (n / 4 + 2) u as it is summed in lanes of
# four, 3 (n / 4 + 2) u <= (n + 6) u of max |z|, which the caller's allowance for a sum of n terms covers. log, the
# division and the final sums add 6 u. In all below 2 (32 + 16) u of max |z|.
ACCURACY = 96 * 2.0**-53


@dataclass(frozen=True, eq=False)
class KLBall:
    """U(s, a) = {q in simplex : sum_j q_j log(q_j / pbar_j) <= radius(s, a)}.

    Args:
      radius: a number, `(R,)`, `(S, A)` or `{(s, a): number}`, at least 0.
      support: "nominal" or "all"; both name the same set, since the divergence of mass where pbar = 0 is infinite.

    >>> import urbe
    >>> from urbe.ambiguity.kl import KLBall
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], discount=0.5)
    >>> KLBall(1.0).bind(mdp).values([0.0, 2.0])
    array([0., 2.])
    """

    radius: Any
    support: Support = "nominal"

    def bind(self, mdp: MDP) -> RowNature:
        """See `AmbiguitySet`."""
        checks.one_of("support", self.support, ("nominal", "all"))
        radius = mdp.per_row("radius", self.radius)
        checks.row_range("radius", radius, 0.0, np.inf, mdp.row_name)
        return bind_rows(KERNEL, mdp, radius)


@register_jitable
def _worst(p, z, low, radius, data, hint, work):  # type: ignore[no-untyped-def]
    top = _highest(z) - low
    if radius <= TINY or not top > 0.0:
        return low + _mean(p, z, low), hint
    # Hoeffding: D(beta) <= (beta top)^2 / 8. From `most` on, an unused radius is worth at most the tolerance.
    tolerance = TOLERANCE * top
    least = math.sqrt(8.0 * radius) / top
    most = max(radius / tolerance, 2.0 * least)
    beta = hint / top
    if hint <= 0.0:
        beta = _first_guess(p, z, low, radius)
        if beta <= 0.0:
            return low, most * top
    beta = min(max(beta, least), most)
    count = 0
    while True:
        log_mass, divergence, curvature = _moments(p, z, low, beta)
        dual = low - (log_mass + radius) / beta
        unused = radius - divergence
        # beta's q is feasible if unused >= 0, and the gap between its value and the dual is unused / beta; if unused
        # is negative the dual is concave in 1 / beta with slope -unused between there and the optimum
        if abs(unused) <= beta * tolerance:
            return dual, beta * top
        if curvature > 0.0:
            # The dual as a function of lam = 1 / beta has slope -unused and curvature -beta^3 K''. The logarithm of
            # that curvature changes at a rate of at most beta (3 + beta top), as |K'''| <= top K''. While that is
            # little over 1.5 Newton steps, the optimum is within 1.2 steps and the gain predicted by Newton's
            # parabola is wrong by at most the factor e^drift - 1 <= 1.15 drift.
            step = unused / (beta * curvature)
            gain = 0.5 * unused * step / (beta * beta)
            drift = 1.5 * abs(step) * (3.0 / beta + top)
            # rounding: `unused` by 2^-50 beta top, the curvature by 2^-50 top (K' + top K'' / top)
            blur = NOISE * top * (beta * (abs(step) + NOISE * top / curvature) / (beta * beta) + gain * top / curvature)
            if drift <= 0.25 and 1.15 * gain * drift + blur <= tolerance:
                return dual + gain, (beta + step) * top
        if unused > 0.0:
            least = beta
        else:
            most = beta
        # Newton on sqrt(D), which is almost linear in beta; every fourth step halves the bracket
        count += 1
        root = math.sqrt(max(divergence, 0.0))
        following = 0.0
        if curvature > 0.0 and count % 4 != 0:
            following = beta + 2.0 * root * (math.sqrt(radius) - root) / (beta * curvature)
        if not (least < following < most):
            following = math.sqrt(least) * math.sqrt(most)
            if not (least < following < most):
                return dual, beta * top
        beta = following
