"""Writes the files that one version of urbe saves, once; tests load them with every later version.

    git archive COMMIT src | tar x -C OLD
    PYTHONPATH=OLD/src python tests/data/freeze.py tests/data/NAME

Each folder has a deep agent, a run, a tabular agent and a model as that version wrote them, and `expected.json`:
numbers that were computed from them then. Of version 3 it is what was written before the run kept members.csv.
"""

import json
import sys
from pathlib import Path

import numpy as np

POINTS = [[0.0, 0.0, 0.1, 0.0], [0.5, -1.0, -0.1, 0.5], [-1.0, 0.3, 0.05, -0.7], [0.0, 0.0, -0.15, -0.2]]
SWUM = [(0, 1, 0.0, 1), (1, 1, 0.0, 2), (2, 1, 0.0, 3), (3, 1, 1.0, 3), (3, 0, 0.0, 2), (2, 0, 0.0, 1), (1, 0, 0.0, 0)]
SMALL = {"batch": 16, "capacity": 64, "warm_up": 32}


def main(folder):
    folder = Path(folder)
    folder.mkdir(parents=True)
    expected = {**deep(folder), **tabular(folder), **model(folder)}
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


if __name__ == "__main__":
    main(sys.argv[1])
