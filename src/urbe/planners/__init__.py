"""Offline planning: from a posterior to a policy with a guaranteed value."""

from urbe.planners.base import PlannedSolution as PlannedSolution
from urbe.planners.base import PlanningMethod as PlanningMethod
from urbe.planners.base import PlanningTask as PlanningTask
from urbe.planners.belief_mdp import BeliefPlan as BeliefPlan
from urbe.planners.belief_mdp import solve_belief as solve_belief
from urbe.planners.guarantee import Guarantee as Guarantee
from urbe.planners.held_out import HeldOut as HeldOut
from urbe.planners.l1_balls import BCI as BCI
from urbe.planners.l1_balls import HoeffdingSets as HoeffdingSets
from urbe.planners.percentile import Percentile as Percentile
from urbe.planners.plan import plan as plan
from urbe.planners.policy_conditioned import BeliefPolicy as BeliefPolicy
from urbe.planners.policy_conditioned import MomentConstraints as MomentConstraints
from urbe.planners.policy_conditioned import PolicyConditionedSolution as PolicyConditionedSolution
from urbe.planners.policy_conditioned import solve_policy_conditioned as solve_policy_conditioned
from urbe.planners.rsvf import RSVF as RSVF
from urbe.planners.safe_plan import SafePlan as SafePlan
from urbe.planners.safety_rules import Hyperplane as Hyperplane
from urbe.planners.safety_rules import QuantileDraw as QuantileDraw
from urbe.planners.soft_robust import ActorCriticRates as ActorCriticRates
from urbe.planners.soft_robust import SoftRobustActorCritic as SoftRobustActorCritic
from urbe.planners.soft_robust import average_reward as average_reward
from urbe.planners.soft_robust import soft_robust_model as soft_robust_model
from urbe.planners.soft_robust import soft_robust_value as soft_robust_value
from urbe.planners.var_bellman import VaRBellman as VaRBellman
