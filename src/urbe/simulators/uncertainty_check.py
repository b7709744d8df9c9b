"""Check that the members of an uncertainty set differ in their dynamics, not only in their parameters.

A perturbation that never reaches the dynamics silently makes a robust agent an ordinary one. States are reached by
random actions; members i and j differ by

    max over states, actions and outcomes of |p_i - p_j|, and, where both are possible,
    |observation_i - observation_j|, |reward_i - reward_j|, |terminated_i - terminated_j|
"""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from urbe import checks
from urbe.simulators.base import Key, Params, Simulator, State, step
from urbe.simulators.limits import param_dict
from urbe.simulators.uncertainty import ROUNDING, UncertaintySet
from urbe.types import FloatArray


class SetReport(NamedTuple):
    """The largest differences found between members, each `(K, K)`.

    Attributes:
      probability, observation, reward, terminated: largest differences of each kind.
      states: number of states tried, with every action.
      nominal: index of the nominal parameters, or None if they are not a member.
    """

    probability: FloatArray
    observation: FloatArray
    reward: FloatArray
    terminated: FloatArray
    states: int
    nominal: int | None

    @property
    def largest(self) -> FloatArray:
        """`(K, K)` the largest difference of any kind."""
        found: FloatArray = np.max([self.probability, self.observation, self.reward, self.terminated], axis=0)
        return found

    def __str__(self) -> str:
        count = len(self.probability)
        lines = [f"{count} member{'s' if count != 1 else ''}, tried in {self.states} states with every action."]
        if count > 1:
            i, j = np.triu_indices(count, 1)
            least = int(np.argmin(self.largest[i, j]))
            lines.append(
                f"All differ; members {i[least]} and {j[least]} least, by {self.largest[i, j][least]:.3g} at most."
            )
        if self.nominal is None:
            lines.append("The nominal parameters are not a member: the worst case may be better than the nominal one.")
        return "\n".join(lines)


def check_uncertainty_set(
    simulator: Simulator,
    uncertainty: UncertaintySet,
    key: Key,
    *,
    walks: int = 16,
    steps: int = 64,
    tolerance: float = 0.0,
) -> SetReport:
    """Checks that every two members have different dynamics somewhere.

    Args:
      simulator: the simulator with these parameters.
      uncertainty: the set.
      key: key of the random actions; consumed.
      walks: number of walks that collect states, under the members in turn.
      steps: length of each walk, which starts again when an episode ends.
      tolerance: differences up to this do not count.

    Returns:
      the largest difference of every pair.

    Raises:
      ValueError: some pairs never differ; the dynamics of a member are not finite or not a distribution; or the
        nominal member is not the simulator's.

    >>> import jax
    >>> from urbe.simulators import CartPole
    >>> poles = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0))
    >>> print(check_uncertainty_set(CartPole(), poles, jax.random.key(0)))
    3 members, tried in 1024 states with every action.
    All differ; members 0 and 2 least, by 0.175 at most.
    """
    checks.whole_number("walks", walks, 1)
    checks.whole_number("steps", steps, 1)
    checks.number("tolerance", tolerance, 0.0, np.inf, closed=False)
    named = [param_dict(member) for member in uncertainty.members()]
    _same_nominal(simulator, uncertainty, named)
    visited = _visited(simulator, uncertainty, key, walks, steps)
    answers = [jax.device_get(_answer(simulator, member, visited)) for member in uncertainty.members()]
    sound = np.array([_sound(answer) for answer in answers])
    if not sound.all():
        k = int(np.argmin(sound))
        raise ValueError(
            f"Member {k} ({_text(named[k], tuple(named[k]))}) leads to numbers that are not finite, or to "
            "probabilities that are not a distribution, expected parameters in their range. "
            f"{checks.some(int((~sound).sum()), len(sound), 'member', 'members')} broken."
        )
    found = np.zeros((4, len(answers), len(answers)))
    for i, j in combinations(range(len(answers)), 2):
        found[:, i, j] = found[:, j, i] = _difference(answers[i], answers[j])
    probability, observation, reward, terminated = found
    report = SetReport(probability, observation, reward, terminated, walks * steps, uncertainty.nominal)
    alike = [(i, j) for i, j in combinations(range(len(answers)), 2) if report.largest[i, j] <= tolerance]
    if alike:
        raise ValueError(_complaint(named, alike, report.states))
    return report


def _same_nominal(simulator: Simulator, uncertainty: UncertaintySet, named: list[dict[str, float]]) -> None:
    expected = param_dict(simulator.nominal())
    if uncertainty.names != tuple(expected):
        raise ValueError(
            f"The set has the parameters {', '.join(uncertainty.names)}, expected those of {type(simulator).__name__}: "
            f"{', '.join(expected)}."
        )
    k = uncertainty.nominal
    if k is not None and named[k] != expected:
        name = next(name for name in expected if named[k][name] != expected[name])
        raise ValueError(
            f"Member {k} is marked as nominal, but its {name} is {named[k][name]}, expected {expected[name]}. Build "
            "the set again from this simulator, or pass nominal=None."
        )


