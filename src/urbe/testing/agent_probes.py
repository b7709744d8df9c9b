"""Small tasks for agents, one skill each; `urbe.testing.check_agent` uses all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from urbe.mdp.build import from_transitions
from urbe.mdp.model import MDP
from urbe.types import FloatArray


class Probe(NamedTuple):
    """A model and the time limit of its episodes."""

    model: MDP
    horizon: int

    @property
    def best(self) -> float:
        """The largest expected discounted return of an episode."""
        return self._value(np.max)

    @property
    def random(self) -> float:
        """The same for actions taken uniformly at random."""
        return self._value(np.mean)

    def _value(self, over_actions: Callable[[FloatArray], float]) -> float:
        model, v = self.model, np.zeros(self.model.n_states)
        for _ in range(self.horizon):
            q = model.rows.expected_reward() + model.discount * (model.matrix() @ v)
            each = np.split(q, model.row_start[1:-1])
            v = np.array([over_actions(mine) if len(mine) else 0.0 for mine in each])
        assert model.initial is not None  # probes have one
        return float(model.initial @ v)


def probes() -> dict[str, Probe]:
    """All probes by name; see each below."""
    return {
        "one state": one_state(),
        "bandit": bandit(),
        "delayed reward": delayed_reward(),
        "discount": discount_matters(),
        "stochastic successor": stochastic_successor(),
        "end or cut": end_or_cut(),
        "different actions": different_actions(),
    }


def one_state() -> Probe:
    """A single state that is never left, and three actions."""
    return Probe(_model([(0, 0, 0, 1.0, 0.0), (0, 1, 0, 1.0, 1.0), (0, 2, 0, 1.0, 0.5)], discount=0.9), 5)


def bandit() -> Probe:
    """One action an episode."""
    rewards = (0.0, 0.3, 1.0, 0.6)
    return Probe(_model([(0, a, 1, 1.0, r) for a, r in enumerate(rewards)], terminal=[1]), 1)


def delayed_reward() -> Probe:
    """A small reward now, or a larger one after several steps."""
    ways = [(0, 0, 1, 1.0, 0.2), (1, 0, 3, 1.0, 0.0), (3, 0, 5, 1.0, 0.0)]
    return Probe(_model([*ways, (0, 1, 2, 1.0, 0.0), (2, 0, 4, 1.0, 0.0), (4, 0, 5, 1.0, 1.0)], terminal=[5]), 3)


def discount_matters() -> Probe:
    """1 at once, or 2 after two steps, discounted to 1/2."""
    steps = [(0, 0, 3, 1.0, 1.0), (0, 1, 1, 1.0, 0.0), (1, 0, 2, 1.0, 0.0), (2, 0, 3, 1.0, 2.0)]
    return Probe(_model(steps, terminal=[3], discount=0.5), 3)


def stochastic_successor() -> Probe:
    """A small reward for certain, a gamble that succeeds with probability 0.8, and one with probability 0.2."""
    gambles = [(0, a, s, p, 0.0) for a, win in ((1, 0.8), (2, 0.2)) for s, p in ((1, win), (2, 1.0 - win))]
    return Probe(_model([(0, 0, 3, 1.0, 0.2), *gambles, (1, 0, 3, 1.0, 1.0), (2, 0, 3, 1.0, 0.0)], terminal=[3]), 2)


def end_or_cut() -> Probe:
    """Terminate at once for 1, or stay for 0.4 per step until truncation."""
    return Probe(_model([(0, 0, 1, 1.0, 1.0), (0, 1, 0, 1.0, 0.4)], terminal=[1], discount=0.9), 8)


def different_actions() -> Probe:
    """States with the actions {0, 2}, {1} and {0, 1, 2, 5}."""
    steps = [(0, 0, 1, 1.0, 0.0), (0, 2, 2, 1.0, 0.0), (1, 1, 3, 1.0, 0.2)]
    return Probe(_model([*steps, *((2, a, 3, 1.0, float(a == 5)) for a in (0, 1, 2, 5))], terminal=[3]), 2)


def _model(
    steps: Sequence[tuple[int, int, int, float, float]], *, terminal: Sequence[int] = (), discount: float = 1.0
) -> MDP:
    state, action, successor, probability, reward = (np.array(column) for column in zip(*steps, strict=True))
    n = int(max(state.max(), successor.max())) + 1
    initial = np.eye(n)[0]
    return from_transitions(
        state, action, successor, probability, reward, discount=discount, terminal=terminal, initial=initial, n_states=n
    )
