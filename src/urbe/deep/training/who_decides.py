"""Find the members that decide a robust agent's targets.

A worst-case target is that of one member. If the same member is nearly always the worst, the agent learns only for that
member, and may lose everywhere else without a gain: see docs/robust_came_out_worse.md. The history has how often each
member decided; `urbe.deep.training.member_trials` tells whether any policy does well under a member.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from urbe.deep.training.member_trials import try_members

if TYPE_CHECKING:
    from urbe.deep.agent import DQNAgent

NEARLY_ALL = 0.8
"""A member that decides at least this share of the targets decides nearly all."""

ENOUGH = 20_000
"""Nothing is reported on who decides if members differ on fewer targets."""


class OneMemberDecides(UserWarning):
    """One member of an uncertainty set decided nearly all targets of a training."""


class Deciding(NamedTuple):
    """How often each of K members decided.

    Attributes:
      shares: `(K,)` of the targets on which members differ, over the second half of the training.
      targets: the number of these targets.
      params: parameters of each member, by name; empty dicts if members have none.
      nominal: index of the nominal member, or None.
    """

    shares: Float[np.ndarray, " K"]
    targets: float
    params: list[dict[str, float]]
    nominal: int | None

    @property
    def most(self) -> int:
        """The member that decided most."""
        return int(self.shares.argmax())

    @property
    def one_alone(self) -> bool:
        """Whether one member decided nearly all targets."""
        return bool(self.targets >= ENOUGH and self.shares.max() >= NEARLY_ALL)

    def name(self, member: int) -> str:
        """Describes a member by the parameters that differ between members."""
        own = self.params[member]
        varied = [name for name in own if len({each[name] for each in self.params}) > 1]
        text = ", ".join(f"{name} {own[name]:.4g}" for name in varied) or f"member {member}"
        return f"{text} (nominal)" if member == self.nominal else text

    def __str__(self) -> str:
        order = [k for k in np.argsort(-self.shares, kind="stable").tolist() if self.shares[k] >= 0.01][:5]
        return "; ".join(f"{self.name(k)}: {100 * self.shares[k]:.0f} %" for k in order)


def deciding(agent: DQNAgent) -> Deciding | None:
    """Computes how often each member decided in the second half of the training; None without enough targets.

    >>> from urbe.deep import Network, robust_dqn
    >>> from urbe.simulators import CartPole, UncertaintySet
    >>> poles = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0))
    >>> tiny = {"network": Network(hidden=(8,)), "capacity": 300, "warm_up": 50, "batch": 16}
    >>> agent = robust_dqn(CartPole(), poles, seed=0, log_every=50, **tiny).learn(200)
    >>> len(deciding(agent).shares)
    3
    """
    table = agent.history.members
    if not table or not table["targets"].sum():
        return None
    later = table["step"] > table["step"][-1] / 2
    counts = np.where(later, table["targets"], 0.0)
    shares = np.array([np.nansum(table[name] * counts) for name in table if name.startswith("member_")])
    if not counts.sum():
        return None
    described = agent.trainer.describe().get("uncertain") or {}
    columns: Mapping[str, Any] = described.get("parameters", {})
    params = [{name: float(values[k]) for name, values in columns.items()} for k in range(len(shares))]
    return Deciding(shares / counts.sum(), float(counts.sum()), params, described.get("nominal"))


def advice(agent: DQNAgent) -> str | None:
    """A warning if one member decides nearly all targets, with the results of policies tried under it."""
    found = deciding(agent)
    if found is None or not found.one_alone or _is_fixed(agent, len(found.shares)):
        return None
    text = (
        f"{found.name(found.most)} decided {100 * found.shares[found.most]:.0f} % of the targets: the agent learns "
        "almost only for this member."
    )
    try:
        (trial,) = try_members(agent, [found.most])
    except ValueError:
        return f"{text} See docs/robust_came_out_worse.md."
    compared = (
        f"the best of {trial.tried} policies tried returns {trial.best:.4g} there ({trial.policy}); at random, "
        f"{trial.random:.4g} there and {trial.nominal_random:.4g} under nominal parameters"
    )
    if trial.hopeless:
        verdict = f"It looks hopeless for every policy: {compared}. Leave it out of the set"
    elif trial.harsh:
        verdict = f"It is harsh: {compared}. Leave it out, or use CVaR over members, unless the agent must survive it"
    else:
        verdict = (
            f"Policies can do well there: {compared}. If it matters more than all others, train under it; "
            "otherwise narrow the set"
        )
    return f"{text} {verdict}; see docs/robust_came_out_worse.md."


def warn_of_one(agent: DQNAgent) -> None:
    """Warns if one member decided nearly all targets; no episodes are played."""
    found = deciding(agent)
    if found is not None and found.one_alone and not _is_fixed(agent, len(found.shares)):
        warnings.warn(
            f"{found.name(found.most)} decided {100 * found.shares[found.most]:.0f} % of the targets in the second "
            "half of the training: the agent learns almost only for this member. urbe.deep.try_members(agent) shows "
            "whether any policy does well there; see docs/robust_came_out_worse.md.",
            OneMemberDecides,
            stacklevel=3,
        )


def _is_fixed(agent: DQNAgent, members: int) -> bool:
    """Whether nature's weights do not depend on the values, as for an average."""
    nature = agent.trainer.settings.nature
    up, down = (np.asarray(nature.weights(jnp.arange(members, dtype=jnp.float32)[::step])) for step in (1, -1))
    return np.array_equal(up, down)
