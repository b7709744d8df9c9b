"""Posteriors of transitions and rewards from data, also when the dynamics change."""

from urbe.posteriors.centred import CentredBalls as CentredBalls
from urbe.posteriors.centred import credible_l1_centred as credible_l1_centred
from urbe.posteriors.dirichlet import Posterior as Posterior
from urbe.posteriors.factors import FactorFit as FactorFit
from urbe.posteriors.factors import fit_factors as fit_factors
from urbe.posteriors.fit import fit_per_step as fit_per_step
from urbe.posteriors.radius import chi_square as chi_square
from urbe.posteriors.radius import credible_chi_square as credible_chi_square
from urbe.posteriors.radius import credible_l1 as credible_l1
from urbe.posteriors.radius import drift as drift
from urbe.posteriors.radius import weissman as weissman
from urbe.posteriors.rewards import NormalGamma as NormalGamma
from urbe.posteriors.rewards import RewardPosterior as RewardPosterior