def _complaint(named: list[dict[str, float]], pairs: list[tuple[int, int]], states: int) -> str:
    doubles = [(i, j) for i, j in pairs if named[i] == named[j]]
    others = [(i, j) for i, j in pairs if named[i] != named[j]]
    lines = [
        f"{len(pairs)} of {len(named) * (len(named) - 1) // 2} pairs of members never differ in {states} states, "
        "expected every two to differ in some outcome of an action."
    ]
    if doubles:
        shown = checks.listing([f"{i} and {j} ({_text(named[i], tuple(named[i]))})" for i, j in doubles])
        lines.append(f"Equal parameters: members {shown}. Leave one of each out.")
    if others:
        apart = {(i, j): tuple(name for name in named[i] if named[i][name] != named[j][name]) for i, j in others}
        shown = checks.listing(
            [f"{i} ({_text(named[i], apart[i, j])}) and {j} ({_text(named[j], apart[i, j])})" for i, j in others]
        )
        names = sorted({name for each in apart.values() for name in each})
        lines.append(
            f"Other parameters, same dynamics: members {shown}. Either `outcomes` does not use {', '.join(names)} (or "
            "only `start` does), so that the perturbation never reaches the simulator: use it there, or leave it out "
            "of the set. Or it matters only in states not reached: try more walks and steps."
        )
    return " ".join(lines)


def _text(params: dict[str, float], names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {params[name]}" for name in names)


def _visited(simulator: Simulator, uncertainty: UncertaintySet, key: Key, walks: int, steps: int) -> State:
    """States from which random actions were taken, leaves `(steps * walks, ...)`."""
    turn = np.arange(walks) % len(uncertainty)
    own = jax.tree.map(lambda leaf: leaf[turn], uncertainty.params)
    key_action, key_step, key_begin = jax.random.split(key, 3)
    actions = jax.random.randint(key_action, (steps, walks), 0, simulator.n_actions, dtype=jnp.int32)
    begin_keys = jax.random.split(key_begin, (steps, walks))
    visited = _walk(simulator, own, actions, jax.random.split(key_step, (steps, walks)), begin_keys)
    return jax.tree.map(lambda leaf: leaf.reshape(walks * steps, *leaf.shape[2:]), visited)


@partial(jax.jit, static_argnums=0)
def _walk(simulator: Simulator, params: Params, actions: Int[Array, "T W"], step_keys: Key, begin_keys: Key) -> State:
    """The states along walks, which start again when an episode ends; leaves `(T, W, ...)`."""

    def go(last: tuple[State, Bool[Array, " W"]], now: tuple[Array, Key, Key]) -> tuple[Any, State]:
        action, step_key, begin_key = now
        arrived, ended = last
        begun = jax.vmap(simulator.start)(begin_key, params)
        state = jax.vmap(lambda end, a, b: jax.tree.map(partial(jnp.where, end), a, b))(ended, begun, arrived)
        arrival = jax.vmap(partial(step, simulator))(step_key, state, action, params)
        return (arrival.state, arrival.terminated), state

    state = jax.eval_shape(jax.vmap(simulator.start), begin_keys[0], params)
    nowhere = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), state)
    _, visited = jax.lax.scan(go, (nowhere, jnp.ones(actions.shape[1], bool)), (actions, step_keys, begin_keys))
    return visited


class _Answer(NamedTuple):
    """The outcomes of every action in every visited state, under one member; leaves `(N, A, J, ...)`."""

    probability: Any
    observation: Any
    reward: Any
    terminated: Any


@partial(jax.jit, static_argnums=0)
def _answer(simulator: Simulator, params: Params, visited: State) -> _Answer:
    def at(state: State, action: Array) -> _Answer:
        found = simulator.outcomes(state, action, params)
        return _Answer(found.probability, jax.vmap(simulator.observe)(found.state), found.reward, found.terminated)

    actions = jnp.arange(simulator.n_actions, dtype=jnp.int32)
    return jax.vmap(jax.vmap(at, (None, 0)), (0, None))(visited, actions)


def _sound(answer: _Answer) -> bool:
    """Whether a member's answers are finite and its probabilities distributions."""
    p = answer.probability
    finite = np.isfinite(answer.observation).all(axis=-1) & np.isfinite(answer.reward) | (p == 0.0)
    return bool(finite.all() and (p >= 0.0).all() and (np.abs(p.sum(axis=-1) - 1.0) <= ROUNDING).all())


def _difference(a: _Answer, b: _Answer) -> tuple[float, float, float, float]:
    """The largest differences between two members, in the order of `SetReport`."""
    both = (a.probability > 0.0) & (b.probability > 0.0)
    apart = (
        np.abs(a.probability - b.probability),
        np.abs(a.observation - b.observation)[both],
        np.abs(a.reward - b.reward)[both],
        (a.terminated != b.terminated)[both],
    )
    p, seen, reward, ended = (float(each.max(initial=0.0)) for each in apart)
    return p, seen, reward, ended
