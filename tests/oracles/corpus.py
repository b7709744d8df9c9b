"""Checks the claims of a solution against the high-precision oracle, one adversarial model at a time.

`violations(family, seed)` draws a model and a set, solves it, and returns one sentence for each claim that is false:

    lower <= V* <= upper, compared without tolerance, and the value between them; where the solver stops because of
    rounding, the bounds are no farther apart than rounding explains
    nature's kernel lies in the set and attains the value within the bounds
    `certify` accepts the solution, what it proves is true and tight, and it rejects bounds, kernels and policies
    tampered with
"""

import zlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

import urbe
from fixtures import adversarial
from oracles.high_precision.bellman import Enclosure, Problem, Rectangular, Step, enclosed, over_horizon
from oracles.high_precision.coupled import oracle_of
from oracles.high_precision.numbers import D, digits_right, tolerance
from oracles.high_precision.sets import Oracle
from oracles.high_precision.shared import Shared, SharedOracle
from urbe import MDP, Solution
from urbe.ambiguity.coupled import moments
from urbe.ambiguity.operator import PolicyRows
from urbe.solvers.solve import given_policy

DIGITS = 60
"""Of row problems; a discount of 1 - 1e-9 leaves 51 of the value, double precision has 16."""

OUTSIDE = D("1e-10")
"""How far rounding may leave a kernel outside its set, relative to 1 + radius."""

TOLERATED = D("2e-12")
"""The largest tolerance of a certificate for each step, relative to max |r| + max |v|."""

CLEARLY = D("1e-6")
"""How far a kernel is outside its set where no rounding explains it."""

STRETCH = 0.003
"""The share by which a row of nature's kernel is moved on, beyond what a budget allows."""

SLIGHTLY = 1e-10
"""The same, within what a certificate takes for rounding."""

ROUNDINGS = 1000
"""Units of 2^-53 (max |r| + max |v|) for each step, within which bounds meet where rounding stops the solver."""

SEARCHED = 64
"""The same for each successor where the actions of a state share a budget, and for 40 more.

Searches stop at a gap of (n + 32) 2^-51 max |z|, and the same is allowed for rounding: 8 (n + 32) units of a sweep, and
a few more for sums. The solver stops at four times what that accounts for, on both sides of the value.
"""

FAINT = (5e-324, 1e-320, 1e-308, 1e-160, 2.0**-60)
"""Probabilities of actions that a policy hardly takes."""

STEP_DIGITS = 30
"""Of one step of a certificate, whose own arithmetic has 19."""

LOOSE = D("1e-13")
"""How far the bounds of a certificate on one step may be from the truth, relative to max |r| + gamma max |v|."""


class Case(NamedTuple):
    """A model and its set, and the generator they came from."""

    mdp: MDP
    set_: Any
    rng: Generator


def case(family: str, seed: int) -> Case:
    """The model and set number `seed` of a family; "optimistic l1", "dense l1" and "long l1" draw from "l1"."""
    rng = np.random.default_rng([zlib.crc32(family.encode()), seed])
    name = family.removeprefix("long ").removeprefix("optimistic ").removeprefix("dense ")
    if family.startswith("long "):
        mdp = adversarial.long_model(rng)
        return Case(mdp, adversarial.FAMILIES[name](rng, mdp), rng)
    dense = family.startswith("dense ")
    mdp = adversarial.model(rng, dense=dense)
    while name in adversarial.NEEDS_ROW_REWARDS and mdp.rows.rewards_successors:
        mdp = adversarial.model(rng, dense=dense)
    if name in adversarial.COUPLED:
        return Case(*adversarial.COUPLED[name](rng, adversarial.model(rng, max_states=3)), rng)
    set_ = adversarial.FAMILIES[name](rng, mdp)
    return Case(mdp, urbe.Optimistic(set_) if family.startswith("optimistic ") else set_, rng)


class Verdict(NamedTuple):
    """What is wrong with a solution, one sentence each, and whether the truth is enclosed more closely than its gap."""

    found: list[str]
    decided: bool = True


