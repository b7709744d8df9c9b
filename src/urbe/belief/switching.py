"""The exact filter of a parameter that jumps among K members.

Before each step (or each episode) the parameter jumps with probability h, the hazard, to a member drawn from the prior
rho. With L_k the probability of the observation under member k,

    b_k <- [ (1 - h) b_k + h rho_k ] L_k / sum of the same over all members

which is Bayes' rule. An unknown hazard has a prior over a few candidates h_1 .. h_H, and the belief is over pairs of
hazard and member:

    b_ik <- [ (1 - h_i) b_ik + h_i rho_k sum_k' b_ik' ] L_k / sum

All of it is in logarithms, so that no run of unlikely events underflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from urbe import checks
from urbe.belief.arrays import log_sum_exp, logarithm, namespace
from urbe.types import FloatArray


@dataclass(frozen=True)
class Switching:
    """The assumed changes of the true member.

    Args:
      hazard: the probability of a jump, in [0, 1]; several candidates, initially equally likely, if it is unknown. With
        0 the member never changes, with 1 it is drawn each time.
      per: whether a jump may precede each "step", or each "episode" after the first.
      prior: `(K,)` probability of each member initially and after a jump; None means equal ones.
      temper: the power of every likelihood, above 0. Below 1 the belief learns more slowly, for errors that are
        correlated from step to step.

    >>> import numpy as np
    >>> switching = Switching(hazard=0.1)
    >>> log_b = switching.begin(2)
    >>> log_b, evidence = switching.update(switching.jump(log_b), np.log([0.8, 0.2]))
    >>> np.exp(log_b).round(3), float(np.exp(evidence).round(3))
    (array([[0.8, 0.2]]), 0.5)
    """

    hazard: float | tuple[float, ...] = 0.0
    per: Literal["step", "episode"] = "step"
    prior: tuple[float, ...] | None = None
    temper: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.hazard, Sequence):
            if not self.hazard:
                raise ValueError("hazard is empty, expected a probability, or several candidates: (0.01, 0.1).")
            for i, hazard in enumerate(self.hazard):
                checks.number(f"hazard[{i}]", hazard, 0.0, 1.0)
            object.__setattr__(self, "hazard", tuple(float(hazard) for hazard in self.hazard))
        else:
            checks.number("hazard", self.hazard, 0.0, 1.0)
        checks.one_of("per", self.per, ("step", "episode"))
        checks.positive("temper", self.temper)
        if self.prior is not None:
            checks.distribution("prior", self.prior, len(self.prior))
            object.__setattr__(self, "prior", tuple(float(share) for share in self.prior))

    @property
    def hazards(self) -> FloatArray:
        """`(H,)` the candidates."""
        return np.atleast_1d(np.asarray(self.hazard, np.float64))

    def log_prior(self, n_members: int) -> FloatArray:
        """`(K,)` logarithms of the prior."""
        if self.prior is None:
            return np.full(n_members, -np.log(n_members))
        if len(self.prior) != n_members:
            raise ValueError(f"prior has {len(self.prior)} entries, expected {n_members}, one per member of the set.")
        logs: FloatArray = logarithm(np.asarray(self.prior))
        return logs

    def begin(self, n_members: int) -> FloatArray:
        """`(H, K)` logarithms of the belief before anything has been seen."""
        return np.tile(self.log_prior(n_members) - np.log(len(self.hazards)), (len(self.hazards), 1))

    def jump(self, log_b: Any) -> Any:
        """`(..., H, K)` the belief after a time at which the member may have changed."""
        xp = namespace(log_b)
        hazard, prior = self.hazards[:, None], self.log_prior(log_b.shape[-1])
        stay, move = (xp.asarray(logarithm(share), dtype=log_b.dtype) for share in (1.0 - hazard, hazard))
        moved = move + xp.asarray(prior, dtype=log_b.dtype) + log_sum_exp(log_b)
        return xp.logaddexp(stay + log_b, moved)

    def update(self, log_b: Any, log_likelihood: Any) -> tuple[Any, Any]:
        """Bayes' rule.

        Args:
          log_b: `(..., H, K)` the belief.
          log_likelihood: `(..., K)` log L_k of the observation.

        Returns:
          the belief after it, and the logarithm of the evidence, `(...)`: sum_k b_k L_k. What no member allows leaves
          the belief as it was, and its evidence is -inf.
        """
        xp = namespace(log_b)
        joint = log_b + self.temper * log_likelihood[..., None, :]
        log_evidence = log_sum_exp(joint, axes=2)
        possible = log_evidence > -xp.inf
        after = xp.where(possible, joint - xp.where(possible, log_evidence, xp.zeros_like(log_evidence)), log_b)
        return after, log_evidence[..., 0, 0]


def of_members(log_b: Any) -> Any:
    """`(..., K)` probabilities of the members, summed over the candidates of the hazard."""
    xp = namespace(log_b)
    return xp.sum(xp.exp(log_b), axis=-2)


def of_hazards(log_b: Any) -> Any:
    """`(..., H)` probabilities of the candidates of the hazard."""
    xp = namespace(log_b)
    return xp.sum(xp.exp(log_b), axis=-1)
