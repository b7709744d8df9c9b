"""All simulators pass the contract, and simulators that break it are found."""

from collections import UserDict
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from beartype import beartype
from jaxtyping import TypeCheckError, jaxtyped

from urbe.simulators import Acrobot, CartPole, DeepSea, MarsRover, MountainCar, Outcomes, SevenStates
from urbe.testing import check_simulator

UPRIGHT = [[-2.4695, 0.5780, 0.0, 0.0]]  # the free end is where a shorter link would not reach the height


@pytest.mark.parametrize(
    ("simulator", "settings"),
    [
        (CartPole(), {}),
        (MountainCar(), {"states": [[-0.5, 0.07]]}),  # the speed limit matters at speed
        (Acrobot(), {"states": UPRIGHT}),
        (DeepSea(3, seed=1), {}),
        (MarsRover(size=4), {}),
        (SevenStates("chain"), {}),
    ],
    ids=lambda value: "" if isinstance(value, dict) else type(value).__name__,
)
def test_simulators_keep_the_contract(simulator, settings):
    check_simulator(simulator, **settings)


@pytest.mark.parametrize(
    "simulator", [CartPole(), MountainCar(), Acrobot(), DeepSea(3), MarsRover(), SevenStates()], ids=type
)
def test_annotated_shapes_and_types_are_true(simulator):
    def checked(method):
        return partial(jaxtyped(typechecker=beartype)(getattr(type(simulator), method)), simulator)

    params = simulator.nominal()
    state = jax.eval_shape(checked("start"), jax.random.key(0), params)
    jax.eval_shape(checked("outcomes"), state, jnp.int32(0), params)
    assert jax.eval_shape(checked("observe"), state).dtype == jnp.float32
    odd = jnp.zeros((3, 3), jnp.float32)
    for method, *wrong in (("observe", odd), ("outcomes", odd, jnp.int32(0), params)):
        with pytest.raises(TypeCheckError):
            jax.eval_shape(checked(method), *wrong)


class Params(NamedTuple):
    speed: Any = 2.0
    spread: Any = 0.25


@dataclass(frozen=True)
class Walk:
    """Right: a walk with two outcomes per action, which breaks in one way or another."""

    broken: str = ""
    n_actions: Any = 2
    time_limit: Any = 5

    def nominal(self):
        match self.broken:
            case "a dictionary":
                return {"speed": 2.0}
            case "a user's mapping":
                return UserDict(speed=2.0)
            case "python numbers":
                return Params()
            case "a vector":
                return Params(jnp.ones(2, jnp.float32), jnp.float32(0.25))
            case "nan":
                return Params(jnp.float32(np.nan), jnp.float32(0.25))
            case "reserved":
                return NamedTuple("Reserved", [("state", float)])(jnp.float32(1.0))
            case "refused":
                return Params(jnp.float32(-2.0), jnp.float32(0.25))
        return Params(jnp.float32(2.0), jnp.float32(0.25))

    def check_params(self, params):
        if params.get("speed", 1.0) < 0.0:
            raise ValueError("speed is negative")

    def observation_bounds(self):
        most = np.full(1, 1.0 if self.broken == "bounds" else 100.0, np.float32)
        return -most, most

    def start(self, key, params):  # noqa: ARG002
        match self.broken:
            case "wide":
                return jax.random.uniform(key)
            case "wide draw":
                return jax.random.uniform(key).astype(jnp.float32)  # another number when drawn in 64 bits
            case "small":
                return jnp.int8(1)
        return jnp.float32(0.25)

    def outcomes(self, state, action, params):
        spread = params.spread
        if self.broken == "not traceable" and state > 3.0:
            spread = 0.0
        push = params.speed * jnp.where(action == 0, -1.0, 1.0)
        after = jnp.stack([state + push, state]).astype(jnp.float32)
        probability = jnp.stack([1.0 - spread, spread])
        reward, terminated = jnp.abs(after), jnp.abs(after) > 6.0
        match self.broken:
            case "chances":
                probability = jnp.stack([1.0 - spread, 0.5 * spread])
            case "negative":
                probability = jnp.stack([1.0 + spread, -spread])
            case "lopsided":  # fine up to 0.4
                probability = jnp.where(spread > 0.4, 0.9, 1.0) * probability
            case "chances of others":
                probability = jnp.stack([jnp.float32(0.75), spread])
            case "infinite":
                reward = 1.0 / jnp.stack([jnp.float32(1.0), 0.0 * state])
            case "infinite of chance zero":
                probability = jnp.stack([jnp.float32(1.0), 0.0 * spread])
                after = after.at[1].set(jnp.inf)
            case "flags":
                terminated = terminated.astype(jnp.float32)
            case "one reward":
                reward = reward[0]
            case "state form":
                after = after[:, None]
            case "state type":
                after = after.astype(jnp.int32)
            case "speed unused":
                after = jnp.stack([state + 1.0, state])
                terminated = jnp.abs(after) > 6.0
                reward = jnp.abs(after)
            case "clock":  # never meant to run for more than five steps
                after = jnp.stack([state + 1.0, state + 1.0])
                reward, terminated = 1.0 / (after < 5.5).astype(jnp.float32), after > 99.0
            case "wide inside":
                reward = reward + jnp.arange(2, dtype=float) / 3
            case "64-bit values":
                reward = reward + (1.0 if jnp.result_type(float) == jnp.float64 else 0.0)
            case "interpreted":
                reward = reward + (0.0 if isinstance(state, jax.core.Tracer) else 1.0)
            case "side effect":
                CALLS.append(None)
                reward = reward + len(CALLS)
            case "batched":
                speed = jax.custom_batching.custom_vmap(lambda v: v)
                speed.def_vmap(lambda _, batched, v: (v + 1.0, batched[0]))
                reward = reward + speed(params.speed)
        return Outcomes(probability.astype(jnp.float32), after, reward, terminated)

    def observe(self, state):
        if self.broken == "observation":
            return jnp.zeros((1, 1), jnp.float32) + state
        return jnp.reshape(state, (1,)).astype(jnp.int32 if self.broken == "whole observation" else jnp.float32)


