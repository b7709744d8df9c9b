"""The experiments behind the report; `FIGURES` is the list, and nothing else knows it."""

from typing import Any

from urbe.experiments import price_of_robustness
from urbe.experiments.base import Experiment as Experiment
from urbe.experiments.base import Row as Row
from urbe.experiments.reproduce import reproduce as reproduce

FIGURES: tuple[Experiment[Any, Any], ...] = (price_of_robustness,)