def verdict(family: str, seed: int) -> Verdict:
    """What is wrong with the solution of one model, and whether the oracle could tell."""
    drawn = case(family, seed)
    return examined_long(drawn.mdp, drawn.set_) if family.startswith("long ") else examined(drawn)


def violations(family: str, seed: int) -> list[str]:
    """What is wrong with the solution of one model."""
    return verdict(family, seed).found


def check(drawn: Case) -> list[str]:
    """What is wrong with the solution of a model, one sentence each."""
    return examined(drawn).found


def check_long(mdp: MDP, set_: Any) -> list[str]:
    """What is wrong with the solution of a model with one long row."""
    return examined_long(mdp, set_).found


def examined(drawn: Case, digits: int = DIGITS) -> Verdict:
    """Solves a model, and holds every claim to the oracle."""
    mdp, set_, rng = drawn
    with digits_right(digits), np.errstate(all="ignore"):
        oracle = SharedOracle(mdp, set_) if isinstance(set_, urbe.SRectangular) else oracle_of(mdp, set_)
        kind = rng.choice(["solve", "solve", "solve", "methods", "policy", "horizon"])
        if kind == "horizon":
            return _check_horizon(mdp, set_, oracle, int(rng.integers(1, 5)))
        weights = _random_policy(rng, mdp) if kind == "policy" else None
        solution, tolerance = _solution(mdp, set_, weights, rng, kind == "methods")
        verdict = _check_stationary(mdp, set_, oracle, solution, weights, rng)
        if solution.converged and solution.gap > tolerance:
            verdict.found.append(f"the solver converged to {solution.gap:.3g}, wanted {tolerance:.3g}")
        return verdict


def problem_of(mdp: MDP, oracle: Any, weights: Any = None) -> Problem:
    """T of a model, or T_pi."""
    return Shared(mdp, oracle, weights) if isinstance(oracle, SharedOracle) else Rectangular(mdp, oracle, weights)


def _solution(mdp: MDP, set_: Any, weights: Any, rng: Generator, other_methods: bool) -> tuple[Solution, float]:
    """Solved to a tolerance relative to the size of values, sometimes below what double precision can certify; both."""
    size = (mdp.rows.largest_reward or 1.0) / max(1.0 - mdp.discount, 1e-9 if mdp.discount < 1.0 else 0.2)
    tolerance = float(size * rng.choice([1e-6, 1e-10, 1e-13, 0.0]))
    method: Any = urbe.PartialPolicyIteration(tolerance, max_steps=60)
    if other_methods and mdp.discount in (0.0, 0.5, 0.9, 1.0):
        rule = str(rng.choice(["span", "residual"]))
        choices = [
            urbe.ValueIteration(tolerance, max_steps=500, rule=rule),  # type: ignore[arg-type]
            urbe.ModifiedPolicyIteration(tolerance, max_steps=60, rule=rule),  # type: ignore[arg-type]
            urbe.PartialPolicyIteration(tolerance, max_steps=60, linear="always"),
            urbe.PartialPolicyIteration(tolerance, max_steps=60, linear="never"),
        ]
        method = choices[rng.integers(len(choices))]
    if weights is None:
        return urbe.solve(mdp, set_, method, throw=False), tolerance
    return urbe.evaluate_policy(mdp, mdp.by_action(weights, fill=0.0), set_, method, throw=False), tolerance


def _random_policy(rng: Generator, mdp: MDP) -> np.ndarray:
    """`(R,)` probabilities of rows: multiples of 1/8, sometimes with others that are too small to change a sum."""
    weights = np.zeros(mdp.n_rows)
    for s in range(mdp.n_states):
        first, last = mdp.row_start[s : s + 2]
        for _ in range(8 if last > first else 0):
            weights[rng.integers(first, last)] += 0.125
    (faint,) = rng.spawn(1)
    if faint.random() < 0.5:
        weights = np.where(weights > 0.0, weights, faint.choice([0.0, *FAINT], mdp.n_rows))
    return weights


