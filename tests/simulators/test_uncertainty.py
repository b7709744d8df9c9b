"""Uncertainty sets: members, descriptions, and the check that their behaviour differs."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.simulators import (
    CartPole,
    CartPoleParams,
    MarsRover,
    MarsRoverParams,
    Normal,
    Outcomes,
    UncertaintySet,
    Uniform,
    check_uncertainty_set,
)

POLE, ROVER = CartPole(), MarsRover(size=4)
KEY = jax.random.key(0)


def column(members, name):
    return np.asarray(getattr(members.params, name)).tolist()


def test_grids_are_products_with_the_nominal_member_first():
    poles = UncertaintySet.grid(POLE, half_length=(0.25, 0.5, 1.0), masspole=(0.1, 0.3))
    assert len(poles) == 6
    assert poles.nominal == 0
    assert column(poles, "half_length") == [0.5, 0.25, 0.25, 0.5, 1.0, 1.0]
    assert column(poles, "masspole") == np.float32([0.1, 0.1, 0.3, 0.3, 0.1, 0.3]).tolist()
    assert column(poles, "gravity") == [np.float32(9.8)] * 6
    assert poles.names == CartPoleParams._fields
    assert poles.varied == ("half_length", "masspole")
    assert all(leaf.dtype == jnp.float32 for leaf in poles.params)


def test_grids_without_the_nominal_member():
    without = UncertaintySet.grid(POLE, include_nominal=False, half_length=(0.25, 1.0))
    assert without.nominal is None
    assert len(without) == 2
    by_chance = UncertaintySet.grid(POLE, include_nominal=False, half_length=(0.25, 0.5, 0.5))
    assert by_chance.nominal == 1
    assert column(by_chance, "half_length") == [0.25, 0.5, 0.5]


def test_samples_follow_the_seed_and_the_name_alone():
    law = Uniform(0.5, 1.0)
    poles, again, other = (UncertaintySet.samples(POLE, seed, half_length=law) for seed in (3, 3, 4))
    assert len(poles) == 16
    assert poles.nominal == 0
    assert column(poles, "half_length") == column(again, "half_length")
    assert column(poles, "half_length") != column(other, "half_length")
    more = UncertaintySet.samples(POLE, 3, count=20, include_nominal=False, masspole=law, half_length=law)
    assert column(more, "half_length")[:15] == column(poles, "half_length")[1:]
    assert column(more, "half_length") != column(more, "masspole")
    assert more.nominal is None


def test_samples_have_their_law():
    """The mean of 500 within 5 standard errors, a false alarm in 2e6 seeds; bounds always."""
    drawn = np.array(column(UncertaintySet.samples(ROVER, 0, count=500, failure=Uniform(0.0, 0.3)), "failure"))[1:]
    assert drawn.min() >= 0.0
    assert drawn.max() <= np.float32(0.3)
    assert abs(drawn.mean() - 0.15) < 5 * 0.3 / np.sqrt(12 * 500)


def test_single_members_and_members_one_by_one():
    alone = UncertaintySet.single(POLE)
    assert len(alone) == 1
    assert alone.members() == (CartPoleParams(*map(np.float32, CartPoleParams())),)
    assert repr(alone) == "UncertaintySet(1 member)"
    poles = UncertaintySet.grid(POLE, half_length=(0.25,))
    assert [float(member.half_length) for member in poles.members()] == [0.5, 0.25]
    assert repr(poles) == "UncertaintySet(2 members: half_length 0.25 to 0.5)"


def test_descriptions_survive_json_bit_for_bit():
    poles = UncertaintySet.samples(POLE, 0, half_length=Normal(0.75, 0.25, low=0.1), force=Uniform(5.0, 15.0))
    back = UncertaintySet.from_description(POLE, json.loads(json.dumps(poles.describe())))
    for a, b in zip(poles.params, back.params, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    assert back.nominal == 0
    assert poles.describe()["parameters"]["masspole"] == [0.1] * 16


def test_long_tables_are_cut():
    expected = str(UncertaintySet.grid(ROVER, include_nominal=False, failure=np.linspace(0, 1, 50)))
    assert expected.startswith("50 members of MarsRoverParams; none is nominal.\n")
    assert expected.endswith("    ... 30 more members")


DESCRIBED = UncertaintySet.single(POLE).describe()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: UncertaintySet.grid(POLE, length=(1.0,)),
            "'length' is not among the parameters of CartPole, ",
        ),
        (
            lambda: UncertaintySet.grid(POLE),
            "No parameter varies, expected at least one by name; for no uncert",
        ),
        (lambda: UncertaintySet.grid(POLE, half_length=1.0), "half_length has shape (), expected one or more values"),
        (lambda: UncertaintySet.grid(POLE, half_length=()), "half_length has shape (0,), expected one or more values"),
        (lambda: UncertaintySet.grid(POLE, half_length=(1.0, -1.0)), "Parameters 1: half_length is -1.0, expected"),
        (lambda: UncertaintySet.grid(POLE, force=(np.nan,)), "force[0] is nan, expected a finite number"),
        (
            lambda: UncertaintySet.samples(POLE, 0, force=(1.0, 2.0)),
            "force is (1.0, 2.0), expected a distribution",
        ),
        (lambda: UncertaintySet.samples(POLE, -1, force=Uniform(1, 2)), "seed is -1, expected a whole number of at le"),
        (lambda: UncertaintySet.samples(POLE, 0, count=0, force=Uniform(1, 2)), "count is 0, expected a whole number"),
        (
            lambda: UncertaintySet.from_description(POLE, {}),
            "description has the keys [], expected 'nominal' and",
        ),
        (lambda: UncertaintySet.from_description(ROVER, DESCRIBED), "description has the parameters ['half_length',"),
        (
            lambda: UncertaintySet.from_description(ROVER, {"parameters": {"failure": []}, "nominal": None}),
            "description has [0] values, expected as many for each parameter, at least 1",
        ),
        (
            lambda: UncertaintySet.from_description(POLE, {**DESCRIBED, "nominal": 1}),
            "nominal is 1, expected a member below 1, or None",
        ),
        (
            lambda: UncertaintySet(POLE.nominal(), 0),
            "params has the shapes half_length (), masspole (), ",
        ),
        (
            lambda: UncertaintySet(MarsRoverParams(np.zeros(3)), None),
            "params.failure is of type float64, expected float32",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


def test_the_report_holds_the_largest_differences():
    """On Mars Rover members differ only in how likely failing is: by the difference of the parameters."""
    members = UncertaintySet.grid(ROVER, failure=(0.0, 0.5, 1.0))
    report = check_uncertainty_set(ROVER, members, KEY)
    failure = np.float32([0.005, 0.0, 0.5, 1.0]).astype(np.float64)
    assert report.probability == pytest.approx(np.abs(failure[:, None] - failure), abs=1e-7)
    assert np.array_equal(report.largest, report.probability)
    for same in (report.observation, report.reward, report.terminated):
        assert not same.any()
    assert report.states == 1024
    assert "no member" not in str(report)
    other = check_uncertainty_set(ROVER, UncertaintySet.grid(ROVER, failure=(0.5,), include_nominal=False), KEY)
    assert other.nominal is None
    assert str(other).endswith(
        "The nominal parameters are not a member: the worst case may be better than the nominal one."
    )


class DialParams(NamedTuple):
    push: float = 1.0
    bonus: float = 0.0
    limit: float = 10.0
    chance: float = 0.5
    unused: float = 1.0
    late: float = 1.0


@dataclass(frozen=True)
class Dial:
    """A number that goes up by `push`; each parameter but `unused` has one effect of its own."""

    n_actions: int = 2
    time_limit: int = 20

    def nominal(self):
        return DialParams(*map(jnp.float32, DialParams()))

    def start(self, key, params):
        return jax.random.uniform(key, (), jnp.float32) * params.late * 0 + params.unused * 0

    def outcomes(self, state, action, params):
        following = state + jnp.where(action == 1, params.push, 0.0)
        following = jnp.where(following > 6, following * params.late, following)
        ended = following >= params.limit
        probability = jnp.stack([params.chance, 1 - params.chance]).astype(jnp.float32)
        states = jnp.stack([following, state]).astype(jnp.float32)
        reward = jnp.stack([params.bonus, jnp.float32(0.0)]).astype(jnp.float32)
        return Outcomes(probability, states, reward, jnp.stack([ended, jnp.bool_(False)]))

    def observe(self, state):
        return state[None]


DIAL = Dial()


@pytest.mark.parametrize(
    ("name", "value", "kind", "size"),
    [
        ("push", 1.5, "observation", 0.5),
        ("bonus", 0.25, "reward", 0.25),
        ("limit", 3.0, "terminated", 1.0),
        ("chance", 0.75, "probability", 0.25),
    ],
)
def test_every_kind_of_difference_is_seen(name, value, kind, size):
    report = check_uncertainty_set(DIAL, UncertaintySet.grid(DIAL, **{name: (value,)}), KEY)
    assert getattr(report, kind)[0, 1] == pytest.approx(size, abs=1e-6)
    others = {"probability", "observation", "reward", "terminated"} - {kind}
    assert all(
        getattr(report, other)[0, 1] == 0.0 for other in others if (kind, other) != ("observation", "terminated")
    )
    assert np.array_equal(report.largest, report.largest.T)
    assert not np.diag(report.largest).any()


def test_what_never_arrives_is_said_with_its_name_and_a_remedy():
    with pytest.raises(ValueError, match="never differ") as caught:
        check_uncertainty_set(DIAL, UncertaintySet.grid(DIAL, unused=(2.0, 3.0)), KEY)
    expected = str(caught.value)
    assert "3 of 3 pairs of members never differ in 1024 states" in expected
    assert "Equal parameters" not in expected
    assert "members 0 (unused 1.0) and 1 (unused 2.0), 0 (unused 1.0) and 2 (unused 3.0)" in expected
    assert "`outcomes` does not use unused (or only `start` does)" in expected
    assert "try more walks and steps" in expected


def test_what_matters_only_far_away_is_found_by_longer_walks():
    late = UncertaintySet.grid(DIAL, late=(2.0,))
    with pytest.raises(ValueError, match="try more walks and steps"):
        check_uncertainty_set(DIAL, late, KEY, walks=4, steps=4)
    assert check_uncertainty_set(DIAL, late, KEY).observation[0, 1] > 1.0


class LotteryParams(NamedTuple):
    prize: float = 1.0


@dataclass(frozen=True)
class Lottery:
    """A ticket from 1 to 50 is drawn, and every action ends the game; ticket 7 wins."""

    n_actions: int = 1
    time_limit: int = 1

    def nominal(self):
        return LotteryParams(jnp.float32(1.0))

    def start(self, key, _params):
        return jax.random.randint(key, (), 1, 51, dtype=jnp.int32)

    def outcomes(self, state, _action, params):
        reward = jnp.where(state == 7, params.prize, 0.0).astype(jnp.float32)
        return Outcomes(jnp.ones(1, jnp.float32), state[None], reward[None], jnp.ones(1, bool))

    def observe(self, state):
        return state[None].astype(jnp.float32)


def test_walks_begin_anew_where_they_end():
    """Otherwise one of 4 tickets would have to win; of 256 some does with 99.4 % of keys, and with this one."""
    prizes = UncertaintySet.grid(Lottery(), prize=(3.0,))
    assert check_uncertainty_set(Lottery(), prizes, KEY, walks=4).reward[0, 1] == 2.0


def test_duplicates_are_named():
    doubled = UncertaintySet.grid(ROVER, failure=(0.5, 0.25, 0.5))
    with pytest.raises(ValueError, match=re.escape("1 of 6 pairs of members never differ")) as caught:
        check_uncertainty_set(ROVER, doubled, KEY)
    assert "Equal parameters: members 1 and 3 (failure 0.5). Leave one of each out." in str(caught.value)
    assert "Other parameters" not in str(caught.value)


def test_differences_up_to_the_tolerance_do_not_count():
    close = UncertaintySet.grid(ROVER, failure=(0.006,))
    check_uncertainty_set(ROVER, close, KEY)
    with pytest.raises(ValueError, match="never differ"):
        check_uncertainty_set(ROVER, close, KEY, tolerance=0.01)


def test_members_that_break_the_dynamics_are_named():
    wrong = UncertaintySet(MarsRoverParams(jnp.float32([0.005, 1.5])), 0)
    with pytest.raises(ValueError, match=re.escape("Member 1 (failure 1.5) leads to numbers that are not")):
        check_uncertainty_set(ROVER, wrong, KEY)
    params = UncertaintySet.grid(DIAL, bonus=(1.0,)).params._replace(bonus=jnp.float32([0.0, np.nan]))
    with pytest.raises(ValueError, match=re.escape("Member 1 (push 1.0, bonus nan, ")):
        check_uncertainty_set(DIAL, UncertaintySet(params, 0), KEY)


def test_a_wrong_nominal_member_is_refused():
    wrong = UncertaintySet(MarsRoverParams(jnp.float32([0.1, 0.2])), 1)
    with pytest.raises(ValueError, match=re.escape("Member 1 is marked as nominal, but its failure is 0.2")):
        check_uncertainty_set(ROVER, wrong, KEY)
    with pytest.raises(ValueError, match="The set has the parameters failure, expected those of Dial: push, bonus"):
        check_uncertainty_set(DIAL, wrong, KEY)


def test_one_member_needs_no_difference():
    assert str(check_uncertainty_set(ROVER, UncertaintySet.single(ROVER), KEY)).startswith("1 member, tried in")


def test_the_check_is_found_among_the_contracts_without_loading_jax_before():
    code = (
        "import sys, urbe.testing; assert 'jax' not in sys.modules; "
        "from urbe.testing import check_uncertainty_set; assert 'jax' in sys.modules; print(check_uncertainty_set)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "check_uncertainty_set" in found.stdout


class CoinParams(NamedTuple):
    heads: float = 0.5


@dataclass(frozen=True)
class Coin:
    """A simulator without `check_params`."""

    time_limit: int = 1
    n_actions: int = 2

    def nominal(self):
        return CoinParams(jnp.float32(0.5))

    def start(self, key, params):  # noqa: ARG002
        return jnp.int32(0)

    def outcomes(self, state, action, params):  # noqa: ARG002
        chances = jnp.stack([params.heads, 1.0 - params.heads]) ** action
        return Outcomes(chances / chances.sum(), jnp.arange(2), jnp.zeros(2), jnp.ones(2, bool))

    def observe(self, state):
        return state.astype(jnp.float32)[None]


def test_members_without_probabilities_are_named():
    assert len(UncertaintySet.grid(Coin(), heads=(0.0, 1.0))) == 3
    with pytest.raises(
        ValueError, match=r"Member 2 \(heads 1.5\) has outcomes of action 1 with the probabilities 1.5, "
    ):
        UncertaintySet.grid(Coin(), heads=(0.2, 1.5))
    with pytest.raises(ValueError, match=r"-0\.5, expected a distribution.*check_params\(params\)"):
        UncertaintySet.samples(Coin(), seed=0, count=1, heads=Uniform(1.5, 1.5000001))
