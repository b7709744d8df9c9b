"""Detect numbers that are not finite, and where the first one arose."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Int32

from urbe.deep.core.replay import Successors

KINDS = ("", "observation", "reward", "member's observation", "member's reward", "loss", "uncertainty")


class FiniteCheck(NamedTuple):
    """`kind` indexes KINDS, 0 while all numbers are finite; `member` is used for members."""

    kind: Int32[Array, ""]
    step: Int32[Array, ""]
    member: Int32[Array, ""]


class NotFinite(FloatingPointError):
    """A number in training was not finite; the message says which, where and when."""


def init_finite_check() -> FiniteCheck:
    """All is well."""
    return FiniteCheck(jnp.int32(0), jnp.int32(0), jnp.int32(0))


def check_finite(
    finite: FiniteCheck,
    step: Int[Array, ""],
    obs: Float[Array, "n D"],
    reward: Float[Array, ...],
    successors: Successors,
    loss: Float[Array, ""],
    w: Float[Array, ""],
) -> FiniteCheck:
    """Records the first number that is not finite, in the order of KINDS within a step."""
    # a sum is finite if all its terms are, except for overflow, which is an error, too
    bad_obs = ~jnp.isfinite(successors.obs.sum(axis=(-1, -2)))
    bad_gain = ~jnp.isfinite(successors.gain)
    flags = jnp.stack(
        [
            ~jnp.isfinite(obs.sum()),
            ~jnp.isfinite(reward.sum()),
            bad_obs.any(),
            bad_gain.any(),
            ~jnp.isfinite(loss),
            ~jnp.isfinite(w),
        ]
    )
    new = (finite.kind == 0) & flags.any()
    kind = flags.argmax().astype(jnp.int32) + 1
    k = bad_obs.shape[-1]
    which = jnp.where(
        kind == 3, bad_obs.reshape(-1, k).any(axis=0).argmax(), bad_gain.reshape(-1, k).any(axis=0).argmax()
    )
    return FiniteCheck(
        jnp.where(new, kind, finite.kind),
        jnp.where(new, step, finite.step),
        jnp.where(new, which.astype(jnp.int32), finite.member),
    )


def raise_not_finite(finite: FiniteCheck, one_member: bool, environment: int | None = None) -> None:
    """Raises if such a number was recorded; `environment` says in which of several environments."""
    kind = int(finite.kind)
    if not kind:
        return
    what = KINDS[kind]
    if kind in (3, 4):
        what = KINDS[kind - 2] if one_member else f"{what} (member {int(finite.member)})"
    advice = {
        5: "Lower the learning rate, scale observations or rewards, or use the Huber loss.",
        6: "Lower the learning rate of the uncertainty head, or scale observations.",
    }.get(kind, "It comes from the environment: check its dynamics and parameters at that step.")
    where = "" if environment is None else f" of environment {environment}"
    raise NotFinite(
        f"The {what}{where} at step {int(finite.step)} is not finite, expected numbers. {advice} The last "
        "checkpoint is from before."
    )
