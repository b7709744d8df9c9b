"""Contracts that extensions can be held to.

`check_ambiguity_set` asks of a set all that solvers and certificates rely on, `check_agent` of an agent all that runs
and saved files do, `check_simulator` of a simulator all that deep agents and environments do. They raise AssertionError
with the law that is broken, the model and the numbers; they say nothing when all laws hold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from urbe import agent_laws, laws
from urbe.agent_probes import Probe, probes
from urbe.agents.base import AgentKind
from urbe.ambiguity.rectangular import RectangularSet
from urbe.mdp.model import MDP
from urbe.types import FloatArray

if TYPE_CHECKING:
    from urbe.simulators.contract import check_simulator as check_simulator
    from urbe.simulators.uncertainty_check import check_uncertainty_set as check_uncertainty_set

_LATER = {
    "check_simulator": "urbe.simulators.contract",
    "check_uncertainty_set": "urbe.simulators.uncertainty_check",
}


def __getattr__(name: str) -> Any:
    """Imports what needs JAX when it is first asked for."""
    if name in _LATER:
        found = globals()[name] = getattr(import_module(_LATER[name]), name)
        return found
    raise AttributeError(f"module 'urbe.testing' has no attribute {name!r}")


def check_ambiguity_set(
    ambiguity_set: RectangularSet | Callable[[MDP], RectangularSet],
    mdp: MDP | None = None,
    *,
    oracle: Callable[[FloatArray, FloatArray], float] | None = None,
    seed: int = 0,
    convex: bool = True,
    tight: bool = True,
    center_moves: bool = True,
    optimistic: bool = False,
    tolerance: float = 1e-9,
    oracle_tolerance: float = 1e-6,
) -> None:
    """Holds a set to the contract of `urbe.ambiguity.base`, on one model or on several small ones.

    Args:
      ambiguity_set: the set, or a function from a model to the set where it needs the model's shape.
      mdp: the model to check on; by default those of `small_models`: ties, single successors, one state, terminal
        states, negative rewards, rewards r(s, a, s').
      oracle: `(p, z) -> float`, the value of one row by other means. p and z are `(S,)`, over all states; where the
        model lists no transition p is zero, and z is NaN if rewards depend on the successor.
      seed: of the values the laws are tried at.
      convex: whether Q is a minimum over a set of kernels, hence concave in v, and `excess` tells all others.
      tight: whether `dual_bound` attains the value.
      center_moves: whether to compare the sensitivity with difference quotients of the set bound to nearby models.
      optimistic: for sets whose nature maximises: `dual_bound` is an upper bound, and Q convex in v.
      tolerance: of all comparisons, as a multiple of 1 + max |z|.
      oracle_tolerance: the same for the oracle; linear programs are good to about 1e-6.

    Raises:
      AssertionError: with the law that is broken and where.

    >>> from urbe.ambiguity.exact import Exact
    >>> check_ambiguity_set(Exact(), oracle=lambda p, z: p @ z)
    """
    rng = np.random.default_rng(seed)
    models = small_models(seed) if mdp is None else {"the given model": mdp}
    compared, differed = False, False
    for name, model in models.items():
        a_set = ambiguity_set(model) if callable(ambiguity_set) else ambiguity_set
        case = laws.Case(name, model, a_set, a_set.bind(model), tolerance, -1.0 if optimistic else 1.0)
        laws.check_form(case)
        points = laws.trial_values(model, rng)
        for v in points:
            laws.check_inputs_untouched(case, v)
            laws.check_monotone(case, v, rng)
            laws.check_shift(case, v)
            worst = laws.check_worst_case(case, v)
            laws.check_dual(case, v, tight)
            laws.check_take(case, v, rng)
            laws.check_threads(case, v)
            laws.check_output(case, v)
            if convex:
                laws.check_excess_sees_outside(case, v)
            if oracle is not None:
                laws.check_oracle(case, v, oracle, oracle_tolerance)
            if center_moves and (model.rows.length > 1).any():
                compared = True
                differed = laws.check_sensitivity(case, v, worst, rng) or differed
        laws.check_memory(case, points)
        if convex:
            laws.check_concave(case, points)
    if compared and not differed:
        raise AssertionError(
            "sensitivity: every row has a kink at every value tried, so nothing was compared. Try another seed, "
            "or center_moves=False for sets that are nowhere smooth."
        )


def check_agent(
    kind: AgentKind,
    *,
    tasks: Mapping[str, Probe] | None = None,
    learns: Collection[str] | None = None,
    random: bool = True,
    seed: int = 0,
    episodes: int = 150,
    replicates: int = 8,
    share: float = 0.5,
) -> None:
    """Holds an agent to the contract of `urbe.agents.base`, and to learning, on small tasks of one skill each.

    Args:
      kind: the agent's parameters.
      tasks: what to try it on, by name; by default `urbe.agent_probes.probes()`: one state, a bandit, delayed reward, a
        discount that matters, stochastic successors, ends and cuts, states with different actions.
      learns: the names of the tasks on which it must do better than chance; None: all of them.
      random: whether another seed must lead to other actions on some task.
      seed: of the worlds and of the agent.
      episodes, replicates: how long and how often it may learn.
      share: how much better than chance: this share of the way from random actions to the best, in the mean over
        replicates and over the last third of the episodes.

    Raises:
      AssertionError: with the law that is broken, the task, what was found and what was expected.

    >>> from urbe.agents import QLearning
    >>> check_agent(QLearning())
    """
    chosen = probes() if tasks is None else tasks
    differed = False
    for name, probe in chosen.items():
        case = agent_laws.AgentCase(kind, name, probe, seed)
        one = agent_laws.check_same_seed(case)
        differed = differed or agent_laws.other_seed_differs(case, one)
        agent_laws.check_neighbours(case, one)
        agent_laws.check_resume(case, one)
        if learns is None or name in learns:
            agent_laws.check_skill(case, episodes, replicates, share)
    if random and not differed:
        raise AssertionError(
            "another seed gives another run: on every task the agent did the same with two seeds. Draw from the "
            "streams it is started with, or say random=False for agents without chance."
        )


def small_models(seed: int = 0) -> dict[str, MDP]:
    """Models on which sets go wrong, by name; probabilities are at least 0.02 where they are not zero."""
    rng = np.random.default_rng(seed)

    def random_rows(n_states: int, n_actions: int, zeros: float) -> FloatArray:
        raw = rng.uniform(0.1, 1.0, size=(n_states, n_actions, n_states))
        raw *= rng.uniform(size=raw.shape) >= zeros
        raw[..., 0] += raw.sum(axis=-1) == 0.0
        return np.asarray(raw / raw.sum(axis=-1, keepdims=True))

    ring = np.roll(np.eye(4), 1, axis=1)[:, None]
    reward = rng.normal(size=(4, 2))
    return {
        "sparse rows": MDP.from_dense(random_rows(5, 2, 0.5), rng.normal(size=(5, 2)), discount=0.9),
        "negative rewards": MDP.from_dense(random_rows(4, 2, 0.0), -10.0 - reward, discount=0.5),
        "ties": MDP.from_dense(np.full((4, 1, 4), 0.25), 1.0, discount=1.0),
        "single successors": MDP.from_dense(ring, [0.0, 1.0, 0.0, -1.0], discount=0.9),
        "one state": MDP.from_dense([[[1.0]]], [[2.0]], discount=0.9),
        "terminal states": MDP.from_dense(random_rows(4, 2, 0.2), reward, discount=0.95, terminal=[0, 3]),
        "rewards of successors": MDP.from_dense(
            random_rows(3, 2, 0.3), rng.normal(size=(3, 2, 3)), discount=0.8, keep_zeros=True
        ),
    }
