"""Simulators of a few states for the deep agents' tests; what is special about each run is in its parameters."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from urbe.simulators.base import Outcomes
from urbe.simulators.schedules import Carry

STATES, ACTIONS = 4, 2
_PAIRS = [f"{s}{a}" for s in range(STATES) for a in range(ACTIONS)]
ProbeParams = NamedTuple(
    "ProbeParams",
    [("starts", float), *((f"{what}_{pair}", float) for what in ("reward", "next", "end") for pair in _PAIRS)],
)


def probe(starts=1, **rows):
    """Parameters of a `Probe`: `r01=(0.5, 3)` pays .5 and leads from 0 by action 1 to 3, None to the end."""
    fields = {"starts": starts} | {f"{what}_{pair}": 0.0 for what in ("reward", "next") for pair in _PAIRS}
    fields |= {f"end_{pair}": 1.0 for pair in _PAIRS}
    for name, (reward, following) in rows.items():
        pair = name[1:]
        fields[f"reward_{pair}"] = reward
        fields[f"end_{pair}"] = float(following is None)
        fields[f"next_{pair}"] = 0.0 if following is None else following
    return jax.tree.map(jnp.float32, ProbeParams(**fields))


@dataclass(frozen=True)
class Probe:
    """Four states, two actions, nothing random but the start; everything else is a parameter."""

    time_limit: int = 4
    n_actions: int = ACTIONS

    def nominal(self):
        return probe()

    def start(self, key, params):
        return jax.random.randint(key, (), 0, params.starts.astype(jnp.int32), jnp.int32)

    def outcomes(self, state, action, params):
        def of(what):
            table = jnp.stack([getattr(params, f"{what}_{pair}") for pair in _PAIRS])
            return table[state * ACTIONS + action]

        end = of("end") > 0
        return Outcomes(
            jnp.ones(1, jnp.float32),
            of("next").astype(jnp.int32)[None],
            of("reward").astype(jnp.float32)[None],
            end[None],
        )

    def observe(self, state):
        return jax.nn.one_hot(state, STATES, dtype=jnp.float32)


class HazardParams(NamedTuple):
    """What will go wrong, by number, and whether a simulator with these parameters is the one that goes wrong."""

    fate: float = 0.0
    faulty: float = 0.0


class HazardState(NamedTuple):
    count: jax.Array
    fate: jax.Array
    seen: jax.Array


@dataclass(frozen=True)
class Hazard:
    """Counts its steps; the `when`-th goes wrong: 1 observation, 2 reward, 3 and 4 those of a faulty member, 5 size."""

    when: int = 6
    time_limit: int = 1000
    n_actions: int = 2

    def nominal(self):
        return HazardParams(jnp.float32(0.0), jnp.float32(0.0))

    def start(self, _key, params):
        return HazardState(jnp.int32(0), params.fate.astype(jnp.int32), jnp.zeros(2, jnp.float32))

    def outcomes(self, state, _action, params):
        count = state.count + 1
        now, faulty, nan = count == self.when, params.faulty > 0, jnp.float32(jnp.nan)
        bad_obs = now & ((state.fate == 1) | ((state.fate == 3) & faulty))
        bad_reward = now & ((state.fate == 2) | ((state.fate == 4) & faulty))
        reward = jnp.where(bad_reward, nan, jnp.float32(1.0))
        reward = jnp.where(now & (state.fate == 5), jnp.float32(1e30), reward)
        seen = jnp.stack([jnp.where(bad_obs, nan, jnp.float32(1.0)), count.astype(jnp.float32) / 8])
        return Outcomes(
            jnp.ones(1, jnp.float32),
            HazardState(count[None], state.fate[None], seen[None]),
            reward[None],
            jnp.zeros(1, bool),
        )

    def observe(self, state):
        return state.seen


@dataclass(frozen=True)
class Given:
    """Parameters that stay as they are; the compiled loop takes them from its state, so one loop serves all."""

    base: NamedTuple

    def begin(self, _key):
        return Carry(jnp.int32(0), self.base)

    def next(self, carry, _key):
        return Carry(carry.episode + 1, carry.params)

    def params(self, carry):
        return carry.params
