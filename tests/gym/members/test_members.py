"""Members of Gymnasium environments: copies follow the state of the environment, and perturbations have effects."""

import importlib.resources

import gymnasium
import jax
import numpy as np
import pytest

from fixtures.host_envs import Clock, Remembering
from urbe.deep.presets import dqn, robust_dqn
from urbe.deep.settings import CopyEvery, Epsilon, Network, Settings
from urbe.gym import ChangingParams, SimulatorEnv
from urbe.gym.adapters import CartPoleAdapter, adapter_of
from urbe.gym.discrete_actions import DiscreteActions
from urbe.gym.members.base import FunctionMembers, Members, SimulatorMembers
from urbe.gym.members.check import check_members
from urbe.gym.members.copies import EnvMembers
from urbe.simulators import CartPole, Constant, DeepSea, UncertaintySet


def pendulum(**named):
    return DiscreteActions(gymnasium.make("InvertedPendulum-v5", **named), [-3.0, -0.5, 0.5, 3.0])


def hopper():
    return DiscreteActions(gymnasium.make("Hopper-v5"), [[-1, 1, 0.5], [1, -0.5, 1], [0.2, 1, -1], [0, 0, 0]])


def ant():
    return DiscreteActions(gymnasium.make("Ant-v5"), np.random.default_rng(0).uniform(-1, 1, (3, 8)))


def noisy_acrobot():
    env = gymnasium.make("Acrobot-v1")
    env.unwrapped.torque_noise_max = 0.5
    return env


def stochastic_sea():
    return gymnasium.make("urbe/DeepSea-v0", slip=0.5)


NOMINAL = {
    "CartPole": (lambda: gymnasium.make("CartPole-v1"), {"length": (0.25, 2.0)}),
    "Acrobot": (noisy_acrobot, {"LINK_MASS_2": (0.5, 2.0)}),
    "MountainCar": (lambda: gymnasium.make("MountainCar-v0"), {"force": (0.0005,), "gravity": (0.002,)}),
    "MountainCarContinuous": (
        lambda: DiscreteActions(gymnasium.make("MountainCarContinuous-v0"), [-1.0, 0.3, 1.0]),
        {"power": (0.001,)},
    ),
    "Pendulum": (
        lambda: DiscreteActions(gymnasium.make("Pendulum-v1"), [-2.0, 0.5, 2.0]),
        {"g": (5.0, -5.0), "m": (2.0,), "l": (0.5,), "dt": (0.02,)},
    ),
    "InvertedPendulum": (pendulum, {"gravity": (5.0, 15.0), "pole_mass": (2.0, 8.0)}),
    "Hopper": (hopper, {"torso_mass": (2.0, 5.0)}),
    "Ant": (ant, {"gravity": (5.0,)}),
    "SimulatorEnv": (stochastic_sea, {"slip": (0.1, 0.9)}),
}


@pytest.mark.parametrize("name", NOMINAL)
def test_the_nominal_copy_does_what_the_environment_does_and_touches_nothing(name):
    make, values = NOMINAL[name]
    env, untouched = make(), make()
    members = EnvMembers.grid(env, **values)
    assert members.nominal == 0
    assert isinstance(members, Members)
    rng = np.random.default_rng(0)
    (obs, _), _ = env.reset(seed=4), untouched.reset(seed=4)
    differed, ended = False, 0
    for _ in range(80):
        action = int(rng.integers(env.action_space.n))
        outcomes = members.successors(env, np.ravel(obs).astype(np.float32), action)
        obs, reward, terminated, truncated, _ = env.step(action)
        np.testing.assert_array_equal(outcomes.obs[0, 0], np.ravel(obs).astype(np.float32))
        assert outcomes.reward[0, 0] == np.float32(reward)
        assert outcomes.terminated[0, 0] == terminated
        assert (outcomes.probability == 1.0).all()
        differed |= not (outcomes.obs[1:] == outcomes.obs[:1]).all()
        alone, reward_alone, *_ = untouched.step(action)
        np.testing.assert_array_equal(obs, alone)
        assert reward == reward_alone
        if terminated or truncated:
            ended += 1
            (obs, _), _ = env.reset(), untouched.reset()
    assert differed
    if name in ("CartPole", "InvertedPendulum"):
        assert ended > 2  # copies had ended too, and came back


