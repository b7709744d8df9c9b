"""What data say about a model: posteriors of transitions and rewards, and what they make of a changing world."""

from urbe.posteriors.dirichlet import Posterior as Posterior
from urbe.posteriors.fit import fit_per_step as fit_per_step
from urbe.posteriors.rewards import NormalGamma as NormalGamma
from urbe.posteriors.rewards import RewardPosterior as RewardPosterior
from urbe.posteriors.transitions import Transitions as Transitions
