"""CartPole, Acrobot and MountainCar against Gymnasium's, step by step, also with other parameters.

Gymnasium computes in float64 from the same float32 state; tolerances are multiples of float32's rounding (6e-8) of the
largest numbers involved.
"""

from functools import partial

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.simulators import Acrobot, AcrobotParams, CartPole, CartPoleParams, MountainCar, MountainCarParams
from urbe.simulators.acrobot import motion

CARTPOLE_ROUNDING = 2e-6  # velocities of 5; measured 5e-7
ACROBOT_ROUNDING = 5e-5  # velocities of 12 over a step that stretches differences; measured 1.4e-5
CAR_ROUNDING = 2e-7  # positions of 1


def changes(params):
    """What distinguishes them, for the names of tests."""
    if not isinstance(params, tuple):
        return str(params)
    nominal = type(params)()
    return " ".join(f"{k}={v}" for k, v in params._asdict().items() if v != getattr(nominal, k)) or "nominal"


def gym_steps(env, states, actions):
    """What Gymnasium makes of each state and action: observations, next states, rewards, ends."""
    seen, after, rewards, ended = [], [], [], []
    for state, action in zip(states, actions, strict=True):
        env.reset(seed=0)
        env.state = state.astype(np.float64)
        observation, reward, terminated, _, _ = env.step(int(action))
        seen.append(observation), after.append(env.state), rewards.append(reward), ended.append(terminated)
    return np.array(seen), np.array(after), np.array(rewards), np.array(ended)


@partial(jax.jit, static_argnums=0)
def compiled(simulator, states, actions, params):
    outcomes = jax.vmap(simulator.outcomes, (0, 0, None))(states, actions, params)
    return jax.vmap(simulator.observe)(outcomes.state[:, 0]), outcomes


def our_steps(simulator, states, actions, params):
    """The same for one of our simulators; all of its outcomes are single."""
    params = jax.tree.map(jnp.float32, params)
    seen, found = jax.device_get(compiled(simulator, states, actions.astype(np.int32), params))
    assert found.probability.tolist() == [[1.0]] * len(states)
    return seen, found.state[:, 0], found.reward[:, 0], found.terminated[:, 0]


def trials(seed, scale, n_actions, count=300, centre=0.0):
    rng = np.random.default_rng(seed)
    states = (centre + rng.uniform(-1, 1, size=(count, len(scale))) * np.array(scale)).astype(np.float32)
    return states, rng.integers(n_actions, size=count)


CARTPOLE = trials(0, (2.6, 4.0, 0.25, 5.0), 2)
CARTPOLE_PARAMS = [
    CartPoleParams(),
    CartPoleParams(half_length=1.25),
    CartPoleParams(half_length=0.1, masspole=1.0),
    CartPoleParams(masscart=0.3, gravity=3.7),
    CartPoleParams(0.75, 0.3, 2.0, 11.0, 25.0),
]


def gym_cartpole(params, *, recompute=True):
    env = gymnasium.make("CartPole-v1").unwrapped
    env.length, env.masspole, env.masscart, env.gravity, env.force_mag = params
    if recompute:
        env.total_mass = env.masspole + env.masscart
        env.polemass_length = env.masspole * env.length
    return env


@pytest.mark.parametrize("params", CARTPOLE_PARAMS, ids=changes)
def test_cartpole_steps_as_gymnasium_does(params):
    seen, state, rewards, ended = our_steps(CartPole(), *CARTPOLE, params)
    expected = gym_steps(gym_cartpole(params), *CARTPOLE)
    assert np.abs(seen - expected[0]).max() < CARTPOLE_ROUNDING
    assert np.array_equal(seen, state)
    assert np.array_equal(rewards, expected[2])
    assert np.array_equal(ended, expected[3])
    assert 0.1 < ended.mean() < 0.9  # both happen


def test_cartpole_along_gymnasiums_own_episodes():
    env, rng = gymnasium.make("CartPole-v1").unwrapped, np.random.default_rng(1)
    states, actions, after, ended = [], [], [], []
    for episode in range(10):
        env.reset(seed=episode)
        terminated = False
        while not terminated:
            states.append(np.float32(env.state)), actions.append(int(rng.integers(2)))
            observation, _, terminated, _, _ = env.step(actions[-1])
            after.append(observation), ended.append(terminated)
    found = our_steps(CartPole(), np.array(states), np.array(actions), CartPole().nominal())
    assert np.abs(found[0] - after).max() < 1e-6
    assert np.array_equal(found[3], ended)
    assert sum(ended) == 10