def test_poles_of_other_lengths_are_whole_poles():
    """The simulator's lines, which compute everything from the parameters as they are, tell the same."""
    env = gymnasium.make("CartPole-v1")
    members = EnvMembers(env, [{"length": 1.5, "masspole": 0.7, "masscart": 0.4}, {"gravity": 3.0, "force_mag": 2.0}])
    ours = [
        CartPole().nominal()._replace(half_length=np.float32(1.5), masspole=np.float32(0.7), masscart=np.float32(0.4)),
        CartPole().nominal()._replace(gravity=np.float32(3.0), force=np.float32(2.0)),
    ]
    env.reset(seed=0)
    rng, outcomes = np.random.default_rng(0), jax.jit(CartPole().outcomes)
    for _ in range(30):
        env.unwrapped.state = rng.uniform(-1, 1, 4) * [2.5, 2, 0.22, 2]
        action = int(rng.integers(2))
        led = members.successors(env, np.zeros(4, np.float32), action)
        for k, params in enumerate(ours, start=1):
            found = outcomes(np.float32(env.unwrapped.state), np.int32(action), params)
            np.testing.assert_allclose(led.obs[k], found.state, rtol=0, atol=2e-6)  # float32 against float64
            assert led.terminated[k, 0] == found.terminated[0]


@pytest.mark.parametrize(
    ("params", "edit"),
    [
        ({"gravity": 4.0}, ('gravity="0 0 -9.81"', 'gravity="0 0 -4"')),
        ({"pole_mass": 2.5}, ('name="cpole"', 'name="cpole" mass="2.5"')),
        ({"cart_mass": 3.0}, ('name="cart" pos="0 0 0" quat', 'name="cart" mass="3" pos="0 0 0" quat')),
        ({"hinge_damping": 0.3}, ('name="hinge"', 'name="hinge" damping="0.3"')),
    ],
)
def test_mujoco_parameters_are_those_of_an_edited_model(tmp_path, params, edit):
    model = importlib.resources.files("gymnasium.envs.mujoco") / "assets" / "inverted_pendulum.xml"
    text = model.read_text()
    assert text.count(edit[0]) == 1
    (tmp_path / "edited.xml").write_text(text.replace(*edit))
    edited, env = pendulum(xml_file=str(tmp_path / "edited.xml")), pendulum()
    members = EnvMembers(env, [params])
    (name, value), adapter = next(iter(params.items())), adapter_of(env)
    assert adapter.get_params(edited)[name] == pytest.approx(value)
    for derived in ("body_subtreemass", "body_invweight0", "dof_invweight0", "dof_M0"):
        changed, expected = (getattr(each.unwrapped.model, derived) for each in (members.copies[1], edited))
        np.testing.assert_allclose(changed, expected, rtol=1e-9)
    env.reset(seed=0), edited.reset(seed=1)
    for action in (3, 0, 3, 3, 1, 0):
        adapter.set_state(edited, adapter.get_state(env))
        outcomes = members.successors(env, np.zeros(4, np.float32), action)
        np.testing.assert_allclose(outcomes.obs[1, 0], edited.step(action)[0], rtol=1e-6, atol=1e-7)
        assert not np.allclose(outcomes.obs[0], outcomes.obs[1], rtol=1e-6, atol=1e-7)
        env.step(action)


