"""What an agent knows of a Gymnasium environment beforehand."""

from __future__ import annotations

from urbe.agents.base import Task
from urbe.envs.gym_tabular import GymEnv
from urbe.posteriors.dirichlet import Posterior
from urbe.posteriors.rewards import NormalGamma


def gym_task(
    env: GymEnv,
    *,
    discount: float,
    horizon: int,
    concentration: float = 1.0,
    rewards: NormalGamma | None = None,
) -> Task:
    """The task of an environment: its pairs and what may follow them, with a prior about how likely that is.

    Where the environment has a table `P`, feasible successors and rewards are read from it, but no probabilities.
    Without a table every state may follow, and rewards are to be learnt.

    Args:
      env: what will be acted in.
      discount: in [0, 1].
      horizon: steps after which episodes are cut off.
      concentration: Dirichlet prior of each feasible successor, positive.
      rewards: prior of rewards, read where there is no table; None is `NormalGamma()`.

    >>> import gymnasium
    >>> lake = GymEnv(lambda: gymnasium.make("FrozenLake-v1"))
    >>> gym_task(lake, discount=0.99, horizon=100).prior
    Posterior(44 rows, 128 feasible successors, 0 transitions seen)
    """
    learnt = None if env.numbers.known else (rewards or NormalGamma())
    return Task(Posterior.before(env.feasible(discount), concentration, learnt), horizon)
