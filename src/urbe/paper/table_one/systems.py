"""The systems of the comparison, one line each, with the paper's ticks and the planner or learner.

A planner receives a `Batch` and returns a policy and, if it states one, its worst-case value. A learner is an agent of
`urbe.agents`; it observes the same transitions one by one. All settings are defaults, or follow from the confidence;
settings without a default (the number of factors, the budget of deviations) are in the system's line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import norm

from urbe.agents import OLRM, URBE, AgentConfig
from urbe.ambiguity.closed_form.deviation import largest_entry
from urbe.ambiguity.closed_form.twice_regularised import TwiceRegularised
from urbe.ambiguity.coupled.deviations import deviation_budget, limited_deviations
from urbe.ambiguity.coupled.factors import FactorSet
from urbe.ambiguity.coupled.nested import NestedSets
from urbe.ambiguity.l1 import L1Ball
from urbe.ambiguity.operator import AmbiguitySet
from urbe.ambiguity.shared_budget.s_rectangular import SRectangular
from urbe.mdp.evaluate import start_weights
from urbe.mdp.model import MDP
from urbe.planners import (
    BCI,
    RSVF,
    HoeffdingSets,
    MomentConstraints,
    PlanningMethod,
    PlanningTask,
    VaRBellman,
    solve_policy_conditioned,
)
from urbe.planners.soft_robust import ActorCriticRates, SoftRobustActorCritic
from urbe.posteriors.beliefs import Forgetting, PosteriorConfig, Stationary
from urbe.posteriors.dirichlet import Posterior
from urbe.posteriors.factors import fit_factors
from urbe.rng import stream
from urbe.solvers import solve
from urbe.types import FloatArray, IntArray

DELTA = 0.1
"""The probability that sets may miss the true model."""


class Batch(NamedTuple):
    """The data after some transitions.

    Attributes:
      posterior: uniform prior and counts.
      counts: `(E,)` counts of the entries of its model.
      model, radius: the observed frequencies and `(R,)` Hoeffding's radii around them: the reference set.
      seed: seed of draws.
    """

    posterior: Posterior
    counts: FloatArray
    model: MDP
    radius: FloatArray
    seed: int


class Plan(NamedTuple):
    """A policy, `(S,)` or `(S, A)`, and `(S,)` its stated worst-case value; NaN if none is stated."""

    policy: IntArray | FloatArray
    stated: FloatArray


Planner = Callable[[Batch], Plan | None]
"""Planners return None if they reject the model."""


@dataclass(frozen=True)
class System:
    """One line of the table.

    Attributes:
      source: the line of the paper's table that it represents; empty if it is not in the table.
      ticks: the paper's ticks: mitigates conservativeness, learns the set online, scales; None if not in the table.
      about: one sentence on its use of a batch.
      plan: maps a batch to a policy; None for learners.
      agent: maps a belief to the agent; None for planners.
    """

    source: str
    ticks: tuple[bool, bool, bool] | None
    about: str
    plan: Planner | None = None
    agent: Callable[[PosteriorConfig], AgentConfig] | None = None


def nominal(batch: Batch) -> Plan:
    """Plans the best policy of the posterior mean, and states its value there."""
    found = solve(batch.posterior.mean())
    return Plan(found.policy, found.lower)


def from_posterior(method: PlanningMethod) -> Planner:
    """Makes a planner of `urbe.planners` at the confidence of the comparison."""

    def plan(batch: Batch) -> Plan:
        rng = stream(batch.seed, "table_one", "plan")
        task = PlanningTask(batch.posterior, DELTA, None, rng, solve, (batch.posterior, DELTA))
        found = method.answer(task).solution
        return Plan(found.policy, found.lower)

    return plan


def against(make: Callable[[Batch], AmbiguitySet]) -> Planner:
    """Makes a planner with a set around the observed frequencies."""

    def plan(batch: Batch) -> Plan:
        found = solve(batch.model, make(batch))
        return Plan(found.policy, found.lower)

    return plan


def factors(batch: Batch) -> Plan | None:
    """Fits at most 5 factors; each has Hoeffding's radius for the transitions that count towards it."""
    mdp, states = batch.model, batch.model.n_states
    if mdp.rows.rewards_successors:
        return None
    r = min(5, states)
    rows = batch.posterior.model.rows
    entries = batch.counts, rows.successor, rows.entry_start
    counts = csr_array(entries, shape=(rows.n_rows, states), copy=True)
    counts.eliminate_zeros()
    fit = fit_factors(counts, r, rng=stream(batch.seed, "table_one", "factors"), restarts=1, max_steps=200)
    each = fit.coefficients.T @ np.asarray(counts.sum(axis=1)).ravel()
    radius = np.sqrt(2.0 / np.maximum(each, 1.0) * (states * np.log(2.0) + np.log(r / DELTA)))
    found_set = FactorSet(fit.coefficients, fit.factors, L1Ball(np.minimum(radius, 2.0), support="all"))
    found = solve(mdp, found_set)
    return Plan(found.policy, found.lower)


