"""Every agent of the package passes the contract, and the checker finds every law broken on purpose."""

import dataclasses
import importlib.util
import re
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import urbe.agents
from urbe.agents import (
    OLRM,
    RCPO,
    UCRL2,
    BeliefURBE,
    Criterion,
    Minimax,
    MismatchSARSA,
    MismatchTD,
    Oracle,
    QLearning,
)
from urbe.envs.finite import FiniteEnv
from urbe.testing import check_agent, probes

PAGE = Path(__file__).parents[2] / "docs" / "extend" / "agent.md"

EXPORTED = {
    name: kind
    for name, kind in vars(urbe.agents).items()
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and "start" in vars(kind)
}
KNOWING = {
    "BeliefURBE": lambda model: BeliefURBE([model]),
    "Minimax": lambda model: Minimax(model, None),
    "Oracle": lambda model: Oracle(FiniteEnv.of(model)),
}
"""Agents that are given the model."""

IN_PRACTICE = {
    "OLRM": OLRM(bonus_scale=0.02),  # with the scales of theory a hundred episodes teach nothing
    "UCRL2": UCRL2(scale=0.05, criterion=Criterion.EPISODE),
    "MismatchSARSA": MismatchSARSA(0.05, check=False),  # episodes end, without discounting
    "RCPO": RCPO(cost=0.0, limit=1.0, critic=0.5, actor=0.2, initial=1.0),
}
"""Agents whose defaults are not for short episodes without discounting, and those that have none."""

LACKS = {"Robust": {"stochastic successor"}}
"""Robust does not explore: an unlucky start with the good gamble, and it is never tried again."""


@pytest.mark.parametrize("name", sorted(EXPORTED.keys() - KNOWING.keys() - {"MismatchTD"}))
def test_every_agent_keeps_the_contract(name):
    kind = IN_PRACTICE[name] if name in IN_PRACTICE else EXPORTED[name]()
    check_agent(kind, learns=probes().keys() - LACKS.get(name, set()))


def test_an_agent_that_evaluates_keeps_the_contract():
    for task, probe in probes().items():
        uniform = MismatchTD(
            probe.model.by_action(1.0 / np.diff(probe.model.row_start)[probe.model.row_state], fill=0.0)
        )
        check_agent(replace(uniform, check=False), tasks={task: probe}, learns=())


@pytest.mark.parametrize("name", KNOWING)
def test_agents_that_know_keep_the_contract(name):
    for task, probe in probes().items():
        check_agent(KNOWING[name](probe.model), tasks={task: probe}, random=False, share=0.99, episodes=60)


@dataclass
class Broken:
    """Q-learning with some answers replaced: `changes[name](wrapper, agent, *args)`."""

    changes: dict[str, Any]
    kind: Any = field(default_factory=QLearning)

    def start(self, task, streams):
        if "start" in self.changes:
            return Tampered(self.changes["start"](self.kind, task, streams), self.changes)
        return Tampered(self.kind.start(task, streams), self.changes)


@dataclass
class Tampered:
    inner: Any
    changes: dict[str, Any]
    memory: dict[str, Any] = field(default_factory=dict)

    def _answer(self, name, *args):
        change = self.changes.get(name)
        return change(self, self.inner, *args) if change else getattr(self.inner, name)(*args)

    def act(self, replicate, state, step):
        return self._answer("act", replicate, state, step)

    def observe(self, steps, step):
        return self._answer("observe", steps, step)

    def end_episode(self):
        return self.inner.end_episode()

    def state(self):
        return self._answer("state")

    def load(self, state):
        return self._answer("load", state)


def changing_states(_, agent, replicate, state, step):
    out = agent.act(replicate, state, step)
    state += 0
    state[:] = state.max()
    state[0] = 0
    state[-1] += 1
    return out


def changing_rewards(_, agent, steps, step):
    agent.observe(steps, step)
    steps.reward[0] += 1e-9


def changing_the_prior(_, agent, steps, step):  # noqa: ARG001
    agent._model.rows.probability[0] = 0.5


GLOBAL = np.random.default_rng(0)


