"""The methods of `solve`: frozen descriptions that differ in how policies are evaluated between improvements.

`check_problem` validates the arguments of `solve` and related functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from urbe import checks
from urbe.ambiguity.operator import check_set
from urbe.mdp.model import MDP, check_model
from urbe.solvers.evaluation import MOST_SWEEPS, PolicyEvaluation, adaptive, fixed_sweeps, newton


class Method(Protocol):
    """A method to reach a tolerance; all use the loop of `urbe.solvers.iterate` and differ in these parts."""

    @property
    def tolerance(self) -> float:
        """Largest gap between certified bounds, in every state."""

    @property
    def max_steps(self) -> int:
        """Maximum number of improvements."""

    @property
    def rule(self) -> Literal["span", "residual"]:
        """The bounds that decide when to stop."""

    @property
    def shrink(self) -> float:
        """An evaluation ends when its spread is this share of the improvement's spread."""

    def evaluation(self) -> PolicyEvaluation:
        """Returns the function that evaluates policies."""


@dataclass(frozen=True)
class PartialPolicyIteration:
    """Policy iteration with robust evaluations to a shrinking tolerance [HoPetrikWiesemann2021]; the default.

    Each policy is evaluated against nature by sweeps, or by Newton steps on nature's answer if the chain mixes so
    slowly that linear systems are cheaper. The policy changes in the outer loop, nature in the inner one: this cannot
    cycle.

    Args:
      tolerance: largest gap between the certified bounds.
      max_steps: maximum number of improvements.
      shrink: share of the improvement's spread at which an evaluation ends.
      linear: "auto" as above, "always" for Newton steps from the start, "never" for sweeps only.
    """

    tolerance: float = 1e-6
    max_steps: int = 10_000
    shrink: float = 0.005
    linear: Literal["auto", "always", "never"] = "auto"
    rule: Literal["span"] = "span"

    def __post_init__(self) -> None:
        _check(self)
        checks.one_of("linear", self.linear, ("auto", "always", "never"))

    def evaluation(self) -> PolicyEvaluation:
        if self.linear == "never":
            return fixed_sweeps(MOST_SWEEPS)
        return adaptive() if self.linear == "auto" else newton()


@dataclass(frozen=True)
class ModifiedPolicyIteration:
    """Alternates an improvement with at most `sweeps` sweeps of the greedy policy [Puterman1994].

    Args:
      tolerance: largest gap between the certified bounds.
      sweeps: evaluation sweeps between two improvements.
      max_steps: maximum number of improvements.
      rule: "span" bounds, or the textbook "residual" rule, which is far slower and kept for comparison.
    """

    tolerance: float = 1e-6
    sweeps: int = 50
    max_steps: int = 1_000_000
    rule: Literal["span", "residual"] = "span"
    shrink: float = 0.0

    def __post_init__(self) -> None:
        _check(self)
        checks.whole_number("sweeps", self.sweeps, 0)
        checks.one_of("rule", self.rule, ("span", "residual"))

    def evaluation(self) -> PolicyEvaluation:
        return fixed_sweeps(self.sweeps)


@dataclass(frozen=True)
class ValueIteration:
    """Iterates v <- T v until the bounds meet [Puterman1994].

    Args:
      tolerance: largest gap between the certified bounds.
      max_steps: maximum number of sweeps.
      rule: "span" bounds, or the textbook "residual" rule.
    """

    tolerance: float = 1e-6
    max_steps: int = 10_000_000
    rule: Literal["span", "residual"] = "span"
    shrink: float = 1.0

    def __post_init__(self) -> None:
        _check(self)
        checks.one_of("rule", self.rule, ("span", "residual"))

    def evaluation(self) -> PolicyEvaluation:
        return fixed_sweeps(0)


@dataclass(frozen=True)
class BackwardInduction:
    """Solves a finite horizon exactly by dynamic programming; the first axis of values and policies is the step.

    Args:
      horizon: number of decisions; the value after the last one is zero.
    """

    horizon: int

    def __post_init__(self) -> None:
        checks.whole_number("horizon", self.horizon, 1)


def _check(method: Method) -> None:
    checks.number("tolerance", method.tolerance, 0.0, float("inf"))
    checks.whole_number("max_steps", method.max_steps, 1)
    checks.number("shrink", method.shrink, 0.0, 1.0)


def check_problem(mdp: object, nature: object, method: object, progress: object = None) -> None:
    """Raises TypeError unless the arguments of `solve` have the right types; None stands for a default."""
    if isinstance(nature, MDP) and not isinstance(mdp, MDP):
        raise TypeError(f"mdp is {checks.shown(mdp)} and nature is a model: they are swapped; the model comes first.")
    check_model("mdp", mdp)
    if nature is not None:
        if _is_method(nature):
            raise TypeError(f"nature is {checks.shown(nature)}, a method; give it as method=..., after the set.")
        check_set("nature", nature)
    if method is not None:
        check_method(method)
    if progress is not None:
        checks.kind("progress", progress, callable(progress), "a function called as progress(step, gap)")


def check_method(method: object) -> None:
    """Raises TypeError unless `method` is a solution method."""
    checks.kind("method", method, _is_method(method), "a method such as ValueIteration() or PartialPolicyIteration()")


def _is_method(value: object) -> bool:
    return callable(getattr(value, "evaluation", None)) or isinstance(value, BackwardInduction)
