"""plan: from a posterior to a safe policy in one call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from urbe import checks
from urbe.ambiguity.operator import AmbiguitySet
from urbe.mdp.evaluate import start_weights
from urbe.mdp.model import MDP
from urbe.mdp.start import first_states
from urbe.planners.base import PlanningMethod, PlanningTask
from urbe.planners.guarantee import DRAWS, fewest_draws, guarantee
from urbe.planners.held_out import hold_out
from urbe.planners.l1_balls import BCI
from urbe.planners.safe_plan import SafePlan
from urbe.posteriors.dirichlet import Posterior, check_posterior
from urbe.rng import stream
from urbe.solvers.iterate import Progress
from urbe.solvers.solution import Solution
from urbe.solvers.solve import solve
from urbe.types import FloatArray, IntArray


def plan(
    posterior: Posterior,
    *,
    confidence: float = 0.95,
    method: PlanningMethod | None = None,
    rng: np.random.Generator | None = None,
    seed: int | None = None,
    start: Any = None,
    draws: int | None = None,
    held_out: int = 200,
    certify: int | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> SafePlan:
    """A policy whose true value is at least a guaranteed one, with posterior probability `confidence` or more.

    The policy is fixed once the data are, so quantiles of its value over fresh posterior draws bound its true value
    (`urbe.planners.guarantee`): over all models the posterior thinks possible, weighed by it, at most a share
    1 - confidence makes it worth less than `SafePlan.guaranteed_at_start` from the start, and at most that share makes
    it worth less than `SafePlan.guaranteed` in some state. This holds for every method, given the data, if the prior is
    right, and covers uncertain rewards.

    `SafePlan.worst_case` is the value over the set that the method built, and what it promises is written there. Sets
    hold row by row, so worst cases are far lower; half of the failure probability is spent on replacing uncertain
    rewards by low quantiles of their posterior, the other half on transitions.

    Args:
      posterior: what is known, e.g. `Posterior.fit(log, discount=0.95)`.
      confidence: in (0, 1).
      method: `BCI()` by default, credible L1 balls; also `Percentile()`, which makes the guarantee from the start as
        high as it can, `VaRBellman()`, `RSVF()`, `HoeffdingSets()`.
      rng: draws for planning, judging and certifying are streams of their own, spawned from it.
      seed: a whole number in place of `rng`; 0 where neither is given. The same seed gives the same plan.
      start: where the process starts: a state by label or id, `{state: probability}`, or `(S,)` probabilities. By
        default the model's own first states, or else all that are not terminal, with equal weight.
      draws: posterior draws to plan with, at least R / (1 - confidence) for R uncertain rows; by default enough.
      held_out: further draws to judge the policy by.
      certify: further draws whose quantiles are the guarantee; by default 2000, or more where `confidence` needs them.
      threads: as for `solve`.
      progress: as for `solve`; methods may solve several times.

    Raises:
      ValueError: `draws` is too small for `confidence`; the message names the number needed.

    >>> import numpy as np, urbe
    >>> river = urbe.library.riverswim(6, discount=0.95)
    >>> posterior = urbe.Posterior.before(river).with_counts(200 * river.rows.probability)
    >>> safe = plan(posterior, method=urbe.VaRBellman(), rng=np.random.default_rng(0))
    >>> safe.policy
    array([1, 1, 1, 1, 1, 1], dtype=int32)
    >>> round(safe.guaranteed_at_start, 1), round(safe.held_out.percentile(0.05), 1), round(safe.held_out.mean, 1)
    (3.9, 3.9, 4.6)
    >>> round(float(safe.start @ safe.worst_case), 1)
    2.7
    """
    check_posterior("posterior", posterior)
    if rng is not None and seed is not None:
        raise ValueError(f"rng and seed={seed} are both given, expected one of them.")
    source = stream(0 if seed is None else seed, "plan") if rng is None else checks.generator("rng", rng)
    if method is not None:
        fits = callable(getattr(method, "answer", None))
        checks.kind("method", method, fits, "a planning method such as BCI() or VaRBellman()")
    share = checks.number("confidence", confidence, 0.0, 1.0, closed=False)
    if share == 0.0:
        raise ValueError("confidence is 0, expected a number between 0 and 1, such as 0.95.")
    n_held_out = checks.whole_number("held_out", held_out, 0)
    how: PlanningMethod = BCI() if method is None else method
    planning, judging, certifying = source.spawn(3)

    def solve_against(mdp: MDP, nature: AmbiguitySet, *, start: FloatArray | None = None) -> Solution:
        return solve(mdp, nature, start=start, threads=threads, progress=progress)

    if start is not None:
        model = replace(posterior.model, initial=first_states(posterior.model, "start", start))
        posterior = replace(posterior, model=model)
    lowered, delta = _with_low_rewards(posterior, 1.0 - share)
    answer = how.answer(PlanningTask(lowered, delta, draws, planning, solve_against, (posterior, 1.0 - share)))
    nominal = solve(posterior.mean(), threads=threads)
    first = start_weights(posterior.model)
    n_certify = max(DRAWS, 2 * fewest_draws(1.0 - share)) if certify is None else certify
    policy: IntArray = answer.solution.policy  # type: ignore[assignment]  # no mixtures in sets per (s, a)
    bounds = guarantee(posterior, policy, first, 1.0 - share, certifying, n_certify)
    mine, other = hold_out(
        posterior,
        (policy, nominal.policy),  # type: ignore[arg-type]
        (bounds.in_every_state, nominal.value),
        first,
        judging,
        n_held_out,
    )
    return SafePlan(
        method=how,
        confidence=share,
        posterior=posterior,
        model=answer.model,
        nature=answer.nature,
        solution=answer.solution,
        start=first,
        guarantee=bounds,
        held_out=mine,
        nominal_policy=nominal.policy,  # type: ignore[arg-type]
        nominal_value=nominal.value,
        nominal_held_out=other,
    )


def _with_low_rewards(posterior: Posterior, delta: float) -> tuple[Posterior, float]:
    """The posterior with rewards that are all undershot with probability delta / 2 at most, and what is left of delta.

    The mean reward of a row is Student-t with 2 shape degrees of freedom around `mean`, of scale
    sqrt(rate / (shape weight)); its quantile of level delta / (2 R) is taken.
    """
    rewards = posterior.rewards
    if rewards is None:
        return posterior, delta
    from scipy.stats import t

    level = 0.5 * delta / max(posterior.model.n_rows, 1)
    scale = np.sqrt(rewards.rate / (rewards.shape * rewards.weight))
    low = rewards.mean + scale * t.ppf(level, 2.0 * rewards.shape)
    return replace(posterior, model=posterior.model_with(posterior.probability, low), rewards=None), 0.5 * delta
