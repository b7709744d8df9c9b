"""Solvers with certified bounds."""

from urbe.solvers.certificate import Certificate as Certificate
from urbe.solvers.certificate import certify as certify
from urbe.solvers.methods import BackwardInduction as BackwardInduction
from urbe.solvers.methods import ModifiedPolicyIteration as ModifiedPolicyIteration
from urbe.solvers.methods import PartialPolicyIteration as PartialPolicyIteration
from urbe.solvers.methods import ValueIteration as ValueIteration
from urbe.solvers.solution import NotConverged as NotConverged
from urbe.solvers.solution import Solution as Solution
from urbe.solvers.solve import evaluate_policy as evaluate_policy
from urbe.solvers.solve import solve as solve
