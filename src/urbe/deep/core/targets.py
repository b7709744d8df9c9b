"""Targets of replayed transitions under every member, computed once per copy of the target network if that saves time.

Between two copies the target of a transition does not change, so it is stored in the replay with its version. Outdated
entries of a minibatch are updated in blocks before use: the cost is never above computing all of them, and falls to
zero between copies. Stored per member, the targets serve any nature. Targets that change with
almost every gradient step (double Q-learning, Polyak averaging) are computed for each minibatch instead.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from urbe.deep.core import tricks
from urbe.deep.core.networks import q_values
from urbe.deep.core.replay import Replay, Successors
from urbe.deep.core.settings import Settings

ROWS = 256
"""Successors evaluated at once: enough for a fast product, few enough to waste little in the last block."""


def member_targets(settings: Settings, target: Any, online: Any, successors: Successors) -> Float[Array, "B K"]:
    """y_k = gain_k + sum_j weight_kj max_a Q(obs_kj, a), Q of the target network.

    With `settings.double` the action is the best one of the online network.
    """
    q = q_values(settings.network, target, successors.obs)
    if settings.double:
        chosen = q_values(settings.network, online, successors.obs).argmax(axis=-1)
        v = jnp.take_along_axis(q, chosen[..., None], axis=-1)[..., 0]
    else:
        v = q.max(axis=-1)
    return successors.gain + (successors.weight * v).sum(axis=-1)


def keeps_targets(settings: Settings) -> bool:
    """Whether targets stay the same for many gradient steps, so that the replay stores them."""
    return not settings.double and settings.copy.tau == 1.0


def at(successors: Successors, places: Int[Array, " B"]) -> Successors:
    """The outcomes of some transitions of the replay."""
    return Successors(*(leaf[places] for leaf in successors))


def update_targets(
    settings: Settings, replay: Replay, target: Any, version: Int[Array, ""], places: Int[Array, " B"]
) -> Replay:
    """Updates `replay.target[places]` to the network `target` of this `version`."""
    n_places, per_place = len(places), replay.successors.weight.shape[1] * replay.successors.weight.shape[2]
    block = min(max(ROWS // per_place, 1), n_places)
    stale = replay.stamp[places] != version
    n_stale = stale.sum(dtype=jnp.int32)

    def bring_up_to_date(turn: Array, kept: tuple[Array, Array]) -> tuple[Array, Array]:
        here = tricks.in_turn(stale, turn, n_stale)
        # outdated places first; the padding of the last block is computed again, to the same value
        padded = -(-n_places // block) * block
        order = jnp.where(here, jnp.cumsum(here, dtype=jnp.int32) - 1, padded)
        todo = jnp.full(padded, places[0]).at[order].set(places, mode="drop")

        def one_block(i: Array, kept: tuple[Array, Array]) -> tuple[Array, Array]:
            rows = jax.lax.dynamic_slice_in_dim(todo, i * block, block)
            values = member_targets(settings, target, target, at(replay.successors, rows))
            return kept[0].at[rows].set(values), kept[1].at[rows].set(version)

        done: tuple[Array, Array] = jax.lax.fori_loop(0, (n_stale + (block - 1)) // block, one_block, kept)
        return done

    # between two copies of the target network there is nothing to do
    values, stamps = tricks.run_if(jnp.minimum(n_stale, 1), bring_up_to_date, (replay.target, replay.stamp))
    return replay._replace(target=values, stamp=stamps)
