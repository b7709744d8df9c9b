"""The contract of agents: what runs and saved files rely on, and learning."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from urbe.agents.base import AgentConfig
from urbe.testing import agent_laws
from urbe.testing.agent_probes import Probe, probes


def check_agent(
    kind: AgentConfig,
    *,
    tasks: Mapping[str, Probe] | None = None,
    learns: Collection[str] | None = None,
    random: bool = True,
    seed: int = 0,
    episodes: int = 150,
    replicates: int = 8,
    share: float = 0.5,
) -> None:
    """Holds an agent to the contract of `urbe.agents.base`, and to learning, on small tasks of one skill each.

    Args:
      kind: the agent's parameters.
      tasks: what to try it on, by name; by default `urbe.testing.probes()`: one state, a bandit, delayed reward, a
        discount that matters, stochastic successors, ends and cuts, states with different actions.
      learns: the names of the tasks on which it must do better than chance; None: all of them.
      random: whether another seed must lead to other actions on some task.
      seed: of the worlds and of the agent.
      episodes, replicates: how long and how often it may learn.
      share: how much better than chance: this share of the way from random actions to the best, in the mean over
        replicates and over the last third of the episodes.

    Raises:
      AssertionError: with the law that is broken, the task, what was found and what was expected.

    >>> from urbe.agents import QLearning
    >>> check_agent(QLearning())
    """
    chosen = probes() if tasks is None else tasks
    differed = False
    for name, probe in chosen.items():
        case = agent_laws.AgentCase(kind, name, probe, seed)
        one = agent_laws.check_same_seed(case)
        differed = differed or agent_laws.other_seed_differs(case, one)
        agent_laws.check_neighbours(case, one)
        agent_laws.check_resume(case, one)
        if learns is None or name in learns:
            agent_laws.check_skill(case, episodes, replicates, share)
    if random and not differed:
        raise AssertionError(
            "another seed gives another run: on every task the agent did the same with two seeds. Draw from the "
            "streams it is started with, or say random=False for agents without chance."
        )