def _check_stationary(mdp: MDP, set_: Any, oracle: Any, solution: Solution, weights: Any, rng: Generator) -> Verdict:
    start = solution.value if np.isfinite(solution.value).all() else None
    truth = enclosed(problem_of(mdp, oracle, weights), start, _duration(mdp))
    found = _against(truth, mdp, set_, oracle, solution, weights, rng)
    return Verdict(found, _decided(truth, solution.gap))


def _decided(truth: Enclosure, gap: float) -> bool:
    return all(high - low <= D(gap) for low, high in zip(truth.low, truth.high, strict=True))


def _against(
    truth: Enclosure, mdp: MDP, set_: Any, oracle: Any, solution: Solution, weights: Any, rng: Generator
) -> list[str]:
    start = solution.value if np.isfinite(solution.value).all() else None
    found = _bounds(solution.lower, solution.upper, solution.value, truth)
    searched = SEARCHED * (mdp.rows.longest + 40) if isinstance(oracle, SharedOracle) else 0
    proven = 32 * _accuracy(set_, D(0))  # four times the error of two sweeps, each of twice the accuracy, on both sides
    allowed = max(max(ROUNDINGS, searched) / D(2) ** 53, proven) * _size(mdp, solution) + D("1e-300")
    if "rounding" in solution.status and D(solution.gap) > allowed:
        found.append(f"the bounds are {solution.gap:.3g} apart, which rounding does not explain")
    if found:
        return found
    try:
        kernel = solution.kernel.rows
    except Exception as error:  # a kernel that cannot be given is one more violation
        return [f"kernel: {error!r}"]
    found += outside(mdp, oracle, kernel)
    if found:
        return found
    slack = _slack(mdp, solution)
    answered = enclosed(Rectangular(mdp, oracle_of(mdp.with_rows(kernel), None), weights), start, _duration(mdp))
    for s in range(mdp.n_states):
        if answered.low[s] > D(float(solution.upper[s])) + slack:
            found.append(f"the kernel is worth {float(answered.low[s])!r} in state {s}, above the upper bound")
        if answered.high[s] < D(float(solution.lower[s])) - slack:
            found.append(f"the kernel is worth {float(answered.high[s])!r} in state {s}, below the lower bound")
    if not found:
        found += _certificates(mdp, set_, oracle, solution, weights, truth, rng)
    return found


def _check_horizon(mdp: MDP, set_: Any, oracle: Any, horizon: int) -> Verdict:
    solution = urbe.solve(mdp, set_, urbe.BackwardInduction(horizon))
    truths = over_horizon(problem_of(mdp, oracle), horizon)
    found = []
    for t, truth in enumerate(truths):
        wrong = _bounds(solution.lower[t], solution.upper[t], solution.value[t], truth)
        found += [f"step {t}: {sentence}" for sentence in wrong]
    for t in range(horizon):
        found += [f"step {t}: {sentence}" for sentence in outside(mdp, oracle, solution.kernel_at(t).rows)]
    if not found:
        proof = urbe.certify(solution, mdp, set_ or urbe.Exact())
        if not proof.holds:
            found.append(f"certify rejects a right solution: {proof}")
        for t, truth in enumerate(truths):
            for s, (low, high) in enumerate(zip(truth.low, truth.high, strict=True)):
                slack = max(abs(low), abs(high)) * tolerance()
                if D(float(proof.lower[t, s])) > high + slack or D(float(proof.upper[t, s])) < low - slack:
                    found.append(f"certify proves [{proof.lower[t, s]!r}, {proof.upper[t, s]!r}] of {float(low)!r}")
        shift = 3.0 * (solution.gap + 4.0 * proof.tolerance) + 1e-320
        found += _rejected(mdp, set_, replace(solution, lower=solution.lower + shift), "lower bounds raised")
        found += _rejected(mdp, set_, replace(solution, upper=solution.upper - shift), "upper bounds lowered")
    return Verdict(found, all(_decided(truth, solution.gap) for truth in truths))


