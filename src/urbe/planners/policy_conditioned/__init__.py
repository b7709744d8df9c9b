"""Policy-conditioned (marginal-moment) uncertainty: observations of a known policy constrain nature."""

from urbe.planners.policy_conditioned.constraints import MomentConstraints as MomentConstraints
from urbe.planners.policy_conditioned.policy import BeliefPolicy as BeliefPolicy
from urbe.planners.policy_conditioned.solve import PolicyConditionedSolution as PolicyConditionedSolution
from urbe.planners.policy_conditioned.solve import solve_policy_conditioned as solve_policy_conditioned
