"""Which member decided how many targets: counts, equality of both loops, and verdicts."""

import sys
from pathlib import Path

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.deep import (
    CVaR,
    Network,
    OneMemberDecides,
    Settings,
    Soft,
    Worst,
    deciding,
    dqn,
    load,
    robust_dqn,
    try_members,
)
from urbe.deep.compilation import cache_compilation
from urbe.deep.core.loss import SAME, decided_by
from urbe.deep.training import member_trials, who_decides
from urbe.gym import EnvMembers, FunctionMembers
from urbe.simulators import CartPole, UncertaintySet

ROOM = Path(__file__).parents[3] / "examples" / "thermostat"
TINY = Settings(network=Network(hidden=(8,)), batch=8, capacity=256, warm_up=16, discount=0.9)
POLE = CartPole()
POLES = UncertaintySet.grid(POLE, half_length=(0.25, 1.0))


@pytest.fixture(scope="module", autouse=True)
def _compiled_once():
    cache_compilation()


@pytest.fixture
def thermostat(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOM))
    import thermostat

    yield thermostat.Thermostat
    sys.modules.pop("thermostat", None)


@pytest.mark.parametrize("nature", [Worst(), CVaR(0.6), Soft((0.2, 0.3, 0.5))], ids=repr)
def test_weights_are_summed_where_members_differ(nature):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 3)).astype(np.float32)
    values[:5] = values[:5, :1]  # all lead to the same
    values[5:8] = values[5:8, :1] * np.float32([1.0, 1.0 + SAME / 20, 1.0])  # and to rounding
    values[8] = 0.0
    weights = np.asarray(nature.weights(jnp.asarray(values)))
    expected = np.zeros(3)
    for row, own in zip(values.tolist(), weights, strict=True):
        if max(row) - min(row) > SAME * max(map(abs, row)):
            expected += own
    found = np.asarray(decided_by(jnp.asarray(weights), jnp.asarray(values)))
    assert found == pytest.approx(expected, rel=1e-5)
    assert found.sum() == pytest.approx(31.0, rel=1e-5)


def worse_by(*losses):
    """Members that differ in the reward alone."""

    def function(obs, action):  # noqa: ARG001
        n = len(losses)
        return np.tile(obs, (n, 1)), 1.0 - np.array(losses, np.float64), np.zeros(n, bool)

    return FunctionMembers(function, len(losses))


def test_the_member_that_is_always_the_worst_decided_all():
    env = gymnasium.make("CartPole-v1")
    agent = robust_dqn(env, worse_by(0.0, 0.5, 0.1), seed=0, settings=TINY, log_every=40).learn(120)
    table = agent.history.members
    assert list(table) == ["step", "targets", "member_0", "member_1", "member_2"]
    assert table["step"].tolist() == [40, 80, 120]
    updates = np.diff(agent.history.log["updates"], prepend=0)
    assert table["targets"].tolist() == (8 * updates).tolist()
    assert [table[f"member_{k}"].tolist() for k in range(3)] == [[0.0] * 3, [1.0] * 3, [0.0] * 3]
    found = deciding(agent)
    assert (found.most, found.shares.tolist(), found.name(1)) == (1, [0.0, 1.0, 0.0], "member 1")
    with pytest.raises(ValueError, match="has no members that can be played"):
        try_members(agent)


def test_where_members_are_alike_nobody_decides():
    env = gymnasium.make("CartPole-v1")
    agent = robust_dqn(env, worse_by(0.0, 0.0), seed=0, settings=TINY, log_every=40).learn(80)
    assert agent.history.members["targets"].tolist() == [0.0, 0.0]
    assert np.isnan(agent.history.members["member_0"]).all()
    assert deciding(agent) is None


def test_agents_without_members_have_no_such_table():
    agent = dqn(POLE, seed=0, settings=TINY, log_every=40).learn(80)
    assert agent.history.members == {}
    assert "members.csv" not in agent.history.files()
    assert "trainer/meters/decided" not in agent.tensors()
    assert deciding(agent) is None


