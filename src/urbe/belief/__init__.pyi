from urbe.belief.belief import Belief as Belief
from urbe.belief.credible import credible_set as credible_set
from urbe.belief.credible import tail_weights as tail_weights
from urbe.belief.likelihoods import Evidence as Evidence
from urbe.belief.likelihoods import known_outcomes as known_outcomes
from urbe.belief.likelihoods import residuals as residuals
from urbe.belief.state import Watch as Watch
from urbe.belief.switching import Switching as Switching
