"""What nature may do: one file for each family of sets."""

from urbe.ambiguity.chi2 import Chi2Ball as Chi2Ball
from urbe.ambiguity.contamination import Contamination as Contamination
from urbe.ambiguity.coupled.factors import FactorSet as FactorSet
from urbe.ambiguity.exact import Exact as Exact
from urbe.ambiguity.interval import Interval as Interval
from urbe.ambiguity.interval import LInfBall as LInfBall
from urbe.ambiguity.kl import KLBall as KLBall
from urbe.ambiguity.l1 import L1Ball as L1Ball
from urbe.ambiguity.l2 import L2Ball as L2Ball
from urbe.ambiguity.likelihood import LikelihoodRegion as LikelihoodRegion
from urbe.ambiguity.nature import Nature as Nature
from urbe.ambiguity.nature import WorstCase as WorstCase
from urbe.ambiguity.operator import AmbiguitySet as AmbiguitySet
from urbe.ambiguity.operator import Operator as Operator
from urbe.ambiguity.optimistic import Optimistic as Optimistic
from urbe.ambiguity.per_row import PerRow as PerRow
from urbe.ambiguity.rectangular import RectangularSet as RectangularSet
from urbe.ambiguity.scenarios import ConditionalValueAtRisk as ConditionalValueAtRisk
from urbe.ambiguity.scenarios import Scenarios as Scenarios
from urbe.ambiguity.scenarios import ValueAtRisk as ValueAtRisk
from urbe.ambiguity.shared_budget.s_rectangular import SRectangular as SRectangular
from urbe.ambiguity.wasserstein import WassersteinBall as WassersteinBall
from urbe.ambiguity.weighted_l1 import WeightedL1Ball as WeightedL1Ball
