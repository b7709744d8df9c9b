"""The posterior of a finite model: independent Dirichlet rows on feasible successors.

    p(s, a) ~ Dirichlet(alpha(s, a)),    E p = alpha / N,    Var p_j = p_j (1 - p_j) / (N + 1),    N = sum_j alpha_j

A successor that a row does not list, or lists with alpha = 0, is impossible, for nature and for draws. Rewards are
known, or have a normal-gamma posterior (`NormalGamma`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.mdp.model import MDP, check_model
from urbe.mdp.rows import Rows
from urbe.posteriors.rewards import NormalGamma, RewardPosterior
from urbe.posteriors.sampling import dirichlet_draws
from urbe.progress import Report, silent
from urbe.types import FloatArray, IntArray

if TYPE_CHECKING:
    from urbe.mdp.transitions import Transitions


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """The posterior of a model's transitions.

    Args:
      model: pairs, feasible successors, rewards and discount. Its probabilities are not read.
      concentration: `(E,)` alpha of each entry, at least 0, positive somewhere in each row.
      prior: `(E,)` the part of it that precedes the data.
      rewards: posterior of r(s, a); None when the model's rewards are known.

    >>> import urbe
    >>> posterior = Posterior.before(urbe.library.riverswim(6), concentration=1.0)
    >>> posterior
    Posterior(12 rows, 22 feasible successors, 0 transitions seen)
    >>> posterior.mean().rows.probability[-2:]
    array([0.5, 0.5])
    """

    model: MDP
    concentration: FloatArray
    prior: FloatArray
    rewards: RewardPosterior | None = None

    @staticmethod
    def before(
        model: MDP, concentration: ArrayLike = 1.0, rewards: NormalGamma | RewardPosterior | None = None
    ) -> Posterior:
        """The prior: `concentration` (a number or `(E,)`) on every successor that `model` lists, zeros included.

        Args:
          model: pairs and feasible successors.
          concentration: at least 0, positive somewhere in each row.
          rewards: prior of r(s, a), the same for every pair or one for each; None if rewards are known.
        """
        return Posterior.after(model, concentration, 0.0, rewards)

    @staticmethod
    def after(
        model: MDP,
        prior: ArrayLike,
        counts: ArrayLike,
        rewards: NormalGamma | RewardPosterior | None = None,
    ) -> Posterior:
        """Adds counts to a prior, a number or `(E,)` each; a prior of 0 is allowed if the row has counts."""
        check_model("model", model)
        before = _per_entry("concentration", prior, model)
        alpha = before + _per_entry("counts", counts, model)
        total = model.rows.row_sums(alpha)
        wrong = ~((total > 0.0) & (total < np.inf))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ValueError(
                f"concentration adds up to {total[at]:g} over the successors of {model.row_name(at)}, expected a "
                "positive, finite number: give the row a prior."
            )
        if isinstance(rewards, NormalGamma):
            rewards = rewards.before(model.n_rows)
        fits = rewards is None or isinstance(rewards, RewardPosterior)
        checks.kind("rewards", rewards, fits, "NormalGamma(...), or None for known rewards")
        if rewards is not None and rewards.mean.shape != (model.n_rows,):
            raise ValueError(f"rewards has shape {rewards.mean.shape}, expected one per row ({model.n_rows},).")
        return Posterior(model, alpha, before, rewards)

    @staticmethod
    def fit(
        transitions: Transitions,
        *,
        discount: float | None = None,
        model: MDP | None = None,
        n_states: int | None = None,
        n_actions: int | None = None,
        prior: ArrayLike = 1.0,
        feasible: Literal["observed", "all"] = "observed",
        terminal: ArrayLike = (),
        rewards: NormalGamma | None = None,
        forget: float = 1.0,
        window: int | None = None,
    ) -> Posterior:
        """Computes the posterior of a model after a log.

        With `model`, its pairs, feasible successors, discount and rewards are taken as known; the log's rewards are
        read only when `rewards` is given. Without it, the pairs are those of the log. A state that is entered with
        `terminated` is terminal, and so is one that the log never mentions: nothing leads there. Rewards are known
        where (s, a, s') always paid the same; a pair whose reward was the same wherever it led pays that on its other
        feasible successors too. `urbe.posteriors.fit_per_step` has a posterior for each step of an episode.

        Args:
          transitions: the log, in any order.
          discount: in [0, 1]; needed without `model`, and replaces the model's otherwise.
          model: prior knowledge. Its probabilities are not read: every successor it lists is feasible.
          n_states, n_actions: sizes, by default one more than the largest id.
          prior: concentration of each feasible successor, a number or `(E,)`. 0 gives the frequencies as mean.
          feasible: without `model`, successors of a pair: those observed, or every state. With "all" and `n_actions`,
            each non-terminal state has all actions; untried ones have only the prior.
          terminal: without `model`, ids of terminal states, in addition to those that the log marks.
          rewards: prior of the mean reward of each pair; None takes rewards as known.
          forget: in (0, 1], the factor by which the weight of transitions shrinks with each later episode in the log.
          window: only the last `window` episodes count. Both need the column `episode`, and count the episodes that
            occur.

        Returns:
          the posterior; `posterior.seen` are numbers of transitions, weighted by forgetting.

        >>> import urbe
        >>> log = urbe.Transitions(state=[0, 0, 1], action=[0, 0, 0], reward=[1.0, 1.0, 0.0], next_state=[0, 1, 0])
        >>> Posterior.fit(log, discount=0.9).probability
        array([0.5, 0.5, 1. ])
        """
        from urbe.posteriors.fit import fit

        return fit(
            transitions, prior, rewards, discount=discount, model=model, n_states=n_states, n_actions=n_actions,
            feasible=feasible, terminal=terminal, forget=forget, window=window,
        )  # fmt: skip

    def update(self, transitions: Transitions) -> Posterior:
        """Updates the posterior by more transitions; see `urbe.posteriors.fit.update`."""
        from urbe.posteriors.fit import update

        return update(self, transitions)

    @cached_property
    def total(self) -> FloatArray:
        """`(R,)` N, the sum of each row's concentrations."""
        return self.model.rows.row_sums(self.concentration)

    @cached_property
    def seen(self) -> FloatArray:
        """`(R,)` transitions observed from each row, after forgetting."""
        return self.model.rows.row_sums(self.concentration - self.prior)

    @cached_property
    def feasible(self) -> FloatArray:
        """`(R,)` K, the number of successors of positive concentration."""
        return self.model.rows.row_sums((self.concentration > 0.0).astype(np.float64))

    @cached_property
    def probability(self) -> FloatArray:
        """`(E,)` the posterior mean alpha / N."""
        mean: FloatArray = self.concentration / self.total[self.model.rows.entry_row]
        return mean

    def untried(self) -> tuple[IntArray, IntArray]:
        """Pairs (state, action) without data, `(n, 2)` each, in order.

        Returns:
          the pairs of the model that were never seen, and those that the model does not have, although the action
          exists elsewhere and the state is not terminal.
        """
        model = self.model
        without = np.flatnonzero(self.seen <= 0.0)
        exists = np.zeros((model.n_states, model.n_actions), dtype=bool)
        exists[model.row_state, model.action] = True
        used = np.flatnonzero(exists.any(axis=0))
        absent = np.argwhere(~exists[:, used] & ~model.terminal[:, None])
        return (
            np.stack((model.row_state[without], model.action[without]), axis=1),
            np.stack((absent[:, 0], used[absent[:, 1]]), axis=1),
        )

    def variance(self) -> FloatArray:
        """`(E,)` p (1 - p) / (N + 1)."""
        p = self.probability
        out: FloatArray = p * (1.0 - p) / (self.total[self.model.rows.entry_row] + 1.0)
        return out

    def mean(self) -> MDP:
        """Returns the model of mean probabilities (and mean rewards)."""
        return self.model_with(self.probability, None if self.rewards is None else self.rewards.mean)

    def draws(self, rng: np.random.Generator, size: int, *, report: Report = silent) -> FloatArray:
        """`(size, E)` probabilities of all rows, drawn `size` times; `report` receives the progress."""
        checks.generator("rng", rng)
        return dirichlet_draws(
            rng, self.concentration, self.model.rows.entry_start, checks.whole_number("size", size, 0), report
        )

    def sample(self, rng: np.random.Generator) -> MDP:
        """Draws a model from the posterior (and rewards, if they are uncertain)."""
        checks.generator("rng", rng)
        reward = None if self.rewards is None else self.rewards.sample(rng)
        return self.model_with(self.draws(rng, 1)[0], reward)

    def model_with(self, probability: FloatArray, reward: FloatArray | None = None) -> MDP:
        """Returns the model with other probabilities, `(E,)`, and other rewards if given, `(R,)`."""
        rows = self.model.rows
        kept = rows.reward if reward is None else reward
        return self.model.with_rows(Rows(rows.n_states, rows.entry_start, rows.successor, probability, kept))

    def with_counts(self, counts: FloatArray) -> Posterior:
        """Adds the counts `(E,)` of more transitions."""
        return replace(self, concentration=self.concentration + counts)

    def __repr__(self) -> str:
        rows = self.model.rows
        seen = f"{float(self.seen.sum()):.6g}"
        return f"Posterior({rows.n_rows} rows, {rows.n_entries} feasible successors, {seen} transitions seen)"


def check_posterior(name: str, value: object) -> None:
    """Raises unless `value` is a posterior."""
    example = "a posterior, such as Posterior.fit(log, discount=0.95) or Posterior.before(model)"
    checks.kind(name, value, isinstance(value, Posterior), example)


def _per_entry(name: str, value: ArrayLike, model: MDP) -> FloatArray:
    """`(E,)` numbers of at least 0 from a number or one per entry."""
    n_entries = model.rows.n_entries
    array = checks.float_array(name, value)
    if array.ndim and array.shape != (n_entries,):
        raise ValueError(
            f"{name} has shape {array.shape}, expected a number or one per successor ({n_entries},) in the order of "
            "model.rows."
        )
    checks.non_negative(name, array)
    return np.ascontiguousarray(np.broadcast_to(array, (n_entries,)))
