"""The contracts of the extensible parts of deep agents: natures, variances, Q-networks, optimisers and acting rules.

Each part is a frozen dataclass with the methods of its protocol in `urbe.deep`; these functions test what the learner,
the loops and saved files require of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from urbe.deep.adaptive.natures import BeliefNature, EpisodeNature
from urbe.deep.adaptive.rules import BeliefRule
from urbe.deep.core.learner import init_learner, observe
from urbe.deep.core.natures import MemberNature
from urbe.deep.core.networks import QNetwork
from urbe.deep.core.optimisers import Optimiser
from urbe.deep.core.precision import double
from urbe.deep.core.replay import Successors, Transition
from urbe.deep.core.settings import Settings
from urbe.deep.core.variances import Variance
from urbe.deep.saving.describe import build, describe

ROUNDING = 1e-5
"""Allowed difference between float32 results of equivalent computations, relative to 1 + their size."""

_OBS, _ACTIONS, _BATCH = 3, 4, 6
_SMALL: dict[str, Any] = {"batch": 4, "capacity": 16, "warm_up": 1}


def check_nature(nature: MemberNature, members: tuple[int, ...] = (1, 2, 5)) -> None:
    """Tests the contract of `urbe.deep.MemberNature`.

    - The nature is a value: a frozen dataclass, equal to its copy, that can be hashed, saved and rebuilt.
    - Weights have the shape and type of the values, are at least 0 and sum to 1.
    - Rows are weighted independently: batched, alone, compiled or not, the weights are the same.
    - A single member has weight 1.

    Args:
      nature: the nature to test.
      members: sizes of uncertainty sets to test; for a nature of a fixed size, that size.

    Raises:
      AssertionError: names the broken law and what was found.

    >>> from urbe.deep import Worst
    >>> check_nature(Worst())
    """
    _check_value("nature", nature, MemberNature)
    rng = np.random.default_rng(0)
    for k in members:
        _check_weights(f"the weights of {k} members", nature.weights, _values(rng, k))


def check_belief_nature(nature: BeliefNature, members: tuple[int, ...] = (1, 2, 5)) -> None:
    """Tests the contract of `urbe.deep.BeliefNature` and, if it has `begin_episode`, of `urbe.deep.EpisodeNature`.

    - The nature is a value: a frozen dataclass, equal to its copy, that can be hashed, saved and rebuilt.
    - Weights, and the belief of an episode, have the shape and type of the values, are at least 0 and sum to 1.
    - Rows are weighted independently: batched, alone, compiled or not, the weights are the same.
    - A belief that is certain of a member gives the value under that member.

    Args:
      nature: the nature to test.
      members: sizes of uncertainty sets to test; for a nature of a fixed size, that size.

    Raises:
      AssertionError: names the broken law and what was found.

    >>> from urbe.deep import BeliefCVaR
    >>> check_belief_nature(BeliefCVaR(0.3))
    """
    _check_value("nature", nature, BeliefNature)
    rng = np.random.default_rng(0)
    weighings = {"the weights": nature.weights}
    if isinstance(nature, EpisodeNature):
        weighings["the belief of an episode"] = nature.begin_episode
    for k in members:
        values, belief = _values(rng, k), jnp.asarray(rng.dirichlet(np.ones(k), _BATCH), jnp.float32)
        certain = jax.nn.one_hot(jnp.arange(_BATCH) % k, k, dtype=jnp.float32)
        for name, weigh in weighings.items():
            what = f"{name} of {k} members"
            _check_weights(what, weigh, belief, values)
            found = _check_weights(f"{what}, certain of one", weigh, certain, values)
            known = (certain * values).sum(axis=-1)
            _close(f"the value by {what}, certain of one", (found * values).sum(axis=-1), known)


def check_belief_rule(rule: BeliefRule, members: tuple[int, ...] = (1, 2, 5)) -> None:
    """Tests the contract of `urbe.deep.BeliefRule`.

    - The rule is a value: a frozen dataclass, equal to its copy, that can be hashed, saved and rebuilt.
    - It evaluates the network at beliefs `(N, K)`: numbers of at least 0 that sum to 1.
    - There is one finite value per action, compiled or not.
    - If the network's values depend on no belief, their best action is the rule's.

    Args:
      rule: the rule to test.
      members: sizes of uncertainty sets to test.

    Raises:
      AssertionError: names the broken law and what was found.

    >>> from urbe.deep.adaptive.rules import Thompson
    >>> check_belief_rule(Thompson())
    """
    _check_value("rule", rule, BeliefRule)
    rng = np.random.default_rng(0)
    for k in members:
        table = jnp.asarray(rng.normal(size=(k, _ACTIONS)), jnp.float32)

        def evaluate(beliefs: Any, table: Any = table) -> Any:
            return jnp.tanh(beliefs @ table)

        def watched(beliefs: Any, k: int = k, evaluate: Any = evaluate) -> Any:
            what = f"beliefs of {k} members that the network is evaluated at"
            _same_form(what, beliefs, jnp.zeros((*beliefs.shape[:1], k), jnp.float32))
            if (np.asarray(beliefs) < 0.0).any():
                _broken(what, f"the smallest is {float(beliefs.min())}", "none below 0")
            _close(f"the sum of {what}", beliefs.sum(axis=-1), jnp.ones(len(beliefs), jnp.float32))
            return evaluate(beliefs)

        belief, drawn = jnp.asarray(rng.dirichlet(np.ones(k)), jnp.float32), jnp.int32(k - 1)
        values = rule.values(watched, belief, drawn)
        _same_form(f"values under {k} members", values, table[0])
        if not np.isfinite(values).all():
            _broken(f"values under {k} members", values, "finite numbers")
        compiled = jax.jit(lambda b, d, evaluate=evaluate: rule.values(evaluate, b, d))(belief, drawn)
        _close(f"values under {k} members, compiled", compiled, values)
        alike = rule.values(lambda beliefs, q=table[0]: jnp.broadcast_to(q, (len(beliefs), _ACTIONS)), belief, drawn)
        if int(alike.argmax()) != int(table[0].argmax()):
            _broken(f"the action under {k} members that agree", int(alike.argmax()), int(table[0].argmax()))


def check_network(network: QNetwork) -> None:
    """Tests the contract of `urbe.deep.QNetwork`.

    - The network is a value: a frozen dataclass, equal to its copy, that can be hashed, saved and rebuilt.
    - Weights are float32 arrays; the same key draws the same weights, another key different ones.
    - Shapes: `n_features` features and one value per action, for rows and for batches; `sizes` recovers the sizes.
    - `training_values` and their gradients equal those of the values, and some gradient is not zero.

    Raises:
      AssertionError: names the broken law and what was found.

    >>> from urbe.deep import Network
    >>> check_network(Network(hidden=(8, 8)))
    """
    _check_value("network", network, QNetwork)
    weights, again, others = (network.init(jax.random.key(seed), _OBS, _ACTIONS) for seed in (0, 0, 1))
    for leaf in jax.tree.leaves(weights):
        if leaf.dtype != jnp.float32:
            _broken("the type of the weights", leaf.dtype, "float32")
    _same_tree("weights of the same key", again, weights, equal=True)
    if all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(weights), jax.tree.leaves(others), strict=True)):
        _broken("weights of another key", "the same ones", "others")
    if tuple(network.sizes(weights)) != (_OBS, _ACTIONS):
        _broken("sizes", network.sizes(weights), (_OBS, _ACTIONS))
    obs = jnp.asarray(np.random.default_rng(0).normal(size=(2, _BATCH, _OBS)), jnp.float32)
    phi = network.features(weights, obs)
    _same_form("features", phi, jnp.zeros((2, _BATCH, network.n_features), jnp.float32))
    values = network.values(weights, phi)
    _same_form("values", values, jnp.zeros((2, _BATCH, _ACTIONS), jnp.float32))
    _close("values of one batch", network.values(weights, network.features(weights, obs[0])), values[0])

    def loss(function: Any) -> Any:
        # away from zero, where networks often begin, and where the gradient of a square vanishes
        return jax.jit(jax.value_and_grad(lambda w: (jnp.tanh(function(w) - 0.7) ** 2).sum()))(weights)

    plain = loss(lambda w: network.values(w, network.features(w, obs[0])))
    trained = loss(lambda w: network.training_values(w, obs[0]))
    _same_tree("training values and their gradients", trained, plain)
    if not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(plain[1])):
        _broken("the gradient of the values", "zero everywhere", "some weight that matters")


def check_optimiser(optimiser: Optimiser, rate: float = 1e-2) -> None:
    """Tests the contract of `urbe.deep.Optimiser`.

    - The optimiser is a value: a frozen dataclass, equal to its copy, that can be hashed, saved and rebuilt.
    - Updates have the shapes of the weights, and the state keeps its shapes: a compiled loop carries it.
    - A rate of zero changes nothing; a few hundred steps reduce a quadratic function.

    Args:
      optimiser: the optimiser to test.
      rate: learning rate of the test.

    Raises:
      AssertionError: names the broken law and what was found.

    >>> from urbe.deep import Adam
    >>> check_optimiser(Adam())
    """
    _check_value("optimiser", optimiser, Optimiser)
    weights = ({"a": jnp.asarray([1.0, -2.0], jnp.float32)}, jnp.asarray([[0.5]], jnp.float32))
    state = optimiser.init(weights)
    step = jax.jit(optimiser.update)
    still, _ = step(weights, state, weights, jnp.float32(0.0))
    _same_tree("changes at a rate of zero", still, jax.tree.map(jnp.zeros_like, weights))

    def length(tree: Any) -> float:
        return float(sum((leaf**2).sum() for leaf in jax.tree.leaves(tree)))

    first, now = length(weights), weights
    for _ in range(300):
        changes, after = step(now, state, now, jnp.float32(rate))  # the gradient of half the squared length
        _same_tree("changes", changes, now, values=False)
        _same_tree("the state after a step", after, state, values=False)
        now, state = jax.tree.map(jnp.add, now, changes), after
    if not length(now) < 0.5 * first:
        _broken("the squared length after 300 steps down a bowl", length(now), f"less than half of {first:g}")


def check_variance(variance: Variance, settings: Settings | None = None) -> None:
    """Tests the contract of `urbe.deep.Variance`, alone and in the learning step.

    - The variance is a value: a frozen dataclass, equal to its copy, that can be hashed, saved and rebuilt.
    - Without noise the values are Q; there is one variance per action, the same as those returned by `perturbed`.
    - The head keeps its shapes during learning steps, and all numbers are finite.

    Args:
      variance: the variance to test.
      settings: settings of the agent; None for a small agent.

    Raises:
      AssertionError: names the broken law and what was found.

    >>> from urbe.deep import LastLayer
    >>> check_variance(LastLayer(hidden=(4,)))
    """
    _check_value("variance", variance, Variance)
    chosen = replace(Settings() if settings is None else settings, **_SMALL, variance=variance)
    with double():
        learner = init_learner(chosen, jax.random.key(0), _OBS, _ACTIONS, 1, 1)
        rng = np.random.default_rng(0)
        obs = jnp.asarray(rng.normal(size=(_BATCH, _OBS)), jnp.float32)
        phi = chosen.network.features(learner.q, obs)
        q, weights = chosen.network.values(learner.q, phi), variance.acting(learner.head)
        values, w = variance.perturbed(chosen, weights, jnp.zeros_like(q), obs, phi, q)
        _close("values without noise", values, q)
        _same_form("variances", w, q)
        found = variance.variances(chosen, weights, obs, phi)
        if found is not None:
            _close("variances beside perturbed values", w, found)
        if (found is None) != (weights is None):
            _broken("variances", found, f"None where acting needs nothing, and it gave {weights!r:.60}")
        learn = jax.jit(lambda now, seen, then: observe(chosen, now, seen, then))
        for t in range(_BATCH - 1):
            at = slice(t, t + 1)
            successors = Successors(
                jnp.ones((1, 1), jnp.float32), jnp.full((1, 1, 1), 0.9, jnp.float32), obs[None, None, None, t + 1]
            )
            seen = Transition(obs[at], jnp.asarray([t % _ACTIONS], jnp.int32), successors, jnp.asarray([t == 2]))
            after, _, progress = learn(learner, seen, obs[t + 1 : t + 2])
            _same_tree(f"the head after step {t + 1}", after.head, learner.head, values=False)
            for name in ("nu", "w", "loss"):
                if not np.isfinite(getattr(progress, name)):
                    _broken(f"{name} at step {t + 1}", getattr(progress, name), "a finite number")
            learner = after


def _values(rng: np.random.Generator, k: int) -> jax.Array:
    return jnp.asarray(rng.normal(size=(_BATCH, k)).round(1), jnp.float32)  # rounding makes ties common


def _check_weights(what: str, weigh: Callable[..., Any], *given: jax.Array) -> jax.Array:
    """Returns the weights of all rows, the last array of which has the values of actions."""
    weights: jax.Array = weigh(*given)
    _same_form(what, weights, given[-1])
    if (np.asarray(weights) < 0.0).any():
        _broken(what, f"the smallest is {float(weights.min())}", "none below 0")
    _close(f"the sum of {what}", weights.sum(axis=-1), jnp.ones(len(weights), jnp.float32))
    _close(f"{what}, compiled", jax.jit(weigh)(*given), weights)
    _close(f"{what}, each row alone", jnp.stack([weigh(*row) for row in zip(*given, strict=True)]), weights)
    return weights


def _check_value(name: str, part: Any, protocol: Any) -> None:
    if isinstance(part, type) or not isinstance(part, protocol):
        missing = [each for each in dir(protocol) if not each.startswith("_") and not hasattr(part, each)]
        _broken(name, f"{part!r:.100} without {', '.join(missing) or 'an instance'}", f"a {protocol.__name__}")
    try:
        copied = replace(part)
    except TypeError:
        _broken(name, f"{part!r:.100}", "a frozen dataclass")
    if copied != part or hash(copied) != hash(part):
        _broken(f"a copy of {name}", f"{copied!r:.100}", "equal to it, with the same hash")
    try:
        again = build(name, describe(name, part))
    except ValueError as error:
        _broken(f"the description of {name}", error, "plain data, for files")
    if again != part:
        _broken(f"{name}, described and built again", again, part)


def _same_form(what: str, found: Any, expected: Any) -> None:
    if not hasattr(found, "dtype") or (found.shape, found.dtype) != (expected.shape, expected.dtype):
        shape, kind = getattr(found, "shape", None), getattr(found, "dtype", type(found).__name__)
        _broken(what, f"shape {shape} and type {kind}", f"{expected.shape} and {expected.dtype}")


def _same_tree(what: str, found: Any, expected: Any, *, values: bool = True, equal: bool = False) -> None:
    if not jax.tree.structure(found) == jax.tree.structure(expected):  # type: ignore[operator]  # noqa: SIM201
        _broken(what, jax.tree.structure(found), jax.tree.structure(expected))
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        _same_form(what, mine, theirs)
        if values:
            _close(what, mine, theirs, 0.0 if equal else ROUNDING)


def _close(what: str, found: Any, expected: Any, rounding: float = ROUNDING) -> None:
    _same_form(what, found, expected)
    apart = np.abs(np.asarray(found, np.float64) - np.asarray(expected, np.float64))
    wrong = ~(apart <= rounding * (1.0 + np.abs(np.asarray(expected, np.float64))))
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        _broken(f"{what}, entry {at}", np.asarray(found)[at], np.asarray(expected)[at])


def _broken(what: str, found: object, expected: object) -> NoReturn:
    raise AssertionError(f"{what}: found {found}, expected {expected}.")
