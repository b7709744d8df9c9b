"""OLRM [Lim2013]: optimistic where transitions seem stochastic, robust where they proved adversarial.

Every pair counts as stochastic until it disappoints. Plans, for H steps, k the number of the epoch, N the visits:

    Q_h = min_{||x - p||_1 <= radius} x . z                                           a pair that is flagged
    Q_h = p . z + bonus_scale H span sqrt(2 / N log(2 S A H k^2 / delta)), at most    any other
          what the remaining steps can pay; that much when N = 0

with p the frequencies at the beginning of the epoch. After m visits of a pair the disappointments

    D = sum [ planned z - z that came ],   planned z as in Q_h without the bonus,

are compared with 5 check_scale H span sqrt(m S log(4 S A H m / delta)). If they exceed it, the pair is flagged as
adversarial. Benign adversaries are never flagged, and a flag is never removed, even if a pair recovers. In theory both
scales are 1; the check then takes tens of thousands of visits.

For average reward (`Criterion.AVERAGE`, our reading of OLRM2) the same two cases are iterated to a gain g and a bias u.
The span of u takes the place of H span, in the bonus and in the check, and log terms lose their H; disappointments are
counted as shares of the span of their epoch, since it changes from one to the next.

Departure: several nested balls may be given; a pair that disappoints a ball's worst case moves to the next. Rewards
need not lie in [0, 1]: `span` is the distance between the least and the largest one, including zero. The constants,
which the paper leaves open, are our assumptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from urbe import checks
from urbe.agents.base import Streams, Task
from urbe.agents.choose import Noise
from urbe.agents.epochs import Epochs
from urbe.agents.l1_rows import L1Answers, L1Rows, sparse_sweep
from urbe.agents.learner import Knowledge, ModelBasedAgent
from urbe.agents.mixed_plans import AveragePlan, EpisodePlan
from urbe.agents.set_plan import centred, plan_model
from urbe.agents.ucrl2 import Criterion
from urbe.ambiguity.exact import Exact
from urbe.ambiguity.nature import Nature
from urbe.ambiguity.rectangular import RectangularSet, check_rectangular
from urbe.ambiguity.sweep import named_after
from urbe.mdp.model import MDP
from urbe.posteriors.beliefs import PosteriorConfig, Stationary, Visit
from urbe.types import BoolArray, FloatArray, IntArray

UNCHECKABLE = (
    "pairs are flagged one by one, when they disappoint the worst case of their set, but a pair has no worst case of "
    "its own in a set that couples actions or states. For a shared budget give the ball itself, with the budget as its "
    "radius: it contains the shared budget."
)


@dataclass(frozen=True, eq=False)
class OLRM:
    """The agent's parameters; the scales may be given one per replicate.

    Args:
      bonus_scale, check_scale: see the module.
      belief: how the counts follow the data; rewards must be known.
      radii: increasing radii, in [0, 2], of the L1 balls that a pair passes through; 2 allows any feasible successor.
        Not used if `sets` are given.
      flagged: pairs known to be adversarial from the start (true or false for all, `(R,)`, `(S, A)` or by pair).
      delta: failure probability, in (0, 1).
      sets: other sets instead of the balls, each containing the previous one, such as `(KLBall(0.1), KLBall(1.0))`.
      criterion: the objective, the reward of an episode or the average reward (episodes restart it).
    """

    bonus_scale: ArrayLike = 1.0
    check_scale: ArrayLike = 1.0
    belief: PosteriorConfig = field(default_factory=Stationary)
    radii: tuple[float, ...] = (2.0,)
    flagged: Any = False
    delta: float = 0.05
    sets: tuple[RectangularSet, ...] | None = None
    criterion: Criterion = Criterion.EPISODE

    def start(self, task: Task, streams: Streams) -> ModelBasedAgent:
        return ModelBasedAgent(task, streams, self.belief, MixedPlans(self, task, streams), Noise.NONE)


class MixedPlans:
    """The `Strategy` of OLRM: plans are robust in pairs that disappointed, optimistic in all others.

    Attributes:
      epochs: epochs of the replicates.
      level: `(B, R)` the current ball of each pair; 0 is none.
    """

    u = share = None  # the greedy policy, without noise

    def __init__(self, kind: OLRM, task: Task, streams: Streams) -> None:
        model, n, horizon = task.prior.model, len(streams.replicates), task.horizon
        if task.prior.rewards is not None:
            raise ValueError("The rewards of the task are uncertain, but the bounds of OLRM need known rewards.")
        self._bonus_scale = checks.per_replicate("bonus_scale", kind.bonus_scale, n, 0.0, np.inf)[:, None]
        self._check_scale = checks.per_replicate("check_scale", kind.check_scale, n, 0.0, np.inf)
        self._delta = checks.probability("delta", kind.delta)
        checks.kind("radii", kind.radii, isinstance(kind.radii, tuple | list), "a tuple of radii, such as (0.5, 2.0)")
        self._radii = np.array([0.0, *(checks.number("radii", radius, 0.0, 2.0) for radius in kind.radii)])
        if (np.diff(self._radii[1:]) <= 0.0).any():
            raise ValueError(f"radii is {kind.radii}, expected increasing radii: each ball holds the one before.")
        most, least = model.rows.reward.max(initial=0.0), model.rows.reward.min(initial=0.0)
        checks.choice("criterion", kind.criterion, Criterion)
        self._average = kind.criterion is Criterion.AVERAGE
        self._reach = 1.0 if self._average else horizon * (most - least)
        cap = np.cumsum(most * model.discount ** np.arange(horizon))[::-1].copy()
        steps = 1 if self._average else horizon
        self._log = np.log(2.0 * model.n_states * model.n_actions * steps / self._delta)
        self.epochs = Epochs(model, streams)
        if kind.sets is not None:
            checks.sequence("sets", kind.sets, "a tuple of at least one set, such as (KLBall(0.1), KLBall(1.0))")
        self._sets = None if kind.sets is None else (Exact(), *kind.sets)
        self._levels = len(kind.radii if kind.sets is None else kind.sets)
        self._plan: EpisodePlan | AveragePlan = (
            AveragePlan(model, n, self._sets) if self._average else EpisodePlan(model, horizon, n, self._sets, cap)
        )
        self._natures: dict[tuple[int, int], Nature] = {}  # of replicates and levels, since the epoch began
        for k, each in enumerate(() if kind.sets is None else kind.sets):
            check_rectangular(f"sets[{k}]", each, UNCHECKABLE)
            each.operator(model)  # sets that do not fit are refused before the first episode
        known = model.per_row("flagged", _as_numbers(kind.flagged)) != 0.0
        self.level = np.tile(np.where(known, self._levels, 0), (n, 1))
        self._gap, self._checks = np.zeros(self.level.shape), np.zeros(self.level.shape)

    @property
    def q(self) -> FloatArray:
        return self._plan.q

    def due(self, known: Knowledge, replicate: IntArray, step: int) -> BoolArray:
        return self.epochs.over[replicate]

    def plan(self, known: Knowledge, which: IntArray) -> None:
        epochs = self.epochs
        epochs.begin(which, known.transitions)
        planned = set(which.tolist())
        self._natures = {key: nature for key, nature in self._natures.items() if key[0] not in planned}
        log = self._log + 2.0 * np.log(np.maximum(epochs.index, 1))[:, None]
        with np.errstate(divide="ignore"):
            width = self._reach * np.sqrt(2.0 / epochs.visits * log)
        bonus = np.where((self.level > 0) | (self._bonus_scale == 0.0), 0.0, self._bonus_scale * width)
        radius = self._radii[self.level] if self._sets is None else np.zeros(self.level.shape)
        self._plan.update(which, epochs, known.rewards.mean, self.level, radius, bonus)

    def observe(self, visit: Visit) -> None:
        """Compares outcomes with the values by which the action was chosen."""
        b, row, model = visit.replicate, visit.row, self._plan.model
        self.epochs.visit(b, row)
        level = self.level[b, row]
        shortfall = self._shortfall(visit._replace(step=self._plan.layer(visit.step)))
        if self._average:
            span = np.ptp(self._plan.v[b, 0], axis=1)
            shortfall = np.divide(shortfall, span, out=np.zeros_like(span), where=span > 0.0)
        self._gap[b, row] += shortfall
        self._checks[b, row] += 1.0
        m = self._checks[b, row]
        allowed = 5.0 * self._reach * np.sqrt(m * model.n_states * (self._log + np.log(2.0 * m)))
        caught = (self._gap[b, row] > self._check_scale[b] * allowed) & (level < self._levels)
        if caught.any():
            b, row = b[caught], row[caught]
            self.level[b, row] += 1
            self._gap[b, row], self._checks[b, row] = 0.0, 0.0
            self.epochs.over[b] = True

    def _shortfall(self, visit: Visit) -> FloatArray:
        """`(K,)` the shortfall of the steps against their planned values."""
        model = self._plan.model
        if self._sets is None:
            radius = self._radii[self.level[visit.replicate, visit.row]]
            return disappointment(model, visit, self.epochs.alpha, self.epochs.total, radius, self._plan.v)
        out = np.empty(len(visit.row))
        for k, (b, row, entry, step) in enumerate(zip(*visit, strict=True)):
            ahead = self._plan.v[b, step + 1]
            planned = self._bound(int(b), int(self.level[b, row])).take(np.array([row])).values(ahead)[0]
            came = model.rows.row_reward[row] + model.discount * ahead[model.rows.successor[entry]]
            if model.rows.entry_reward is not None:
                came += model.rows.entry_reward[entry]
            out[k] = planned - came
        return out

    def _bound(self, b: int, level: int) -> Nature:
        """The set of a level around a replicate's frequencies."""
        assert self._sets is not None
        if (b, level) not in self._natures:
            model, epochs = self._plan.model, self.epochs
            centre = centred(model, epochs.alpha[b, 0], epochs.total[b, 0], model.rows.row_reward)
            self._natures[b, level] = self._sets[level].bind(centre)
        return self._natures[b, level]

    def state(self) -> dict[str, Any]:
        numbers = {"level": self.level.copy(), "gap": self._gap.copy(), "checks": self._checks.copy()}
        return {"epochs": self.epochs.state(), "plan": self._plan.state(), **numbers}

    def load(self, state: Mapping[str, Any]) -> None:
        self.epochs.load(state["epochs"])
        self._plan.load(state["plan"])
        self._natures = {}
        self.level, self._gap = np.array(state["level"]), np.array(state["gap"])
        self._checks = np.array(state["checks"])