def test_gymnasiums_length_alone_is_another_pole():
    params = CartPoleParams(half_length=1.25, masspole=0.5)
    ours = our_steps(CartPole(), *CARTPOLE, params)[0]
    half_changed = gym_steps(gym_cartpole(params, recompute=False), *CARTPOLE)[0]
    assert np.abs(ours - half_changed).max() > 1000 * CARTPOLE_ROUNDING
    half_changed = gym_cartpole(CartPoleParams())
    half_changed.length = 1.25  # and nothing else, as perturbations of Gymnasium's attribute do
    ours = our_steps(CartPole(), *CARTPOLE, CartPoleParams(half_length=1.25))[0]
    assert np.abs(ours - gym_steps(half_changed, *CARTPOLE)[0]).max() > 100 * CARTPOLE_ROUNDING


@pytest.mark.parametrize("terminal_reward", [0.0, -5.0])
def test_cartpole_pays_another_reward_at_the_end(terminal_reward):
    _, _, rewards, ended = our_steps(CartPole(terminal_reward=terminal_reward), *CARTPOLE, CartPoleParams())
    assert np.array_equal(rewards, np.where(ended, terminal_reward, 1.0))


CAR = trials(2, (0.95, 0.1), 3, centre=np.array([-0.3, 0.0]))


@pytest.mark.parametrize(
    ("params", "goal_velocity"),
    [
        (MountainCarParams(), 0.0),
        (MountainCarParams(force=0.004), 0.0),
        (MountainCarParams(gravity=0.01), 0.03),
        (MountainCarParams(0.002, 0.001, 0.04), -0.01),
    ],
    ids=changes,
)
def test_mountain_car_steps_as_gymnasium_does(params, goal_velocity):
    env = gymnasium.make("MountainCar-v0", goal_velocity=goal_velocity).unwrapped
    env.force, env.gravity, env.max_speed = params
    seen, state, rewards, ended = our_steps(MountainCar(goal_velocity=goal_velocity), *CAR, params)
    expected = gym_steps(env, *CAR)
    assert np.abs(seen - expected[0]).max() < CAR_ROUNDING
    assert np.array_equal(seen, state)
    assert np.array_equal(rewards, expected[2])
    assert np.array_equal(ended, expected[3])
    assert 0 < ended.sum() < len(ended)
    stopped = (state[:, 0] == np.float32(-1.2)) & (state[:, 1] == 0.0)
    assert stopped.any()  # the left end was hit
    assert (np.abs(state[:, 1]) == np.float32(params.max_speed)).any()


ACROBOT = trials(3, (3.1, 3.1, 6.0, 12.0), 3)
ACROBOT_FAST = trials(4, (3.1, 3.1, 12.0, 27.0), 3)
ACROBOT_PARAMS = [
    AcrobotParams(),
    AcrobotParams(link_length_1=1.5),
    AcrobotParams(link_mass_1=0.5, link_mass_2=2.0, com_position_1=0.3, com_position_2=0.8),
    AcrobotParams(inertia_1=0.6, inertia_2=0.6, torque=2.5),
]


def gym_acrobot(params):
    env = gymnasium.make("Acrobot-v1").unwrapped
    assert params.inertia_1 == params.inertia_2  # it knows one
    assert params.gravity == AcrobotParams().gravity  # and one gravity
    env.LINK_LENGTH_1, env.LINK_LENGTH_2, env.LINK_MASS_1, env.LINK_MASS_2 = params[:4]
    env.LINK_COM_POS_1, env.LINK_COM_POS_2, env.LINK_MOI = params[4:7]
    env.AVAIL_TORQUE = [-params.torque, 0.0, params.torque]
    return env


def free_end(states, params):
    """Its height above the bar, from where the two links are."""
    angle_1, angle_2 = states[:, 0], states[:, 0] + states[:, 1]
    return -(params.link_length_1 * np.cos(angle_1) + params.link_length_2 * np.cos(angle_2))


@pytest.mark.parametrize("params", ACROBOT_PARAMS, ids=changes)
def test_acrobot_steps_as_gymnasium_does(params):
    seen, state, rewards, ended = our_steps(Acrobot(), *ACROBOT, params)
    expected = gym_steps(gym_acrobot(params), *ACROBOT)
    assert np.abs(seen - expected[0]).max() < ACROBOT_ROUNDING
    off = (state - expected[1])[:, :2]
    assert np.abs(off - 2 * np.pi * np.round(off / (2 * np.pi))).max() < ACROBOT_ROUNDING
    assert np.abs(state[:, :2]).max() <= np.float32(np.pi)
    if params.link_length_1 == params.link_length_2 == 1.0:
        assert np.array_equal(ended, expected[3])
        assert np.array_equal(rewards, expected[2])
    assert 0.1 < ended.mean() < 0.9
    assert np.array_equal(rewards, np.where(ended, 0.0, -1.0))


def test_acrobot_at_full_speed():
    seen, state, _, ended = our_steps(Acrobot(), *ACROBOT_FAST, AcrobotParams())
    expected = gym_steps(gym_acrobot(AcrobotParams()), *ACROBOT_FAST)
    assert np.abs(seen - expected[0]).max() < 10 * ACROBOT_ROUNDING  # differences are stretched more
    assert np.array_equal(ended, expected[3])
    at_limit = np.abs(state[:, 2:]) == np.float32([4 * np.pi, 9 * np.pi])
    assert at_limit.any(axis=0).all()  # both limits were met


