"""Statistics of runs with several seeds: aggregates, intervals and comparisons of scores."""

from urbe.statistics.adaptation import advantage_share as advantage_share
from urbe.statistics.adaptation import first_episodes as first_episodes
from urbe.statistics.adaptation import phase_means as phase_means
from urbe.statistics.adaptation import recovery_times as recovery_times
from urbe.statistics.adaptation import relative_regret as relative_regret
from urbe.statistics.adaptation import worst_lives as worst_lives
from urbe.statistics.aggregates import iqm as iqm
from urbe.statistics.aggregates import mean as mean
from urbe.statistics.aggregates import median as median
from urbe.statistics.aggregates import optimality_gap as optimality_gap
from urbe.statistics.bootstrap import stratified_bootstrap as stratified_bootstrap
from urbe.statistics.comparisons import Comparison as Comparison
from urbe.statistics.comparisons import holm as holm
from urbe.statistics.comparisons import paired_comparisons as paired_comparisons
from urbe.statistics.comparisons import probability_of_improvement as probability_of_improvement
from urbe.statistics.estimates import Band as Band
from urbe.statistics.estimates import ConfidenceInterval as ConfidenceInterval
from urbe.statistics.estimates import cvar as cvar
from urbe.statistics.estimates import frequency_interval as frequency_interval
from urbe.statistics.estimates import mean_band as mean_band
from urbe.statistics.estimates import mean_interval as mean_interval
from urbe.statistics.estimates import paired_difference as paired_difference
from urbe.statistics.profiles import PerformanceProfile as PerformanceProfile
from urbe.statistics.profiles import performance_profile as performance_profile
