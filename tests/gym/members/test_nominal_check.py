"""Copies that behave differently from their environment are found and the cause is named; correct ones pass."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.gym.members.test_members import NOMINAL

from fixtures import swing
from fixtures.box2d import LanderAdapter, lunar_lander
from fixtures.host_envs import ROBUST
from fixtures.swing import Swing, SwingAdapter
from fixtures.toy_text import TOYS
from urbe.deep import robust_dqn
from urbe.gym import ChangingParams, EnvMembers, EnvSimulator, FunctionMembers, SimulatorEnv, check_members
from urbe.gym.members.base import SimulatorMembers
from urbe.gym.members.differences import first_difference
from urbe.gym.members.nominal_check import check_nominal
from urbe.simulators import CartPole, DeepSea, DomainRandomisation, UncertaintySet, Uniform

WHERE = r"episode \d+, step \d+, after the copy .*"


def stacked(**named):
    return gymnasium.wrappers.FrameStackObservation(Swing(**named), 3)


BROKEN = {
    "set_state does nothing": (Swing, swing.DoesNothing, r"set_state does not set all.*state\['position'\]\[0\] is"),
    "a variable is not set": (Swing, swing.SetsNoWind, r"set_state does not set all.*state\['wind'\] is"),
    "a hidden velocity": (Swing, swing.NoVelocity, WHERE + r"observation\[\d\] is .*, expected .*Swing\.velocity of"),
    "the time": (Swing, swing.NoTime, WHERE + r"observation\[0\] is .*, expected .*1 of 2 entries is.*Swing\.time of"),
    "lives": (lambda: Swing(lives=2), swing.NoLives, WHERE + r"terminated is .*, expected .*Swing\.left of"),
    "its own generator": (lambda: Swing(chance="own"), SwingAdapter, WHERE + r"observation\[0\].*Swing\.own of"),
    "a global generator": (
        lambda: Swing(chance="global"),
        SwingAdapter,
        WHERE + r"observation\[0\].*generator other than env.unwrapped.np_random.*shared_noise=False",
    ),
    "frames": (
        stacked,
        SwingAdapter,
        WHERE + r"observation\[\d\].*wrapper FrameStackObservation.*FrameStackObservation\.\w+,",
    ),
    "observations that are one array, in frames": (
        lambda: stacked(one_array=True),
        swing.KeepsFrames,
        WHERE + r"observation\[\d\].*4 of 6 entries are different.*wrapper FrameStackObservation",
    ),
    "a clock that is seen": (
        lambda: gymnasium.wrappers.TimeAwareObservation(gymnasium.wrappers.TimeLimit(Swing(), 50)),
        SwingAdapter,
        WHERE + r"observation\[2\].*1 of 3 entries is different.*wrapper TimeAwareObservation.*memory",
    ),
    "a running mean of rewards": (
        lambda: gymnasium.wrappers.NormalizeReward(Swing()),
        SwingAdapter,
        WHERE + r"the reward is .*, expected .*wrapper NormalizeReward.*memory",
    ),
    "the environment's own array": (Swing, swing.GivesItsOwnArray, r"changed the environment: its state\['velocity'\]"),
    "an array that is kept": (Swing, swing.KeepsTheArrayGiven, r"changed the state it was set to: state\['velo"),
    "parameters in other units": (
        Swing,
        swing.SetsInOtherUnits,
        r"Member 0 is nominal, but its gravity is 9800.0, expected 9.8 as in the environment. Either set_params",
    ),
    "a derived number": (Swing, swing.DerivesWrongly, WHERE + r"observation\[1\].*Swing\.weight of"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_each_fault_is_named(fault):
    make, adapter, words = BROKEN[fault]
    members = EnvMembers(make(), [{"gravity": 3.0}, {"gravity": 20.0}], adapter=adapter())
    with pytest.raises(ValueError, match=words):
        check_members(make(), members, np.random.default_rng(0))
    with pytest.raises(ValueError, match=words):  # and where training starts, nothing having been asked
        robust_dqn(make(), members, seed=0, settings=ROBUST)


@pytest.mark.parametrize("seed", range(20))
def test_what_agrees_by_living_through_the_same_is_found_from_any_seed(seed):
    """Copies that forget the time count along with the environment until its first reset."""
    members = EnvMembers(Swing(), [], adapter=swing.NoTime())
    with pytest.raises(ValueError, match=r"Swing\.time of"):
        check_nominal(Swing(), members, np.random.default_rng(seed))


class Lagged(Swing):
    """What is hidden shows two steps later: a copy has to go on alone in order to differ."""

    def reset(self, **named):
        seen = super().reset(**named)
        self.lag = float(self.np_random.normal())
        return seen

    def step(self, action):
        happened = super().step(action)
        self.velocity[0] += self.lag
        return happened


def test_copies_have_to_stay_with_the_environment_by_themselves():
    members = EnvMembers(Lagged(), [], adapter=SwingAdapter())
    with pytest.raises(ValueError, match=r"stepped in parallel.*observation\[0\].*Lagged\.lag of"):
        check_nominal(Lagged(), members, np.random.default_rng(0))


class Single(Swing):
    """Computes in single precision, in which NumPy rounds a product with an int and with an np.int64 differently."""

    def step(self, action):
        pushed = np.float32(0.1) * (action - 0.5) * np.ones(2, np.float32)
        self.velocity += 0.1 * pushed
        return super().step(int(action))


HONEST = {
    "swing": (Swing, SwingAdapter),
    "single precision": (Single, SwingAdapter),
    "observations that are one array": (lambda: Swing(one_array=True), SwingAdapter),
    "parameters not given become others": (lambda: Swing(gravity=5.0), swing.ForgetsParameters),
    "its own generator, kept": (lambda: Swing(chance="own"), swing.KeepsOwnGenerator),
    "frames, kept": (stacked, swing.KeepsFrames),
    "wrappers": (
        lambda: gymnasium.wrappers.TransformReward(
            gymnasium.wrappers.TransformObservation(
                gymnasium.wrappers.TimeLimit(Swing(), 7), lambda obs: 3.0 * obs, Swing.observation_space
            ),
            lambda reward: reward + 1.0,
        ),
        SwingAdapter,
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_adapters_are_accepted(name):
    make, adapter = HONEST[name]
    env = make()
    members = EnvMembers.grid(env, adapter=adapter(), gravity=(3.0, 20.0), mass=(1.0, 4.0))
    assert len(members) == 5
    assert check_nominal(make(), members, np.random.default_rng(1), steps=400) == 400
    check_members(make(), members, np.random.default_rng(1))
    without = EnvMembers.grid(env, include_nominal=False, adapter=adapter(), gravity=(3.0, 20.0))
    assert check_nominal(make(), without, np.random.default_rng(1)) > 0
    assert [adapter().get_params(copy)["gravity"] for copy in without.copies] == [3.0, 20.0]


@pytest.mark.parametrize("name", NOMINAL)
def test_known_environments_are_accepted(name):
    make, values = NOMINAL[name]
    env = make()
    assert check_nominal(make(), EnvMembers.grid(env, **values), np.random.default_rng(2), steps=100) == 100


@pytest.mark.parametrize("name", TOYS)
def test_toy_text_is_accepted(name):
    make, adapter, params = TOYS[name]
    check_members(make(), EnvMembers(make(), params, adapter=adapter), np.random.default_rng(3), steps=400)


def test_box2d_is_accepted_when_its_episodes_are_lived_through_again():
    members = EnvMembers(lunar_lander(), [{"gravity": -5.0}], adapter=LanderAdapter(), make=lunar_lander)
    check_members(lunar_lander(), members, np.random.default_rng(0), steps=24)


def test_parameters_that_are_not_the_environments_are_named():
    env = Swing()
    members = EnvMembers(env, [{"gravity": 3.0}], adapter=SwingAdapter())
    env.mass = 1.0
    with pytest.raises(ValueError, match=r"Member 0 is nominal, but its mass is 2.0, expected 1.0.*make them again"):
        check_nominal(env, members, np.random.default_rng(0))
    members = EnvMembers(env, [{"gravity": 3.0}], include_nominal=False, adapter=swing.SetsInOtherUnits())
    with pytest.raises(ValueError, match=r"set_params was given gravity 3000.0, and get_params then gives 3000000.0"):
        check_nominal(env, members, np.random.default_rng(0))


def test_the_wrappers_of_the_environment_count():
    members = EnvMembers.grid(gymnasium.make("CartPole-v1"), length=(1.0,))
    scaled = gymnasium.wrappers.RescaleObservation(gymnasium.make("MountainCar-v0"), np.float32(0), np.float32(1))
    for env, words in (
        (
            gymnasium.wrappers.TransformReward(gymnasium.make("CartPole-v1"), lambda r: 2 * r),
            r"reward is 1.0, exp.*2.0",
        ),
        (gymnasium.wrappers.TimeAwareObservation(gymnasium.make("CartPole-v1")), "4 numbers, expected 5"),
    ):
        with pytest.raises(ValueError, match=words):
            robust_dqn(env, members, seed=0, settings=ROBUST)
    assert check_nominal(scaled, EnvMembers.grid(scaled, force=(0.002,)), np.random.default_rng(0)) > 0


def test_noise_that_cannot_be_shared_is_said_to_be():
    members = EnvMembers(Swing(chance="global"), [{"mass": 1.0}], adapter=SwingAdapter(), shared_noise=False)
    assert check_nominal(Swing(chance="global"), members, np.random.default_rng(0)) == 0
    robust_dqn(Swing(chance="global"), members, seed=0, settings=ROBUST).learn(20)


def test_parameters_that_change_from_episode_to_episode_are_followed():
    def changing():
        law = DomainRandomisation(CartPole().nominal(), {"half_length": Uniform(0.3, 1.0)})
        return ChangingParams(gymnasium.make("urbe/CartPole-v0"), law, seed=0)

    members = EnvMembers.grid(changing(), half_length=(1.0, 2.0))
    assert (members.in_force(SimulatorEnv(CartPole())), members.in_force(changing())) == (0, 0)
    assert check_nominal(changing(), members, np.random.default_rng(0)) > 0
    assert members.describe()["parameters"]["half_length"] == [0.5, 1.0, 2.0]


def test_other_members_are_compared_where_one_is_nominal():
    sea = DeepSea(nominal_params=DeepSea().nominal_params._replace(slip=0.5))
    slips = UncertaintySet.grid(sea, slip=(0.1, 0.9))
    assert check_nominal(SimulatorEnv(sea), SimulatorMembers(sea, slips), np.random.default_rng(0)) > 0
    other = SimulatorEnv(sea)
    other.set_params(slip=0.7)  # no member's: there is nothing to compare with
    assert SimulatorMembers(sea, slips).in_force(other) is None
    check_nominal(other, SimulatorMembers(sea, slips), np.random.default_rng(0))
    lowered = gymnasium.wrappers.TransformReward(SimulatorEnv(sea), lambda reward: reward - 1.0)
    with pytest.raises(ValueError, match=r"Member 0 has the environment's.*episode 0, step \d+: none of its"):
        check_nominal(lowered, SimulatorMembers(sea, slips), np.random.default_rng(0))

    def still(obs, action):  # noqa: ARG001
        return np.stack([obs, obs + 1.0]), np.ones(2), np.zeros(2, bool)

    env = gymnasium.make("CartPole-v1")
    assert check_nominal(env, FunctionMembers(still, 2), np.random.default_rng(0)) == 0
    with pytest.raises(ValueError, match=r"Member 1 has.*observation\[0\]"):
        check_nominal(env, FunctionMembers(still, 2, nominal=1), np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"nominal is 2, expected the place of a member, from 0 to 1"):
        FunctionMembers(still, 2, nominal=2)
    assert FunctionMembers(still, 2, nominal=1).only([1]).nominal == 0
    assert FunctionMembers(still, 2, nominal=1).only([0]).nominal is None


class Counting(Swing):
    """Knows how often it acted, through all its episodes."""

    acted = 0

    def step(self, action):
        self.acted += 1
        return super().step(action)


def test_the_trial_before_training_leaves_the_environment_alone():
    env = Counting()
    robust_dqn(env, EnvMembers(env, [{"mass": 1.0}], adapter=SwingAdapter()), seed=0, settings=ROBUST)
    assert env.acted == 0


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        (1.0, 1.0, ""),
        (np.nan, np.nan, ""),
        ([1, {"x": np.arange(3)}], [1, {"x": np.array([0, 1, 5])}], "[1]['x'][2] is 2 and 5"),
        ({"x": 1}, {}, "['x'] is 1 and None"),
        ([1], [1, 2], "[1] is None and 2"),
        (np.zeros(2), np.zeros(3), " has shape (2,) and (3,)"),
        (np.random.default_rng(0), np.random.default_rng(0), ""),
        (object(), object(), ""),
        ("left", "right", " is left and right"),
    ],
)
def test_the_first_difference(a, b, found):
    assert first_difference(a, b) == found
    assert first_difference(np.random.default_rng(0), np.random.default_rng(1)).startswith("['state']['state'] is")


class Strict(gymnasium.Env):
    """Walks along a line; refuses steps after the end of an episode, and its reset draws another slope."""

    observation_space = gymnasium.spaces.Box(-9.0, 9.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, slope=1.0, *, redraws=True):
        self.slope, self.place, self.over, self.redraws = slope, 0.0, True, redraws

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.place, self.over = float(self.np_random.normal()), False
        self.slope = self.slope + 1.0 if self.redraws else self.slope
        return np.float32([self.place]), {}

    def step(self, action):
        if self.over:
            raise RuntimeError("step() after the end of an episode; call reset()")
        self.place += self.slope * (1 if action else -1)
        self.over = abs(self.place) > 3.0
        return np.float32([self.place]), 1.0, self.over, False, {}

    def get_state(self):
        return {"place": self.place}

    def set_state(self, state):
        self.place = state["place"]

    def get_params(self):
        return {"slope": self.slope}

    def set_params(self, params):
        self.slope = params["slope"]


def test_copies_are_reset_after_the_end_of_their_episodes_and_keep_their_parameters():
    env = Strict(redraws=False)
    members = EnvMembers(env, [{"slope": 2.5}, {"slope": 7.0}])  # the last one ends nearly every episode at once
    for copy in members.copies:
        copy.redraws = True
    apart = check_members(env, members, np.random.default_rng(0))
    assert (apart[~np.eye(3, dtype=bool)] > 0.0).all()
    assert [members.adapter.get_params(copy)["slope"] for copy in members.copies] == [1.0, 2.5, 7.0]


def test_simulated_lives_step_no_copy_after_the_end_of_its_episode():
    simulator = EnvSimulator(gymnasium.wrappers.TimeLimit(Strict(9.0, redraws=False), 10))
    state = simulator.start(jax.random.key(0), simulator.nominal())
    for _ in range(3):
        found = simulator.outcomes(state, jnp.int32(1), simulator.nominal())  # from the same state, ends each time
        assert bool(found.terminated[0])
        assert found.state.seen[0, 0] == state.seen[0] + np.float32(9.0)
