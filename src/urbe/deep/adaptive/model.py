"""The belief model of an adaptive agent: members of a simulator, and changes of the true one.

There are two kinds of members, depending on how their parameters enter:

    known outcomes   parameters change only probabilities; all members share the outcomes, and L_k = P_k(outcome)
    predictions      parameters change successors; L_k is a density of the prediction error (see
                     `urbe.belief.likelihoods`), a mixture if a member has several outcomes
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from urbe import checks
from urbe.belief.arrays import log_sum_exp, logarithm
from urbe.belief.likelihoods import Evidence, endings, known_outcomes, residuals, tolerance
from urbe.belief.switching import Switching
from urbe.deep.adaptive.magnitude import observation_magnitude
from urbe.simulators import Outcomes, Simulator, UncertaintySet
from urbe.simulators.base import Params, State
from urbe.simulators.base import members as count

SAME = 1e-5
"""Observations and rewards that differ by less count as the same outcome."""


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("params", "scaled", "neighbours", "magnitude"),
    meta_fields=("simulator", "switching", "floor", "flip", "varied", "shared"),
)
@dataclass(frozen=True, eq=False)
class BeliefModel:
    """Members of a simulator and changes of the true one; build one with `BeliefModel.of`.

    Attributes:
      simulator: the simulator; it must be hashable.
      params: its NamedTuple with a `(K,)` array in each place.
      scaled: `(K, V)` the parameters that vary, each with mean 0 and deviation 1 over the members.
      neighbours: `(K, 2)` the two members whose parameters are nearest.
      magnitude: `(D,)` the unit of each entry of an observation, see `observation_magnitude`.
      switching: prior and hazard.
      floor: errors up to this share of the magnitude are no evidence about members.
      flip: the probability that a member is wrong about the end of an episode, if members predict.
      varied: names of the parameters that differ between members.
      shared: whether members share the outcomes and differ only in probabilities.
    """

    simulator: Simulator
    params: Params
    scaled: Float[Array, "K V"]
    neighbours: Int[Array, "K 2"]
    magnitude: Float[Array, " D"]
    switching: Switching
    floor: float = 1e-3
    flip: float = 0.05
    varied: tuple[str, ...] = ()
    shared: bool = False

    @staticmethod
    def of(
        simulator: Simulator,
        uncertainty_set: UncertaintySet,
        switching: Switching,
        *,
        floor: float = 1e-3,
        flip: float = 0.05,
        magnitude: Float[np.ndarray, " D"] | None = None,
    ) -> BeliefModel:
        """Checks that the parts fit, and determines whether members share outcomes, and the magnitudes.

        A saved `magnitude` is used unchanged.

        Raises:
          ValueError: the parameters are not the simulator's, or the prior has not one entry per member.
        """
        expected = simulator.nominal()._fields
        if uncertainty_set.names != expected:
            raise ValueError(
                f"uncertainty_set has the parameters {', '.join(uncertainty_set.names)}, expected those of "
                f"{type(simulator).__name__}: {', '.join(expected)}."
            )
        switching.log_prior(len(uncertainty_set))
        checks.positive("floor", floor)
        checks.probability("flip", checks.positive("flip", flip))
        params = uncertainty_set.params
        varied, shared = uncertainty_set.varied, _share_outcomes(simulator, params)
        scaled = _standardised(params, varied)
        near = jnp.asarray(_neighbours(scaled))
        unit = jnp.asarray(observation_magnitude(simulator, params) if magnitude is None else magnitude, jnp.float32)
        return BeliefModel(simulator, params, jnp.asarray(scaled), near, unit, switching, floor, flip, varied, shared)

    @property
    def n_members(self) -> int:
        """K."""
        return count(self.params)

    @property
    def per_axis(self) -> float:
        """Members along each parameter that varies."""
        return float(self.n_members ** (1.0 / max(len(self.varied), 1)))

    def tolerated(self, predicted: Float[Array, "K D"]) -> Float[Array, " D"]:
        """Prediction errors that are no evidence about members; see `urbe.belief.likelihoods`."""
        found: Array = tolerance(predicted, self.per_axis, self.floor * self.magnitude)
        return found

    def outcomes(self, state: State, action: Int[Array, ""], params: Params) -> Outcomes:
        """Outcomes under each of a batch of parameters: `(K, J)` probabilities; the rest `(J,)` if members share it."""
        axes: Any = (0, None, None, None) if self.shared else 0
        found = Outcomes(
            *jax.vmap(lambda one: tuple(self.simulator.outcomes(state, action, one)), out_axes=axes)(params)
        )
        return self._distinct(found) if self.shared else found

    def _distinct(self, found: Outcomes) -> Outcomes:
        """Merges indistinguishable outcomes: the first of them gets the probability of all."""
        obs = jax.vmap(self.simulator.observe)(found.state)
        alike = self.resemble(obs, found.reward, found.terminated, obs, found.reward, found.terminated)
        first = jax.nn.one_hot(alike.argmax(axis=-1), len(obs), dtype=found.probability.dtype)
        return found._replace(probability=found.probability @ first)

    @staticmethod
    def resemble(
        obs: Float[Array, "N D"],
        reward: Float[Array, " N"],
        terminated: Bool[Array, " N"],
        others: Float[Array, "J D"],
        other_reward: Float[Array, " J"],
        other_terminated: Bool[Array, " J"],
    ) -> Bool[Array, "N J"]:
        """Whether two outcomes are indistinguishable."""
        near = (jnp.abs(obs[:, None] - others[None]) < SAME).all(axis=-1)
        alike: Array = near & (jnp.abs(reward[:, None] - other_reward[None]) < SAME)
        return alike & (terminated[:, None] == other_terminated[None])

    def evidence_of_outcomes(self, probability: Float[Array, "K J"]) -> Evidence:
        """The evidence of each shared outcome, with leading axis J."""
        outcomes = jnp.arange(probability.shape[-1])
        each = jnp.broadcast_to(probability, (len(outcomes), *probability.shape))
        return known_outcomes(each, outcomes)

    def evidence_of_observation(
        self,
        probability: Float[Array, "K J"],
        predicted: Float[Array, "K J D"],
        ends: Bool[Array, "K J"],
        observed: Float[Array, "N D"],
        terminated: Bool[Array, " N"],
        noise: Float[Array, "N D"],
    ) -> tuple[Evidence, Float[Array, "N K D"]]:
        """The evidence of N observations about members that predict, and the squared errors of likely outcomes."""
        k, j, d = predicted.shape
        # neighbouring members are compared outcome by outcome
        tolerated = jnp.max(jax.vmap(self.tolerated, in_axes=1)(predicted), axis=0)
        n = len(observed)
        flat = jnp.broadcast_to(predicted.reshape(k * j, d), (n, k * j, d))
        found = residuals(flat, observed, jnp.broadcast_to(tolerated, (n, d)), noise)
        ended = endings(jnp.broadcast_to(ends.reshape(k * j), (n, k * j)), terminated, self.flip)
        log_likelihood = (found.log_likelihood + ended).reshape(n, k, j) + logarithm(probability)
        best = log_likelihood.argmax(axis=-1)
        square = ((flat - observed[:, None]) ** 2).reshape(n, k, j, d)
        return (
            Evidence(
                log_sum_exp(log_likelihood)[..., 0],
                jnp.take_along_axis(found.surprise.reshape(n, k, j), best[..., None], axis=-1)[..., 0],
            ),
            jnp.take_along_axis(square, best[..., None, None], axis=-2)[..., 0, :],
        )


def _share_outcomes(simulator: Simulator, params: Params) -> bool:
    """Whether successors, rewards and ends are independent of the parameters, by the batched outputs of vmap."""
    state = jax.eval_shape(simulator.start, jax.random.key(0), simulator.nominal())

    def parts(state: Any, params: Params) -> Any:
        return jax.vmap(lambda one: simulator.outcomes(state, jnp.int32(0), one)[1:], out_axes=None)(params)

    try:
        jax.eval_shape(parts, state, params)
    except ValueError:
        return False
    return True


def _standardised(params: Params, varied: tuple[str, ...]) -> Float[np.ndarray, "K V"]:
    """Standardises parameters; positive ones that vary by more than a factor of four enter by their logarithms."""
    columns = []
    for name in varied:
        values = np.asarray(getattr(params, name), np.float64)
        if (values > 0.0).all() and values.max() > 4.0 * values.min():
            values = np.log(values)
        columns.append((values - values.mean()) / values.std())
    return np.array(columns, np.float32).T.reshape(count(params), len(columns))


def _neighbours(scaled: Float[np.ndarray, "K V"]) -> Int[np.ndarray, "K 2"]:
    """The two nearest other members of each; itself if there are no others."""
    distance = ((scaled[:, None] - scaled[None]) ** 2).sum(axis=-1)
    np.fill_diagonal(distance, np.inf)
    order = np.argsort(distance, axis=-1, kind="stable")
    return order[:, [0, min(1, len(scaled) - 2)]].astype(np.int32) if len(scaled) > 1 else np.zeros((1, 2), np.int32)
