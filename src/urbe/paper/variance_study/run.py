"""Runs one cell of the study of variances: compares the equations with posterior draws solved one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from urbe.ambiguity.rectangular import RectangularSet
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.paper.variance_study import ACTIONS, DISCOUNT, LAYERS, NAME, SETS, WIDTH, Row, VarianceCell
from urbe.posteriors.dirichlet import Posterior
from urbe.rng import stream
from urbe.types import FloatArray, IntArray
from urbe.variance.local import Bound, Count
from urbe.variance.local_draws import MonteCarlo
from urbe.variance.value_variance import value_variance

COPIES = 25
"""Number of draws solved at once, as one model of this many copies."""


def run(cell: VarianceCell, _: Path) -> list[Row]:
    """Computes the rows of all pairs of a cell that lead to more than one state."""
    rows: list[Row] = []
    for k in range(cell.models):
        # models and draws are the same for every set and radius
        mdp = layered_model(stream(cell.seed, NAME, "model", k))
        posterior = Posterior.before(mdp, cell.count * (0.99 * mdp.rows.probability + 0.01 / WIDTH))
        draws = posterior.draws(stream(cell.seed, NAME, "draws", k, cell.count), cell.draws)
        rows += _compared(cell, k, posterior, draws)
    return rows


def _compared(cell: VarianceCell, model: int, posterior: Posterior, draws: FloatArray) -> list[Row]:
    make = SETS[cell.set][0]
    nature, n_states = make(cell.radius, posterior.model.n_states), posterior.model.n_states
    loose = value_variance(posterior, nature, horizon=LAYERS)
    policy = loose.policy
    published = value_variance(posterior, nature, horizon=LAYERS, policy=policy, local=MonteCarlo(draws))
    plans = {
        "jensen": loose,
        "sharp": value_variance(posterior, nature, horizon=LAYERS, policy=policy, sharp=True),
        "published": published,
        "bound": value_variance(posterior, nature, horizon=LAYERS, policy=policy, local=Bound()),
        "counted": value_variance(posterior, nature, horizon=LAYERS, policy=policy, local=Count()),
    }
    pieces = [
        drawn_values(posterior, draws[i : i + COPIES], lambda n: make(cell.radius, n * n_states), policy)
        for i in range(0, len(draws), COPIES)
    ]
    truth = np.var(np.concatenate(pieces), axis=0, ddof=1)
    largest = LAYERS * posterior.model.rows.largest_reward
    limit = largest**2 * posterior.feasible / posterior.total
    return [
        Row(
            set=cell.set,
            radius=cell.radius,
            observations=cell.count,
            model=model,
            pair=int(pair),
            truth=float(truth[pair]),
            **{form: float(plan.variance[0, pair]) for form, plan in plans.items()},
            local=float(published.local[0, pair]),
            limit=float(limit[pair]),
        )
        for pair in np.flatnonzero(posterior.feasible > 1.0)
    ]


def layered_model(rng: np.random.Generator) -> MDP:
    """Makes a random model in which every state leads to all states of the next layer, the last layer to the end."""
    n_states = LAYERS * WIDTH + 1
    transition = np.zeros((n_states, ACTIONS, n_states))
    for state in range(n_states - 1):
        layer = state // WIDTH
        ends = layer == LAYERS - 1
        following = slice(n_states - 1, n_states) if ends else slice((layer + 1) * WIDTH, (layer + 2) * WIDTH)
        transition[state, :, following] = 1.0 if ends else rng.dirichlet(np.ones(WIDTH), size=ACTIONS)
    transition[-1, :, -1] = 1.0
    reward = rng.random((n_states, ACTIONS))
    return MDP.from_dense(transition, reward, discount=DISCOUNT, terminal=[n_states - 1])


def drawn_values(
    posterior: Posterior, draws: FloatArray, make: Callable[[int], RectangularSet], policy: IntArray | FloatArray
) -> FloatArray:
    """`(K, R)` robust values of the pairs at the first step, with each draw as the centre.

    Args:
      posterior: posterior of the model.
      draws: `(K, E)` centres; solved at once, as one model of K copies.
      make: maps a number of copies to the set on them.
      policy: `(H, S)` actions.
    """
    model, n = posterior.model, len(draws)
    rows, n_states = model.rows, model.n_states
    every = np.arange(n)
    shift = (every * rows.n_entries)[:, None]
    entry_start = np.append((rows.entry_start[:-1] + shift).ravel(), n * rows.n_entries)
    successor = (rows.successor + (every * n_states)[:, None]).ravel()
    stacked = Rows(n * n_states, entry_start, successor, np.ascontiguousarray(draws).ravel(), np.tile(rows.reward, n))
    row_start = np.append((model.row_start[:-1] + (every * model.n_rows)[:, None]).ravel(), n * model.n_rows)
    nature = make(n).bind(MDP(row_start, np.tile(model.action, n), stacked, model.discount))
    v = np.zeros(n * n_states)
    q = np.zeros((n, model.n_rows))
    for actions in policy[::-1]:
        q = nature.values(v).reshape(n, model.n_rows)
        chosen = np.zeros((n, n_states))
        live = np.flatnonzero(~model.terminal)
        chosen[:, live] = q[:, [model.row_of(int(s), int(actions[s])) for s in live]]
        v = chosen.ravel()
    return q
