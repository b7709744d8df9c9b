"""Evaluate an agent during training: greedy test episodes over chosen parameters, with separate random numbers.

    mean(t) = mean over theta of J(theta)      J(theta) = mean return of the test episodes under parameters theta
    worst(t) = min over theta of J(theta)

of the agent after t steps. Evaluation does not change training: its bits are the same with and without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from urbe import checks
from urbe.deep.training.callbacks import Decision
from urbe.evaluation.grids import Grid, points_of
from urbe.evaluation.gym_world import EnvSource
from urbe.evaluation.robustness import evaluate
from urbe.gym.kinds import KINDS
from urbe.simulators import Simulator

if TYPE_CHECKING:
    from urbe.deep.agent import DQNAgent

By = Literal["mean", "worst"]
"""The measure: the mean return over parameters, or the return under the worst ones."""

CRITERIA: tuple[By, ...] = ("mean", "worst")


@dataclass(frozen=True, eq=False)
class Evaluate:
    """Evaluates the greedy policy at fixed intervals, keeps the best agent, and can stop training early.

    All evaluations play the same episodes, so differences between them are differences between agents. The best result
    is biased upwards by the choice: for a number to report, evaluate the agent again with another seed.

    Args:
      every: steps between two evaluations, which are at its multiples.
      over: the parameters, as for `urbe.evaluate`; those that are not named are nominal.
      env: the environment; by default the agent's simulator. An agent that learns in a Gymnasium environment needs
        another one: an environment with `set_params`, a function that makes environments, or a function from parameters
        to an environment.
      episodes: number of episodes for each set of parameters.
      seed: seed of the episodes.
      time_limit: steps after which an episode is truncated; by default the environment's own.
      by: "mean" or "worst": the measure that chooses the best agent and stops learning.
      stop_at: learning stops when an evaluation reaches this return; None never.
      patience: learning stops after this many evaluations in a row without improvement; None never.
      keep: the file in the folder of a run in which `train` keeps the best agent, without its suffix `.safetensors`;
        None keeps none.
      name: name of the table, and of the file in the folder of a run.

    >>> from urbe.deep.presets import dqn
    >>> from urbe.simulators import CartPole
    >>> agent = dqn(CartPole(), seed=0, capacity=500, warm_up=100, batch=16)
    >>> poles = Evaluate(every=200, over={"half_length": (0.25, 1.0)}, episodes=5, stop_at=5.0)
    >>> agent.learn(1000, callbacks=[poles]).step
    200
    >>> agent.stopped.endswith("at step 200, and stop_at is 5.")
    True
    """

    every: int
    over: Grid = ({},)
    env: Simulator | EnvSource | None = None
    episodes: int = 20
    seed: int = 0
    time_limit: int | None = None
    by: By = "mean"
    stop_at: float | None = None
    patience: int | None = None
    keep: str | None = "best"
    name: str = "evaluation"

    def __post_init__(self) -> None:
        checks.whole_number("every", self.every, 1)
        checks.whole_number("episodes", self.episodes, 1)
        checks.whole_number("seed", self.seed, 0)
        checks.one_of("by", self.by, CRITERIA)
        if self.time_limit is not None:
            checks.whole_number("time_limit", self.time_limit, 1)
        if self.stop_at is not None:
            checks.finite_number("stop_at", self.stop_at)
        if self.patience is not None:
            checks.whole_number("patience", self.patience, 1)

    @property
    def columns(self) -> tuple[str, ...]:
        """Mean and worst case over the parameters."""
        return CRITERIA

    def describe(self, agent: DQNAgent) -> dict[str, Any]:
        """Describes the measurement as plain data; the stopping rule may change from call to call."""
        where = agent.simulator if self.env is None else self.env
        if where is None:
            raise ValueError(
                "Evaluate.env is missing: the agent does not learn in a simulator of urbe; expected a Gymnasium "
                "environment other than the one it learns in, or a function that makes environments."
            )
        if isinstance(where, KINDS) and agent.trainer.acts_in(where):
            raise ValueError(
                f"Evaluate.env is {where}, which the agent learns in; expected another one, because test episodes "
                "would disturb training. Give a function that makes environments: env=lambda: gymnasium.make(...)."
            )
        _ = agent.policy  # raises for an agent that acts on a hidden state
        points = points_of(self.over, where if isinstance(where, Simulator) else None).points
        return {
            "every": self.every,
            "points": [{name: float(value) for name, value in point.items()} for point in points],
            "env": "its own" if self.env is None else "another",
            "episodes": self.episodes,
            "seed": self.seed,
            "time_limit": self.time_limit,
            "by": self.by,
            "keep": self.keep,
        }

    def measure(self, agent: DQNAgent) -> dict[str, float]:
        """Mean and worst case of the current agent."""
        found = evaluate(
            agent.policy,
            self.over,
            env=agent.simulator if self.env is None else self.env,
            episodes=self.episodes,
            seed=self.seed,
            acting="greedy",
            time_limit=self.time_limit,
        )
        assert found.greedy is not None
        returns = found.greedy.returns.mean(axis=1)
        return {"mean": float(returns.mean()), "worst": float(returns.min())}

    def verdict(self, rows: Mapping[str, np.ndarray]) -> Decision:
        """The index of the best evaluation (the first one of equals), and whether to stop."""
        values, steps = rows[self.by], rows["step"]
        if not len(values):
            return Decision()
        best = int(values.argmax())
        return Decision(best, self._reached(values, steps) or self._exhausted(values, steps, best))

    def _reached(self, values: np.ndarray, steps: np.ndarray) -> str | None:
        if self.stop_at is None or values.max() < self.stop_at:
            return None
        at = int((values >= self.stop_at).argmax())
        reason = f"The {self.by} return of {self.name} was {values[at]:.6g} at step {int(steps[at])}"
        return f"{reason}, and stop_at is {self.stop_at:g}."

    def _exhausted(self, values: np.ndarray, steps: np.ndarray, best: int) -> str | None:
        since = len(values) - 1 - best
        if self.patience is None or since < self.patience:
            return None
        reason = (
            f"The {self.by} return of {self.name} has not exceeded the {values[best]:.6g} of step {int(steps[best])}"
        )
        return f"{reason} in {since} evaluations, and patience is {self.patience}."