def _bounds(lower: np.ndarray, upper: np.ndarray, value: np.ndarray, truth: Enclosure) -> list[str]:
    found = []
    for s in range(len(lower)):
        low, mid, high = (float(x[s]) for x in (lower, value, upper))
        if not np.isfinite([low, mid, high]).all():
            found.append(f"state {s}: bounds {low!r}, {high!r} and value {mid!r}, truth {float(truth.low[s])!r}")
            continue
        if D(low) > truth.high[s]:
            found.append(
                f"state {s}: lower {low!r} exceeds {float(truth.high[s])!r} by {float(D(low) - truth.high[s]):.3g}"
            )
        if D(high) < truth.low[s]:
            short = float(truth.low[s] - D(high))
            found.append(f"state {s}: upper {high!r} falls short of {float(truth.low[s])!r} by {short:.3g}")
        if not low <= mid <= high:
            found.append(f"state {s}: value {mid!r} is not between {low!r} and {high!r}")
    return found


def outside(mdp: MDP, oracle: Any, kernel: Any, tolerance: D = OUTSIDE) -> list[str]:
    """One sentence for each row (or state) of a kernel that is not in its set."""
    found, rows = [], []
    for k, row in enumerate(oracle.rows):
        first, last = kernel.entry_start[k : k + 2]
        states = kernel.successor[first:last].tolist()
        q = dict(zip(states, (D(float(x)) for x in kernel.probability[first:last]), strict=True))
        stray = sum((abs(x) for s, x in q.items() if s not in set(row.states)), D(0))
        if stray:
            found.append(f"the kernel sends {float(stray):.3g} outside the support of {mdp.row_name(k)}")
        rows.append([q.get(s, D(0)) for s in row.states])
    if isinstance(oracle, Oracle):
        for k, q in enumerate(rows):
            excess = oracle.excess(k, q)
            if not excess <= tolerance * (1 + oracle.radius[k]):
                found.append(f"the kernel is {float(excess):.3g} outside the set of {mdp.row_name(k)}")
    else:
        for s in range(mdp.n_states):
            excess = oracle.excess(s, rows)
            if not excess <= tolerance * (1 + oracle.budget[s]):
                found.append(f"the kernel is {float(excess):.3g} outside the set of state {s}")
    return found


def _certificates(
    mdp: MDP, set_: Any, oracle: Any, solution: Solution, weights: Any, truth: Enclosure, rng: Generator
) -> list[str]:
    given = urbe.Exact() if set_ is None else set_
    proof = urbe.certify(solution, mdp, given)
    found = []
    if not proof.holds:
        found.append(f"certify rejects a right solution: {proof}")
    size = max(float(np.abs(bound).max()) for bound in (solution.lower, solution.value, solution.upper))
    if D(proof.tolerance) > TOLERATED * _steps_left(mdp) * (D(mdp.rows.largest_reward) + D(size)) + D("1e-300"):
        found.append(f"certify tolerates {proof.tolerance:.3g}, but values are of size {size:.3g}")
    found += _wrongly_proven(proof, truth, "a solution")
    found += _one_step(mdp, given, oracle, solution)
    live = ~mdp.terminal
    shift = 3.0 * (solution.gap + 4.0 * proof.tolerance) + 1e-320
    if not np.isfinite(shift) or not live.any():
        return found
    for sign, what in ((shift, "all values raised"), (-shift, "all values lowered")):
        moved = {name: getattr(solution, name) + sign * live for name in ("lower", "value", "upper")}
        if np.isfinite(moved["lower"]).all() and np.isfinite(moved["upper"]).all():
            found += _rejected(mdp, given, replace(solution, **moved), what, truth)
    found += _kernel_tampered(mdp, given, oracle, solution, weights, truth, shift, rng)
    (other,) = rng.spawn(1)
    if other.random() < 0.3:
        found += _others_tampered(mdp, given, solution, 2.0 * shift, other)
    if weights is None and rng.random() < 0.5:
        found += _policy_tampered(mdp, given, oracle, solution, truth, shift, rng)
    return found


