"""Saved agents are restored bit for bit; what a file cannot describe is given again, and must fit."""

from dataclasses import dataclass, replace

import gymnasium
import numpy as np
import pytest

from urbe import simulators
from urbe.deep import settings as config
from urbe.deep.baselines import domain_randomised_dqn
from urbe.deep.compilation import cache_compilation
from urbe.deep.core import last_layer, natures
from urbe.deep.presets import dqn, dqn_urbe
from urbe.deep.saving.load import load
from urbe.gym.members.copies import EnvMembers
from urbe.runs.errors import CheckpointError
from urbe.runs.tensors import load_tensors
from urbe.simulators import CartPole, MarsRover, UncertaintySet

TINY = {"network": config.Network(hidden=(16, 16)), "batch": 16, "capacity": 300, "warm_up": 50}
OBS = [[0.0, 0.1, 0.05, -0.2], [0.3, 0.0, -0.1, 0.4]]


@pytest.fixture(scope="module", autouse=True)
def _compiled_once():
    cache_compilation()


@dataclass(frozen=True)
class OwnPole:
    """A simulator of the user's own: not in any list. It compiles to what CartPole does, which saves time."""

    time_limit: int = 500
    n_actions: int = 2
    size: int = 4

    def nominal(self):
        return CartPole().nominal()

    def start(self, key, params):
        return CartPole().start(key, params)

    def outcomes(self, state, action, params):
        return CartPole().outcomes(state, action, params)

    def observe(self, state):
        return state if self.size == len(state) else state[: self.size]


def _local():
    @dataclass(frozen=True)
    class OwnNature:
        """A nature of the user's own, which no name leads to."""

        def weights(self, values):
            return natures.Worst().weights(values)

    return OwnNature


OwnNature = _local()


@dataclass(frozen=True, eq=False)
class OwnSchedule(simulators.Schedule):
    """A schedule of the user's own."""

    inner: simulators.Schedule

    def begin(self, key):
        return self.inner.begin(key)

    def next(self, carry, key):
        return self.inner.next(carry, key)


def poles(env=None):
    return UncertaintySet.grid(env or CartPole(), half_length=(0.25, 1.0))


def same(one, other):
    """Whether two agents' tensors are equal in name, type and every bit."""
    a, b = one.tensors(), other.tensors()
    assert list(a) == list(b)
    return all(a[k].dtype == b[k].dtype and a[k].tobytes() == b[k].tobytes() for k in a)


def rover():
    """Two outcomes, random parameters with infinite bounds, a calibrated head, forgetting, rates that fall."""
    law = simulators.Normal(0.2, 0.05, low=0.0)
    schedule = simulators.DomainRandomisation(MarsRover().nominal(), {"failure": law})
    uncertain = UncertaintySet.samples(MarsRover(), 1, count=3, failure=simulators.Uniform(0.0, 0.3))
    changes = {
        "variance": last_layer.calibrated(hidden=(8,)),
        "clip_norm": 0.5,
        "decay": config.Decay(0.1, 200, cosine=True),
        "copy": config.CopyEvery(updates=2, tau=0.1),
        "train_every": 4,
        "gradient_steps": 3,
    }
    return dqn_urbe(MarsRover(), uncertain, seed=4, schedule=schedule, log_every=50, **TINY, **changes)


def pole(seed=3, **changes):
    return dqn_urbe(CartPole(), poles(), seed=seed, log_every=50, **TINY, **changes)


@pytest.fixture(scope="module", params=[pole, rover])
def trained(request):
    return request.param().learn(170)


def test_a_loaded_agent_is_the_agent_and_goes_on_bit_for_bit(trained, tmp_path):
    trained.save(tmp_path / "agent")
    again = load(tmp_path / "agent")
    assert same(trained, again)
    assert again.about() == trained.about()
    assert again.trainer.settings == trained.trainer.settings
    before = again.tensors()
    trained.learn(133)
    again.learn(33).learn(100)
    assert same(trained, again)
    moved = again.tensors()
    assert any(moved[name].tobytes() != before[name].tobytes() for name in before if name.startswith("trainer/learner"))
    assert again.history.log["step"].tolist() == [50, 100, 150, 200, 250, 300]


def test_saving_over_an_agent_leaves_the_new_one(trained, tmp_path):
    trained.save(tmp_path / "agent")
    before = load_tensors(tmp_path / "agent")[0]
    trained.learn(1)
    trained.save(tmp_path / "agent")
    assert same(load(tmp_path / "agent"), trained)
    assert load_tensors(tmp_path / "agent")[0]["trainer/learner/step"] == before["trainer/learner/step"] + 1


