"""Writes the files that one version of urbe saves, once; tests load them with every later version.

    git archive COMMIT src | tar x -C OLD
    PYTHONPATH=OLD/src python tests/data/freeze.py tests/data/NAME [KIND ...]

Each folder `version_N` has a deep agent, a run, a tabular agent and a model as that version wrote them, and
`expected.json`: numbers that were computed from them then. Of version 3 it is what was written before the run kept
members.csv. The kinds that count versions of their own are in a folder of each such version, `adaptive_2` (with the
session), `critic_1` and `sweep_1`: add one when the version of a kind changes.
"""

import json
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

POINTS = [[0.0, 0.0, 0.1, 0.0], [0.5, -1.0, -0.1, 0.5], [-1.0, 0.3, 0.05, -0.7], [0.0, 0.0, -0.15, -0.2]]
SWUM = [(0, 1, 0.0, 1), (1, 1, 0.0, 2), (2, 1, 0.0, 3), (3, 1, 1.0, 3), (3, 0, 0.0, 2), (2, 0, 0.0, 1), (1, 0, 0.0, 0)]
SMALL = {"batch": 16, "capacity": 64, "warm_up": 32}


def main(folder, *kinds):
    folder = Path(folder)
    folder.mkdir(parents=True)
    expected = {}
    for kind in kinds or ("deep", "tabular", "model"):
        expected |= KINDS[kind](folder)
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def deep(folder):
    from urbe.deep import Network, dqn_urbe, robust_dqn, train
    from urbe.simulators import CartPole, UncertaintySet

    pole = CartPole()
    poles = UncertaintySet.grid(pole, half_length=(0.25, 1.0))
    agent = robust_dqn(pole, poles, seed=3, log_every=20, network=Network(hidden=(8, 8)), **SMALL).learn(90)
    agent.save(folder / "agent")
    run = dqn_urbe(pole, poles, seed=4, log_every=20, network=Network(hidden=(8, 8)), **SMALL)
    train(run, folder / "run", 100, checkpoint_every=50, keep=1)
    (folder / "run" / "lock").unlink(missing_ok=True)
    return {
        "agent_actions": actions(agent),
        "agent_size": size(agent),
        "agent_returns": agent.history.episodes["return"].tolist(),
        "run_actions": actions(run),
        "run_size": size(run),
        "run_steps": agent.history.log["step"].tolist(),
    }


def actions(agent):
    return np.asarray(agent.policy.predict(np.array(POINTS, np.float32))).tolist()


def size(agent):
    tensors = agent.tensors()
    return float(sum(np.abs(tensors[name]).sum() for name in tensors if name.startswith("trainer/learner/q/")))


def tabular(folder):
    import urbe
    from urbe.agents import QLearning, Single, Task

    agent = Single(QLearning(), Task(urbe.Posterior.before(urbe.library.riverswim(4)), horizon=20), seed=0)
    for state, action, reward, following in SWUM:
        agent.observe(state, action, reward, following)
    urbe.save_agent(folder / "tabular", agent)
    return {"tabular_q": np.asarray(agent.state()["agent"]["q"]).tolist()}


def model(folder):
    import urbe

    mdp = urbe.library.garnet(6, 3, 2, seed=5)
    urbe.write_mdp(mdp, folder / "model.npz")
    found = urbe.solve(mdp, urbe.L1Ball(0.3))
    return {"model_value": np.asarray(found.value).tolist(), "model_states": mdp.n_states}


def adaptive(folder):
    """An adaptive agent, and a deployment of it after some steps."""
    from urbe.belief import Switching
    from urbe.deep import DuelingNetwork, bayes_adaptive_dqn
    from urbe.simulators import CartPole, UncertaintySet

    pole = CartPole(time_limit=30)
    poles = UncertaintySet.grid(pole, include_nominal=False, force=(-10.0, 10.0))
    agent = bayes_adaptive_dqn(
        pole, poles, switching=Switching(0.01), seed=5, lives=2, length=4, minibatches=2, network=DuelingNetwork((8,))
    ).learn(16)
    agent.save(folder / "agent")
    session = agent.deploy(seed=6)
    for before, after in pairwise(POINTS):
        session.act(np.array(before, np.float32))
        session.observe(1.0, np.array(after, np.float32), False, False)
    session.save(folder / "session")
    return {
        "adaptive_step": agent.step,
        "adaptive_weight": weight(agent),
        "session_actions": [step["action"] for step, _ in session.log],
        "session_belief": np.asarray(session.memory.belief.log_b).tolist(),
    }


def weight(agent):
    return float(sum(np.abs(array).sum() for name, array in agent.tensors().items() if name.startswith("run/q/")))


def critic(folder):
    from urbe.deep import soft_robust_actor_critic
    from urbe.deep.actor_critic.settings import ActorCriticSettings
    from urbe.deep.core.networks import Network
    from urbe.simulators import SevenStates, UncertaintySet

    seven, net = SevenStates(), Network(hidden=(4,))
    members = UncertaintySet.grid(seven, include_nominal=False, success_2=(0.1, 0.7))
    settings = ActorCriticSettings(actor=net, critic=net, lanes=4, rollout=4)
    agent = soft_robust_actor_critic(seven, members, seed=7, settings=settings).learn(64)
    agent.save(folder / "agent")
    return {"critic_step": agent.step, "critic_probabilities": np.asarray(agent.probabilities(np.eye(7))).tolist()}


class Row(NamedTuple):
    name: str
    value: float
    count: int


@dataclass(frozen=True)
class Cell:
    name: str
    seed: int


def sweep(folder):
    """The plan of a sweep with a finished cell and another one that was never run."""
    from freeze import Cell, Row  # of a module, since cells of a script are refused

    from urbe.sweep import store
    from urbe.sweep.cells import Code, jobs
    from urbe.sweep.finished import write_plan
    from urbe.sweep.store import CellRecord, Stored

    rows = [Row("a", 1.5, 2), Row("b", -0.25, 0)]
    mine = jobs(Code("module", "f", Row, "old"), [Cell("one", 1), Cell("two", 2)], folder / "cells")
    write_plan(folder, "quick", {"f": mine})
    record = CellRecord("f", "one", {"seed": 1}, mine[0].identity, "old", None, {}, {}, "", 1.0)
    store.save(mine[0].rows, Row, Stored(rows, record))
    return {"sweep_rows": [list(row) for row in rows]}


KINDS = {"deep": deep, "tabular": tabular, "model": model, "adaptive": adaptive, "critic": critic, "sweep": sweep}

if __name__ == "__main__":
    main(*sys.argv[1:])