def _one_step(mdp: MDP, given: Any, oracle: Any, solution: Solution) -> list[str]:
    """The two bounds on one step that a certificate rests on: true, and not looser than rounding explains.

    One of them comes from nature's kernel, which was found at the value and not at the bound. A kernel that is outside
    by no more than a certificate allows must not prove more than members do.
    """
    policy, operator = given_policy(mdp, solution.policy), given.operator(mdp)
    evidence = operator.evidence(solution.kernel.rows, solution.optimal)
    below, above = evidence.below(solution.lower, policy), evidence.above(solution.upper, policy)
    near = _stretched(oracle, solution.kernel.rows, range(mdp.n_rows), SLIGHTLY)
    beyond = operator.evidence(near, solution.optimal).above(solution.upper, policy)
    weights = policy.weights(mdp.n_rows)
    chosen, answer = None if solution.optimal else weights, oracle_of(solution.kernel, None)
    with digits_right(STEP_DIGITS):
        falls = _steps(problem_of(mdp, oracle, weights), solution.lower)
        rises = _steps(problem_of(mdp, oracle, chosen), solution.upper)
        lowest = _steps(Rectangular(mdp, answer, weights), solution.lower)
        highest = _steps(Rectangular(mdp, answer, chosen), solution.upper)
    largest = max(D(float(x)) for x in np.abs([solution.lower, solution.upper]).max(axis=1))
    size = D(mdp.rows.largest_reward) + D(mdp.discount) * largest
    loose, rounding = _accuracy(given, LOOSE) * size + D("1e-300"), size * tolerance(STEP_DIGITS)
    found = []
    for s, (fall, rise, least, most) in enumerate(zip(falls, rises, lowest, highest, strict=True)):
        if fall is None or rise is None or least is None or most is None:
            continue
        low, high = extended(below[s]), extended(above[s])
        from_below, from_above = min(fall.low, least.low) - low, high - max(rise.high, most.high)
        if low > fall.high + rounding:
            found.append(f"one step from the lower bound of state {s} is said to be {float(low - fall.high):.3g} more")
        if from_below > loose:
            found.append(f"one step from the lower bound of state {s} is loose by {float(from_below):.3g}")
        if high < rise.low - rounding:
            found.append(f"one step from the upper bound of state {s} is said to be {float(rise.low - high):.3g} less")
        if extended(beyond[s]) < rise.low - rounding:
            short = float(rise.low - extended(beyond[s]))
            found.append(f"one step from the upper bound of state {s} is {short:.3g} more than a kernel outside proves")
        if from_above > loose:
            found.append(f"one step from the upper bound of state {s} is loose by {float(from_above):.3g}")
    return found


def _steps(problem: Problem, v: np.ndarray) -> list[Step | None]:
    start = [D(float(x)) for x in v]
    return [problem.best(s, start) for s in range(problem.n_states)]


def extended(x: np.longdouble) -> D:
    """A number of extended precision, exactly."""
    if not np.isfinite(x):
        return D(float(x))
    mantissa, exponent = np.frexp(x)
    leading = float(mantissa)
    return (D(leading) + D(float(mantissa - np.longdouble(leading)))) * D(2) ** int(exponent)


def _kernel_tampered(
    mdp: MDP, given: Any, oracle: Any, solution: Solution, weights: Any, truth: Enclosure, shift: float, rng: Generator
) -> list[str]:
    """All mass of one row on a successor of its own, where that leaves the set, or the upper bound, by far.

    Then that row a little farther from the model's, where that leaves the set, and a little of it outside its support.
    """
    rows = solution.kernel.rows
    k = int(rng.integers(mdp.n_rows))
    first, last = rows.entry_start[k : k + 2]
    probability = rows.probability.copy()
    probability[first:last] = 0.0
    probability[rng.integers(first, last)] = 1.0
    found, bad = [], replace(rows, probability=probability)
    if outside(mdp, oracle, bad, CLEARLY) or (
        not outside(mdp, oracle, bad, D(0)) and _above_the_bound(mdp, bad, solution, weights, shift)
    ):
        found += _rejected(mdp, given, _with_kernel(mdp, solution, bad), f"row {k} of the kernel replaced", truth)
    if not isinstance(given, urbe.FactorSet):  # factors are estimated from the kernel, with a tolerance of their own
        near = _stretched(oracle, rows, [k], STRETCH)
        if outside(mdp, oracle, near, CLEARLY):
            found += _rejected(mdp, given, _with_kernel(mdp, solution, near), f"row {k} of the kernel stretched", truth)
    strange = sorted({*range(mdp.n_states)} - {*oracle.rows[k].states})
    if strange and not rows.rewards_successors:
        stray = _strayed(rows, k, strange[int(rng.integers(len(strange)))])
        found += _rejected(mdp, given, _with_kernel(mdp, solution, stray), f"row {k} of the kernel strays", truth)
    return found


