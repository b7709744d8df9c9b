"""Convert Minari datasets of recorded episodes to logs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from urbe import checks, extras
from urbe.gym.cells import Cells
from urbe.gym.kinds import numbered
from urbe.gym.steps import Episode, log_of_episodes
from urbe.mdp.transitions import Transitions


def from_minari(dataset: Any, *, cells: Cells | None = None, most_episodes: int | None = None) -> Transitions:
    """Converts a Minari dataset to a log.

    Truncated episodes just stop. Actions are whole numbers; observations are whole numbers, or vectors that `cells`
    discretises, with an error that `Transitions.notes` states.

    Args:
      dataset: a `MinariDataset`, or the id of a local one, which needs `pip install urbe[minari]`.
      cells: discretises continuous observations, such as `urbe.gym.Cells(low, high, count)`.
      most_episodes: the largest number of episodes to read.

    Returns:
      the log, with the columns terminated, episode and step.
    """
    if isinstance(dataset, str):
        extras.need("Minari datasets by id", "minari")
        dataset = import_module("minari").load_dataset(dataset)
    action_space = numbered(dataset.action_space)
    if action_space is None:
        raise ValueError(
            f"action_space is {dataset.action_space}, expected Discrete(n): a log has finitely many actions. Group the "
            "actions of the dataset first."
        )
    space = numbered(dataset.observation_space)
    if (space is None) == (cells is None):
        found, wanted = (
            ("neither Discrete nor discretised by cells", "cells=urbe.gym.Cells(low, high, count)")
            if cells is None
            else ("Discrete", "no cells")
        )
        raise ValueError(f"observation_space is {dataset.observation_space}, {found}; expected {wanted}.")
    first_state = 0 if space is None else space[1]
    most = None if most_episodes is None else checks.whole_number("most_episodes", most_episodes, 1)
    episodes = []
    for k, each in enumerate(dataset.iterate_episodes()):
        if k == most:
            break
        if len(each.rewards):
            seen = np.asarray(each.observations)
            actions = np.asarray(each.actions).reshape(-1) - action_space[1]
            rewards = np.asarray(each.rewards, dtype=np.float64)
            shifted = seen if space is None else seen.reshape(-1) - first_state
            episodes.append(Episode(shifted, actions, rewards, bool(each.terminations[-1])))
    return log_of_episodes(episodes, n_states=None if space is None else space[0], cells=cells)