def few_deviations(batch: Batch) -> Plan:
    """Limits nature's deviations, within the reference set, to the budget for probability 1/20 in 20 steps."""
    budget = deviation_budget(20, 0.05, 1.0 - DELTA)
    labelled = limited_deviations(batch.model, L1Ball(batch.radius), budget)
    found = solve(labelled.mdp, labelled.set)
    return Plan(labelled.by_label(found.policy)[-1], labelled.by_label(found.lower)[-1])


def soft_robust(batch: Batch) -> Plan:
    """The actor-critic over ten posterior draws: 500 steps for each pair, and at least two millions; states nothing.

    Episodes of twenty steps begin anywhere, so that no state is left out. Rates fall with the number of pairs.
    """
    model = batch.posterior.model
    anywhere = np.where(model.terminal, 0.0, 1.0 / np.count_nonzero(~model.terminal))
    rng = stream(batch.seed, "table_one", "members")
    members = [replace(batch.posterior.sample(rng), initial=anywhere) for _ in range(10)]
    rates = ActorCriticRates(delay=100.0 * model.n_rows)
    learner = SoftRobustActorCritic(
        members, np.full(10, 0.1), criterion="discounted", horizon=20, rates=rates, seed=batch.seed
    )
    return Plan(learner.learn(max(500 * model.n_rows, 2_000_000)).policy, np.full(model.n_states, np.nan))


MOST_MOMENTS = 4000
"""Policy-conditioned sets get a moment for every entry, up to this many: features take the square of it."""


def policy_conditioned(batch: Batch) -> Plan | None:
    """Plans 20 steps against dynamics that agree with the batch on the visits of the uniform policy.

    Moments are the expected numbers of each transition in 20 steps; the slack of each is its own 90 % interval, as far
    as its pair's frequencies are uncertain. What is returned is the policy's first decision in every state: it plans
    again in every step. It states nothing.
    """
    steps, mdp = 20, replace(batch.model, initial=start_weights(batch.model))
    rows, n = mdp.rows, mdp.rows.n_entries
    if n > MOST_MOMENTS:
        return None
    even = mdp.by_action(1.0 / np.diff(mdp.row_start)[mdp.row_state], fill=0.0)
    exact = MomentConstraints.of(mdp, np.eye(n), even, steps)
    visits, tried = (rows.row_sums(x)[rows.entry_row] for x in (np.asarray(exact.moments), batch.counts))
    error = visits * np.sqrt(rows.probability * (1.0 - rows.probability) / tried)
    seen = MomentConstraints(np.eye(n), exact.moments, even, steps, slack=norm.isf(0.5 * DELTA) * error)
    sharpness = 50.0 / (steps * max(float(np.ptp(rows.reward)), 1e-6))
    found = solve_policy_conditioned(mdp, seen, sharpness=sharpness, starts=1, tolerance=1e-3, most_solves=50)
    first = found.policy.rows_at(0, np.ones(1))[:, 0]
    return Plan(np.where(mdp.terminal, -1, mdp.action[first]), np.full(mdp.n_states, np.nan))