def _strayed(rows: Any, k: int, state: int) -> Any:
    """A kernel with some mass of row k on a state outside its support."""
    wide = rows.with_all_states()
    first, last = wide.entry_start[k : k + 2]
    probability = wide.probability.copy()
    largest = first + int(np.argmax(probability[first:last]))
    probability[largest] -= STRETCH
    probability[first + state] += STRETCH
    return replace(wide, probability=probability)


def _above_the_bound(mdp: MDP, kernel: Any, solution: Solution, weights: Any, shift: float) -> bool:
    """Whether one step under a kernel leads above the upper bound by far."""
    problem = Rectangular(mdp, oracle_of(mdp.with_rows(kernel), None), None if solution.optimal else weights)
    rises = zip(_steps(problem, solution.upper), solution.upper, strict=True)
    return any(step is not None and step.low > D(float(high)) + D(shift) for step, high in rises)


def _stretched(oracle: Any, rows: Any, chosen: Iterable[int], share: float) -> Any:
    """A kernel with some rows moved away from the model's by a share of their difference."""
    probability = rows.probability.copy()
    for k in chosen:
        first, last = rows.entry_start[k : k + 2]
        known = dict(zip(oracle.rows[k].states, oracle.rows[k].p, strict=True))
        p = np.array([float(known.get(s, D(0))) for s in rows.successor[first:last].tolist()])
        q = np.maximum(probability[first:last] + share * (probability[first:last] - p), 0.0)
        probability[first:last] = q / q.sum()
    return replace(rows, probability=probability)


def _with_kernel(mdp: MDP, solution: Solution, rows: Any) -> Solution:
    tampered = replace(solution)
    tampered.__dict__["kernel"] = mdp.with_rows(rows)
    return tampered


def _policy_tampered(
    mdp: MDP, given: Any, oracle: Any, solution: Solution, truth: Enclosure, shift: float, rng: Generator
) -> list[str]:
    """Another policy, under the same bounds and under its own value, where that is below them by far."""
    other = _random_policy(rng, mdp)
    value = enclosed(problem_of(mdp, oracle, other), solution.value, _duration(mdp))
    if all(high >= D(float(low)) - D(shift) for high, low in zip(value.high, solution.lower, strict=True)):
        return []
    tampered = replace(solution, policy=mdp.by_action(other, fill=0.0), policies=(PolicyRows.of_weights(other),))
    kernel, own = solution.kernel.rows, np.array([float(x) for x in value.low])
    worth = replace(tampered, lower=own, value=own, upper=own)
    return [
        *_rejected(mdp, given, _with_kernel(mdp, tampered, kernel), "a worse policy", truth),
        *_rejected(mdp, given, _with_kernel(mdp, worth, kernel), "a worse policy and its value", truth),
    ]


def _rejected(mdp: MDP, set_: Any, tampered: Solution, what: str, truth: Enclosure | None = None) -> list[str]:
    """A sentence if a certificate does not notice bounds, kernel or policy; what it says of q and status aside.

    What it proves must be true all the same: bounds follow from the evidence, whatever the solution claims.
    """
    proof = urbe.certify(tampered, mdp, urbe.Exact() if set_ is None else set_)
    noticed = [failure for failure in proof.failures if not failure.startswith(("q of", "Step", "the status"))]
    found = [] if noticed else [f"certify accepts a wrong solution: {what}"]
    return found if truth is None else found + _wrongly_proven(proof, truth, what)


