"""The contract of simulators that agents, sets and environments rely on, tested in states that random actions reach."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from urbe import checks
from urbe.simulators.base import Key, Outcomes, Params, Simulator, State, step
from urbe.simulators.limits import Bounded, Checked, param_dict

STATE_TYPES = ("float32", "int32", "bool")

ROUNDING = 1e-5
"""Tolerance between two ways to compute the same numbers, as a multiple of 1 + their size: compilers reorder float32
arithmetic."""

NOTICED = 1e-6
"""The least effect of a changed parameter, in the same units; both sides come from one compiled function."""


QUICK: dict[str, Any] = {"xla_backend_optimization_level": 0}
"""Compiler options for code that runs once and is compared with optimised code."""


def check_simulator(
    simulator: Simulator,
    *,
    states: Sequence[State] = (),
    perturbed: Mapping[str, float] | None = None,
    unused: Collection[str] = (),
    seed: int = 0,
    steps: int = 64,
) -> None:
    """Tests that a simulator fulfils the protocol of `urbe.simulators.base`.

    - Its choices are fixed: whole numbers of actions and steps, and it can be hashed.
    - The nominal parameters are a NamedTuple of finite float32 scalars.
    - Shapes and types (float32, int32, bool) are fixed, and the same with and without 64-bit mode; so are the values.
    - The chances of outcomes are distributions, and all numbers are finite, also where the chance is zero: expectations
      multiply by it.
    - Methods are pure and traceable: compiled, interpreted and batched over parameters, they return the same numbers.
    - Every parameter matters: changed alone, it changes some outcome or start.
    - Limits of observations and parameters hold, if the simulator states any (`urbe.simulators.limits`).

    Args:
      simulator: to be checked.
      states: further states to test, such as those in which a parameter matters that random actions do not reach.
      perturbed: changed values of parameters, by name; by default 0.9 times the nominal value, or 0.1 if that is 0.
      unused: names of parameters that have no effect, on purpose.
      seed: of starts and actions.
      steps: number of random actions.

    Raises:
      AssertionError: with the broken law, the values found and the values expected.

    >>> from urbe.simulators import CartPole
    >>> check_simulator(CartPole())
    """
    case = _Case(simulator)
    case.check_choices()
    params = case.check_nominal()
    case.check_forms()
    changed = {name: params._replace(**{name: _other(name, params, perturbed or {})}) for name in params._fields}
    members = {"nominal": params} | {f"{name}={getattr(p, name):g}": p for name, p in changed.items()}
    keys = jax.random.split(_key(seed), 8)
    tried = case.joined(_walk(simulator, params, seed, steps), states)
    seen = partial(_seen, simulator, tried, keys)

    together = jax.tree.map(lambda *leaves: np.stack(leaves), *members.values())
    batch = jax.device_get(jax.jit(jax.vmap(seen), compiler_options=QUICK)(together))
    case.check_numbers(batch, list(members))
    compiled = jax.jit(seen)
    for k, member in enumerate(members.values()):
        case.check_same("batched over parameters is the same", _member(batch, k), compiled(member))
    one = jax.device_get(compiled(params))
    case.check_interpreted(jax.tree.map(lambda leaf: jnp.asarray(leaf[-1]), tried), keys, params, one)
    with jax.enable_x64(True):
        wide = jax.device_get(jax.jit(seen, compiler_options=QUICK)(params))
    case.check_same("64-bit mode changes nothing", wide, one)
    case.check_matters(batch, changed, unused)


class _Seen(NamedTuple):
    """The numbers that are compared: J outcomes of each of S states and A actions, and some starts."""

    start: State
    outcomes: Outcomes
    observation: Float[Array, "S A J D"]


def _seen(simulator: Simulator, states: State, keys: Key, params: Params) -> _Seen:
    actions = jnp.arange(simulator.n_actions, dtype=jnp.int32)
    each_action = jax.vmap(simulator.outcomes, (None, 0, None))
    outcomes = jax.vmap(each_action, (0, None, None))(states, actions, params)
    observation = jax.vmap(jax.vmap(jax.vmap(simulator.observe)))(outcomes.state)
    return _Seen(jax.vmap(simulator.start, (0, None))(keys, params), outcomes, observation)


@dataclass(frozen=True)
class _Case:
    simulator: Simulator

    def fail(self, law: str, problem: str) -> NoReturn:
        raise AssertionError(f"{law}: {type(self.simulator).__name__}: {problem}.")

    def check_choices(self) -> None:
        for name in ("n_actions", "time_limit"):
            value = getattr(self.simulator, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                self.fail("choices are fixed", f"{name} is {value!r}, expected a whole number of at least 1")
        try:
            hash(self.simulator)
        except TypeError as error:
            self.fail(
                "choices are fixed", f"it cannot be hashed ({error}), expected a frozen dataclass of plain values"
            )

    def check_nominal(self) -> Params:
        law = "parameters are named numbers"
        params: Any = self.simulator.nominal()
        if not isinstance(params, tuple) or not hasattr(params, "_fields"):
            self.fail(law, f"nominal() is a {type(params).__name__}, expected a NamedTuple")
        for name, value in zip(params._fields, params, strict=True):
            array = np.asarray(value)
            if name == "state":
                self.fail(law, "one is named 'state', which environments use otherwise, expected another name")
            if array.shape != () or array.dtype != np.float32 or not np.isfinite(array):
                found = f"{value!r} of type {array.dtype} and shape {array.shape}"
                self.fail(law, f"{name} is {found}, expected a finite float32 scalar")
        if isinstance(self.simulator, Checked):
            try:
                self.simulator.check_params(param_dict(params))
            except ValueError as error:
                self.fail("stated limits hold", f"nominal parameters are refused: {error}")
        return params

    def check_forms(self) -> None:
        """Tests shapes and types for single states and actions."""
        law = "shapes and types are fixed"
        state, outcomes, seen = narrow = self._forms(wide=False)
        for path, leaf in jax.tree.leaves_with_path(state):
            if leaf.dtype not in STATE_TYPES:
                self.fail(law, f"state{_text(path)} is {leaf.dtype}, expected one of {checks.listing(STATE_TYPES)}")
        if len(seen.shape) != 1 or seen.dtype != jnp.float32:
            self.fail(law, f"observations are {_form(seen)}, expected float32 of one dimension")
        n = outcomes.probability.shape[0] if len(outcomes.probability.shape) == 1 else "J"
        for name, dtype in (("probability", "float32"), ("reward", "float32"), ("terminated", "bool")):
            leaf = getattr(outcomes, name)
            if leaf.shape != (n,) or leaf.dtype != dtype:
                self.fail(law, f"{name} of outcomes is {_form(leaf)}, expected {dtype}({n},)")
        found = _described(outcomes.state)
        wanted = {_text(path): f"{leaf.dtype}{(n, *leaf.shape)}" for path, leaf in jax.tree.leaves_with_path(state)}
        if found != wanted:
            self.fail(law, f"states of outcomes are {found}, expected {wanted}: {n} outcomes of the form of a start")
        wide = self._forms(wide=True)
        if _described(wide) != _described(narrow):
            found, wanted = _described(wide), _described(narrow)
            differing = [f"{path} is {found[path]}, expected {wanted.get(path)}" for path in found]
            differing = [text for text, path in zip(differing, found, strict=True) if found[path] != wanted.get(path)]
            self.fail("64-bit mode changes nothing", f"with it {checks.listing(differing, 3)}; state dtypes explicitly")

    def _forms(self, *, wide: bool) -> tuple[State, Outcomes, Any]:
        with jax.enable_x64(wide):
            try:
                params = self.simulator.nominal()
                state = jax.eval_shape(self.simulator.start, _key(0), params)
                outcomes = jax.eval_shape(self.simulator.outcomes, state, jnp.int32(0), params)
                return state, outcomes, jax.eval_shape(self.simulator.observe, state)
            except Exception as error:  # whatever a simulator raises when it meets tracers
                raise AssertionError(
                    f"methods are traceable: {type(self.simulator).__name__}: {type(error).__name__} while tracing: "
                    f"{error}"
                ) from error

    def joined(self, reached: State, given: Sequence[State]) -> State:
        """The states reached and the given states, in the same types, along the first axis."""
        parts = [jax.tree.map(lambda leaf, part: np.asarray(part, leaf.dtype)[None], reached, one) for one in given]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), reached, *parts)

    def check_numbers(self, batch: _Seen, labels: Sequence[str]) -> None:
        """Tests the probabilities, finite numbers and stated limits of all members `(K, S, A, J)`."""
        p, observation = np.asarray(batch.outcomes.probability), np.asarray(batch.observation)
        wrong = (np.nan_to_num(p, nan=-1.0) < 0.0).any(axis=-1) | ~(np.abs(p.sum(axis=-1) - 1.0) <= ROUNDING)
        if wrong.any():
            k, s, a = np.argwhere(wrong)[0]
            problem = f"they are {p[k, s, a].tolist()} for action {a} and parameters {labels[k]}"
            self.fail("chances are a distribution", f"{problem}, expected numbers of at least 0 that sum to 1")
        for name, array in (("reward", np.asarray(batch.outcomes.reward)), ("observation", observation)):
            if not np.isfinite(array).all():
                at = np.argwhere(~np.isfinite(array))[0]
                problem = (
                    f"{name} is {array[tuple(at)]} for action {at[2]}, outcome {at[3]} and parameters {labels[at[0]]}"
                )
                self.fail("numbers are finite", f"{problem}, expected a finite number, whatever its chance")
        if isinstance(self.simulator, Bounded):
            low, high = self.simulator.observation_bounds()
            outside = (observation < low) | (observation > high)
            if outside.any():
                at = tuple(np.argwhere(outside)[0])
                interval = f"[{low[at[-1]]:g}, {high[at[-1]]:g}]"
                problem = f"observation[{at[-1]}] is {observation[at]:g} for parameters {labels[at[0]]}"
                self.fail("stated limits hold", f"{problem}, expected a number in {interval}")

    def check_same(self, law: str, found: PyTree, expected: PyTree) -> None:
        path, gap = _difference(found, expected)
        if gap > ROUNDING:
            self.fail(law, f"{path} differs by {gap:.3g}, expected at most {ROUNDING:g} of 1 + its size")

    def check_interpreted(self, state: State, keys: Key, params: Params, compiled: _Seen) -> None:
        """Compares compiled and interpreted code at the last state and the first start."""
        actions = range(self.simulator.n_actions)
        many = [self.simulator.outcomes(state, jnp.int32(action), params) for action in actions]
        outcomes = jax.tree.map(lambda *leaves: np.stack(leaves), *many)
        expected = jax.tree.map(lambda leaf: leaf[-1], compiled.outcomes)
        law = "compiled and interpreted are the same"
        self.check_same(law, outcomes, expected)
        first = self.simulator.start(keys[0], params)
        self.check_same(law, first, jax.tree.map(lambda leaf: leaf[0], compiled.start))
        seen = self.simulator.observe(jax.tree.map(lambda leaf: leaf[0], many[0].state))
        self.check_same(law, seen, compiled.observation[-1, 0, 0])

    def check_matters(self, batch: _Seen, names: Collection[str], unused: Collection[str]) -> None:
        """Tests that every member differs from the first, unless its parameter is listed as unused."""
        for k, name in enumerate(names, start=1):
            matters = _difference(_member(batch, k), _member(batch, 0))[1] > NOTICED
            if not matters and name not in unused:
                self.fail(
                    "parameters matter",
                    f"{name} changed alone changes no start and no outcome of the states tried, expected a difference. "
                    "Use it; or give states= in which it matters; or say why not where it is defined, and unused=",
                )
            if matters and name in unused:
                self.fail("parameters matter", f"{name} was said to be unused, and changes outcomes")


def _walk(simulator: Simulator, params: Params, seed: int, steps: int) -> State:
    """The states that random actions reach, in order; episodes end by termination or by a time limit."""
    actions = np.random.default_rng(seed).integers(simulator.n_actions, size=steps, dtype=np.int32)

    def move(now: tuple[State, Any], given: tuple[Any, Key]) -> tuple[tuple[State, Any], State]:
        (state, since), (action, keys) = now, given
        arrival = step(simulator, keys[0], state, action, params)
        over = arrival.terminated | (since + 1 == simulator.time_limit)
        after = jax.tree.map(partial(jnp.where, over), simulator.start(keys[1], params), arrival.state)
        return (after, jnp.where(over, 0, since + 1)), state

    first = jax.jit(simulator.start)(_key(seed), params)
    given = (actions, jax.random.split(_key(seed + 1), (steps, 2)))
    walk = jax.jit(partial(jax.lax.scan, move), compiler_options=QUICK)
    return jax.device_get(walk((first, jnp.int32(0)), given)[1])


def _other(name: str, params: Params, perturbed: Mapping[str, float]) -> np.float32:
    nominal = float(getattr(params, name))
    return np.float32(perturbed.get(name, 0.9 * nominal if nominal else 0.1))


def _difference(found: PyTree, expected: PyTree) -> tuple[str, float]:
    """The largest difference as a multiple of 1 + size, and its place; infinite for integers and flags that differ."""
    worst = ("", 0.0)
    for (path, a), b in zip(jax.tree.leaves_with_path(found), jax.tree.leaves(expected), strict=True):
        x, y = np.asarray(a), np.asarray(b)
        if x.dtype.kind == "f" and y.dtype.kind == "f":
            gap = float(np.max(np.abs(x - y) / (1.0 + np.abs(y)), initial=0.0))
        else:
            gap = 0.0 if np.array_equal(x, y) else np.inf
        worst = max(worst, (_text(path), gap), key=lambda entry: entry[1])
    return worst


def _member(batch: _Seen, k: int) -> _Seen:
    return _Seen(*jax.tree.map(lambda leaf: leaf[k], tuple(batch)))


def _described(form: PyTree) -> dict[str, str]:
    return {_text(path): _form(leaf) for path, leaf in jax.tree.leaves_with_path(form)}


def _form(leaf: Any) -> str:
    return f"{leaf.dtype}{leaf.shape}"


def _text(path: Any) -> str:
    return jax.tree_util.keystr(path)


def _key(seed: int) -> Key:
    return jax.random.key(seed, impl="threefry2x32")
