"""Estimate the state under each member from noisy observations: parallel Kalman filters, one per member.

    observed     y = x + e,             e normal, with the deviation of the sensor
    member k     x' = f_k(x) + w,       w normal, of small variance q

Each member has its own estimate of the state, a mean m_k and a covariance P_k, and predicts the next observation from
it [Kalman1960]:

    predict      m <- f_k(m),   P <- F P F' + q              F: the Jacobian of f_k at m
    compare      v = y - m,     S = P + R,      log L_k = -1/2 (v' S^-1 v + log det 2 pi S)
    correct      m <- m + P S^-1 v,             P <- P - P S^-1 P

so that noise in the last observation does not count as a wrong prediction of the next one. If members are linear, the
noise normal and the true member constant, L_k is exact; otherwise it is the extended Kalman filter. If the true member
may jump before a step, estimates are mixed over possible previous members, and each mixture becomes one normal
[Blom1988].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from urbe import checks
from urbe.belief.arrays import namespace
from urbe.belief.likelihoods import Evidence
from urbe.belief.switching import Switching, of_members


@dataclass(frozen=True)
class Sensor:
    """The noise of observations.

    Args:
      deviation: standard deviation of the noise in every entry of an observation, above 0; or one for each entry.
    """

    deviation: float | tuple[float, ...]

    def __post_init__(self) -> None:
        if isinstance(self.deviation, (tuple, list)):
            for i, each in enumerate(self.deviation):
                checks.positive(f"deviation[{i}]", each)
            object.__setattr__(self, "deviation", tuple(float(each) for each in self.deviation))
        else:
            checks.positive("deviation", self.deviation)

    def covariance(self, size: int) -> np.ndarray:
        """`(D, D)` R, the covariance of the noise."""
        each = np.asarray(self.deviation, np.float64)
        if each.ndim and len(each) != size:
            raise ValueError(f"deviation has {len(each)} entries, expected {size}, one per entry of an observation.")
        return np.diag(np.broadcast_to(each**2, (size,)))


class Estimates(NamedTuple):
    """The estimates of the state under every member; arrays may have leading axes.

    Attributes:
      mean: `(..., K, D)`.
      covariance: `(..., K, D, D)`.
    """

    mean: Any
    covariance: Any


def first_estimates(sensor: Sensor, observed: Any, n_members: int) -> Estimates:
    """Makes the estimates after the first observation, `(D,)`, of an episode of which nothing else is known."""
    xp = namespace(observed)
    size = observed.shape[-1]
    covariance = xp.asarray(sensor.covariance(size), dtype=observed.dtype)
    return Estimates(xp.broadcast_to(observed, (n_members, size)), xp.broadcast_to(covariance, (n_members, size, size)))


def mixed_estimates(switching: Switching, log_b: Any, estimates: Estimates) -> Estimates:
    """Updates the estimates for a possible change of the member, given the belief `(H, K)` before it.

    Member k is true because it stayed, or because it was drawn from the prior after any other member.
    """
    xp = namespace(estimates.mean)
    b = xp.exp(log_b)
    k = b.shape[-1]
    hazard = xp.asarray(switching.hazards[:, None, None], dtype=b.dtype)
    prior = xp.exp(xp.asarray(switching.log_prior(k), dtype=b.dtype))
    stays = (1.0 - hazard) * b[:, :, None] * xp.eye(k, dtype=b.dtype)
    weights = xp.sum(stays + hazard * b[:, :, None] * prior, axis=0)  # (from, to)
    into = xp.sum(weights, axis=0)
    # a member that cannot be the true one keeps its estimate
    share = xp.where(into > 0.0, weights / xp.where(into > 0.0, into, xp.ones_like(into)), xp.eye(k, dtype=b.dtype))
    mean = xp.einsum("jk,jd->kd", share, estimates.mean)
    apart = estimates.mean[:, None] - mean[None]  # (from, to, D)
    spread = estimates.covariance[:, None] + apart[..., :, None] * apart[..., None, :]
    return Estimates(mean, xp.einsum("jk,jkde->kde", share, spread))


def predicted_estimates(predicted: Any, jacobian: Any, process: Any, estimates: Estimates) -> Estimates:
    """Predicts the estimates for the next observation.

    Args:
      predicted: `(K, D)` the successor of the mean under each member.
      jacobian: `(K, D, D)` of that, by the mean.
      process: `(D,)` variances that no member predicts, at least 0.
      estimates: before the step.
    """
    xp = namespace(predicted)
    carried = xp.einsum("kij,kjl,kml->kim", jacobian, estimates.covariance, jacobian)
    return Estimates(predicted, carried + xp.eye(predicted.shape[-1], dtype=predicted.dtype) * process)


def corrected_estimates(sensor: Sensor, estimates: Estimates, observed: Any) -> tuple[Estimates, Evidence]:
    """Updates the estimates by an observation, `(D,)`; returns also its evidence about the members."""
    xp = namespace(estimates.mean)
    size = observed.shape[-1]
    total = estimates.covariance + xp.asarray(sensor.covariance(size), dtype=observed.dtype)
    missed = observed - estimates.mean
    gain = xp.swapaxes(xp.linalg.solve(total, estimates.covariance), -1, -2)
    distance = xp.sum(missed * xp.linalg.solve(total, missed[..., None])[..., 0], axis=-1)
    log_volume = xp.linalg.slogdet(total)[1] + size * np.log(2.0 * np.pi)
    covariance = estimates.covariance - gain @ estimates.covariance
    symmetric = 0.5 * (covariance + xp.swapaxes(covariance, -1, -2))
    mean = estimates.mean + (gain @ missed[..., None])[..., 0]
    return Estimates(mean, symmetric), Evidence(-0.5 * (distance + log_volume), 0.5 * (distance - size))


def believed_state(log_b: Any, estimates: Estimates) -> Any:
    """`(D,)` the mean of the members' estimates, as likely as believed."""
    return of_members(log_b) @ estimates.mean
