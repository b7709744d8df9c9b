"""Robust Markov decision processes with certified bounds."""

from urbe.ambiguity import Exact as Exact
from urbe.ambiguity import L1Ball as L1Ball
from urbe.mdp import MDP as MDP
from urbe.mdp import library as library
from urbe.solvers import BackwardInduction as BackwardInduction
from urbe.solvers import ModifiedPolicyIteration as ModifiedPolicyIteration
from urbe.solvers import NotConverged as NotConverged
from urbe.solvers import PartialPolicyIteration as PartialPolicyIteration
from urbe.solvers import Solution as Solution
from urbe.solvers import ValueIteration as ValueIteration
from urbe.solvers import evaluate_policy as evaluate_policy
from urbe.solvers import solve as solve