CALLS = []

BROKEN = {
    "a dictionary": "parameters are named numbers: Walk: nominal\\(\\) is a dict, expected a NamedTuple",
    "a user's mapping": "parameters are named numbers: Walk: nominal\\(\\) is a UserDict",
    "python numbers": "parameters are named numbers: Walk: speed is 2.0 of type float64 and shape \\(\\)",
    "a vector": r"speed is .* of type float32 and shape \(2,\), expected a finite float32 scalar",
    "nan": "speed is .*nan.*, expected a finite float32 scalar",
    "reserved": "a parameter is named 'state'",
    "refused": "stated limits hold: Walk: nominal parameters are refused: speed is negative",
    "bounds": r"stated limits hold: .*observation\[0\] is .*expected a number in \[-1, 1\]",
    "wide": r"64-bit mode changes nothing: .*with it .*is float64\(\), expected float32\(\)",
    "small": "shapes and types are fixed: Walk: state is int8, expected one of float32, int32, bool",
    "not traceable": "methods are traceable: Walk: TracerBoolConversionError",
    "chances": "probabilities are a distribution: .*action 0 and parameters nominal",
    "negative": "probabilities are a distribution: .*-0.25",
    "chances of others": "probabilities are a distribution: .*parameters spread=0.225",
    "infinite": "numbers are finite: Walk: reward is inf for action 0, outcome 1",
    "infinite of chance zero": "numbers are finite: Walk: observation is inf .* whatever its probability",
    "flags": r"shapes and types are fixed: Walk: terminated of outcomes is float32\(2,\), expected bool\(2,\)",
    "one reward": r"reward of outcomes is float32\(\), expected float32\(2,\)",
    "state form": r"states of outcomes are .*float32\(2, 1\).*expected .*float32\(2,\)",
    "state type": r"states of outcomes are .*int32\(2,\).*expected .*float32\(2,\)",
    "observation": r"observations are float32\(1, 1\), expected float32 of one dimension",
    "whole observation": r"observations are int32\(1,\), expected float32",
    "speed unused": "parameters matter: Walk: speed changed alone changes no start and no outcome",
    "wide inside": r"64-bit mode changes nothing: .*reward.* is float64\(2,\), expected float32\(2,\)",
    "64-bit values": r"64-bit mode changes nothing: Walk: .*reward differs by",
    "wide draw": r"64-bit mode changes nothing: Walk: .start differs by",
    "interpreted": "compiled and interpreted are the same: Walk: .reward differs by",
    "side effect": "the same: Walk: .*reward differs by",
    "batched": "batched over parameters is the same: Walk: .*reward differs by",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_broken_is_caught(broken):
    CALLS.clear()
    with pytest.raises(AssertionError, match=BROKEN[broken]):
        check_simulator(Walk(broken), steps=8)


def test_the_walk_itself_is_sound():
    check_simulator(Walk(), steps=8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_actions": 0}, "choices are fixed: Walk: n_actions is 0, expected a whole number of at least 1"),
        ({"time_limit": 5.0}, "time_limit is 5.0, expected a whole number"),
        ({"n_actions": True}, "n_actions is True, expected a whole number"),
        ({"broken": ["list"]}, "it cannot be hashed .*, expected a frozen dataclass"),
    ],
)
def test_choices_are_fixed(changes, message):
    with pytest.raises(AssertionError, match=message):
        check_simulator(replace(Walk(), **changes))


def test_parameters_that_are_unused_on_purpose_are_named():
    check_simulator(Walk("speed unused"), unused=["speed"], steps=8)
    with pytest.raises(AssertionError, match="spread is listed in unused, but changes outcomes"):
        check_simulator(Walk("speed unused"), unused=["speed", "spread"], steps=8)


def test_nobody_goes_on_after_the_time_limit():
    check_simulator(Walk("clock"), unused=["speed"], steps=16)
    with pytest.raises(AssertionError, match="numbers are finite: Walk: reward is inf"):
        check_simulator(Walk("clock", time_limit=7), unused=["speed"], steps=16)


def test_parameters_are_changed_to_what_is_said():
    check_simulator(
        Walk("chances of others"), perturbed={"spread": 0.25}, unused=["spread"], steps=8
    )  # the same number
    with pytest.raises(
        AssertionError, match=r"probabilities are a distribution: .*\[0.4\d+, 0.4\d+\] .*parameters spread=0.5"
    ):
        check_simulator(Walk("lopsided"), perturbed={"spread": 0.5}, steps=8)


def test_parameters_that_matter_elsewhere_ask_for_states():
    with pytest.raises(AssertionError, match=r"parameters matter: MountainCar: max_speed changed .*states="):
        check_simulator(MountainCar())
