"""Descriptions of agents as plain data: round trips of every kind, and nothing else is built from a file."""

import json
import math
from dataclasses import dataclass, fields, is_dataclass
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urbe import simulators
from urbe.belief import Switching, Watch
from urbe.deep import AdaptiveSettings, DuelingNetwork, KalmanLastLayer
from urbe.deep import settings as config
from urbe.deep.actor_critic.settings import ActorCriticSettings
from urbe.deep.adaptive import natures as belief_natures
from urbe.deep.adaptive import rules
from urbe.deep.core import last_layer, minimum, natures, recurrent, variances
from urbe.deep.loops.ewok import WorstKernel
from urbe.deep.loops.iwocs import WorstCaseSearch
from urbe.deep.loops.recurrent import RecurrentTraining
from urbe.deep.saving.describe import KNOWN, Unknown, build, describe
from urbe.rng import stream
from urbe.simulators import mars_rover, schedules


def _local():
    @dataclass(frozen=True)
    class Own:
        """A nature, or a simulator, of the user's own, which no name leads to."""

        def weights(self, values):
            return values

    return Own


Own = _local()


numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)
above_zero = st.floats(1e-6, 1e6)
whole = st.integers(1, 10**6)
units = st.lists(st.integers(1, 500), min_size=1, max_size=4).map(tuple)
shares = st.lists(st.integers(1, 9), min_size=1, max_size=5).map(lambda n: tuple(x / sum(n) for x in n))
pole_params = st.builds(
    lambda cast, *values: simulators.CartPoleParams(*map(cast, values)),
    st.sampled_from([float, np.float32, jnp.float32, np.float64]), *[st.floats(0.0625, 64.0, width=32)] * 5,
)  # fmt: skip
bounds = st.dictionaries(st.sampled_from(simulators.CartPoleParams._fields), st.just((0.0625, 64.0)), min_size=1)
normals = st.builds(lambda m, s, low: simulators.Normal(m, s, m - low * s), numbers, above_zero, st.floats(0, math.inf))
laws = st.one_of(
    normals,
    st.builds(simulators.Uniform, st.floats(-9, 0), st.floats(1, 9)),
    st.builds(simulators.LogUniform, st.floats(0.1, 1), st.floats(2, 9)),
)


def made(kind, **arguments):
    """What a kind is made from; it is made in the test, as checks of its types draw random numbers of their own."""
    return st.builds(partial, st.just(kind), **arguments)


def resolved(value):
    if not isinstance(value, partial):
        return value
    return value.func(**{name: resolved(argument) for name, argument in value.keywords.items()})


def params_of(kind):
    return st.builds(kind, *[above_zero] * len(kind._fields))


