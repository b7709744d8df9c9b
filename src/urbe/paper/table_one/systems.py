"""The systems of the comparison, one line each, with the planner or learner; and the lines of the paper's table.

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
from urbe.mdp.build import from_transitions
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
    """One system of the comparison.

    Attributes:
      about: one sentence on its use of a batch.
      plan: maps a batch to a policy; None for learners.
      agent: maps a belief to the agent; None for planners.
    """

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
    states, terminal = batch.model.n_states, batch.model.terminal
    mdp = paid_on_leaving(batch.model) if batch.model.rows.rewards_successors else batch.model
    if mdp is None:
        return None
    r = min(5, states)
    rows = batch.posterior.model.rows
    entries = batch.counts, rows.successor, rows.entry_start
    counts = csr_array(entries, shape=(rows.n_rows, states), copy=True)
    counts.eliminate_zeros()
    fit = fit_factors(counts, r, rng=stream(batch.seed, "table_one", "factors"), restarts=1, max_steps=200)
    each = fit.coefficients.T @ np.asarray(counts.sum(axis=1)).ravel()
    radius = np.sqrt(2.0 / np.maximum(each, 1.0) * (states * np.log(2.0) + np.log(r / DELTA)))
    known = terminal[mdp.row_state]  # these rows lead to the end for certain, by a factor without uncertainty
    mixing = np.zeros((mdp.n_rows, r + 1))
    mixing[~known, :r], mixing[known, r] = fit.coefficients, 1.0
    end = np.eye(1, states, int(np.argmax(mdp.terminal)))
    ball = L1Ball(np.append(np.minimum(radius, 2.0), 0.0), support="all")
    found = solve(mdp, FactorSet(mixing, np.vstack([fit.factors, end]), ball))
    return Plan(np.where(terminal, -1, found.policy), np.where(terminal, 0.0, found.lower))


def paid_on_leaving(mdp: MDP) -> MDP | None:
    """Returns the same problem with rewards of pairs: terminal states pay in a last step instead of on arrival.

    The last step leads to a terminal state that pays nothing, so nature's choices are worth the same as before. Returns
    None if other rewards depend on the successor, or if every terminal state pays.
    """
    rows = mdp.rows
    paid = np.zeros(mdp.n_states)
    paid[rows.successor] = rows.reward
    paying = np.flatnonzero(mdp.terminal & (paid != 0.0))
    ends = np.flatnonzero(mdp.terminal & (paid == 0.0))
    if (paid[rows.successor] != rows.reward).any() or paid[~mdp.terminal].any() or not len(ends):
        return None
    return from_transitions(
        np.concatenate([mdp.row_state[rows.entry_row], paying]),
        np.concatenate([mdp.action[rows.entry_row], np.zeros_like(paying)]),
        np.concatenate([rows.successor, np.full_like(paying, ends[0])]),
        np.concatenate([rows.probability, np.ones(len(paying))]),
        np.concatenate([np.zeros(rows.n_entries), paid[paying] / mdp.discount]),
        discount=mdp.discount, n_states=mdp.n_states, terminal=ends, initial=mdp.initial,
    )  # fmt: skip


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
"""Models with more transitions pool their moments: one for each would take the square of their number in memory."""


def policy_conditioned(batch: Batch) -> Plan:
    """Plans 20 steps against dynamics that agree with the batch on the visits of the uniform policy.

    Moments are the expected numbers of each transition in 20 steps; the slack of each is its own 90 % interval, as far
    as its pair's frequencies are uncertain. Beyond `MOST_MOMENTS` transitions a moment is shared by those with the same
    action and the same position among the successors of their pair. What is returned is the policy's first decision in
    every state: it plans again in every step. It states nothing.
    """
    steps, mdp = 20, replace(batch.model, initial=start_weights(batch.model))
    rows, n = mdp.rows, mdp.rows.n_entries
    share = 1.0 / np.diff(mdp.row_start)[mdp.row_state]
    features = np.eye(n) if n <= MOST_MOMENTS else pooled(mdp)
    visits = _visits(mdp, share, steps)[rows.entry_row]
    tried = rows.row_sums(batch.counts)[rows.entry_row]
    variance = visits**2 * rows.probability * (1.0 - rows.probability) / tried
    seen = MomentConstraints(
        features, (visits * rows.probability) @ features, mdp.by_action(share, fill=0.0), steps,
        slack=norm.isf(0.5 * DELTA) * np.sqrt(variance @ features),
    )  # fmt: skip
    sharpness = 50.0 / (steps * max(float(np.ptp(rows.reward)), 1e-6))
    found = solve_policy_conditioned(mdp, seen, sharpness=sharpness, starts=1, tolerance=1e-3, most_solves=50)
    first = found.policy.rows_at(0, np.ones(1))[:, 0]
    return Plan(np.where(mdp.terminal, -1, mdp.action[first]), np.full(mdp.n_states, np.nan))


def pooled(mdp: MDP) -> FloatArray:
    """`(E, d)` indicators of the action of a transition and its position among the successors of its pair."""
    rows = mdp.rows
    position = np.arange(rows.n_entries) - rows.entry_start[rows.entry_row]
    group = mdp.action[rows.entry_row] * (position.max() + 1) + position
    indicators: FloatArray = np.equal.outer(group, np.unique(group)).astype(np.float64)
    return indicators


def _visits(mdp: MDP, share: FloatArray, steps: int) -> FloatArray:
    """`(R,)` expected visits of the pairs in some steps of a policy with these `(R,)` probabilities."""
    mass, visits = start_weights(mdp), np.zeros(mdp.n_rows)
    for _ in range(steps):
        visited = mass[mdp.row_state] * share
        visits += visited
        flow = visited[mdp.rows.entry_row] * mdp.rows.probability
        mass = np.bincount(mdp.rows.successor, flow, minlength=mdp.n_states).astype(np.float64, copy=False)
    return visits


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
    "nominal": System("plans for the posterior mean", nominal),
    REFERENCE: System("L1 balls of Hoeffding's radius, the reference", from_posterior(HoeffdingSets())),
    "URBE": System(
        "robust plans with the posterior variance as noise, at its defaults", agent=lambda belief: URBE(belief=belief)
    ),
    "factor matrix": System("5 factors fitted to the counts, a ball around each", factors),
    CONDITIONED: System(
        "visits of the uniform policy as moments, a plan of 20 steps in every step", policy_conditioned
    ),
    "BCI": System("credible L1 balls", from_posterior(BCI())),
    "RSVF": System("balls that fit the values", from_posterior(RSVF())),
    "soft-robust": System("actor-critic over ten posterior draws, the model drawn in every step", soft_robust),
    "OLRM": System(
        "optimistic until a pair disappoints; scales .03",
        agent=lambda belief: OLRM(bonus_scale=0.03, check_scale=0.03, belief=belief),
    ),
    "few deviations": System("the reference set at most 3 times: chance .05 over 20 steps", few_deviations),
    "nested sets": System("half the radius with probability .5", against(nested)),
    "s-rectangular": System("the mean radius, shared by the actions of a state", against(shared_budget)),
    "twice-regularised": System("L2 balls inside the simplex, in closed form", twice_regularised),
    "VaR": System("a low quantile of each action's value", from_posterior(VaRBellman())),
}


class Line(NamedTuple):
    """A line of the paper's table.

    Attributes:
      authors: of the approach; empty for this paper's own.
      ticks: mitigates conservativeness, learns the set online, scales.
      systems: the systems that implement it. With several, each is an assumption on what the line means.
    """

    authors: str
    ticks: tuple[bool, bool, bool]
    systems: tuple[str, ...]

    @property
    def name(self) -> str:
        """`The approach of Derman et al. (soft-robust)`."""
        return f"The approach of {self.authors} ({', '.join(self.systems)})" if self.authors else self.systems[0]


PAPER = (
    Line("", (True, True, True), ("URBE",)),
    Line("Goyal and Grand-Clément", (True, False, False), ("factor matrix",)),
    Line("Tirinzoni et al.", (True, False, True), (CONDITIONED,)),
    Line("Petrik and Russel", (True, False, False), ("BCI", "RSVF")),
    Line("Derman et al.", (True, False, True), ("soft-robust",)),
    Line("Lim, Xu and Mannor", (True, True, False), ("OLRM",)),
    Line("Mannor, Mebel and Xu", (True, False, False), ("few deviations",)),
    Line("Xu, Mannor and Yu", (True, False, False), ("nested sets",)),
)
"""The paper's Table 1, in its order."""

ONLINE_BELIEF: PosteriorConfig = Forgetting(0.98)
"""The beliefs with which learners track a changing environment."""

OFFLINE_BELIEF: PosteriorConfig = Stationary()