def nested(batch: Batch) -> AmbiguitySet:
    """Half of the probability within half of the reference radius, the rest within all of it."""
    return NestedSets((L1Ball(0.5 * batch.radius), L1Ball(batch.radius)), [0.5, 1.0])


def shared_budget(batch: Batch) -> AmbiguitySet:
    """Uses the mean of a state's radii as the shared budget of its actions."""
    mdp = batch.model
    total = np.bincount(mdp.row_state, batch.radius, minlength=mdp.n_states)
    return SRectangular(L1Ball(total / np.maximum(np.diff(mdp.row_start), 1)))


def twice_regularised(batch: Batch) -> Plan:
    """L2 balls around the posterior mean, of half the reference radius, or as much as keeps the formula exact."""
    mean = batch.posterior.mean()
    rows = mean.rows
    start = rows.entry_start[:-1]
    smallest = np.minimum.reduceat(np.where(rows.probability > 0.0, rows.probability, np.inf), start)
    successors = np.add.reduceat(rows.probability > 0.0, start).astype(np.float64)
    reach = largest_entry(successors, 2.0, False)
    most = np.where(reach > 0.0, 0.999 * smallest / np.where(reach > 0.0, reach, 1.0), 0.0)
    found = solve(mean, TwiceRegularised(np.minimum(0.5 * batch.radius, most)))
    return Plan(found.policy, found.lower)


REFERENCE = "rectangular L1"

CONDITIONED = "policy-conditioned"

SYSTEMS: dict[str, System] = {
    "nominal": System("", None, "plans for the posterior mean", nominal),
    REFERENCE: System("", None, "L1 balls of Hoeffding's radius, the reference", from_posterior(HoeffdingSets())),
    "URBE": System(
        "URBE", (True, True, True), "robust plans with the posterior variance as noise, at its defaults",
        agent=lambda belief: URBE(belief=belief),
    ),
    "factor matrix": System(
        "Goyal, Grand-Clément", (True, False, False), "5 factors fitted to the counts, a ball around each", factors
    ),
    "BCI": System("Petrik, Russel", (True, False, False), "credible L1 balls", from_posterior(BCI())),
    "RSVF": System("Petrik, Russel", (True, False, False), "balls that fit the values", from_posterior(RSVF())),
    CONDITIONED: System(
        "Tirinzoni et al.", None, "visits of the uniform policy as moments, a plan of 20 steps in every step",
        policy_conditioned,
    ),
    "soft-robust": System(
        "Derman et al.", (True, False, True), "actor-critic over ten posterior draws, the model drawn in every step",
        soft_robust,
    ),
    "OLRM": System(
        "Lim, Xu, Mannor", (True, True, False), "optimistic until a pair disappoints; scales .03",
        agent=lambda belief: OLRM(bonus_scale=0.03, check_scale=0.03, belief=belief),
    ),
    "few deviations": System(
        "Mannor, Mebel, Xu", (True, False, False), "the reference set at most 3 times: chance .05 over 20 steps",
        few_deviations,
    ),
    "nested sets": System(
        "Xu, Mannor; Yu, Xu", (True, False, False), "half the radius with probability .5", against(nested)
    ),
    "s-rectangular": System("", None, "the mean radius, shared by the actions of a state", against(shared_budget)),
    "twice-regularised": System("", None, "L2 balls inside the simplex, in closed form", twice_regularised),
    "VaR": System("", None, "a low quantile of each action's value", from_posterior(VaRBellman())),
}  # fmt: skip

ONLINE_BELIEF: PosteriorConfig = Forgetting(0.98)
"""The beliefs with which learners track a changing environment."""

OFFLINE_BELIEF: PosteriorConfig = Stationary()
