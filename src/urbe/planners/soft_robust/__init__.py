"""Soft-robust planning: policies that are good on average over a few weighted models."""

from urbe.planners.soft_robust.actor_critic import ActorCriticRates as ActorCriticRates
from urbe.planners.soft_robust.actor_critic import SoftRobustActorCritic as SoftRobustActorCritic
from urbe.planners.soft_robust.mixture import average_reward as average_reward
from urbe.planners.soft_robust.mixture import soft_robust_model as soft_robust_model
from urbe.planners.soft_robust.mixture import soft_robust_value as soft_robust_value
