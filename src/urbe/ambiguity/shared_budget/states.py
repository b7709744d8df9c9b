"""The compiled loops over states of one distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from urbe.ambiguity.shared_budget.distance import Distance
from urbe.ambiguity.shared_budget.evaluate import make_answer, make_evaluate
from urbe.ambiguity.shared_budget.improve import make_improve, make_saddle
from urbe.ambiguity.shared_budget.inside import make_inside
from urbe.ambiguity.shared_budget.sensitivity import make_sensitivity


class StateKernel(NamedTuple):
    """Loops over states; see the functions that make them."""

    improve: Callable[..., None]
    saddle: Callable[..., None]
    evaluate: Callable[..., None]
    answer: Callable[..., None]
    inside: Callable[..., None]
    sensitivity: Callable[..., None]


def state_kernel(distance: Distance) -> StateKernel:
    """The loops of one distance."""
    return StateKernel(
        make_improve(distance),
        make_saddle(distance),
        make_evaluate(distance),
        make_answer(distance),
        make_inside(distance),
        make_sensitivity(distance),
    )