# what must be given again


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A saved agent on a simulator that no file can describe, and the agent."""
    path = tmp_path_factory.mktemp("own") / "pole"
    agent = dqn_urbe(OwnPole(), poles(OwnPole()), seed=3, log_every=50, **TINY).learn(60)
    agent.save(path)
    return path, agent


def test_an_environment_of_ones_own_is_given_again(own):
    path, agent = own
    again = load(path, env=OwnPole())
    assert same(agent, again)
    assert same(load(path, env=OwnPole()).learn(50), again.learn(50))
    assert again.step == 110


def test_without_it_the_agent_predicts_and_says_why_it_does_not_learn(own):
    path, agent = own
    frozen = load(path)
    assert frozen.predict(OBS).tolist() == agent.predict(OBS).tolist()
    one, other = (a.predict(OBS, deterministic=False, rng=np.random.default_rng(0)) for a in (frozen, agent))
    assert one.tolist() == other.tolist()
    assert frozen.step == 60
    assert frozen.history.log["step"].tolist() == [50]
    with pytest.raises(ValueError, match="env="):
        frozen.learn(1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"env": OwnPole(size=3)}, "env has 3 numbers in an observation, expected 4"),
        ({"env": OwnPole(n_actions=3)}, "env has 3 actions, expected 2"),
        ({"env": OwnPole(), "uncertainty_set": UncertaintySet.single(OwnPole())}, "has 1 members, expected 3"),
        ({"env": MarsRover()}, "parameters"),
        ({"uncertainty_set": poles()}, "without env"),
        ({"schedule": simulators.Constant(CartPole().nominal())}, "without env"),
    ],
)
def test_what_is_given_must_fit(own, given, message):
    with pytest.raises(ValueError, match=message):
        load(own[0], **given)


def test_a_gymnasium_environment_is_no_simulator(own):
    with pytest.raises(ValueError, match="env is a Gymnasium environment, expected a simulator"):
        load(own[0], env=gymnasium.make("CartPole-v1"))


def test_an_agent_of_a_gymnasium_environment(tmp_path):
    agent = dqn(gymnasium.make("CartPole-v1"), seed=0, log_every=50, **TINY).learn(60)
    agent.save(tmp_path / "agent")
    frozen = load(tmp_path / "agent")
    assert frozen.predict(OBS).tolist() == agent.predict(OBS).tolist()
    with pytest.raises(ValueError, match="env="):
        frozen.learn(1)
    frozen.save(tmp_path / "frozen")
    assert load(tmp_path / "frozen").predict(OBS).tolist() == agent.predict(OBS).tolist()
    again = load(tmp_path / "agent", env=gymnasium.make("CartPole-v1"))
    assert same(agent, again)
    assert same(agent.learn(70), again.learn(70))
    for env, message in [(gymnasium.make("Acrobot-v1"), "env has 6 numbers"), (CartPole(), "expected a Gymnasium")]:
        with pytest.raises(ValueError, match=message):
            load(tmp_path / "agent", env=env)
    with pytest.raises(ValueError, match="expected none"):
        load(tmp_path / "frozen", env=CartPole())


def test_members_of_a_gymnasium_environment_are_given_again(tmp_path):
    def world():
        env = gymnasium.make("CartPole-v1")
        return {"env": env, "uncertainty_set": EnvMembers.grid(env, length=(0.25, 1.0))}

    agent = dqn_urbe(**world(), seed=0, log_every=50, **TINY).learn(60)
    agent.save(tmp_path / "agent")
    with pytest.raises(ValueError, match=r"uncertainty_set is missing, expected the members .*: 3 of them"):
        load(tmp_path / "agent", env=gymnasium.make("CartPole-v1"))
    assert same(agent.learn(70), load(tmp_path / "agent", **world()).learn(70))


def test_a_schedule_of_ones_own_is_not_forgotten_in_silence(tmp_path):
    schedule = OwnSchedule(simulators.Constant(CartPole().nominal()))
    agent = pole(schedule=schedule).learn(60)
    agent.save(tmp_path / "agent")
    with pytest.raises(ValueError, match="env="):
        load(tmp_path / "agent").learn(1)
    again = load(tmp_path / "agent", env=CartPole(), schedule=schedule)
    assert same(agent.learn(60), again.learn(60))


def test_a_nature_of_ones_own_comes_with_the_settings(tmp_path):
    agent = pole(nature=OwnNature()).learn(60)
    agent.save(tmp_path / "agent")
    with pytest.raises(ValueError, match=r"settings is missing.*OwnNature"):
        load(tmp_path / "agent")
    again = load(tmp_path / "agent", settings=agent.trainer.settings)
    assert same(agent.learn(60), again.learn(60))
    with pytest.raises(CheckpointError, match="trainer/learner"):
        load(tmp_path / "agent", settings=replace(agent.trainer.settings, network=config.Network(hidden=(16, 8))))


def test_a_schedule_is_kept_when_the_simulator_is_given_again(tmp_path):
    poles = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0))
    agent = domain_randomised_dqn(CartPole(), poles, seed=0, log_every=50, **TINY).learn(60)
    agent.save(tmp_path / "agent")
    assert same(agent.learn(60), load(tmp_path / "agent", env=CartPole()).learn(60))


def test_a_schedule_that_a_file_cannot_describe_is_asked_for(tmp_path):
    schedule = OwnSchedule(simulators.Constant(CartPole().nominal()))
    pole(schedule=schedule).save(tmp_path / "agent")
    with pytest.raises(ValueError, match=r"schedule is missing.*OwnSchedule.*give Constant\(env\.nominal\(\)\)"):
        load(tmp_path / "agent", env=CartPole())
    load(tmp_path / "agent", env=CartPole(), schedule=simulators.Constant(CartPole().nominal()))
