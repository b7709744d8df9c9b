"""What `solve` and its relatives are given: each argument is of its kind, and where two were swapped that is said."""

from __future__ import annotations

from urbe import checks
from urbe.ambiguity.operator import check_set
from urbe.mdp.model import MDP, check_model
from urbe.solvers.methods import BackwardInduction


def check_problem(mdp: object, nature: object, method: object, progress: object = None) -> None:
    """Raises TypeError unless the arguments of `solve` are of their kinds; None stands for a default."""
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
    """Raises TypeError unless `method` is one of solving."""
    checks.kind("method", method, _is_method(method), "a method such as ValueIteration() or PartialPolicyIteration()")


def _is_method(value: object) -> bool:
    return callable(getattr(value, "evaluation", None)) or isinstance(value, BackwardInduction)
