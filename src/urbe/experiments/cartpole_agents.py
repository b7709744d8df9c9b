"""The agents of the CartPole comparison: the paper's four, two controls, and two of DQN-URBE's variants.

All share networks, hyper-parameters and replay, so that each differs from its neighbour in one thing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from urbe.deep import Agent, LastLayer, Network, Settings, calibrated, dqn, dqn_ube, dqn_urbe, robust_dqn
from urbe.deep.paper import CARTPOLE, cartpole, cartpole_set
from urbe.experiments.cartpole_cells import EPSILON, SCALE, CartPoleCell
from urbe.experiments.exploring import Exploring
from urbe.simulators import Constant

FORGET, REFRESH_EVERY = 0.999, 100

LOG_EVERY = 1_000


def make(cell: CartPoleCell) -> Agent:
    """The agent of a cell before its first step. Agents of one seed share the uncertainty set and first weights."""
    return _MAKERS[cell.agent](settings(cell), cell.seed)


def settings(cell: CartPoleCell) -> Settings:
    """The published ones, with the inputs and sizes of the cell; controls never stop exploring."""
    scale = SCALE if cell.inputs == "scaled" else (1.0,)
    told = replace(CARTPOLE, network=Network(cell.hidden, scale), batch=cell.batch)
    return replace(told, epsilon=replace(told.epsilon, last=EPSILON)) if explores(cell.agent) else told


def explores(agent: str) -> bool:
    """Whether the agent is a control that takes random actions to the end."""
    return agent.endswith("-epsilon")


def in_tests(cell: CartPoleCell, agent: Agent) -> Agent | Exploring:
    """What is tested: the agent; for a control one that, asked to be noisy, takes random actions as in training."""
    return Exploring(agent.policy, EPSILON) if explores(cell.agent) else agent


@cache
def changed(half_length: float) -> Constant:
    """The schedule after the change; one object for each length, so that agents share compiled loops."""
    return Constant(cartpole().nominal()._replace(half_length=half_length))


def _dqn(told: Settings, seed: int) -> Agent:
    return dqn(cartpole(), seed=seed, settings=told, log_every=LOG_EVERY)


def _robust(told: Settings, seed: int) -> Agent:
    return robust_dqn(cartpole(), cartpole_set(seed), seed=seed, settings=told, log_every=LOG_EVERY)


def _ube(told: Settings, seed: int) -> Agent:
    return dqn_ube(cartpole(), seed=seed, settings=told, log_every=LOG_EVERY)


def _urbe(told: Settings, seed: int) -> Agent:
    return dqn_urbe(cartpole(), cartpole_set(seed), seed=seed, settings=told, log_every=LOG_EVERY)


def _forgetting(told: Settings, seed: int) -> Agent:
    head = told.variance
    assert isinstance(head, LastLayer)
    return _urbe(replace(told, variance=replace(head, forget=FORGET, refresh_every=REFRESH_EVERY)), seed)


def _calibrated(told: Settings, seed: int) -> Agent:
    return _urbe(replace(told, variance=calibrated(forget=FORGET)), seed)


_MAKERS: dict[str, Callable[[Settings, int], Agent]] = {
    "dqn": _dqn,
    "robust-dqn": _robust,
    "dqn-ube": _ube,
    "dqn-urbe": _urbe,
    "dqn-epsilon": _dqn,
    "robust-dqn-epsilon": _robust,
    "dqn-urbe-forgetting": _forgetting,
    "calibrated-dqn-urbe": _calibrated,
}