def test_members_of_a_simulator_are_all_its_outcomes():
    env, sea = stochastic_sea(), DeepSea()
    slips = UncertaintySet.grid(sea, slip=(0.1, 0.9))
    members = SimulatorMembers(sea, slips)
    assert (len(members), members.outcomes) == (3, 2)
    obs, _ = env.reset(seed=0)
    outcomes = members.successors(env, obs, 1)
    for k, params in enumerate(slips.members()):
        found = sea.outcomes(env.unwrapped.get_state(), np.int32(1), params)
        np.testing.assert_allclose(outcomes.probability[k], found.probability, rtol=1e-6)
        np.testing.assert_array_equal(outcomes.obs[k], jax.vmap(sea.observe)(found.state))
        np.testing.assert_allclose(outcomes.reward[k], found.reward, rtol=1e-6)
    assert members.only([2]).describe()["parameters"]["slip"] == [0.9]


def test_the_member_in_force_follows_the_environment():
    poles = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0))
    env, members = SimulatorEnv(CartPole()), SimulatorMembers(CartPole(), poles)
    env.reset(seed=0)
    for length, place in ((0.5, 0), (0.25, 1), (1.0, 2), (0.75, -1)):
        env.set_params(half_length=length)
        assert members.successors(env, np.zeros(4, np.float32), 1).in_force == place


def test_functions_are_members():
    def lean(obs, action):
        assert obs.dtype == np.float32
        return np.stack([obs, obs + action, obs - action]), [1.0, 2.0, 3.0], [False, True, False]

    members = FunctionMembers(lean, 3)
    assert isinstance(members, Members)
    outcomes = members.successors(None, np.zeros(2, np.float32), 5)
    assert outcomes.obs[:, 0].tolist() == [[0, 0], [5, 5], [-5, -5]]
    assert (outcomes.reward[:, 0].tolist(), outcomes.terminated[:, 0].tolist()) == ([1, 2, 3], [False, True, False])
    some = members.only([2, 0]).only([1])
    assert some.successors(None, np.ones(2, np.float32), 5).reward.tolist() == [[1.0]]
    assert members.describe() == {"kind": "function", "function": lean.__qualname__, "members": [0, 1, 2]}
    with pytest.raises(ValueError, match=r"obs of shape \(3, 2\), expected \(4, 2\)"):
        FunctionMembers(lean, 4).successors(None, np.zeros(2, np.float32), 0)
    with pytest.raises(ValueError, match="count is 0"):
        FunctionMembers(lean, 0)


def test_some_of_the_copies():
    members = EnvMembers.grid(gymnasium.make("CartPole-v1"), length=(0.25, 0.5, 1.0), masspole=(0.1, 0.3))
    expected = members.describe()["parameters"]
    assert expected["length"] == [0.5, 0.25, 0.25, 0.5, 1.0, 1.0]
    assert expected["masspole"] == [0.1, 0.1, 0.3, 0.3, 0.1, 0.3]
    some = members.only([4, 0])
    assert (some.describe()["parameters"]["length"], some.nominal) == ([1.0, 0.5], 1)
    assert members.only([2]).nominal is None
    without = EnvMembers.grid(gymnasium.make("CartPole-v1"), include_nominal=False, length=(0.5, 1.0))
    assert (len(without), without.nominal) == (2, None)


class Deaf(CartPoleAdapter):
    """Takes note of a mass, and never lets the environment know."""

    def get_params(self, env):
        return {"masspole": getattr(env.unwrapped, "noted", 0.1)}

    def set_params(self, env, params):
        env.unwrapped.noted = params.get("masspole", 0.1)


def test_perturbations_that_never_arrive_are_named():
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(ValueError, match=r"1 of 1 pairs .* 0 \(masspole 0.1\) and 1 \(masspole 0.7\).*never reaches"):
        check_members(env, EnvMembers(env, [{"masspole": 0.7}], adapter=Deaf()), np.random.default_rng(0), steps=20)
    apart = check_members(env, EnvMembers.grid(env, masspole=(0.3, 0.7)), np.random.default_rng(0), steps=20)
    assert (apart[~np.eye(3, dtype=bool)] > 1e-4).all()
    assert (np.diag(apart) == 0.0).all()

    def same(obs, action):  # noqa: ARG001
        return np.stack([obs, obs]), np.zeros(2), np.zeros(2, bool)

    with pytest.raises(ValueError, match=r"1 of 1 pairs .*: 0 and 1\. Either they are duplicates"):
        check_members(env, FunctionMembers(same, 2), np.random.default_rng(0), steps=3)


