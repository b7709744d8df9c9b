"""What an agent knows of its own uncertainty, as values: nothing, or the variance of its last layer."""

from __future__ import annotations

from dataclasses import dataclass

from urbe import checks


@dataclass(frozen=True)
class NoVariance:
    """No uncertainty head: the agent explores by epsilon alone."""


@dataclass(frozen=True)
class LastLayer:
    """A second head that learns the posterior variance w of the Q-values [Derman2019] (second algorithm).

        nu(s, a) = scale_a phi(s)' Sigma_a phi(s)                 uncertainty about this step alone
        w(s, a) <- nu(s, a) + gamma^2 w(s', a')                   one gradient step per transition
        act: argmax_b Q(s, b) + beta zeta_b sqrt(max(w(s, b), 0)),   zeta_b ~ N(0, 1)

    phi are the Q-network's last hidden units, and Sigma_a = (I / mu + sum phi phi')^-1 over the states where a was
    taken. Neither head's loss reaches the other's weights. The last step of an episode has no successor in the
    recursion, whether it ended or ran out of time, as in the paper's listing.

    The defaults are the paper's CartPole agent to the letter. Its weak points have their remedies beside them:
    `non_negative`, `forget`, `rebuild_every`, `normalise`, `constant`, and `calibrated` below.

    Args:
      beta: standard deviations of noise per standard deviation of the Q-value.
      mu: Sigma_a before any data is mu I: the inverse of the ridge regulariser.
      hidden: units of the head's own ReLU layers.
      learning_rate: of the head.
      raw_input: the head is a network of its own on observations, instead of on phi. The figure that would tell is
        missing from the paper; "a sub-network of the robust Q-network" speaks for phi.
      non_negative: softplus on the head's output; otherwise linear, and clipped where its root is taken.
      residual_decay: None for scale_a = 1 (paper); otherwise scale_a is the squared TD error of action a, averaged
        exponentially with this decay, which makes nu the posterior variance of Bayesian linear regression.
      forget: lam in Lambda_a <- lam Lambda_a + (1 - lam) I / mu, per step, for Sigma_a = Lambda_a^-1; 1 never forgets.
      refresh_every: steps between exact inversions of Lambda_a, when forgetting is applied too (lam to that power);
        in between, Sigma_a follows by rank-one updates.
      rebuild_every: steps between rebuilding Lambda_a from the replay with today's features; 0 never.
      normalise: divide phi by its root mean square, so that its scale does not drift into beta.
      constant: append a one to phi, so that a layer of dead units is not taken for certainty.
      replayed: transitions of the replay in each step of the head, beside the new one; 0 as in the listing.
    """

    beta: float = 0.5
    mu: float = 1e-2
    hidden: tuple[int, ...] = (100,)
    learning_rate: float = 1e-4
    raw_input: bool = False
    non_negative: bool = False
    residual_decay: float | None = None
    forget: float = 1.0
    refresh_every: int = 10_000
    rebuild_every: int = 0
    normalise: bool = False
    constant: bool = False
    replayed: int = 0

    def __post_init__(self) -> None:
        checks.number("beta", self.beta, 0.0, float("inf"), closed=False)
        for name in ("mu", "learning_rate", "forget"):
            checks.positive(name, getattr(self, name))
        checks.number("forget", self.forget, 0.0, 1.0)
        if self.residual_decay is not None:
            checks.probability("residual_decay", self.residual_decay)
        object.__setattr__(self, "hidden", tuple(self.hidden))  # settings are hashed, lists are not
        for i, units in enumerate(self.hidden):
            checks.whole_number(f"hidden[{i}]", units, 1)
        checks.whole_number("refresh_every", self.refresh_every, 1)
        for name in ("rebuild_every", "replayed"):
            checks.whole_number(name, getattr(self, name), 0)


Variance = NoVariance | LastLayer


def calibrated(
    beta: float = 1.0,
    *,
    hidden: tuple[int, ...] = (100,),
    learning_rate: float = 1e-4,
    residual_decay: float = 0.999,
    forget: float = 0.999,
) -> LastLayer:
    """A last-layer variance with a scale: `beta=1` is one posterior standard deviation.

    nu = s2_a phi' Sigma_a phi with s2_a the running squared TD error, features of unit root mean square and a
    constant, a prior of unit variance, a non-negative head, and forgetting, so that it can react to a change.
    """
    return LastLayer(
        beta=beta,
        mu=1.0,
        hidden=hidden,
        learning_rate=learning_rate,
        non_negative=True,
        residual_decay=residual_decay,
        forget=forget,
        refresh_every=100,
        normalise=True,
        constant=True,
    )
