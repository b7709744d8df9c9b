"""`plan`: from a posterior to a safe policy in one call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from urbe import checks
from urbe.ambiguity.operator import AmbiguitySet
from urbe.mdp.evaluate import start_weights
from urbe.mdp.model import MDP
from urbe.mdp.start import first_states
from urbe.planners.base import PlanningMethod, PlanningTask, pure_policy
from urbe.planners.guarantee import DRAWS, fewest_draws, guarantee, require_draws
from urbe.planners.held_out import hold_out
from urbe.planners.l1_balls import BCI
from urbe.planners.safe_plan import SafePlan
from urbe.posteriors.dirichlet import Posterior, check_posterior
from urbe.progress import of_gap, stages
from urbe.rng import stream
from urbe.solvers.iterate import Progress
from urbe.solvers.methods import PartialPolicyIteration
from urbe.solvers.solution import Solution
from urbe.solvers.solve import solve
from urbe.types import FloatArray


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
    progress: Progress | bool = False,
) -> SafePlan:
    """Computes a policy whose true value is at least a guaranteed value with posterior probability `confidence`.

    Given the data, the policy is fixed, so quantiles of its value over fresh posterior draws bound its true value
    (`urbe.planners.guarantee`): with posterior probability at least `confidence` it is worth at least
    `SafePlan.guaranteed_at_start` from the start, and with the same probability at least `SafePlan.guaranteed` in every
    state. This holds for every method if the prior is right, and covers uncertain rewards.

    `SafePlan.worst_case` is the value over the set that the method built; `SafePlan.promise` says what it guarantees.
    Sets hold row by row, so worst cases are far lower; half of the failure probability is spent on replacing uncertain
    rewards by low quantiles of their posterior, the other half on transitions.

    Args:
      posterior: of the model, e.g. `Posterior.fit(log, discount=0.95)`.
      confidence: in (0, 1).
      method: `BCI()` by default, credible L1 balls; also `Percentile()`, which maximises the guarantee from the
        start, `VaRBellman()`, `RSVF()`, `HoeffdingSets()`.
      rng: independent streams for planning, evaluation and certification are spawned from it.
      seed: an integer instead of `rng`; 0 if neither is given. The same seed gives the same plan.
      start: initial state: a label or id, `{state: probability}`, or `(S,)` probabilities. By default that of the
        model, or else all non-terminal states with equal weight.
      draws: posterior draws to plan with, at least R / (1 - confidence) for R uncertain rows; by default, enough.
      held_out: further draws to evaluate the policy on.
      certify: further draws whose quantiles are the guarantee; by default 2000, or more if `confidence` needs them.
      threads: as for `solve`.
      progress: True shows the progress of every stage on standard error; a function is called as by `solve`, and
        methods may solve several times.

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

    if start is not None:
        model = replace(posterior.model, initial=first_states(posterior.model, "start", start))
        posterior = replace(posterior, model=model)
    lowered, delta = _with_low_rewards(posterior, 1.0 - share)
    first = start_weights(posterior.model)
    n_certify = max(DRAWS, 2 * fewest_draws(1.0 - share)) if certify is None else certify
    require_draws(1.0 - share, n_certify)
    with stages("planning", shown=progress is True) as report:

        def solve_against(mdp: MDP, nature: AmbiguitySet, *, start: FloatArray | None = None) -> Solution:
            each = of_gap(report, PartialPolicyIteration.tolerance) if isinstance(progress, bool) else progress
            return solve(mdp, nature, start=start, threads=threads, progress=each)

        whole = posterior, 1.0 - share
        task = PlanningTask(lowered, delta, draws, planning, solve_against, whole, n_certify, report)
        answer = how.answer(task)
        nominal = solve(posterior.mean(), threads=threads)
        policy, nominal_policy = pure_policy(answer.solution), pure_policy(nominal)
        bounds = guarantee(posterior, policy, first, 1.0 - share, certifying, n_certify, report)
        promised = bounds.in_every_state, nominal.value
        mine, other = hold_out(posterior, (policy, nominal_policy), promised, first, judging, n_held_out, report)
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
        nominal_policy=nominal_policy,
        nominal_value=nominal.value,
        nominal_held_out=other,
    )


def _with_low_rewards(posterior: Posterior, delta: float) -> tuple[Posterior, float]:
    """Returns the posterior with lowered rewards, all safe except with probability delta / 2, and the rest of delta.

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
