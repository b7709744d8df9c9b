"""The four environments, and the hyper-parameters of both learners.

The numbers are those that the RL Baselines3 Zoo tuned for Stable-Baselines3's DQN (the entries of these environments in
its `hyperparams/dqn.yml`; the entry of LunarLander-v2 for LunarLander-v3). Steps are transitions of the environment.
"""

from __future__ import annotations

from dataclasses import dataclass

WHOLE_ROLLOUT = -1
"""As many gradient steps as transitions since the last ones."""


@dataclass(frozen=True)
class Problem:
    """One environment with the hyper-parameters for it.

    Args:
      environment: Gymnasium's id.
      steps: of training in all.
      learning_rate: of Adam.
      batch: transitions per gradient step.
      capacity: transitions in the replay.
      warm_up: steps before the first gradient step.
      discount: gamma.
      copy_every: steps between copies of the weights to the target network.
      train_every: steps between rounds of gradient steps.
      gradient_steps: in a round.
      exploration: share of the training over which epsilon falls from 1 to `epsilon`.
      epsilon: the last one.
      hidden: units of each hidden layer.
    """

    environment: str
    steps: int
    learning_rate: float
    batch: int
    capacity: int
    warm_up: int
    discount: float
    copy_every: int
    train_every: int
    gradient_steps: int
    exploration: float
    epsilon: float
    hidden: tuple[int, ...] = (256, 256)


PROBLEMS = {
    problem.environment: problem
    for problem in (
        Problem("CartPole-v1", 50_000, 2.3e-3, 64, 100_000, 1_000, 0.99, 10, 256, 128, 0.16, 0.04),
        Problem("Acrobot-v1", 100_000, 6.3e-4, 128, 50_000, 0, 0.99, 250, 4, WHOLE_ROLLOUT, 0.12, 0.1),
        Problem("MountainCar-v0", 120_000, 4e-3, 128, 10_000, 1_000, 0.98, 600, 16, 8, 0.2, 0.07),
        Problem("LunarLander-v3", 100_000, 6.3e-4, 128, 50_000, 0, 0.99, 250, 4, WHOLE_ROLLOUT, 0.12, 0.1),
    )
}