def _wrongly_proven(proof: urbe.Certificate, truth: Enclosure, what: str) -> list[str]:
    """One sentence for each state whose proven bounds do not hold."""
    return [
        f"certify proves [{low!r}, {high!r}] of {float(least)!r} from {what}"
        for low, high, least, most in zip(proof.lower, proof.upper, truth.low, truth.high, strict=True)
        if D(float(low)) > most or D(float(high)) < least
    ]


def _others_tampered(mdp: MDP, given: Any, solution: Solution, shift: float, rng: Generator) -> list[str]:
    """One action value moved by more than the gap, and a status that does not fit the bounds."""
    found = []
    if not solution.status.startswith(("Solved", "Stopped", "Gave up")):
        found.append(f"the status begins with {solution.status[:20]!r}")
    other = 0.5 * solution.gap or 1e-309
    lying = replace(solution, status=f"Solved: the bounds are within {other:.3g} of each other in every state.")
    for what, lie in (
        ("another status", lying),
        ("converged the other way round", replace(solution, converged=not solution.converged)),
    ):
        if urbe.certify(lie, mdp, given).holds:
            found.append(f"certify accepts a wrong solution: {what}")
    q, k = solution.q.copy(), int(rng.integers(mdp.n_rows))
    at = (..., int(mdp.row_state[k]), int(mdp.action[k]))
    q[at] += shift * rng.choice([-1.0, 1.0])
    proof = urbe.certify(replace(solution, q=q), mdp, given)
    if proof.holds:
        found.append(f"certify accepts a wrong solution: q[{at[1]}, {at[2]}] moved by {shift:.3g}")
    return found


def _accuracy(set_: Any, usual: D) -> D:
    """What a linear program in double precision proves, or the accuracy of all other sets."""
    return D(moments.ACCURACY) if isinstance(set_, urbe.MomentSet) else usual


def _slack(mdp: MDP, solution: Solution) -> D:
    """Rounding of a kernel over the horizon, and the gap within which it was found."""
    return D("1e-12") * _size(mdp, solution) + 2 * D(solution.gap) + D("1e-300")


def _size(mdp: MDP, solution: Solution) -> D:
    """max |r| + max |v|, for each step of the horizon."""
    return _steps_left(mdp) * (D(mdp.rows.largest_reward) + D(float(np.abs(solution.value).max(initial=0.0))))


def _steps_left(mdp: MDP) -> D:
    return D(mdp.n_states) if mdp.discount == 1.0 else 1 / (1 - D(mdp.discount))


def _duration(mdp: MDP) -> D | None:
    """With discount 1 every step leads to a later state, or every third one or more to the end."""
    return D(mdp.n_states) * 2 if mdp.discount == 1.0 else None


def examined_long(mdp: MDP, set_: Any) -> Verdict:
    """As `examined`, of a model with one long row whose successors all end at once: the row problem decides.

    The states after the first have known values, so that state 0 takes one row problem instead of a linear system.
    """
    with digits_right(DIGITS), np.errstate(all="ignore"):
        solution = urbe.solve(mdp, set_, throw=False)
        shared = isinstance(set_, urbe.SRectangular)
        oracle: Any = SharedOracle(mdp, set_) if shared else oracle_of(mdp, set_)
        problem = problem_of(mdp, oracle)
        v, width = [D(0)] * mdp.n_states, D(0)
        for s in range(mdp.n_states - 1, 0, -1):  # each leads to the end
            step = problem.best(s, v)
            if step is not None:
                v[s], width = step.low, max(width, step.high - step.low)
        step = problem.best(0, v)
        assert step is not None
        # the values of states are enclosed too; their errors are of the same kind
        slack = max(abs(x) for x in v) * tolerance() + width
        truth = Enclosure([step.low - slack], [step.high + slack])
        found = _bounds(solution.lower[:1], solution.upper[:1], solution.value[:1], truth)
        found += outside(mdp, oracle, solution.kernel.rows)
        proof = urbe.certify(solution, mdp, set_)
        if not proof.holds:
            found.append(f"certify rejects a right solution: {proof}")
        found += _bounds(proof.lower[:1], proof.upper[:1], solution.value[:1], truth)
        return Verdict(found, _decided(truth, solution.gap))
