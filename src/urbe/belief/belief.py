"""A belief over members that is updated by a stream of observations, for use in your own loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from urbe import checks
from urbe.belief.credible import credible_set
from urbe.belief.likelihoods import Evidence, endings, known_outcomes, residuals, tolerance
from urbe.belief.state import BeliefState, Watch, begin, new_episode, observe, used
from urbe.belief.switching import Switching, of_hazards, of_members
from urbe.types import BoolArray, FloatArray


class Belief:
    """The belief about which member of a finite set is the true one.

    Args:
      n_members: K, at least 1.
      switching: changes of the true member.
      watch: decides when no member explains the observations.

    >>> belief = Belief(2, Switching(hazard=0.05, per="episode"))
    >>> for outcome in (0, 0, 1):
    ...     belief.observe_outcome([[0.9, 0.1], [0.5, 0.5]], outcome)
    >>> belief.probability.round(2)
    array([0.39, 0.61])
    >>> belief.credible(alpha=0.1)
    array([ True,  True])
    """

    def __init__(self, n_members: int, switching: Switching | None = None, watch: Watch | None = None) -> None:
        self.n_members = checks.whole_number("n_members", n_members, 1)
        self.switching = Switching() if switching is None else switching
        self.watch = Watch() if watch is None else watch
        self.state = begin(self.switching, n_members)
        self.last_surprise = 0.0
        """Nats by which the last observation was less likely than expected."""

    @property
    def filtered(self) -> FloatArray:
        """`(K,)` the filter's probabilities."""
        return np.asarray(of_members(self.state.log_b))

    @property
    def probability(self) -> FloatArray:
        """`(K,)` the belief for decisions: the filter's probabilities, widened towards the prior by `outside`."""
        return np.asarray(used(self.switching, self.watch, self.state))

    @property
    def hazard(self) -> float:
        """The expected probability of a jump."""
        return float(of_hazards(self.state.log_b) @ self.switching.hazards)

    @property
    def surprise(self) -> float:
        """Unexplained nats per observation, averaged over recent ones; about 0 if the members explain them."""
        return float(self.state.surprise)

    @property
    def outside(self) -> float:
        """In [0, 1]: the weight of the prior in decisions, because no member explains the observations."""
        return float(np.clip((self.surprise - self.watch.limit) / self.watch.limit, 0.0, 1.0))

    def credible(self, alpha: float) -> BoolArray:
        """`(K,)` the fewest members that hold a belief of at least 1 - alpha."""
        if checks.number("alpha", alpha, 0.0, 1.0) == 1.0:
            raise ValueError("alpha is 1, expected a number below 1: the set would be empty.")
        return np.asarray(credible_set(self.probability, alpha))

    def new_episode(self) -> None:
        """Begins a new episode, which may have another member."""
        self.state = new_episode(self.switching, self.state)

    def observe(self, evidence: Evidence) -> None:
        """Updates the belief by any evidence."""
        self.state, surprise = observe(self.switching, self.watch, self.state, evidence)
        self.last_surprise = float(surprise)

    def observe_outcome(self, probability: Any, outcome: int) -> None:
        """Updates the belief by one of J outcomes.

        Args:
          probability: `(K, J)` of each outcome under each member.
          outcome: the index of the observed outcome.
        """
        table = checks.float_array("probability", probability, 2)
        if table.shape[0] != self.n_members:
            raise ValueError(
                f"probability has {table.shape[0]} rows, expected {self.n_members}, one per member of the set."
            )
        for k, row in enumerate(table):
            checks.distribution(f"probability[{k}]", row, len(row))
        if not 0 <= checks.whole_number("outcome", outcome, 0) < table.shape[1]:
            raise ValueError(f"outcome is {outcome}, expected one of the {table.shape[1]} columns of probability.")
        self.observe(known_outcomes(table, np.asarray(outcome)))

    def observe_prediction(
        self,
        predicted: Any,
        observed: Any,
        *,
        ended_predicted: Any = None,
        ended: bool = False,
        parameters: int = 1,
        floor: Any = 1e-6,
        flip: float = 0.05,
    ) -> None:
        """Updates the belief by an observation that members predict without probabilities.

        Args:
          predicted: `(K, D)` prediction of each member.
          observed: `(D,)` the observation.
          ended_predicted, ended: `(K,)` whether each member predicts the end of the episode, and whether it ended.
          parameters: number of parameters that vary between members.
          floor: `(D,)` or a number above 0: errors of this size are no evidence.
          flip: the probability that a member is wrong about the end of an episode.
        """
        each = checks.float_array("predicted", predicted, 2)
        seen = checks.float_array("observed", observed, 1)
        if each.shape != (self.n_members, len(seen)):
            raise ValueError(
                f"predicted has shape {each.shape}, expected {(self.n_members, len(seen))}: a row per member, and a "
                "column per entry of observed."
            )
        least = np.broadcast_to(checks.float_array("floor", floor), seen.shape)
        if not (least > 0.0).all():
            raise ValueError(
                f"floor is {checks.shown(floor)}, expected numbers above 0: errors of this size are ignored."
            )
        checks.whole_number("parameters", parameters, 1)
        tolerated = tolerance(each, self.n_members ** (1.0 / parameters), least)
        if len(self.state.noise) != len(seen):
            self.state = self.state._replace(noise=np.zeros(len(seen)))
        evidence = residuals(each, seen, tolerated, self.state.noise)
        if ended_predicted is not None:
            each_end = np.asarray(ended_predicted, np.bool_)
            if each_end.shape != (self.n_members,):
                raise ValueError(
                    f"ended_predicted has shape {each_end.shape}, expected {(self.n_members,)}, one per member."
                )
            ends = endings(each_end, ended, checks.probability("flip", flip))
            evidence = evidence._replace(log_likelihood=evidence.log_likelihood + ends)
        square = (each - seen) ** 2
        self.state, surprise = observe(self.switching, self.watch, self.state, evidence, square)
        self.last_surprise = float(surprise)

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to resume, by name."""
        return {name: np.asarray(array) for name, array in self.state._asdict().items()}

    def load_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Restores the result of `arrays`."""
        if set(arrays) != set(BeliefState._fields) or arrays["log_b"].shape != self.state.log_b.shape:
            raise ValueError(
                f"arrays has {checks.listing(sorted(arrays))}, expected {checks.listing(list(BeliefState._fields))} of "
                f"a belief over {self.n_members} members and {len(self.switching.hazards)} hazards."
            )
        self.state = BeliefState(**{name: np.array(array) for name, array in arrays.items()})