def at_random_from(generator):
    """Actions at random, from a generator of no stream."""

    def act(_, agent, replicate, state, step):  # noqa: ARG001
        start = agent._model.row_start
        rows = [start[s] + int(generator().integers(start[s + 1] - start[s])) for s in state]
        return agent._model.action[rows]

    return act


def by_the_crowd(_, agent, replicate, state, step):
    """As many replicates, as many steps through the actions."""
    rows = agent._model.row_start[state] + (len(agent.q) + step) % np.diff(agent._model.row_start)[state]
    agent.act(replicate, state, step)
    return agent._model.action[rows]


def without(*names):
    def load(_, agent, state):
        fresh = agent.state()
        agent.load({key: fresh[key] if key in names else value for key, value in state.items()})

    return load


def forgetting_the_episode(tampered, agent, replicate, state, step):
    """Repeats the first action of the episode where it can, and does not save it."""
    out = agent.act(replicate, state, step)
    if step == 0:
        tampered.memory["first"] = dict(zip(replicate.tolist(), out.tolist(), strict=True))
    for k, b in enumerate(replicate.tolist()):
        first, last = agent._model.row_start[state[k] : state[k] + 2]
        if tampered.memory.get("first", {}).get(b) in agent._model.action[first:last].tolist():
            out[k] = tampered.memory["first"][b]
    return out


def aliasing(_, agent, state):
    agent.load(state)
    agent.q = state["q"]


def live_arrays(_, agent):
    return {**agent.state(), "q": agent.q}


def in_a_list(_, agent):
    return {**agent.state(), "extra": [1, 2]}


def numbered(_, agent):
    return {**agent.state(), 3: 1.0}


def objects(_, agent):
    return {**agent.state(), "extra": np.array([None])}


def unseeded(kind, task, streams):
    return kind.start(task, streams._replace(seed=0))


def with_discount(discount):
    def start(kind, task, streams):
        prior = replace(task.prior, model=task.prior.model.with_discount(discount))
        return kind.start(task._replace(prior=prior), streams)

    return start


def endless(_, agent, steps, step):
    """Takes the end for a way back to the start."""
    ended = steps.terminated
    agent.observe(
        steps._replace(terminated=np.zeros_like(ended), next_state=np.where(ended, 0, steps.next_state)), step
    )


def cut_into_ends(_, agent, steps, step):
    """Sees an end after every step."""
    agent.observe(steps._replace(terminated=np.ones_like(steps.terminated)), step)


def as_lists(_, agent, *args):
    return agent.act(*args).tolist()


NOT_EXPLORING = QLearning(exploration=0.0, initial=-5.0, rate=1.0)

BROKEN = {
    "act gives an available action .*: on one state: found action 9 in state 0, expected one of": Broken(
        {"act": lambda _, agent, *args: 0 * agent.act(*args) + 9}
    ),
    "act gives an available action .*: on different actions: found action 1 in state 0": Broken(
        {"act": lambda _, agent, who, *args: np.minimum(agent.act(who, *args), 1)}
    ),
    "act gives an available action .*found float64": Broken({"act": lambda _, agent, *args: 1.0 * agent.act(*args)}),
    r"act gives an available action .*found int.* of \(1, 3\)": Broken(
        {"act": lambda _, agent, *args: agent.act(*args)[None]}
    ),
    "act gives an available action .*found list": Broken({"act": as_lists}),
    "inputs stay untouched: on one state: act changed state in place": Broken({"act": changing_states}),
    "inputs stay untouched: on one state: observe changed reward in place": Broken({"observe": changing_rewards}),
    "inputs stay untouched: on one state: the task's probability": Broken({"observe": changing_the_prior}),
    "the same seed gives the same run": Broken({"act": at_random_from(lambda: GLOBAL)}),
    "a replicate does not depend on its neighbours: .*replicate 4, episode 0": Broken({"act": by_the_crowd}),
    r"load continues from state \(episode 3, step 0\)": Broken({"load": without("q", "v", "tried")}),
    r"load continues from state \(episode 3, step 0\): on one": Broken({"load": without("exploration")}),
    r"load continues from state \(episode 5, step 1\)": Broken({"act": forgetting_the_episode}),
    "load copies what it is given: .* q changed": Broken({"load": aliasing}),
    "state gives copies: .* q changed": Broken({"state": live_arrays}),
    "state is made of dicts, arrays and plain values: .*state.extra is list": Broken({"state": in_a_list}),
    "state is made of dicts, arrays and plain values: .*state has the key 3": Broken({"state": numbered}),
    "state is made of dicts, arrays and plain values: .*an array of object": Broken({"state": objects}),
    "another seed gives another run": Broken({"start": unseeded}),
    "the agent learns: on one state": Broken({}, QLearning(exploration=1.0)),
    "the agent learns: on bandit": Broken({"act": lambda _, agent, *args: 0 * agent.act(*args)}),
    "the agent learns: on delayed reward": Broken({"start": with_discount(0.0)}),
    "the agent learns: on discount": Broken({"start": with_discount(1.0)}),
    "the agent learns: on stochastic successor": Broken({}, NOT_EXPLORING),
    "the agent learns: on end or cut": Broken({"observe": endless}),
    "the agent learns: on different actions": Broken({"observe": cut_into_ends}),
}


