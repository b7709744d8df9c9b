"""One agent in one environment, with plain numbers instead of arrays, for loops of your own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from urbe import checks
from urbe.agents.base import AgentConfig, Steps, Streams, Task, check_task


class Single:
    """A single run of any agent; replicate 0 of `run` with the same seed acts in the same way.

    States and actions are ids; texts are taken for labels of the task's model, whose `labels.action(id)` names the
    action that `act` returns.

    Args:
      kind: the agent's parameters.
      task: its prior knowledge.
      seed: seed of its random numbers.

    Attributes:
      agent: the agent itself, of one replicate.
      step: steps since the episode began.

    >>> import urbe
    >>> from urbe.agents import URBE, Task
    >>> task = Task(urbe.Posterior.before(urbe.library.seven_states(0.8)), horizon=2)
    >>> agent = Single(URBE(radius=0.3), task, seed=0)
    >>> agent.act(2)
    0
    >>> agent.observe(2, 0, 1.0, 3, terminated=True)
    >>> agent.end_episode()
    """

    def __init__(self, kind: AgentConfig, task: Task, *, seed: int) -> None:
        check_task(kind, task)
        self.kind, self.task, self.seed = kind, task, checks.whole_number("seed", seed, 0)
        self.agent = kind.start(task, Streams(self.seed, np.zeros(1, dtype=np.int64)))
        self.step = 0
        self._over = False

    @property
    def parts(self) -> dict[str, object]:
        """The parameters that must agree for a saved run to be resumed."""
        return {"agent": self.kind, "task": self.task, "seed": self.seed}

    def act(self, state: int | str) -> int:
        """Chooses the action in `state`."""
        at = self._live("state", state)
        if self._over:
            raise ValueError("The episode is over; call end_episode() before the first act of the next.")
        if self.step >= self.task.horizon:
            raise ValueError(
                f"The episode has lasted {self.step} steps, the task's horizon; call end_episode(), or start with a "
                "longer horizon."
            )
        return int(self.agent.act(np.zeros(1, dtype=np.int64), np.array([at]), self.step)[0])

    def observe(
        self,
        state: int | str,
        action: int | str,
        reward: float,
        next_state: int | str,
        terminated: bool = False,
        truncated: bool = False,
    ) -> None:
        """Learns from the outcome of `action`: the process ended there (terminated) or was truncated."""
        at, to = self._live("state", state), self._state("next_state", next_state)
        labels = self.task.prior.model.labels
        taken = int(labels.action_ids("action", [action])[0]) if isinstance(action, str) else action
        checks.float_array("reward", reward, ndim=0)
        steps = Steps(
            replicate=np.zeros(1, dtype=np.int64),
            state=np.array([at]),
            action=np.array([taken]),
            reward=np.array([float(reward)]),
            next_state=np.array([to]),
            terminated=np.array([bool(terminated)]),
            truncated=np.array([bool(truncated)]),
        )
        self.agent.observe(steps, self.step)
        self.step += 1
        self._over = bool(terminated or truncated)

    def end_episode(self) -> None:
        """Ends the episode; the next `act` begins another."""
        self.agent.end_episode()
        self.step, self._over = 0, False

    def state(self) -> dict[str, Any]:
        """Returns the complete state, as nested dicts of arrays and plain values; see `urbe.save_agent`."""
        return {"step": self.step, "over": self._over, "agent": self.agent.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores the result of `state`, bit for bit."""
        self.step, self._over = int(state["step"]), bool(state["over"])
        self.agent.load(state["agent"])

    def _live(self, name: str, state: int | str) -> int:
        """The id of a state with actions."""
        at = self._state(name, state)
        if self.task.prior.model.terminal[at]:
            raise ValueError(f"state {state} is terminal: nothing is to be done or learnt there; call end_episode().")
        return at

    def _state(self, name: str, state: int | str) -> int:
        model = self.task.prior.model
        if isinstance(state, str):
            return int(model.labels.state_ids(name, [state])[0])
        return int(checks.int_array(name, [state], 0, model.n_states, "state")[0])