def test_it_is_the_same_wherever_learning_is_cut_saved_and_loaded(tmp_path):
    whole = robust_dqn(POLE, POLES, seed=0, settings=TINY, log_every=40).learn(150)
    part = robust_dqn(POLE, POLES, seed=0, settings=TINY, log_every=40).learn(55)
    part.save(tmp_path / "agent")
    again = load(tmp_path / "agent").learn(95)
    one, two = whole.tensors(), again.tensors()
    assert list(one) == list(two)
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)
    table = whole.history.members
    shares = np.sum([table[f"member_{k}"] for k in range(3)], axis=0)
    assert shares == pytest.approx(np.ones(3))
    found = deciding(whole)
    assert found.params[1]["half_length"] == 0.25
    assert found.name(0) == "half_length 0.5 (nominal)"


def test_a_hopeless_member_is_found_and_said(monkeypatch, thermostat):
    """Outside -15 the heater reaches 0 degrees at most, where every reward is the lowest; outside 15 all is well."""
    monkeypatch.setattr(who_decides, "ENOUGH", 100)
    monkeypatch.setattr(member_trials, "SEARCHED", 6)
    monkeypatch.setattr(member_trials, "EPISODES", 6)
    members = EnvMembers.grid(thermostat(), outside=(-15.0, 15.0))
    agent = robust_dqn(thermostat(), members, seed=0, settings=TINY, log_every=50)
    with pytest.warns(OneMemberDecides, match=r"outside -15 decided \d+ % of the targets"):
        agent.learn(400)
    before = {name: array.copy() for name, array in agent.tensors().items()}
    nominal, cold, warm = try_members(agent)
    after = agent.tensors()
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)  # nothing of the agent changed
    assert (nominal.hopeless, cold.hopeless, warm.hopeless) == (False, True, False)
    assert cold.harsh
    assert not nominal.harsh
    assert cold.nominal_best == nominal.best
    text = who_decides.advice(agent)
    assert text.startswith("outside -15 decided")
    assert "It looks hopeless for every policy: the best of 11 policies tried returns -9" in text


def test_policies_are_tried_on_any_observations_and_actions(monkeypatch, thermostat):
    """The same room with named observations and actions from 4 on has the same best policy."""
    monkeypatch.setattr(member_trials, "SEARCHED", 2)
    monkeypatch.setattr(member_trials, "EPISODES", 2)

    class Named(thermostat):
        def __init__(self):
            super().__init__()
            part = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
            self.observation_space = gymnasium.spaces.Dict({"clock": part, "temperature": part})
            self.action_space = gymnasium.spaces.Discrete(3, start=4)

        def step(self, action):
            assert 4 <= action <= 6
            return super().step(action - 4)

        def _observation(self):
            temperature, clock = super()._observation()
            return {"clock": np.float32([temperature]), "temperature": np.float32([clock])}

    found = []
    for room in (thermostat, Named):
        agent = robust_dqn(room(), EnvMembers.grid(room(), outside=(15.0,)), seed=0, settings=TINY).learn(40)
        (warm,) = try_members(agent, [1])
        found.append((warm.policy, warm.best, warm.tried))
    assert found[0] == found[1]


def test_a_simulators_members_are_tried_too(monkeypatch):
    monkeypatch.setattr(member_trials, "SEARCHED", 3)
    monkeypatch.setattr(member_trials, "EPISODES", 4)
    agent = robust_dqn(CartPole(time_limit=30), POLES, seed=0, settings=TINY, log_every=40).learn(80)
    (long,) = try_members(agent, [2])
    assert (long.member, long.hopeless, long.tried) == (2, False, 7)
    assert 0.0 < long.random <= long.best <= 30.0


def test_a_fixed_mixture_warns_of_nobody(monkeypatch):
    monkeypatch.setattr(who_decides, "ENOUGH", 10)
    settings = Settings(network=Network(hidden=(8,)), batch=8, capacity=256, warm_up=16, nature=Soft((0.05, 0.95)))
    env = gymnasium.make("CartPole-v1")
    agent = robust_dqn(env, worse_by(0.0, 0.5), seed=0, settings=settings, nature=Soft((0.05, 0.95)), log_every=40)
    agent.learn(80)
    assert deciding(agent).one_alone
    assert who_decides.advice(agent) is None