def test_duplicates_and_unknown_parameters_are_named():
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(ValueError, match=r"Members 0 \(nominal\) and 1 have the same parameters \(gravity 9.8"):
        EnvMembers(env, [{"length": 0.5}])
    with pytest.raises(ValueError, match=r"params\[1\]: 'lenght' is not among the parameters of CartPoleEnv.*length"):
        EnvMembers(env, [{"length": 0.25}, {"lenght": 0.75}])
    with pytest.raises(ValueError, match=r"params\[0\]: length is 0.0, expected a number above 0"):
        EnvMembers(env, [{"length": 0.0}])
    with pytest.raises(ValueError, match="No parameter varies"):
        EnvMembers.grid(env)
    with pytest.raises(ValueError, match="length is empty, expected one or more values"):
        EnvMembers.grid(env, length=())
    with pytest.raises(ValueError, match="expected a member"):
        EnvMembers(env, [], include_nominal=False)
    with pytest.raises(ValueError, match=r"'pole_length' is not among .*InvertedPendulumEnv.*pole_mass.*hinge_damping"):
        EnvMembers(pendulum(), [{"pole_length": 1.0}])


def test_environments_without_copies_are_refused():
    with pytest.raises(ValueError, match=r"Clock.*no adapter is known.*EnvMembers.*FunctionMembers"):
        EnvMembers(Clock(), [{}])
    with pytest.raises(ValueError, match=r"wrapper Remembering, which may have a memory.*adapter="):
        EnvMembers.grid(Remembering(gymnasium.make("CartPole-v1")), length=(1.0,))
    stacked = gymnasium.wrappers.FrameStackObservation(gymnasium.make("CartPole-v1"), 2)
    with pytest.raises(ValueError, match=r"wrapper FrameStackObservation"):
        EnvMembers.grid(stacked, length=(1.0,))
    fast = gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point")
    with pytest.raises(ValueError, match=r"in other processes, expected gymnasium.vector.SyncVectorEnv"):
        EnvMembers.grid(fast, length=(1.0,))
    alone = gymnasium.make("CartPole-v1")
    alone.unwrapped.file = (lambda: (yield))()  # cannot
    with pytest.raises(ValueError, match=r"cannot be copied.*give make="):
        EnvMembers.grid(alone, length=(1.0,))
    made = EnvMembers(alone, [{"length": 1.0}], make=lambda: gymnasium.make("CartPole-v1"))
    assert made.describe()["parameters"]["length"] == [0.5, 1.0]


def test_members_stay_while_the_environment_changes():
    changing = ChangingParams(gymnasium.make("urbe/CartPole-v0"), Constant(CartPole().nominal()), seed=0)
    members = EnvMembers.grid(changing, half_length=(1.0, 2.0))
    changing.reset(seed=0)
    changing.unwrapped.set_params(half_length=3.0)
    assert members.describe()["parameters"]["half_length"] == [0.5, 1.0, 2.0]
    outcomes = members.successors(changing, np.zeros(4, np.float32), 1)
    obs = changing.step(1)[0]
    assert not (outcomes.obs[:, 0] == obs).all(axis=1).any()


@pytest.mark.parametrize("noise", [np.zeros(2), np.zeros((3, 1))])
def test_noise_of_a_wrong_shape_is_refused(noise):
    env = SimulatorEnv(DeepSea())
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.get_noise()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"noise has shape .*expected \(3,\)"):
        env.set_noise(noise)