KINDS = {
    "Average": st.builds(natures.Average),
    "Worst": st.builds(natures.Worst),
    "Soft": made(natures.Soft, shares=shares),
    "CVaR": made(natures.CVaR, level=st.floats(1e-3, 1.0)),
    "NoVariance": st.builds(variances.NoVariance),
    "LastLayer": st.builds(
        last_layer.LastLayer, beta=st.floats(0, 9), mu=above_zero, hidden=units, raw_input=st.booleans(),
        residual_decay=st.none() | st.floats(0.1, 0.999), forget=st.floats(0.1, 1.0), refresh_every=whole,
    ),
    "DuelingNetwork": st.builds(DuelingNetwork, units),
    "Network": st.builds(config.Network, units, st.lists(above_zero, min_size=1).map(tuple)),
    "Epsilon": st.builds(config.Epsilon, st.floats(0, 1), st.floats(0, 1), whole),
    "CopyEvery": st.builds(
        lambda n, by, tau: config.CopyEvery(**{by: n}, tau=tau),
        whole, st.sampled_from(["episodes", "updates"]), st.floats(1e-3, 1.0),
    ),
    "Decay": st.builds(config.Decay, st.floats(0, 1), whole, st.booleans()),
    "Adam": st.builds(config.Adam, st.floats(0.1, 0.999), st.floats(0.1, 0.999), above_zero),
    "Acrobot": st.builds(simulators.Acrobot, time_limit=whole),
    "AcrobotParams": params_of(simulators.AcrobotParams),
    "CartPole": st.builds(simulators.CartPole, whole, numbers, pole_params),
    "CartPoleParams": pole_params,
    "DeepSea": st.builds(simulators.DeepSea, size=st.integers(1, 30), seed=st.none() | whole),
    "DeepSeaParams": params_of(simulators.DeepSeaParams),
    "MarsRover": st.builds(
        simulators.MarsRover, size=st.integers(4, 12), success=numbers, fail=numbers,
        risk=st.sampled_from([mars_rover.any_approach, mars_rover.vertical_approach, mars_rover.horizontal_approach,
                              mars_rover.diagonal_approach]),
        encoding=st.sampled_from([mars_rover.xy, mars_rover.one_hot]),
    ),
    "MarsRoverParams": st.builds(simulators.MarsRoverParams, st.floats(0, 1)),
    "MountainCar": st.builds(simulators.MountainCar, whole),
    "MountainCarParams": params_of(simulators.MountainCarParams),
    "SevenStates": st.builds(simulators.SevenStates, st.sampled_from(["direct", "chain"])),
    "SevenStatesParams": params_of(simulators.SevenStatesParams),
    "Constant": st.builds(simulators.Constant, pole_params),
    "StepChange": st.builds(
        simulators.StepChange, st.lists(st.tuples(whole, pole_params), min_size=1, max_size=3).map(tuple), st.booleans()
    ),
    "Drift": st.builds(simulators.Drift, pole_params, bounds, whole),
    "Cyclic": st.builds(simulators.Cyclic, pole_params, bounds, st.integers(2, 99)),
    "Sawtooth": st.builds(simulators.Sawtooth, pole_params, bounds, st.integers(2, 99)),
    "RandomWalk": st.builds(
        lambda base, b, edge: simulators.RandomWalk(base, b, dict.fromkeys(b, 0.1), edge),
        pole_params, bounds, st.sampled_from([schedules.reflect, jnp.clip]),
    ),
    "DomainRandomisation": st.builds(
        simulators.DomainRandomisation, pole_params,
        st.dictionaries(st.sampled_from(simulators.CartPoleParams._fields), laws, min_size=1),
    ),
    "RandomJumps": st.builds(
        simulators.RandomJumps, pole_params,
        st.dictionaries(st.sampled_from(simulators.CartPoleParams._fields), laws, min_size=1), st.floats(0, 1),
    ),
    "RandomMember": st.builds(
        simulators.RandomMember, st.lists(pole_params, min_size=1, max_size=3).map(tuple), st.floats(0, 1)
    ),
    "Stacked": st.builds(
        simulators.Stacked, st.builds(simulators.CartPole, whole), st.integers(1, 99), st.booleans()
    ),
    "Minimum": st.builds(minimum.Minimum, st.integers(1, 99), st.builds(config.Network, units)),
    "Memory": st.builds(recurrent.Memory, whole, whole, st.integers(0, 99), st.booleans()),
    "RecurrentTraining": st.builds(RecurrentTraining, st.builds(recurrent.Memory, whole)),
    "WorstKernel": st.builds(WorstKernel, above_zero | st.just(math.inf), st.integers(1, 99)),
    "WorstCaseSearch": st.builds(WorstCaseSearch, whole, whole, st.integers(0, 99)),
    "Uniform": st.builds(simulators.Uniform, st.floats(-9, 0), st.floats(1, 9)),
    "Normal": normals,
    "LogUniform": st.builds(simulators.LogUniform, st.floats(0.1, 1), st.floats(2, 9)),
}  # fmt: skip
KINDS |= {
    "BeliefMean": st.builds(belief_natures.BeliefMean),
    "BeliefCVaR": made(belief_natures.BeliefCVaR, level=st.floats(0, 1)),
    "EpisodeCVaR": made(belief_natures.EpisodeCVaR, level=st.floats(1e-3, 1.0)),
    "CredibleWorst": made(belief_natures.CredibleWorst, alpha=st.floats(0, 0.99)),
    "OnBelief": st.builds(rules.OnBelief),
    "Thompson": st.builds(rules.Thompson),
    "Switching": made(
        Switching, hazard=st.floats(0, 1) | st.lists(st.floats(0, 1), min_size=1, max_size=3).map(tuple),
        per=st.sampled_from(["step", "episode"]), prior=st.none() | shares, temper=above_zero,
    ),
    "Watch": st.builds(Watch, above_zero, whole),
}  # fmt: skip
KINDS["OnMembers"] = made(rules.OnMembers, nature=KINDS["BeliefCVaR"] | KINDS["CredibleWorst"])
KINDS["AdaptiveSettings"] = made(
    AdaptiveSettings, nature=KINDS["BeliefCVaR"] | KINDS["EpisodeCVaR"], network=KINDS["DuelingNetwork"],
    boundary=st.floats(0, 0.99), tempers=st.lists(above_zero, min_size=1, max_size=3).map(tuple),
    decay=KINDS["Decay"], epsilon=KINDS["Epsilon"], informed=st.booleans(), clip_norm=st.none() | above_zero,
)  # fmt: skip
KINDS["ActorCriticSettings"] = made(
    ActorCriticSettings, criterion=st.sampled_from(["discounted", "average"]),
    draw=st.sampled_from(["step", "episode"]), actor=KINDS["Network"], critic=KINDS["Network"],
    discount=st.floats(0, 1), lanes=whole, delay=above_zero,
)  # fmt: skip
KINDS["KalmanLastLayer"] = st.builds(KalmanLastLayer, above_zero, st.floats(0, 1), above_zero, KINDS["Adam"])
KINDS["Settings"] = made(
    config.Settings, nature=KINDS["Soft"] | KINDS["CVaR"] | KINDS["Worst"], variance=KINDS["LastLayer"],
    network=KINDS["Network"], double=st.booleans(), discount=st.floats(0, 1), copy=KINDS["CopyEvery"],
    huber=st.none() | above_zero, optimiser=KINDS["Adam"] | KINDS["KalmanLastLayer"],
    clip_norm=st.none() | above_zero, decay=KINDS["Decay"], gradient_steps=whole,
)  # fmt: skip
FUNCTIONS = ("any_approach", "vertical_approach", "horizontal_approach", "diagonal_approach", "xy", "one_hot",
             "reflect", "clip")  # fmt: skip


