"""The likelihood of an observation under each member, from known probabilities or from prediction errors.

    known outcomes   log L_k = log P_k(outcome)
    residuals        log L_k = -1/2 sum_d (f_kd - o_d)^2 / (tolerance_d^2 + noise_d)

f_k is the prediction of member k and o the observation. The tolerance is half the distance between the predictions of
neighbouring members, so that both explain a true parameter between them:

    tolerance_d = floor + 1/2 (max_k f_kd - min_k f_kd) / (members along each varying parameter - 1)

The noise is a running mean of the squared residuals that the belief expects, learned online.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from urbe.belief.arrays import logarithm, namespace


class Evidence(NamedTuple):
    """The evidence of an observation about K members.

    Attributes:
      log_likelihood: `(..., K)` log L_k, up to a constant common to all.
      surprise: `(..., K)` E_k[log L_k] - log L_k, in nats. Its mean is 0 for the true member, and positive for a member
        that does not explain the observations.
    """

    log_likelihood: Any
    surprise: Any


def known_outcomes(probability: Any, outcome: Any) -> Evidence:
    """Evidence from members whose probabilities are known.

    Args:
      probability: `(..., K, J)` of each outcome under each member.
      outcome: `(...)` the index of the observed outcome.
    """
    xp = namespace(probability)
    logs = logarithm(probability)
    chosen = xp.take_along_axis(logs, xp.asarray(outcome)[..., None, None], axis=-1)[..., 0]
    expected = xp.sum(probability * xp.where(probability > 0.0, logs, xp.zeros_like(logs)), axis=-1)
    return Evidence(chosen, expected - chosen)


def tolerance(predicted: Any, per_axis: float, floor: Any) -> Any:
    """`(..., D)` half the distance between predictions of neighbouring members, and the floor.

    Args:
      predicted: `(..., K, D)` predictions.
      per_axis: members along each parameter that varies, K^(1 / parameters).
      floor: `(D,)` or a number: errors of this size do not change the belief.
    """
    xp = namespace(predicted)
    width = xp.max(predicted, axis=-2) - xp.min(predicted, axis=-2)
    return floor + 0.5 * width / max(per_axis - 1.0, 1.0)


def residuals(predicted: Any, observed: Any, tolerated: Any, noise: Any) -> Evidence:
    """Evidence from the errors of members' predictions.

    Args:
      predicted: `(..., K, D)`.
      observed: `(..., D)`.
      tolerated: `(..., D)` see `tolerance`, above 0.
      noise: `(..., D)` variance that no member predicts, at least 0.
    """
    xp = namespace(predicted)
    square = (predicted - observed[..., None, :]) ** 2
    allowed = (tolerated**2)[..., None, :]
    log_likelihood = -0.5 * xp.sum(square / (allowed + noise[..., None, :]), axis=-1)
    # learned noise grows until it explains anything, so surprise uses only the tolerance
    return Evidence(log_likelihood, 0.5 * xp.sum(square / allowed - 1.0, axis=-1))


def endings(predicted: Any, ended: Any, flip: float) -> Any:
    """`(..., K)` log-likelihood of whether the episode ended, if members are wrong with probability `flip`.

    Args:
      predicted: `(..., K)` whether each member ends it.
      ended: `(...)` whether it did.
      flip: above 0: close to a boundary, small errors decide.
    """
    xp = namespace(predicted)
    right, wrong = logarithm(xp.asarray(1.0 - flip)), logarithm(xp.asarray(flip))
    return xp.where(predicted == xp.asarray(ended)[..., None], right, wrong)