@pytest.mark.slow
def test_a_robust_agent_learns_to_balance_mujocos_pendulum():
    """Gravity and pole mass uncertain: trained returns are many times the untrained ones, also where they differ."""
    env = pendulum()
    members = EnvMembers.grid(env, gravity=(7.0, 12.0), pole_mass=(3.0, 8.0))
    settings = Settings(
        network=Network(hidden=(64, 64)),
        batch=64,
        capacity=10_000,
        warm_up=500,
        discount=0.99,
        learning_rate=1e-3,
        copy=CopyEvery(updates=200),
        epsilon=Epsilon(1.0, 0.05, 3_000),
    )
    agent = robust_dqn(env, members, seed=0, settings=settings)

    def returns(**params):
        test = pendulum()
        adapter_of(test).set_params(test, params)
        found = []
        for episode in range(10):
            obs, _ = test.reset(seed=episode)
            total, ended = 0.0, False
            while not ended:
                obs, reward, terminated, truncated, _ = test.step(agent.predict(obs))
                total, ended = total + reward, terminated or truncated
            found.append(total)
        return np.mean(found)

    worlds = ({}, {"gravity": 12.0, "pole_mass": 8.0}, {"gravity": 7.0, "pole_mass": 3.0})
    before = [returns(**world) for world in worlds]
    agent.learn(12_000)
    after = [returns(**world) for world in worlds]
    assert all(later > 5 * earlier for later, earlier in zip(after, before, strict=True))


def test_wrong_members_are_refused_in_words():
    env = gymnasium.make("CartPole-v1")
    settings = Settings(network=Network(hidden=(4,)), batch=4, capacity=64, warm_up=8)
    with pytest.raises(TypeError, match=r"uncertainty_set is a list, expected members .* EnvMembers\.grid"):
        robust_dqn(env, [gymnasium.make("CartPole-v1", sutton_barto_reward=True)], seed=0, settings=settings)
    others = EnvMembers.grid(gymnasium.make("Acrobot-v1"), LINK_MASS_2=(0.5,))
    with pytest.raises(ValueError, match="members are copies of AcrobotEnv, but the environment is CartPoleEnv"):
        robust_dqn(env, others, seed=0, settings=settings)


def test_an_adapter_may_be_given_as_a_class_and_members_are_shown():
    members = EnvMembers.grid(gymnasium.make("CartPole-v1"), adapter=CartPoleAdapter, length=(0.25,))
    assert isinstance(members.adapter, CartPoleAdapter)
    assert repr(members).endswith("CartPole-v1>>>>>: length=0.5, length=0.25)")


def test_observations_that_do_not_fit_their_space_are_named():
    env = gymnasium.make("CartPole-v1", disable_env_checker=True)
    env.observation_space = gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8)
    with pytest.raises(ValueError, match=r"not of its observation_space, .* \(4 numbers, expected 192\)"):
        robust_dqn(env, EnvMembers.grid(env, length=(0.25,)), seed=0)
    with pytest.raises(ValueError, match=r'does not take one seed for each .* vectorization_mode="sync"'):
        dqn(gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point"), seed=0)


class Shifted(gymnasium.Wrapper):
    """A wrapper without attributes."""

    def step(self, action):
        obs, reward, *rest = self.env.step(action)
        return obs, reward - 0.5, *rest


class Late(gymnasium.Wrapper):
    """A wrapper that has attributes only after its first reset."""

    def reset(self, **options):
        self.resets = getattr(self, "resets", 0) + 1
        return self.env.reset(**options)


def test_wrappers_of_ones_own_without_attributes_have_no_memory():
    env = Shifted(gymnasium.make("CartPole-v1"))
    members = EnvMembers.grid(env, length=(0.25,))
    assert check_members(Shifted(gymnasium.make("CartPole-v1")), members, np.random.default_rng(0)).shape == (2, 2)
    env.bonus = 0.5
    with pytest.raises(ValueError, match=r"wrapper Shifted, which may have a memory.*adapter_of\(env\)"):
        EnvMembers.grid(env, length=(0.25,))
    known = EnvMembers.grid(env, adapter=adapter_of(env), length=(0.25,))
    assert len(known) == 2
    with pytest.raises(ValueError, match=r"wrapper Late, which may have a memory"):
        EnvMembers.grid(Late(gymnasium.make("CartPole-v1")), length=(0.25,))