def test_every_kind_has_its_round_trip():
    assert {*KINDS, *FUNCTIONS} == set(KNOWN)


def alike(one, other):
    """Equality of values that may hold float32 numbers: as the simulators see them."""
    if is_dataclass(one):
        pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)]
        return type(one) is type(other) and all(alike(*pair) for pair in pairs)
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(alike, one, other))
    if hasattr(one, "dtype") and one.dtype == np.float32:
        return np.float32(one).tobytes() == np.float32(other).tobytes()
    return one == other or (one != one and other != other)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(data=st.data())
def test_descriptions_build_the_same_again(kind, data):
    value = resolved(data.draw(KINDS[kind]))
    expected = json.loads(json.dumps(describe("value", value), allow_nan=False))
    again = build("value", expected)
    assert alike(value, again)
    assert describe("value", again) == expected


@settings(max_examples=300)
@given(st.integers(0, 2**32 - 1))
def test_float32_numbers_come_back_in_every_bit(bits):
    value = np.uint32(bits).view(np.float32)
    back = np.float32(build("x", json.loads(json.dumps(describe("x", value), allow_nan=False))))
    assert back.tobytes() == value.tobytes() or (np.isnan(value) and np.isnan(back))


def test_random_float32_numbers_by_the_million_survive_their_shortest_decimals():
    bits = stream(0, "decimals").integers(2**32, size=200_000, dtype=np.uint32)
    values = bits.view(np.float32)
    values = values[np.isfinite(values)]
    back = np.array([float(str(value)) for value in values]).astype(np.float32)
    assert back.tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Own(), "of the kind Own"),
        (lambda x: x, "<lambda>"),
        (config.Settings(nature=Own()), r"value\.nature is of the kind Own"),
        (simulators.Constant(np.zeros(3)), r"value\.base is array"),
        (object(), "cannot be described"),
    ],
)
def test_what_is_not_listed_is_not_described(value, message):
    with pytest.raises(Unknown, match=message):
        describe("value", value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"kind": "os.system"}, "not known here"),
        ({"kind": "eval", "source": "1"}, "not known here"),
        ({"kind": "os:system", "command": "false"}, "the methods of a part"),
        ({"function": "os:system"}, "not known here"),
        ({"kind": "jnp"}, "not known here"),
        ({"kind": ["Adam"]}, "not known here"),
        ({}, "None"),
        ({"function": "system"}, "not known here"),
        ({"function": "Adam"}, "not known here"),
        ({"kind": "xy"}, "not known here"),
        ({"kind": "Adam", "speed": 1.0}, "speed"),
        ({"kind": "Epsilon", "first": 2.0}, "first is 2.0"),
        ({"kind": "Mapping"}, "items"),
        ({"kind": "Mapping", "items": [1]}, "items"),
        ({"number": "1e999"}, "expected one of inf"),
        ([{"kind": "Adam"}, {"kind": "Eve"}], r"value\[1\]"),
    ],
)
def test_what_is_not_listed_is_not_built(data, message):
    with pytest.raises(ValueError, match=message):
        build("value", data)
