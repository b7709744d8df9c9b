"""Mars Rover as one decision per episode, travel or wait, and the best decisions under a belief.

All moves towards the goal are risky with the same probability p, successes are evidence for a low p, and p is constant
within an episode: if it is right to start at distance d, it is right to continue. So an episode is a journey or a wait,

    wait      reward T c, and nothing is learned
    travel    fails at move i with probability (1 - p)^(i - 1) p:   reward f + (i - 1) c
              arrives with probability (1 - p)^d:                   reward s + (d - 1) c

and the belief b over members jumps between episodes. `plan` solves this decision problem by point-based value iteration
[Pineau2003]: values are maxima of functions that are linear in b, each the value of a feasible plan, so that the result
is a lower bound on the optimum, and close to it where the points are dense.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from urbe import rng
from urbe.belief import Switching
from urbe.types import BoolArray, FloatArray, IntArray

SWEEPS = 250
STILL = 1e-4
"""Largest number of sweeps. They stop earlier if values change by less than STILL; then they are within
STILL / (1 - boundary) of the limit."""

POINTS = 250
"""Number of beliefs at which plans are improved, in addition to certainties and the prior."""


@dataclass(frozen=True)
class Journeys:
    """The parameters of episodes; by default those of the chapter's rover.

    Attributes:
      distances: distances of the first cells from the goal.
      shares: share of episodes that begin at each distance.
      success, fail, step_reward, time_limit: parameters of the rover.
    """

    distances: tuple[int, ...] = (14, 15, 16, 17, 18)
    shares: tuple[float, ...] = (1 / 9, 2 / 9, 3 / 9, 2 / 9, 1 / 9)
    success: float = 1.0
    fail: float = -1.0
    step_reward: float = -0.001
    time_limit: int = 200

    @property
    def waiting(self) -> float:
        """The return of waiting for a whole episode."""
        return self.time_limit * self.step_reward

    def travelling(self, failure: FloatArray) -> FloatArray:
        """`(d, ...)` expected return of a journey from each distance, by failure probability."""
        p = np.asarray(failure)[None]
        moves = np.arange(max(self.distances)).reshape(-1, *[1] * (p.ndim - 1))
        failing = (1.0 - p) ** moves * p * (self.fail + moves * self.step_reward)
        return np.stack(
            [
                failing[:d].sum(axis=0) + (1.0 - p[0]) ** d * (self.success + (d - 1) * self.step_reward)
                for d in self.distances
            ]
        )

    def best(self, failure: FloatArray) -> FloatArray:
        """Expected return of an episode if the failure probability is known."""
        return np.tensordot(self.shares, np.maximum(self.travelling(failure), self.waiting), axes=1)


Decision = Callable[[FloatArray, IntArray, FloatArray], BoolArray]
"""`(N,)` whether to travel, from beliefs `(N, H K)` over pairs of hazard and member, numbers of distances `(N,)` and
uniform random numbers `(N,)`."""


class JourneyPlan(NamedTuple):
    """Linear functions of the belief; the value of a decision is the largest of its functions.

    Attributes:
      wait: `(n, H K)`.
      travel: one `(n, H K)` for each distance.
      value: of the prior, before the first distance is seen.
    """

    wait: FloatArray
    travel: tuple[FloatArray, ...]
    value: float

    def travels(self, belief: FloatArray, start: IntArray, u: FloatArray) -> BoolArray:
        """Decides as the plan does; see `Decision`."""
        values = np.stack([(belief @ each.T).max(axis=1) for each in self.travel], axis=1)
        chosen: BoolArray = values[np.arange(len(start)), start] > (belief @ self.wait.T).max(axis=1)
        return chosen


def plan(
    journeys: Journeys, failures: tuple[float, ...], switching: Switching, boundary: float, *, seed: int = 0
) -> JourneyPlan:
    """Plans the best decisions under a belief over members that jumps between episodes according to `switching`.

    Args:
      journeys: the parameters of episodes.
      failures: the members.
      switching: prior and hazard per episode, or candidates of the hazard.
      boundary: the discount from episode to episode.
      seed: seed of the lives whose beliefs are the points.
    """
    chain = _Chain.of(failures, switching)
    p, prior = chain.failures, chain.prior
    moves = np.arange(max(journeys.distances))[:, None]
    arrivals = np.array(journeys.distances)[:, None]
    likelihood = np.concatenate([(1.0 - p) ** moves * p, (1.0 - p) ** arrivals])  # (outcomes, H K)
    reward = journeys.travelling(p)
    points = _points(journeys, failures, switching, seed)
    arrived = chain.jumped(points[:, None] * likelihood).reshape(-1, len(p))
    waited = chain.jumped(points)
    values = np.full((1, len(p)), journeys.waiting / (1.0 - boundary))  # the value of waiting forever
    for _ in range(SWEEPS):
        before = chain.expected(values)  # the value of a belief before it jumps
        wait = journeys.waiting + boundary * before[(waited @ values.T).argmax(axis=1)]
        after = before[(arrived @ values.T).argmax(axis=1)].reshape(len(points), *likelihood.shape) * likelihood
        failed = np.cumsum(after[:, : len(moves)], axis=1)
        travel = np.stack(
            [
                reward[j] + boundary * (failed[:, d - 1] + after[:, len(moves) + j])
                for j, d in enumerate(journeys.distances)
            ],
            axis=1,
        )
        goes = (travel * points[:, None]).sum(axis=-1) > (wait * points).sum(axis=-1)[:, None]
        chosen = np.where(goes[..., None], travel, wait[:, None])
        values, old = _distinct(np.tensordot(chosen, journeys.shares, axes=(1, 0))), values
        if np.abs((points @ values.T).max(axis=1) - (points @ old.T).max(axis=1)).max() < STILL:
            break
    by_distance = tuple(_distinct(travel[:, j]) for j in range(len(journeys.distances)))
    return JourneyPlan(_distinct(wait), by_distance, float((prior @ values.T).max()))


def thompson(journeys: Journeys, failures: tuple[float, ...]) -> Decision:
    """Draws a member from the belief, and decides as if it were the true one."""
    better = journeys.travelling(np.array(failures)) > journeys.waiting  # (d, K)

    def travels(belief: FloatArray, start: IntArray, u: FloatArray) -> BoolArray:
        member = (u[:, None] >= np.cumsum(belief, axis=1)[:, :-1]).sum(axis=1) % len(failures)
        chosen: BoolArray = better[start, member]
        return chosen

    return travels


def settled(journeys: Journeys, worth: FloatArray) -> Decision:
    """Decides only by the distance, for any belief.

    Args:
      journeys: the parameters of episodes.
      worth: `(d,)` assumed return of a journey from each distance.
    """
    better = worth > journeys.waiting

    def travels(belief: FloatArray, start: IntArray, u: FloatArray) -> BoolArray:  # noqa: ARG001
        chosen: BoolArray = better[start]
        return chosen

    return travels


def live(
    journeys: Journeys,
    failures: tuple[float, ...],
    switching: Switching,
    travels: Decision,
    held: FloatArray,
    seed: int,
    beliefs: list[FloatArray] | None = None,
) -> FloatArray:
    """`(N, E)` returns of N lives in which the failure probability of each episode is `held`.

    Args:
      journeys: the parameters of episodes.
      failures: the members.
      switching: the assumption of the belief.
      travels: the decision rule.
      held: `(N, E)`.
      seed: seed of the outcomes, whose random numbers do not depend on decisions.
      beliefs: receives the belief before each episode, `(N, H K)`.
    """
    lives, episodes = int(held.shape[0]), int(held.shape[1])
    chain, distances = _Chain.of(failures, switching), np.array(journeys.distances)
    luck, p = rng.stream(seed, "journeys", 0), chain.failures
    belief = np.tile(chain.prior, (lives, 1))
    returns = np.empty(held.shape)
    for e in range(episodes):
        start = luck.choice(len(distances), lives, p=journeys.shares)
        fails_at, u = luck.geometric(held[:, e]), luck.random(lives)
        goes = travels(belief, start, u)
        if beliefs is not None:
            beliefs.append(belief)
        failed = fails_at <= distances[start]
        moves = np.where(failed, fails_at, distances[start]) - 1
        earned = np.where(failed, journeys.fail, journeys.success) + moves * journeys.step_reward
        returns[:, e] = np.where(goes, earned, journeys.waiting)
        seen = (1.0 - p) ** moves[:, None] * np.where(failed[:, None], p, 1.0 - p)
        after = belief * np.where(goes[:, None], seen, 1.0)
        belief = chain.jumped(after / after.sum(axis=1, keepdims=True))
    return returns


class _Chain(NamedTuple):
    """Pairs of hazard and member, and the transition of the belief over them between episodes.

    Attributes:
      failures, prior: `(H K)` failure probability and prior of each pair.
      hazards: `(H,)`.
      members: `(K,)` their prior.
    """

    failures: FloatArray
    prior: FloatArray
    hazards: FloatArray
    members: FloatArray

    @staticmethod
    def of(failures: tuple[float, ...], switching: Switching) -> _Chain:
        hazards, members = switching.hazards, np.exp(switching.log_prior(len(failures)))
        return _Chain(np.tile(failures, len(hazards)), np.tile(members, len(hazards)) / len(hazards), hazards, members)

    def jumped(self, belief: FloatArray) -> FloatArray:
        """`(..., H K)` the belief after a possible jump."""
        pairs, hazards = self._pairs(belief)
        after: FloatArray = (1.0 - hazards) * pairs + hazards * pairs.sum(axis=-1, keepdims=True) * self.members
        return after.reshape(belief.shape)

    def expected(self, values: FloatArray) -> FloatArray:
        """`(..., H K)` expectations, over a possible jump, of values of pairs."""
        pairs, hazards = self._pairs(values)
        before: FloatArray = (1.0 - hazards) * pairs + hazards * (pairs @ self.members)[..., None]
        return before.reshape(values.shape)

    def _pairs(self, flat: FloatArray) -> tuple[FloatArray, FloatArray]:
        return flat.reshape(*flat.shape[:-1], len(self.hazards), len(self.members)), self.hazards[:, None]


def _points(journeys: Journeys, failures: tuple[float, ...], switching: Switching, seed: int) -> FloatArray:
    """Selects distant beliefs of lives that travel occasionally, the prior and the certainties."""
    chain, lives = _Chain.of(failures, switching), 64
    draws = rng.stream(seed, "points", 0)
    held = draws.choice(failures, (lives, 100), p=chain.members)
    hazard = np.resize(chain.hazards, lives)
    for e in range(1, held.shape[1]):
        stays = draws.random(lives) >= hazard
        held[stays, e] = held[stays, e - 1]
    found: list[FloatArray] = []
    for willing in (0.1, 0.5, 1.0):
        live(journeys, failures, switching, _now_and_then(willing), held, seed, found)
    seen = np.unique(np.concatenate(found).round(6), axis=0)
    roots = np.sqrt(seen)
    chosen, distance = [0], ((roots - roots[0]) ** 2).sum(axis=1)
    for _ in range(min(POINTS, len(seen)) - 1):
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, ((roots - roots[chosen[-1]]) ** 2).sum(axis=1))
    return np.concatenate([chain.prior[None], np.eye(len(chain.prior)), seen[chosen]])


def _now_and_then(share: float) -> Decision:
    def travels(belief: FloatArray, start: IntArray, u: FloatArray) -> BoolArray:  # noqa: ARG001
        goes: BoolArray = u < share
        return goes

    return travels


def _distinct(functions: FloatArray) -> FloatArray:
    return np.unique(functions.round(9), axis=0)
