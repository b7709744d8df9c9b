"""URBE over finitely many models: an exact belief about the true one, and robust plans over credible models.

The true model is one of K and may jump from one to another (`urbe.belief.Switching`). Before each episode the agent
plans with the current belief b: for h = H - 1, ..., 0, with V = W = 0 after the last step,

    y_k      = r + gamma sum_s' p_k(s' | s, a) V_{h+1}(s')         value of the pair under each model
    Q_h      = sum_k omega_k y_k                                    omega: lower tail of y over the credible models
    u_h      = scale^2 Var_b[y] + gamma^2 sum_k omega_k sum_s' p_k(s' | s, a) W_{h+1}(s')
    V_h(s)   = max_a Q_h(s, a),       W_h(s) = u_h(s, a) of the best action

and each step takes argmax_a Q_h(s, a) + zeta sqrt(u_h(s, a)). The variance between models takes the place of the
posterior variance of a Dirichlet belief in [Derman2019]: if all credible models agree it vanishes, and so does
exploration. The plan ignores the value of information; `urbe.planners.solve_belief` includes it, for small problems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from urbe import checks, rng
from urbe.agents.base import Steps, Streams, Task
from urbe.agents.choose import Chooser, Noise
from urbe.agents.locate import Locator
from urbe.agents.robust_plans import Centre
from urbe.ambiguity.scenarios import Scenarios
from urbe.belief.arrays import logarithm
from urbe.belief.credible import credible_set, tail_weights
from urbe.belief.likelihoods import Evidence
from urbe.belief.state import BeliefState, Watch, begin, new_episode, observe, used
from urbe.belief.switching import Switching
from urbe.mdp.model import MDP, check_model
from urbe.mdp.rows import Rows
from urbe.posteriors.beliefs import Visit
from urbe.posteriors.rewards import RewardBelief
from urbe.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class BeliefURBE:
    """The agent's parameters.

    Args:
      models: K models with the task's states and actions, of which only transitions are read.
      switching: changes of the true model, and the prior.
      alpha: plans ignore the least likely models that hold a belief of at most `alpha` together, in [0, 1).
      level: caution over the credible models: 0 plans for the worst of them, 1 for their mean, a number in between for
        the mean of the lowest `level` of the belief.
      scale: size of the noise, in standard deviations between models.
      noise: when zeta is drawn.
      centre: `Centre.SAMPLE` plans for one model drawn from the belief before each episode (Thompson sampling); then
        `alpha`, `level` and `scale` have no effect.
      watch: decides when no model explains the observations, and widens the belief.

    >>> import urbe
    >>> from urbe.agents import Task, run
    >>> from urbe.envs.finite import FiniteEnv
    >>> models = [urbe.library.seven_states(win) for win in (0.2, 0.8)]
    >>> env = FiniteEnv.of(models[1])
    >>> record = run(BeliefURBE(models), env, Task(urbe.Posterior.before(env.feasible), horizon=3), episodes=50, seed=0)
    >>> bool(record.reward[0, -25:].mean() > 0.5)
    True
    """

    models: Sequence[MDP]
    switching: Switching = field(default_factory=lambda: Switching(0.02, per="episode"))
    alpha: float = 0.1
    level: float = 0.0
    scale: float = 1.0
    noise: Noise = Noise.STEP
    centre: Centre = Centre.MEAN
    watch: Watch = field(default_factory=Watch)

    def __post_init__(self) -> None:
        if not isinstance(self.models, Sequence) or not self.models:
            raise ValueError(f"models is {checks.shown(self.models)}, expected a list of one or more models.")
        for k, model in enumerate(self.models):
            check_model(f"models[{k}]", model)
        if checks.number("alpha", self.alpha, 0.0, 1.0) == 1.0:
            raise ValueError("alpha is 1, expected a number below 1: no model would be left.")
        checks.number("level", self.level, 0.0, 1.0)
        checks.number("scale", self.scale, 0.0, np.inf)

    def start(self, task: Task, streams: Streams) -> BeliefAgent:
        return BeliefAgent(self, task, streams)


class _Members(NamedTuple):
    """The models' transitions on common rows.

    Attributes:
      rows: list every successor that some model allows.
      probability: `(K, E)` of each entry under each model.
      log_probability: `(E, K)` its logarithm.
      expected: `(R, K)` expectation of the logarithm under each model.
      place: `(E,)` row and successor of each entry as one number, increasing.
    """

    rows: Rows
    probability: FloatArray
    log_probability: FloatArray
    expected: FloatArray
    place: IntArray


class BeliefAgent:
    """An `Agent` with an exact belief over finitely many models; see `BeliefURBE`."""

    def __init__(self, config: BeliefURBE, task: Task, streams: Streams) -> None:
        self._config, self._model, self._horizon = config, task.prior.model, task.horizon
        self._members = _align(self._model, config.models)
        n, rows = len(streams.replicates), self._model.n_rows
        first = begin(config.switching, len(config.models))
        self.belief = BeliefState(*(np.repeat(np.asarray(part)[None], n, axis=0) for part in first))
        self.rewards = RewardBelief(task.prior, n)
        self.q, self.u = (np.zeros((n, task.horizon, rows)) for _ in range(2))
        self._locate = Locator(self._model)
        noise = Noise.NONE if config.centre is Centre.SAMPLE else config.noise
        self._choose = Chooser(self._model, noise, streams)
        self._drawn = streams("model") if config.centre is Centre.SAMPLE else []

    @property
    def probability(self) -> FloatArray:
        """`(B, K)` the belief used for decisions."""
        return np.asarray(used(self._config.switching, self._config.watch, self.belief))

    def act(self, replicate: IntArray, state: IntArray, step: int) -> IntArray:
        if step == 0:
            self._plan(replicate)
            self._choose.begin_episode(replicate)
        return self._model.action[self._choose(replicate, state, self.q, self.u, step)]

    def observe(self, steps: Steps, step: int) -> None:
        row, members = self._locate.rows(steps), self._members
        place = row * members.rows.n_states + steps.next_state
        entry = np.minimum(np.searchsorted(members.place, place), len(members.place) - 1)
        listed = members.place[entry] == place
        log_likelihood = np.where(listed[:, None], members.log_probability[entry], -np.inf)
        evidence = Evidence(log_likelihood, members.expected[row] - log_likelihood)
        before = BeliefState(*(part[steps.replicate] for part in self.belief))
        after, _ = observe(self._config.switching, self._config.watch, before, evidence)
        for kept, new in zip(self.belief, after, strict=True):
            kept[steps.replicate] = new
        self.rewards.observe(Visit(steps.replicate, row, entry, np.full(len(row), step)), steps.reward)

    def end_episode(self) -> None:
        self.belief = new_episode(self._config.switching, self.belief)

    def state(self) -> dict[str, Any]:
        return {
            "belief": {name: np.array(part) for name, part in self.belief._asdict().items()},
            "rewards": self.rewards.state(),
            "plan": {"q": self.q.copy(), "u": self.u.copy()},
            "choose": self._choose.state(),
            "drawn": rng.positions(self._drawn),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        self.belief = BeliefState(**{name: np.array(part) for name, part in state["belief"].items()})
        self.rewards.load(state["rewards"])
        self.q, self.u = np.array(state["plan"]["q"]), np.array(state["plan"]["u"])
        self._choose.load(state["choose"])
        rng.go_to(self._drawn, state["drawn"])

    def _plan(self, which: IntArray) -> None:
        """Fills `q` and `u` of the replicates `which`."""
        config, model, (rows, p, *_) = self._config, self._model, self._members
        belief = self.probability[which]
        if config.centre is Centre.SAMPLE:
            uniform = np.array([self._drawn[b].random() for b in which])
            chosen = (belief.cumsum(axis=1) < uniform[:, None] * belief.sum(axis=1, keepdims=True)).sum(axis=1)
            belief = np.eye(belief.shape[1])[np.minimum(chosen, belief.shape[1] - 1)]
        credible = np.where(credible_set(belief, config.alpha), belief, 0.0)
        credible = (credible / credible.sum(axis=1, keepdims=True))[:, None, :]
        gamma, starts, has_rows = model.discount, model.row_start[:-1], np.diff(model.row_start) > 0
        v, w = (np.zeros((len(which), rows.n_states)) for _ in range(2))

        def under_each(entry_values: FloatArray) -> FloatArray:
            """`(W, R, K)` expectations of `(W, E)` values under each model."""
            sums = np.add.reduceat(p * entry_values[:, None, :], rows.entry_start[:-1], axis=-1)
            return np.ascontiguousarray(np.swapaxes(sums, 1, 2))

        reward, unsure = self.rewards.mean[which], self.rewards.variance
        reward_variance = 0.0 if unsure is None else unsure[which]
        for h in range(self._horizon - 1, -1, -1):
            y = under_each(rows.successor_values(gamma * v))
            omega = tail_weights(np.broadcast_to(credible, y.shape), y, config.level)
            q = reward + (omega * y).sum(axis=-1)
            mean = (belief[:, None, :] * y).sum(axis=-1, keepdims=True)
            local = (belief[:, None, :] * (y - mean) ** 2).sum(axis=-1) + reward_variance
            u = config.scale**2 * local + gamma**2 * (omega * under_each(w[:, rows.successor])).sum(axis=-1)
            v[:, has_rows] = np.maximum.reduceat(q, starts[has_rows], axis=1)
            best = np.where(q == v[:, model.row_state], u, -np.inf)
            w[:, has_rows] = np.maximum.reduceat(best, starts[has_rows], axis=1)
            self.q[which, h], self.u[which, h] = q, u


def _align(model: MDP, models: Sequence[MDP]) -> _Members:
    nature = Scenarios(list(models)).bind(model)
    rows, logs = nature.rows, logarithm(nature.members)
    expected = np.add.reduceat(nature.members * np.where(nature.members > 0.0, logs, 0.0), rows.entry_start[:-1])
    place = rows.entry_row.astype(np.int64) * rows.n_states + rows.successor
    return _Members(rows, np.ascontiguousarray(nature.members.T), logs, expected, place)
