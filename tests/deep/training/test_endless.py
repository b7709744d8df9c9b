"""Environments whose episodes do not end."""

import gymnasium
import numpy as np
import pytest

from urbe.cli import main
from urbe.deep import CopyEvery, Network, NoEpisodeEnded, Settings, dqn
from urbe.deep.training import endless


class Treadmill(gymnasium.Env):
    """Goes on for ever."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), float(action), False, False, {}


def test_a_training_without_the_end_of_an_episode_warns(monkeypatch):
    monkeypatch.setattr(endless, "STEPS", 100)
    settings = Settings(network=Network(hidden=(4,)), batch=4, capacity=64, warm_up=16, copy=CopyEvery(updates=10))
    with pytest.warns(NoEpisodeEnded, match="No episode has ended in 100 steps, so there are no returns. If"):
        dqn(Treadmill(), seed=0, settings=settings, log_every=50).learn(120)
    dqn(gymnasium.wrappers.TimeLimit(Treadmill(), 40), seed=0, settings=settings, log_every=50).learn(120)


def test_the_command_says_so_and_what_to_do(capsys, tmp_path):
    own = ("--set", "network.hidden=4", "batch=4", "capacity=64", "warm_up=16", "--log-every", "50")
    where = ("--seed", "0", "--out", str(tmp_path / "run"), "--steps", "60")
    assert main(["train", f"{__name__}:Treadmill", "--agent", "dqn", *where, *own]) == 0
    err = capsys.readouterr().err
    assert "nan" not in err
    assert "the target network, which waits for 10, was never copied" in err
    assert "--set copy.episodes=none copy.updates=1000" in err
