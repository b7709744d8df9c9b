"""A policy over beliefs: its actions depend on the step, the state and the likelihood of its past.

Against dynamics that depend on the history, policies that depend only on the state are not optimal. This one needs
only its own actions and states, since b is a function of the probabilities of these actions under the reference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from urbe import checks, memory
from urbe.mdp.model import MDP, check_model, check_same_pairs
from urbe.planners.policy_conditioned.beliefs import Beliefs, distinct_indices
from urbe.planners.policy_conditioned.constraints import initial_weights
from urbe.types import FloatArray, IntArray

KEPT = 1e-15
"""A belief in a state with less mass counts as never reached."""


@dataclass(eq=False, repr=False)
class BeliefPolicy:
    """Acts by step, state and belief.

    Args:
      mdp: the pairs.
      reference: `(R,)` probabilities of the rows under the reference policy.
      beliefs: beliefs of each step.
      row: `(T, S, G)` the row taken at each belief.

    Attributes:
      step: steps since the last `reset`.
      odds: b / (1 - b) of the current belief.
    """

    mdp: MDP
    reference: FloatArray
    beliefs: Beliefs
    row: IntArray
    step: int = 0
    odds: float = 1.0

    @property
    def horizon(self) -> int:
        """T, number of decisions."""
        return len(self.row)

    @property
    def belief(self) -> float:
        """b, the probability that the past is the policy's own rather than the reference's; initially 1/2."""
        return 1.0 - 1.0 / (1.0 + self.odds)

    def reset(self) -> None:
        """Begins a new trajectory."""
        self.step, self.odds = 0, 1.0

    def act(self, state: int) -> int:
        """The action in a state, with the current belief; see `observe`."""
        if self.step >= self.horizon:
            raise ValueError(f"All {self.horizon} steps of the horizon are taken; restart with reset().")
        checks.int_array("state", [state], 0, self.mdp.n_states, "state")
        if self.mdp.terminal[state]:
            raise ValueError(f"state {self.mdp.labels.state(state)} is terminal and has no actions.")
        return int(self.mdp.action[self.rows_at(self.step, np.array([self.odds]))[state, 0]])

    def observe(self, state: int, action: int) -> None:
        """Records that an action was taken in a state: updates the belief and begins the next step."""
        row = self.mdp.row_of(state, action)
        own = action == self.act(state)
        p = float(self.reference[row])
        self.odds = (self.odds / p if p > 0.0 else np.inf) if own else 0.0
        self.step += 1

    def value(self, mdp: MDP) -> float:
        """Computes the expected return over the horizon in a model with the same pairs, exactly.

        Args:
          mdp: the dynamics, rewards, discount and first states; its rows may list other successors.
        """
        check_model("mdp", mdp)
        check_same_pairs("mdp", mdp, "the model of the policy", self.mdp)
        rows, reward = mdp.rows, mdp.rows.expected_reward()
        mass, odds, total = initial_weights(mdp)[:, None].copy(), np.array([1.0]), 0.0
        for t in range(self.horizon):
            state, at = np.nonzero(mass > KEPT)
            alive = ~mdp.terminal[state]
            state, at = state[alive], at[alive]
            taken = self.rows_at(t, odds)[state, at]
            flow = mass[state, at]
            total += mdp.discount**t * float(flow @ reward[taken])
            after, place = self._moved(odds[at], taken)
            memory.require(
                {f"{len(after)} beliefs in {mdp.n_states} states": 16.0 * len(after) * mdp.n_states},
                "Use a reference policy with fewer different probabilities, or a shorter horizon.",
            )
            mass = np.zeros((mdp.n_states, len(after)))
            part = rows.take(taken)
            np.add.at(mass, (part.successor, place[part.entry_row]), part.probability * flow[part.entry_row])
            odds = after
        return total

    def reached(self, most: int) -> list[FloatArray] | None:
        """Returns the reachable odds in each of T + 1 steps, under any dynamics; None if more than `most`."""
        mdp, odds = self.mdp, np.array([1.0])
        layers, possible = [odds], (initial_weights(mdp) > 0.0)[:, None]
        for t in range(self.horizon):
            state, at = np.nonzero(possible & ~mdp.terminal[:, None])
            taken = self.rows_at(t, odds)[state, at]
            after, place = self._moved(odds[at], taken)
            if len(after) > most:
                return None
            possible = np.zeros((mdp.n_states, max(len(after), 1)), dtype=bool)
            part = mdp.rows.take(taken)
            possible[part.successor, place[part.entry_row]] = True
            odds = after if len(after) else np.array([1.0])
            layers.append(odds)
        return layers

    def rows_at(self, step: int, odds: FloatArray) -> IntArray:
        """`(S, K)` the row taken in each state at given odds, that of the nearest belief above 0; -1 where terminal."""
        rest, wanted = 1.0 / (1.0 + self.beliefs.odds[step, 1 : self.beliefs.counts[step]]), 1.0 / (1.0 + odds)
        between = 0.5 * (rest[1:] + rest[:-1])
        out: IntArray = self.row[step][:, 1 + np.searchsorted(-between, -wanted, side="right")]
        return out

    def _moved(self, odds: FloatArray, taken: IntArray) -> tuple[FloatArray, IntArray]:
        with np.errstate(divide="ignore"):
            return distinct_indices(odds / self.reference[taken])

    def __repr__(self) -> str:
        n = int(self.beliefs.counts.max()) - 1
        return f"BeliefPolicy({self.horizon} steps, {self.mdp.n_states} states, up to {n} beliefs a step)"
