"""Files written by earlier versions can be loaded; `tests/data/freeze.py` wrote them with the code of that version."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import urbe
from urbe.agents import QLearning, Single, Task
from urbe.deep.compilation import cache_compilation
from urbe.deep.saving.load import load
from urbe.deep.training.train import train
from urbe.runs.directory import saved_steps
from urbe.sweep.finished import load_finished

DATA = Path(__file__).parents[1] / "data"
VERSIONS = sorted(path.name for path in DATA.glob("version_*"))
POINTS = np.array([[0.0, 0.0, 0.1, 0.0], [0.5, -1.0, -0.1, 0.5], [-1.0, 0.3, 0.05, -0.7], [0.0, 0.0, -0.15, -0.2]])


@pytest.fixture(params=VERSIONS)
def frozen(request, tmp_path):
    """A copy of the files of one version, and what was computed from them then."""
    cache_compilation()
    folder = tmp_path / request.param
    shutil.copytree(DATA / request.param, folder)
    return folder, json.loads((folder / "expected.json").read_text())


def size(agent):
    tensors = agent.tensors()
    return float(sum(np.abs(tensors[name]).sum() for name in tensors if name.startswith("trainer/learner/q/")))


def test_every_version_is_kept():
    assert VERSIONS == ["version_1", "version_2", "version_3"]


def test_a_deep_agent_is_what_it_was_and_learns_on(frozen):
    folder, expected = frozen
    agent = load(folder / "agent")
    assert agent.step == 90
    assert size(agent) == pytest.approx(expected["agent_size"], rel=1e-6)
    assert agent.policy.predict(POINTS.astype(np.float32)).tolist() == expected["agent_actions"]
    assert agent.history.episodes["return"].tolist() == expected["agent_returns"]
    agent.learn(20)
    assert agent.step == 110
    assert agent.history.members["targets"][-1] > 0.0  # who decides is counted from here on


def test_a_run_goes_on(frozen):
    folder, expected = frozen
    agent = load(folder / "run")
    assert size(agent) == pytest.approx(expected["run_size"], rel=1e-6)
    assert agent.policy.predict(POINTS.astype(np.float32)).tolist() == expected["run_actions"]
    assert agent.history.log["step"].tolist() == [20, 40, 60, 80, 100]
    train(agent, folder / "run", 140)
    assert saved_steps(folder / "run")[-1] == 140
    assert load(folder / "run").history.log["step"].tolist() == [20, 40, 60, 80, 100, 120, 140]


def others(kind):
    """The folders of the versions of a kind that has versions of its own."""
    return pytest.mark.parametrize("folder", sorted(DATA.glob(f"{kind}_*")), ids=lambda path: path.name)


def test_every_version_of_every_other_kind_is_kept():
    from urbe.deep.actor_critic import agent as critic
    from urbe.deep.adaptive import agent as adaptive
    from urbe.deep.adaptive import session
    from urbe.sweep import finished

    found = sorted(path.name for path in DATA.glob("*_*") if not path.name.startswith("version"))
    assert found == ["adaptive_2", "critic_1", "sweep_1"]
    assert (adaptive.VERSION, session.VERSION, critic.VERSION, finished.VERSION) == (2, 1, 1, 1)  # else freeze again


@others("adaptive")
def test_an_adaptive_agent_and_its_deployment_go_on(folder):
    from urbe.deep import load_adaptive

    expected = json.loads((folder / "expected.json").read_text())
    agent = load_adaptive(folder / "agent")
    assert agent.step == expected["adaptive_step"]
    parts = agent.tensors()
    weight = float(sum(np.abs(parts[name]).sum() for name in parts if name.startswith("run/q/")))
    assert weight == pytest.approx(expected["adaptive_weight"], rel=1e-6)
    assert weight > 0.0
    session = agent.deploy(seed=0).load(folder / "session")
    assert [step["action"] for step, _ in session.log] == expected["session_actions"]
    assert session.memory.belief.log_b == pytest.approx(np.array(expected["session_belief"]), abs=1e-6)
    session.act(POINTS[-1].astype(np.float32))
    session.observe(1.0, POINTS[0].astype(np.float32), False, False)
    assert len(session.log) == 4


@others("critic")
def test_an_actor_critic_goes_on(folder):
    from urbe.deep import load_actor_critic

    expected = json.loads((folder / "expected.json").read_text())
    agent = load_actor_critic(folder / "agent")
    assert agent.step == expected["critic_step"]
    assert agent.probabilities(np.eye(7)) == pytest.approx(np.array(expected["critic_probabilities"]), abs=1e-6)
    assert agent.learn(16).step > expected["critic_step"]


class Row(NamedTuple):
    name: str
    value: float
    count: int


@others("sweep")
def test_a_finished_cell_is_what_it_was(folder):
    expected = json.loads((folder / "expected.json").read_text())
    found = load_finished(folder, "f", Row)
    assert [list(row) for row in found.rows()] == expected["sweep_rows"]
    assert [cell.record.cell for cell in found.cells] == ["one"]
    assert [name.partition("-")[0] for name in found.missing] == ["two"]


def test_a_tabular_agent_is_what_it_was(frozen):
    folder, expected = frozen
    agent = Single(QLearning(), Task(urbe.Posterior.before(urbe.library.riverswim(4)), horizon=20), seed=0)
    urbe.load_agent(folder / "tabular", agent)
    assert np.asarray(agent.state()["agent"]["q"]).tolist() == expected["tabular_q"]
    assert agent.step == 7


def test_a_model_is_what_it_was(frozen):
    folder, expected = frozen
    mdp = urbe.read_mdp(folder / "model.npz")
    assert mdp.n_states == expected["model_states"]
    assert urbe.solve(mdp, urbe.L1Ball(0.3)).value == pytest.approx(expected["model_value"], abs=1e-5)
