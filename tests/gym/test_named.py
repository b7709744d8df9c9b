"""Environments, adapters and members from user input: names, modules in the working folder, own methods."""

import sys
import textwrap

import gymnasium
import numpy as np
import pytest

from urbe.gym import EnvMembers
from urbe.gym.adapters import adapter_of
from urbe.gym.members.check import check_members
from urbe.gym.named import named_adapter, named_env
from urbe.gym.own_methods import OwnMethodsAdapter
from urbe.simulators import UncertaintySet, Uniform

MINE = """
import gymnasium
import numpy as np


class Walk(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, drift=0.1, noise=0.2):
        self.drift, self.noise, self.place = drift, noise, [0.0]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = [float(self.np_random.normal())]
        return np.array(self.place, np.float32), {}

    def step(self, action):
        self.place[0] += self.drift + self.noise * float(self.np_random.normal()) + 2.0 * float(action) - 1.0
        return np.array(self.place, np.float32), -abs(self.place[0]), abs(self.place[0]) > 9.0, False, {}


class Named(Walk):
    def get_state(self): return self.place
    def set_state(self, state): self.place = state
    def get_params(self): return {"drift": self.drift, "noise": self.noise}
    def set_params(self, params):
        for name, value in params.items(): setattr(self, name, value)


def limited(**named):
    return gymnasium.wrappers.TimeLimit(Named(**named), 7)


class Adapter:
    def get_state(self, env): return list(env.unwrapped.place)
    def set_state(self, env, state): env.unwrapped.place = list(state)
    def get_params(self, env): return {"drift": env.unwrapped.drift}
    def set_params(self, env, params): env.unwrapped.drift = params.get("drift", env.unwrapped.drift)


class Half:
    def get_state(self, env): return None


NUMBER = 3
"""


@pytest.fixture(autouse=True)
def _beside(tmp_path, monkeypatch):
    """A folder with a module `walks`, in which the user is."""
    (tmp_path / "walks.py").write_text(textwrap.dedent(MINE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("walks", None)


def test_a_class_beside_the_user_is_an_environment():
    env = named_env("walks:Named", {})
    assert type(env.unwrapped).__name__ == "Named"
    assert str(env).endswith("<walks:Named>>>>")  # by which urbe evaluate finds it again
    assert type(adapter_of(env)) is OwnMethodsAdapter
    moved = named_env("walks:Named", {"drift": 0.4})
    assert moved.unwrapped.get_params() == {"drift": 0.4, "noise": 0.2}
    assert named_env("walks:Walk", {"drift": 0.3}).unwrapped.drift == 0.3  # an argument of its maker
    assert named_env("CartPole-v1", {"length": 2.0}).unwrapped.length == 2.0
    assert named_env("walks:Walk", {"drift": 0.3}, named_adapter("walks:Adapter")).unwrapped.drift == 0.3


def test_a_function_may_make_the_environment():
    env = named_env("walks:limited", {})
    assert str(env).endswith("<walks:limited>>>>>")
    assert env.get_wrapper_attr("_max_episode_steps") == 7
    assert named_env("walks:limited", {"drift": 0.4}).unwrapped.get_params()["drift"] == 0.4


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("walks:Nothing", {}, "walks:Nothing cannot be made: walks has no class or function Nothing"),
        ("nowhere:Walk", {}, "nowhere:Walk cannot be made: No module named 'nowhere'"),
        ("Nothing-v0", {}, "Nothing-v0 cannot be made: "),
        ("walks:Walk", {"wind": 1.0}, "walks:Walk cannot be made with wind=1: "),
        ("CartPole-v1", {"wind": 1.0}, "CartPole-v1 cannot be made with wind=1: "),
        ("walks:Named", {"wind": 1.0}, "with wind=1: .* Parameters that can be set are drift, noise."),
    ],
)
def test_what_cannot_be_made_is_refused(name, params, message):
    with pytest.raises(ValueError, match=message):
        named_env(name, params)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("walks", "adapter walks names no class, expected package"),
        ("walks:None_", "cannot be made"),
        ("nowhere:Adapter", "No module named 'nowhere'"),
        ("walks:Half", "has no set_state, get_params, set_params"),
        ("walks:NUMBER", "has no get_state"),
    ],
)
def test_what_is_no_adapter_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        named_adapter(text)


@pytest.mark.parametrize(("kind", "adapter"), [("walks:Named", None), ("walks:Walk", "walks:Adapter")])
def test_copies_by_own_methods_or_an_adapter_do_what_the_environment_does(kind, adapter):
    env, given = named_env(kind, {}), None if adapter is None else named_adapter(adapter)
    members = EnvMembers.grid(env, adapter=given, drift=(0.0, 0.5))
    apart = check_members(env, members, np.random.default_rng(0))
    assert (apart[np.triu_indices(3, 1)] > 0.0).all()


def test_states_are_copied_and_numbers_checked():
    """`Named.get_state` gives a list that the environment goes on changing."""
    env = named_env("walks:Named", {})
    env.reset(seed=0)
    adapter = adapter_of(env)
    kept = adapter.get_state(env)
    before = list(kept)
    env.step(1)
    assert kept == before
    adapter.set_state(env, kept)
    env.step(1)
    assert kept == before
    with pytest.raises(ValueError, match="'wind' is not among the parameters of Named, which are drift, noise"):
        adapter.set_params(env, {"wind": 1.0})
    with pytest.raises(ValueError, match="drift is nan"):
        adapter.set_params(env, {"drift": float("nan")})
    env.unwrapped.get_params = lambda: [0.1]
    with pytest.raises(ValueError, match="gave a list, expected a dict of numbers"):
        adapter.get_params(env)


def test_draws_for_copies_are_those_of_uncertainty_sets():
    from urbe.simulators import CartPole

    law = Uniform(0.25, 1.0)
    poles = UncertaintySet.samples(CartPole(), 3, count=4, half_length=law)
    copies = EnvMembers.samples(gymnasium.make("CartPole-v1"), 3, count=4, length=law)
    assert len(copies) == len(poles) == 5
    again = EnvMembers.samples(gymnasium.make("CartPole-v1"), 3, count=2, include_nominal=False, length=law)
    assert again.describe()["parameters"]["length"] == copies.describe()["parameters"]["length"][1:3]
