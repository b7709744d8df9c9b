"""The experiments behind the report; `FIGURES` is the list, and nothing else knows it."""

from urbe.experiments import (
    cartpole,
    mars_rover,
    price_of_robustness,
    riverswim_regret,
    safe_policies,
    seven_states,
    variance_study,
)
from urbe.experiments.base import AnyExperiment
from urbe.experiments.base import Experiment as Experiment
from urbe.experiments.reproduce import reproduce as reproduce
from urbe.sweep.launcher import CellsFailed as CellsFailed

FIGURES: tuple[AnyExperiment, ...] = (
    price_of_robustness,
    seven_states,
    mars_rover,
    cartpole,
    riverswim_regret,
    safe_policies,
    variance_study,
)
