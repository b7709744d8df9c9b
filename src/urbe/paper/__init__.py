"""The reproduction of the paper: chapters in one framework, listed in `CHAPTERS`. The library never imports it."""

from urbe.paper import (
    adaptation,
    cartpole,
    mars_rover,
    price_of_robustness,
    riverswim_regret,
    safe_policies,
    seven_states,
    table_one,
    variance_study,
)
from urbe.paper.chapter import Chapter as Chapter
from urbe.paper.reproduce import reproduce as reproduce
from urbe.sweep.launcher import CellsFailed as CellsFailed

CHAPTERS: tuple[Chapter, ...] = (
    price_of_robustness.CHAPTER,
    seven_states.CHAPTER,
    mars_rover.CHAPTER,
    cartpole.CHAPTER,
    adaptation.CHAPTER,
    riverswim_regret.CHAPTER,
    safe_policies.CHAPTER,
    table_one.CHAPTER,
    variance_study.CHAPTER,
)