@pytest.mark.parametrize("law", BROKEN)
def test_a_broken_law_is_named(law):
    # one skill at a time where a law names it: an agent that lacks one may lack others
    tasks = {name: probe for name, probe in probes().items() if f"on {name}" in law} or probes()
    with pytest.raises(AssertionError, match=law):
        check_agent(BROKEN[law], tasks=tasks, random=len(tasks) > 1)


@pytest.mark.parametrize("skill", probes())
def test_the_untampered_agent_passes(skill):
    check_agent(Broken({}), tasks={skill: probes()[skill]}, random=False, seed=1)


def test_messages_say_what_was_found_and_expected():
    with pytest.raises(AssertionError) as failure:
        check_agent(Broken({}, QLearning(exploration=1.0)))
    expected = (
        r"found a mean return of \d\.\d{3} in the last 50 of 150 episodes, expected at least 3\.071; "
        r"random: 2\.048, best: 4\.095\."
    )
    assert re.fullmatch("the agent learns: on one state: " + expected, str(failure.value))


def test_agents_without_chance_say_so():
    fixed = Broken({"act": lambda _, agent, who, state, step: agent._model.action[agent._model.row_start[state]]})  # noqa: ARG005
    with pytest.raises(AssertionError, match="another seed gives another run"):
        check_agent(fixed, learns=())
    check_agent(fixed, learns=(), random=False)


def test_probes_are_worth_what_pen_and_paper_say():
    expected = {name: (probe.random, probe.best) for name, probe in probes().items()}
    powers = 0.9 ** np.arange(8)
    assert expected["one state"] == pytest.approx((0.5 * powers[:5].sum(), powers[:5].sum()))
    assert expected["bandit"] == pytest.approx((1.9 / 4, 1.0))
    assert expected["delayed reward"] == pytest.approx((0.6, 1.0))
    assert expected["discount"] == pytest.approx((0.75, 1.0))
    assert expected["stochastic successor"] == pytest.approx((0.4, 0.8))
    assert expected["end or cut"][1] == pytest.approx(0.4 * powers[:7].sum() + powers[7])
    assert expected["end or cut"][0] == pytest.approx(0.7 * (0.45 ** np.arange(8)).sum())
    assert expected["different actions"] == pytest.approx((0.5 * 0.2 + 0.5 * 0.25, 1.0))


def test_the_tutorial_runs(tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 3
    file = tmp_path / "bonus_q_tutorial.py"
    file.write_text("\n\n".join(blocks))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, file.stem, module)
    monkeypatch.chdir(tmp_path)
    spec.loader.exec_module(module)
    assert module.curious > 5.0 * module.timid  # the river is swum by those who try
    again = urbe.agents.Single(module.BonusQ(), module.task, seed=0)
    urbe.load_agent("agent.safetensors", again)
    assert again.step == 1
    with pytest.raises(ValueError, match="bonus is -1, expected"):
        module.BonusQ(-1.0).start(module.task, urbe.agents.Streams(0, np.arange(1)))