def _as_numbers(flagged: Any) -> Any:
    """Truth values as 0 and 1."""
    if isinstance(flagged, Mapping):
        return {pair: float(flag) for pair, flag in flagged.items()}
    return np.asarray(flagged, dtype=np.float64)


def disappointment(
    model: MDP, visit: Visit, alpha: FloatArray, total: FloatArray, radius: FloatArray, v: FloatArray
) -> FloatArray:
    """`(K,)` min_{||x - p||_1 <= radius} x . z - z_j with z = r + gamma V_{h+1} and j the observed successor.

    Args:
      model: successors and their rewards, discount.
      visit: the pairs, their steps h, and the observed successors.
      alpha, total: `(B, 1, E)` and `(B, 1, R)`; p is `alpha / total`.
      radius: `(K,)`.
      v: `(B, H + 1, S)` planned values.
    """
    out = np.empty(len(visit.row))
    _fall_short(visit, plan_model(model), model.rows.entry_reward, alpha, total, radius, v, out)
    return out


@njit(cache=True, nogil=True)
@named_after(sparse_sweep)
def _fall_short(visit, model, reward, alpha, total, radius, v, out):
    replicate, row, entry, step = visit
    entry_start, successor, gamma = model.entry_start, model.successor, model.gamma
    p, z, nothing = np.zeros(len(successor)), np.empty(model.longest), np.zeros(v.shape[2])
    one, hint, unused = np.ones(1, dtype=np.bool_), np.zeros(1, dtype=np.int64), np.zeros(1)
    for k in range(len(row)):
        b, first, last = replicate[k], entry_start[row[k]], entry_start[row[k] + 1]
        for j in range(first, last):
            p[j] = alpha[b, 0, j] / total[b, 0, row[k]]
        hint[0] = 0
        ahead = v[b, step[k] + 1]
        rows = L1Rows(entry_start[row[k] : row[k] + 2], successor, p, radius[k : k + 1], hint, z)
        sparse_sweep(one, rows, reward, gamma, ahead, nothing, 1.0, False, L1Answers(out[k : k + 1], unused, unused))
        came = gamma * ahead[successor[entry[k]]]
        if reward is not None:
            came += reward[entry[k]]
        out[k] -= came
