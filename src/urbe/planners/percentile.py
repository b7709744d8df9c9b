"""The percentile criterion: the policy whose value is highest with a given posterior probability [DelageMannor2010].

    max_pi  max { v : P(V_pi(start) >= v | data) >= 1 - delta }

Finding the best policy is NP-hard. Good ones are found among the policies of other methods, and by improving the best
of them against the models that determine its quantile: with T the draws whose values are nearest to it,

    pi'(s) = argmax_a  mean over m in T of  Q_m(s, a),        Q_m = r_m + gamma P_m V_m

is accepted if its quantile is higher. All of this uses one set of draws; the guaranteed value is computed from others
(`urbe.planners.guarantee`), so that choosing among many candidates does not bias it. That value is a quantile of a
level somewhat below delta, since the draws are finite, and policies are compared by the quantile of the same level.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from urbe import checks
from urbe.ambiguity.exact import Exact
from urbe.ambiguity.scenarios import ConditionalValueAtRisk, ValueAtRisk
from urbe.mdp.evaluate import start_weights
from urbe.planners.base import PlannedSolution, PlanningMethod, PlanningTask, in_every_state, pure_policy
from urbe.planners.draws import number_of_draws, uncertain_rows
from urbe.planners.guarantee import safe_rank
from urbe.planners.held_out import ModelDraws, drawn_models
from urbe.planners.l1_balls import BCI, HoeffdingSets
from urbe.planners.many_models import values_under_models
from urbe.planners.rsvf import RSVF
from urbe.planners.var_bellman import VaRBellman
from urbe.posteriors.dirichlet import Posterior
from urbe.progress import Report, silent
from urbe.solvers.solution import Solution
from urbe.solvers.solve import evaluate_policy
from urbe.types import FloatArray, IntArray

FEWEST, MOST = 1000, 10_000
"""Draws to choose with, by default: fewest, and most where models are small."""

NUMBERS = 1_000_000
"""The default number of draws is larger for small models: numbers of a drawn model times draws are at most this."""

NEAR = 0.05
"""Share of the draws that count as near the quantile."""


@dataclass(frozen=True)
class Percentile:
    """Chooses among many candidates the policy with the highest quantile of its value from the start.

    Candidates are the policy of the mean model, which is the soft-robust one, those that the other methods would return
    for the same seed, and robust policies for quantiles (VaR) and tail means (CVaR) of each row at several levels,
    without a union bound; the best one is improved further.

    Args:
      levels: of the quantiles and tail means, in (0, 1].
      improvements: largest number of improvements of the best candidate; 0 only chooses among candidates.

    >>> Percentile()
    Percentile(levels=(0.05, 0.1, 0.2, 0.35, 0.5), improvements=50)
    """

    levels: tuple[float, ...] = (0.05, 0.1, 0.2, 0.35, 0.5)
    improvements: int = 50

    def __post_init__(self) -> None:
        checks.sequence("levels", self.levels, "a tuple of levels in (0, 1], such as (0.05, 0.5)")
        for k, level in enumerate(self.levels):
            checks.number(f"levels[{k}]", checks.positive(f"levels[{k}]", level), 0.0, 1.0)
        checks.whole_number("improvements", self.improvements, 0)

    def answer(self, task: PlanningTask) -> PlannedSolution:
        posterior, delta = task.whole
        others = [_answer(method, task) for method in OTHERS] if uncertain_rows(task.posterior) else []
        choosing, planning = task.rng.spawn(2)
        tasks = task._replace(rng=planning)
        size = posterior.model.rows.n_entries + posterior.model.n_states**2
        draws = min(max(FEWEST, NUMBERS // max(size, 1)), MOST)
        level = safe_rank(delta, task.certify) / task.certify
        chooser = _Chooser(posterior, level, choosing, max(draws, task.draws or 0), task.report)
        known = [answer.solution for answer in others if answer is not None]
        best = max(self._candidates(tasks, known, chooser), key=lambda scored: scored.score)
        if posterior.model.discount < 1.0:  # every policy has a value under every model
            best = chooser.improved(best, self.improvements)
        worst_case = VaRBellman().answer(tasks)  # a set in which any policy can be evaluated
        solution = evaluate_policy(worst_case.model, best.policy, worst_case.nature)
        return PlannedSolution(worst_case.model, worst_case.nature, solution)

    def promise(self, confidence: float) -> str:
        return in_every_state(confidence)

    def _candidates(self, task: PlanningTask, known: list[Solution], chooser: _Chooser) -> Iterator[_Scored]:
        model, seen = task.posterior.mean(), set()
        draws = number_of_draws(None, 1, task.delta)
        kernels = np.ascontiguousarray(task.posterior.draws(task.rng, draws).T)
        natures = [make(kernels, level) for level in self.levels for make in (ValueAtRisk, ConditionalValueAtRisk)]
        for solution in (*known, *(task.solve(model, nature) for nature in (Exact(), *natures))):
            policy = pure_policy(solution)
            if policy.tobytes() not in seen:
                seen.add(policy.tobytes())
                yield chooser.scored(policy)


OTHERS: tuple[PlanningMethod, ...] = (VaRBellman(), VaRBellman(union=False), RSVF(), BCI(), HoeffdingSets())
"""The methods whose answers are candidates."""


def _answer(method: PlanningMethod, task: PlanningTask) -> PlannedSolution | None:
    """The answer of a method to the same task, including draws; None if it does not converge."""
    try:
        return method.answer(task._replace(rng=deepcopy(task.rng)))
    except RuntimeError:  # only RSVF may fail; there are other candidates
        return None


class _Scored(NamedTuple):
    """A policy, its quantile, and its values under every draw."""

    policy: IntArray
    score: float
    values: FloatArray  # (M, S)


class _Chooser:
    """Evaluates policies on one set of draws, by the quantile of a level."""

    def __init__(
        self, posterior: Posterior, level: float, rng: np.random.Generator, draws: int, report: Report = silent
    ) -> None:
        self._report, self._scored = report, 0
        self._model, self._start = posterior.model, start_weights(posterior.model)
        blocks = list(drawn_models(posterior, rng, draws, report, "models to choose with"))
        self._draws = ModelDraws(
            np.concatenate([block.probability for block in blocks]),
            None if blocks[0].reward is None else np.concatenate([block.reward for block in blocks]),
        )
        self._rank = max(int(level * draws), 1)

    def scored(self, policy: IntArray) -> _Scored:
        self._report("candidate policies", self._scored)
        self._scored += 1
        values = values_under_models(self._model, policy, *self._draws)
        return _Scored(policy, float(np.sort(values @ self._start)[self._rank - 1]), values)

    def improved(self, best: _Scored, most: int) -> _Scored:
        """Improves a policy against the models near its quantile until its quantile stops rising."""
        tried = {best.policy.tobytes()}
        for _ in range(most):
            for policy in self._proposals(best):
                if policy.tobytes() in tried:
                    continue
                tried.add(policy.tobytes())
                other = self.scored(policy)
                if other.score > best.score:
                    best = other
                    break
            else:
                return best
        return best

    def _proposals(self, now: _Scored) -> Iterator[IntArray]:
        """The greedy policy for the models near the quantile; then its changes one state at a time, largest first."""
        model, rows = self._model, self._model.rows
        if not rows.n_rows:  # all states are terminal
            return
        distance = np.abs(now.values @ self._start - now.score)
        near = np.argsort(distance, kind="stable")[: max(int(NEAR * len(distance)), 10)]
        gain = rows.successor_values(model.discount * now.values[near])
        q = np.add.reduceat(self._draws.probability[near] * gain, rows.entry_start[:-1], axis=1).mean(axis=0)
        if not rows.rewards_successors:
            q += rows.reward if self._draws.reward is None else self._draws.reward[near].mean(axis=0)
        best = np.full(model.n_states, -np.inf)
        np.maximum.at(best, model.row_state, q)
        first = np.full(model.n_states, model.n_rows)
        np.minimum.at(
            first, model.row_state, np.where(q == best[model.row_state], np.arange(model.n_rows), model.n_rows)
        )
        greedy = np.where(model.terminal, -1, model.action[np.minimum(first, model.n_rows - 1)]).astype(
            now.policy.dtype
        )
        yield greedy
        changed = np.flatnonzero(greedy != now.policy)
        advantage = best[changed] - now.values[near][:, changed].mean(axis=0)
        for state in changed[np.argsort(-advantage, kind="stable")]:
            policy = now.policy.copy()
            policy[state] = greedy[state]
            yield policy
