"""Robust Markov decision processes with certified bounds.

>>> import urbe
>>> mdp = urbe.library.riverswim(6, discount=0.95)
>>> solution = urbe.solve(mdp, urbe.L1Ball(0.1))
>>> bool(solution.lower[0] <= solution.value[0] <= solution.upper[0])
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from urbe.ambiguity import AmbiguitySet as AmbiguitySet
    from urbe.ambiguity import Chi2Ball as Chi2Ball
    from urbe.ambiguity import ConditionalValueAtRisk as ConditionalValueAtRisk
    from urbe.ambiguity import Contamination as Contamination
    from urbe.ambiguity import Exact as Exact
    from urbe.ambiguity import Interval as Interval
    from urbe.ambiguity import KLBall as KLBall
    from urbe.ambiguity import L1Ball as L1Ball
    from urbe.ambiguity import L2Ball as L2Ball
    from urbe.ambiguity import LikelihoodRegion as LikelihoodRegion
    from urbe.ambiguity import LInfBall as LInfBall
    from urbe.ambiguity import Nature as Nature
    from urbe.ambiguity import Operator as Operator
    from urbe.ambiguity import Optimistic as Optimistic
    from urbe.ambiguity import PerRow as PerRow
    from urbe.ambiguity import RectangularSet as RectangularSet
    from urbe.ambiguity import Scenarios as Scenarios
    from urbe.ambiguity import SRectangular as SRectangular
    from urbe.ambiguity import ValueAtRisk as ValueAtRisk
    from urbe.ambiguity import WassersteinBall as WassersteinBall
    from urbe.ambiguity import WeightedL1Ball as WeightedL1Ball
    from urbe.ambiguity import WorstCase as WorstCase
    from urbe.evaluation.robustness import evaluate as evaluate
    from urbe.mdp import MDP as MDP
    from urbe.mdp import Transitions as Transitions
    from urbe.mdp import library as library
    from urbe.mdp.formats import ModelFileError as ModelFileError
    from urbe.mdp.formats import read_budget as read_budget
    from urbe.mdp.formats import read_log as read_log
    from urbe.mdp.formats import read_mdp as read_mdp
    from urbe.mdp.formats import read_scenarios as read_scenarios
    from urbe.mdp.formats import write_log as write_log
    from urbe.mdp.formats import write_mdp as write_mdp
    from urbe.mdp.formats import write_policy as write_policy
    from urbe.planners import BCI as BCI
    from urbe.planners import RSVF as RSVF
    from urbe.planners import HoeffdingSets as HoeffdingSets
    from urbe.planners import SafePlan as SafePlan
    from urbe.planners import VaRBellman as VaRBellman
    from urbe.planners.plan import plan as plan
    from urbe.posteriors import NormalGamma as NormalGamma
    from urbe.posteriors import Posterior as Posterior
    from urbe.runs.checkpoint import AgentFileError as AgentFileError
    from urbe.runs.checkpoint import load_agent as load_agent
    from urbe.runs.checkpoint import save_agent as save_agent
    from urbe.solvers import BackwardInduction as BackwardInduction
    from urbe.solvers import Certificate as Certificate
    from urbe.solvers import ModifiedPolicyIteration as ModifiedPolicyIteration
    from urbe.solvers import NotConverged as NotConverged
    from urbe.solvers import PartialPolicyIteration as PartialPolicyIteration
    from urbe.solvers import Solution as Solution
    from urbe.solvers import ValueIteration as ValueIteration
    from urbe.solvers import certify as certify
    from urbe.solvers.solve import evaluate_policy as evaluate_policy
    from urbe.solvers.solve import solve as solve
    from urbe.variance.local import Bound as Bound
    from urbe.variance.local import Calibrated as Calibrated
    from urbe.variance.local import Count as Count
    from urbe.variance.local import DirichletForm as DirichletForm
    from urbe.variance.local_draws import ExactUBE as ExactUBE
    from urbe.variance.local_draws import MonteCarlo as MonteCarlo
    from urbe.variance.value_variance import ValueVariance as ValueVariance
    from urbe.variance.value_variance import value_variance as value_variance

_NAMES = {
    "urbe.ambiguity": (
        "AmbiguitySet",
        "Chi2Ball",
        "ConditionalValueAtRisk",
        "Contamination",
        "Exact",
        "Interval",
        "KLBall",
        "L1Ball",
        "L2Ball",
        "LInfBall",
        "LikelihoodRegion",
        "Nature",
        "Operator",
        "Optimistic",
        "PerRow",
        "RectangularSet",
        "SRectangular",
        "Scenarios",
        "ValueAtRisk",
        "WassersteinBall",
        "WeightedL1Ball",
        "WorstCase",
    ),
    "urbe.variance.local": (
        "Bound",
        "Calibrated",
        "Count",
        "DirichletForm",
    ),
    "urbe.variance.local_draws": (
        "ExactUBE",
        "MonteCarlo",
    ),
    "urbe.evaluation.robustness": ("evaluate",),
    "urbe.mdp": ("MDP", "Transitions"),
    "urbe.mdp.formats": (
        "ModelFileError",
        "read_budget",
        "read_log",
        "read_mdp",
        "read_scenarios",
        "write_log",
        "write_mdp",
        "write_policy",
    ),
    "urbe.planners": (
        "BCI",
        "HoeffdingSets",
        "RSVF",
        "SafePlan",
        "VaRBellman",
        "plan",
    ),
    "urbe.posteriors": (
        "NormalGamma",
        "Posterior",
    ),
    "urbe.runs.checkpoint": (
        "AgentFileError",
        "load_agent",
        "save_agent",
    ),
    "urbe.solvers": (
        "BackwardInduction",
        "Certificate",
        "ModifiedPolicyIteration",
        "NotConverged",
        "PartialPolicyIteration",
        "Solution",
        "ValueIteration",
        "certify",
        "evaluate_policy",
        "solve",
    ),
    "urbe.variance.value_variance": (
        "ValueVariance",
        "value_variance",
    ),
}
_PACKAGES = {
    "agents": "urbe.agents",
    "deep": "urbe.deep",
    "envs": "urbe.envs",
    "library": "urbe.mdp.library",
    "simulators": "urbe.simulators",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Imports a name when it is first asked for: `import urbe` is quick, and nobody waits for what they do not use."""
    if name in _PACKAGES:
        return import_module(_PACKAGES[name])
    if name in _HOME:
        found = globals()[name] = getattr(import_module(_HOME[name]), name)
        return found
    raise AttributeError(f"module 'urbe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_PACKAGES})