@pytest.mark.parametrize(("lengths", "height"), [((1.5, 1.0), 1.0), ((1.0, 0.6), 1.0), ((0.8, 1.3), 0.2)])
def test_acrobot_ends_when_the_free_end_is_high(lengths, height):
    params = AcrobotParams(*lengths)
    _, state, _, ended = our_steps(Acrobot(height=height), *ACROBOT, params)
    assert np.array_equal(ended, free_end(state.astype(np.float64), params) > height)
    assert not np.array_equal(ended, free_end(state.astype(np.float64), AcrobotParams()) > 1.0)  # lengths are heeded


def lagrangian(params, angles, speeds):
    """Kinetic less potential energy, from where the centres of mass are."""

    def centres(angles):
        first = jnp.array([jnp.sin(angles[0]), -jnp.cos(angles[0])])
        second = jnp.array([jnp.sin(angles[0] + angles[1]), -jnp.cos(angles[0] + angles[1])])
        return params.com_position_1 * first, params.link_length_1 * first + params.com_position_2 * second

    (_, y1), (_, y2) = centres(angles)
    (_, _), (v1, v2) = jax.jvp(centres, (angles,), (speeds,))
    kinetic = params.link_mass_1 * v1 @ v1 + params.link_mass_2 * v2 @ v2
    kinetic += params.inertia_1 * speeds[0] ** 2 + params.inertia_2 * (speeds[0] + speeds[1]) ** 2
    return kinetic / 2 - params.gravity * (params.link_mass_1 * y1 + params.link_mass_2 * y2)


def accelerations(params, torque, state):
    """Euler and Lagrange: (d/dt dL/dspeed) - dL/dangle = (0, torque), solved for the accelerations."""
    angles, speeds = state[:2], state[2:]
    pull = jax.grad(lagrangian, 1)(params, angles, speeds)
    mass = jax.hessian(lagrangian, 2)(params, angles, speeds)
    turning = jax.jacfwd(jax.grad(lagrangian, 2), 1)(params, angles, speeds) @ speeds
    return jnp.linalg.solve(mass, jnp.array([0.0, torque]) + pull - turning)


all_accelerations = jax.jit(jax.vmap(accelerations, (None, None, 0)))
all_motions = jax.jit(jax.vmap(motion, (0, None, None)))


@pytest.mark.parametrize(
    "params",
    [AcrobotParams(), AcrobotParams(1.3, 0.7, 0.6, 1.9, 0.4, 0.9, 0.7, 1.6, 3.7)],
    ids=["nominal", "all changed"],
)
def test_acrobot_obeys_its_lagrangian(params):
    states = ACROBOT[0][:50]
    with jax.enable_x64(True):
        expected = np.asarray(all_accelerations(params, 0.8, states.astype(np.float64)))
    assert expected.dtype == np.float64
    found = np.asarray(all_motions(states, jnp.float32(0.8), params))
    assert np.array_equal(found[:, :2], states[:, 2:])
    scale = 1.0 + np.abs(expected)
    assert (np.abs(found[:, 2:] - expected) / scale).max() < 1e-4  # float32, sums of terms of some thousands


@pytest.mark.parametrize(
    ("simulator", "low", "high"),
    [
        (CartPole(), [-0.05] * 4, [0.05] * 4),
        (Acrobot(), [-0.1] * 4, [0.1] * 4),
        (MountainCar(), [-0.6, 0.0], [-0.4, 0.0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_starts_fill_gymnasiums_range(simulator, low, high):
    keys = jax.random.split(jax.random.key(0), 500)
    starts = np.asarray(jax.vmap(simulator.start, (0, None))(keys, simulator.nominal()))
    low, high = np.float32(low), np.float32(high)
    assert (starts >= low).all()
    assert (starts <= high).all()
    # 500 draws leave a gap of 5 % at an end with probability 1e-11
    assert (starts.min(axis=0) <= low + 0.05 * (high - low)).all()
    assert (starts.max(axis=0) >= high - 0.05 * (high - low)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CartPole(time_limit=0), "time_limit is 0, expected a whole number of at least 1"),
        (lambda: CartPole(terminal_reward=np.nan), "terminal_reward is nan, expected a finite number"),
        (lambda: Acrobot(height=np.inf), "height is inf, expected a finite number"),
        (lambda: MountainCar(goal_velocity="fast"), "goal_velocity is 'fast', expected a number"),
        (lambda: MountainCar(time_limit=2.5), "time_limit is 2.5, expected a whole number of at least 1"),
    ],
)
def test_refuses_other_choices(call, message):
    with pytest.raises(ValueError, match=message):
        call()
