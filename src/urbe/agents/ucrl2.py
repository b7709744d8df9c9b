"""UCRL2 [Jaksch2010]: optimism in the face of uncertainty, by L1 balls and epochs that double.

With N visits of a pair before the epoch that began at time t, in a model of S states and A actions,

    ||p - frequencies||_1 <= scale sqrt(14 S log(2 A t / delta) / max(1, N)),
    |r - mean|            <= scale span sqrt(7 log(2 S A t / delta) / (2 max(1, N)))     if rewards are uncertain,

and the policy is the best one of the best such model. The criterion is the average reward, by extended value
iteration to 1 / sqrt(t), or the reward of an episode, by backward induction.

Any set may take the place of the L1 balls; with a shared budget the best model spends it on one action. The regions of
KL-UCRL [Filippi2010], {p : KL(frequencies, p) <= c / N}, are
`set=lambda seen: LikelihoodRegion(c / np.maximum(seen.visits, 1.0))`.

Departure: mass may go only to listed successors, and mean rewards are those of the posterior. In theory, scale = 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.agents.base import Streams, Task
from urbe.agents.choose import Noise
from urbe.agents.epochs import Epochs
from urbe.agents.extended import best_gain, check_restarts, extended_value_iteration
from urbe.agents.l1_plan import L1Plan
from urbe.agents.learner import Knowledge, ModelBasedAgent
from urbe.agents.set_plan import Plan, SetPlan, centred
from urbe.ambiguity.operator import AmbiguitySet, check_set
from urbe.ambiguity.optimistic import helping
from urbe.mdp.model import MDP
from urbe.posteriors.beliefs import PosteriorConfig, Stationary, Visit
from urbe.types import BoolArray, FloatArray, IntArray


class Criterion(Enum):
    """The objective: average reward over an infinite horizon (episodes restart it), or the reward of an episode."""

    AVERAGE = "average"
    EPISODE = "episode"


class PairVisits(NamedTuple):
    """The data for the size of a confidence set.

    Attributes:
      visits: `(R,)` visits of each pair before the epoch.
      time: steps taken before it, from 1.
      n_states, n_actions: sizes of the model.
      delta: failure probability.
    """

    visits: FloatArray
    time: float
    n_states: int
    n_actions: int
    delta: float


@dataclass(frozen=True)
class UCRL2:
    """The agent's parameters; numbers may be given one per replicate.

    Args:
      scale: scale of the radii.
      belief: how the counts follow the data.
      criterion: the objective.
      delta: failure probability, in (0, 1).
      span: largest minus least reward; not used if rewards are known.
      set: replaces the L1 balls around the frequencies: a function of `PairVisits`, or one set for all times; any set,
        from which the best model is taken. `scale` then applies only to rewards.
    """

    scale: ArrayLike = 1.0
    belief: PosteriorConfig = field(default_factory=Stationary)
    criterion: Criterion = Criterion.AVERAGE
    delta: float = 0.05
    span: float = 1.0
    set: AmbiguitySet | Callable[[PairVisits], AmbiguitySet] | None = None

    def start(self, task: Task, streams: Streams) -> ModelBasedAgent:
        return ModelBasedAgent(task, streams, self.belief, OptimisticPlans(self, task, streams), Noise.NONE)


class OptimisticPlans:
    """The `Strategy` of UCRL2: at the beginning of an epoch, plans the best policy of the best plausible model.

    Attributes:
      epochs: epochs of the replicates.
      gain: `(B,)` optimistic reward per step, for the average criterion.
    """

    u = share = None  # the greedy policy, without noise

    def __init__(self, kind: UCRL2, task: Task, streams: Streams) -> None:
        self._model, n = task.prior.mean(), len(streams.replicates)  # uncertain rewards are of pairs there
        self._scale = checks.per_replicate("scale", kind.scale, n, 0.0, np.inf)[:, None]
        self._delta = checks.probability("delta", kind.delta)
        self._span = checks.number("span", kind.span, 0.0, np.inf)
        average = kind.criterion is Criterion.AVERAGE
        if average:
            check_restarts(self._model)
        self.epochs = Epochs(self._model, streams)
        self._set = _as_function(kind.set, self._model, self._delta)
        self._plan: Plan | None = None
        if not average:
            sizes = self._model, task.horizon, n
            self._plan = L1Plan(*sizes, optimistic=True) if self._set is None else SetPlan(*sizes)
        self._q = np.zeros((n, 1, self._model.n_rows))
        self._values = np.zeros((n, self._model.n_states))
        self.gain = np.zeros(n)
        self._time = np.ones(n)

    @property
    def q(self) -> FloatArray:
        return self._q if self._plan is None else self._plan.q

    def due(self, known: Knowledge, replicate: IntArray, step: int) -> BoolArray:
        return self.epochs.over[replicate]

    def plan(self, known: Knowledge, which: IntArray) -> None:
        epochs, model, time = self.epochs, self._model, self._time[:, None]
        epochs.begin(which, known.transitions)
        n, pairs = np.maximum(epochs.visits, 1.0), model.n_states * model.n_actions
        wide = np.sqrt(14.0 * model.n_states * np.log(2.0 * model.n_actions * time / self._delta) / n)
        radius, reward = np.minimum(self._scale * wide, 2.0), known.rewards.mean
        if not known.rewards.known:
            bonus = np.sqrt(3.5 * np.log(2.0 * pairs * time / self._delta) / n)
            reward = reward + self._scale * self._span * bonus
        frequencies = which, epochs.alpha, epochs.total, reward
        if self._plan is not None:
            self._plan.update(*frequencies, radius if self._set is None else self._best_case)
        elif self._set is None:
            extended_value_iteration(
                model, *frequencies, radius, 1.0 / np.sqrt(self._time), self._values, self._q[:, 0], self.gain
            )
        else:
            for b in which:
                centre = centred(model, epochs.alpha[b, 0], epochs.total[b, 0], reward[b])
                self._q[b, 0], self.gain[b] = best_gain(
                    centre, self._best_case(b), 1.0 / float(np.sqrt(self._time[b])), self._values[b], b
                )

    def _best_case(self, b: int) -> AmbiguitySet:
        """The set of a replicate, whose nature chooses in favour of the agent."""
        assert self._set is not None
        pairs = self._model.n_states, self._model.n_actions
        seen = PairVisits(self.epochs.visits[b], float(self._time[b]), *pairs, self._delta)
        return helping("set", self._set(seen), self._model)

    def observe(self, visit: Visit) -> None:
        self._time[visit.replicate] += 1.0
        self.epochs.visit(visit.replicate, visit.row)

    def state(self) -> dict[str, Any]:
        plan = {"q": self._q.copy()} if self._plan is None else self._plan.state()
        numbers = {"values": self._values.copy(), "gain": self.gain.copy(), "time": self._time.copy()}
        return {"epochs": self.epochs.state(), "plan": plan, **numbers}

    def load(self, state: Mapping[str, Any]) -> None:
        self.epochs.load(state["epochs"])
        if self._plan is None:
            self._q[:] = state["plan"]["q"]
        else:
            self._plan.load(state["plan"])
        self._values, self.gain = np.array(state["values"]), np.array(state["gain"])
        self._time = np.array(state["time"])


def _as_function(given: Any, model: MDP, delta: float) -> Callable[[PairVisits], AmbiguitySet] | None:
    """Returns a function from visits to a set; constant if one set is given."""
    if given is None:
        return None
    if not callable(given):
        check_set("set", given)
    made: Callable[[PairVisits], AmbiguitySet] = given if callable(given) else lambda _: given
    first = PairVisits(np.zeros(model.n_rows), 1.0, model.n_states, model.n_actions, delta)
    helping("set", made(first), model).operator(model)  # raises before the first episode rather than during it
    return made
