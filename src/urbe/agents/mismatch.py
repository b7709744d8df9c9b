"""Learn on policy under model mismatch: SARSA and TD with a nature that may shift every row by x in X.

    SARSA    Q(s, a) += eta [ r + gamma (V(s') + sigma(V)) - Q(s, a) ],    V(s) = sum_a explore(a|s) Q(s, a)
    TD       V(s)    += eta [ r + gamma (V(s') + sigma(V)) - V(s) ],       sigma(V) = min_{x in X} x . V

Steps come from the row p, and the values are for the worst of p + X [RoyXuPokutta2017]. SARSA has its expected form: it
averages over the next action instead of drawing it, with the same fixed point and less noise. As there is no model,
p + x may leave the simplex. The equations are contractions if gamma (1 + max_x ||x||_1) < 1, which is checked before
learning starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from urbe import checks
from urbe.agents.base import Steps, Streams, Task
from urbe.agents.decay import PolynomialDecay, as_decay, rate_after
from urbe.agents.locate import Locator
from urbe.agents.q_learning import QLearner, Shape, penalty_of
from urbe.mdp.evaluate import policy_rows
from urbe.rng import Draws
from urbe.types import FloatArray, IntArray


def mismatch_modulus(radius: ArrayLike, shape: Shape, n_states: int, discount: float) -> FloatArray:
    """gamma (1 + max_x ||x||_1): below 1, robust Q-learning, SARSA and TD under mismatch have one fixed point.

    For n states max ||x||_1 is the radius times 1 (L1), sqrt(n), or sqrt(n - 1/n) for odd n (ellipsoid), and n, or
    n - 1 for odd n (box): x sums to zero.

    >>> float(mismatch_modulus(0.05, Shape.L1, 6, 0.9).round(6))
    0.945
    """
    odd = n_states % 2
    reach = {Shape.L1: 1.0 if n_states > 1 else 0.0, Shape.ELLIPSOID: (n_states - odd / n_states) ** 0.5}
    return np.asarray(discount * (1.0 + np.asarray(radius, dtype=float) * reach.get(shape, float(n_states - odd))))


@dataclass(frozen=True)
class MismatchSARSA:
    """Robust SARSA: the values of the agent's own policy, including exploration, against a mismatch.

    Args:
      radius: radius of X, at least 0; 0 is expected SARSA.
      shape: shape of X.
      rate, exploration, initial: as for `QLearning`. For a fixed point the exploration must converge to a constant.
      check: whether to reject radii for which a contraction is not guaranteed. It may still hold if p + X stays within
        the simplex.
    """

    radius: ArrayLike = 0.05
    shape: Shape = Shape.L1
    rate: ArrayLike | PolynomialDecay = field(default_factory=lambda: PolynomialDecay(1.0, power=0.7))
    exploration: ArrayLike | PolynomialDecay = 0.1
    initial: ArrayLike = 0.0
    check: bool = True

    def start(self, task: Task, streams: Streams) -> QLearner:
        size = _radius(self, task, streams)
        return QLearner(
            task, streams, self.shape.value, size, self.rate, self.exploration, self.initial, on_policy=True
        )


@dataclass(frozen=True, eq=False)
class MismatchTD:
    """Robust TD(0): the value of a given policy, which the agent follows, against a mismatch.

    Args:
      policy: `(S,)` action ids or `(S, A)` probabilities.
      radius: radius of X, at least 0; 0 is TD(0).
      shape: shape of X.
      rate: eta, in [0, 1]; a `PolynomialDecay` depends on the number of visits to the state.
      initial: initial V.
      check: whether to reject radii for which a contraction is not guaranteed.
    """

    policy: Any
    radius: ArrayLike = 0.05
    shape: Shape = Shape.L1
    rate: ArrayLike | PolynomialDecay = field(default_factory=lambda: PolynomialDecay(1.0, power=0.7))
    initial: ArrayLike = 0.0
    check: bool = True

    def start(self, task: Task, streams: Streams) -> TDLearner:
        return TDLearner(task, streams, self, _radius(self, task, streams))


def _radius(agent: MismatchSARSA | MismatchTD, task: Task, streams: Streams) -> FloatArray:
    """Returns `(B,)` radii for which the equations are contractions; else raises."""
    size = checks.per_replicate("radius", agent.radius, len(streams.replicates), 0.0, np.inf)
    model = task.prior.model
    modulus = mismatch_modulus(size, agent.shape, model.n_states, model.discount)
    if agent.check and (modulus >= 1.0).any() and size.any():
        b = int(np.argmax(modulus))
        room = (1.0 / model.discount - 1.0) / max(modulus[b] / model.discount - 1.0, 1e-300) * size[b]
        raise ValueError(
            f"radius[{b}] is {size[b]:g}: the equations need not contract, since discount (1 + radius L) is "
            f"{modulus[b]:.4g}, expected below 1. Give less than {room:.3g}, or check=False where p + X is known to "
            "stay within the simplex."
        )
    return size


class TDLearner:
    """An `Agent` that follows its policy and learns its value.

    Attributes:
      v: `(B, S)` values of states.
      seen: `(B, S)` number of updates of each.
    """

    def __init__(self, task: Task, streams: Streams, settings: MismatchTD, size: FloatArray) -> None:
        n, model = len(streams.replicates), task.prior.model
        self._model, self._size, self._kind = model, size, settings.shape.value
        self._policy, self._locate = policy_rows(model, settings.policy), Locator(model)
        self._uniform = Draws(streams("policy"), "uniform")
        self._rate = as_decay(settings.rate).for_replicates("rate", n)
        start = checks.per_replicate("initial", settings.initial, n, -np.inf, np.inf)
        self.v: FloatArray = np.where(model.terminal, 0.0, start[:, None])
        self.seen: FloatArray = np.zeros((n, model.n_states))

    def act(self, replicate: IntArray, state: IntArray, step: int) -> IntArray:
        """Draws from the policy."""
        draws = self._uniform.need(1)
        rows = np.empty(len(state), dtype=np.int64)
        _draw(replicate, state, self._model.row_start, self._policy, draws.values, draws.at, rows)
        actions: IntArray = self._model.action[rows]
        return actions

    def observe(self, steps: Steps, step: int) -> None:
        other = self._policy[self._locate.rows(steps)] == 0.0
        if other.any():
            k = int(np.argmax(other))
            raise ValueError(
                f"action {steps.action[k]} was taken in state {steps.state[k]}, but the policy never takes it there: "
                "the value of a policy is learned from its own steps. Take the actions of `act`, or use MismatchQ."
            )
        _evaluate(
            steps.replicate, steps.state, steps.reward, steps.next_state, steps.terminated, self._model.discount,
            self._kind, self._size, self._rate, self.v, self.seen,
        )  # fmt: skip

    def end_episode(self) -> None:
        """Does nothing: each step is learned from immediately."""

    def state(self) -> dict[str, Any]:
        return {"v": self.v.copy(), "seen": self.seen.copy(), "policy": self._uniform.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        self.v, self.seen = np.array(state["v"]), np.array(state["seen"])
        self._uniform.load(state["policy"])


@njit(cache=True, nogil=True)
def _evaluate(replicate, state, reward, next_state, terminated, gamma, kind, size, rate, v, seen):
    for k in range(len(replicate)):
        b, s = replicate[k], state[k]
        ahead = 0.0 if terminated[k] else v[b, next_state[k]]
        target = reward[k] + gamma * (ahead + penalty_of(kind, v[b], ahead, size[b]))
        v[b, s] += rate_after(seen[b, s], rate[b]) * (target - v[b, s])
        seen[b, s] += 1.0


@njit(cache=True, nogil=True)
def _draw(replicate, state, row_start, policy, uniform, at, rows):
    for k in range(len(replicate)):
        b, first, last = replicate[k], row_start[state[k]], row_start[state[k] + 1]
        left = uniform[b, at[b]]
        row = first
        while row < last - 1 and (left >= policy[row] or policy[row] == 0.0):
            left -= policy[row]
            row += 1
        while policy[row] == 0.0 and row > first:  # rounding passed the last action of positive probability
            row -= 1
        rows[k] = row
        at[b] += 1
