"""Unified Markov binary files (UMB), the exchange format of probabilistic model checkers, through the package `umbi`.

States, choices with action names, branches, one reward annotation (of states, choices and branches, added up), atomic
propositions and initial states are read and written. A state without choices is terminal. Names of states are
written into the comment of the model, as JSON, since `umbi` reads no strings of states elsewhere; files of other tools
have values of variables, which become names, `!broken & x=1`.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path as File
from typing import Any

import numpy as np

from urbe import extras
from urbe.atomic import replace_files
from urbe.mdp.build import from_transitions
from urbe.mdp.formats import assemble
from urbe.mdp.formats.assemble import ROW_TOLERANCE
from urbe.mdp.formats.errors import ModelFileError
from urbe.mdp.formats.names import valuation
from urbe.mdp.formats.text import Path, shown
from urbe.mdp.intervals import PairError
from urbe.mdp.labels import Label, Labels
from urbe.mdp.model import MDP, fitting_labels
from urbe.mdp.model_columns import in_labels
from urbe.types import FloatArray

REWARD = "reward"


def read(path: Path, *, discount: float) -> MDP:
    """Reads a UMB file; see `urbe.read_mdp`."""
    ats = _umbi().ats
    with open(path, "rb"):  # a missing file is an OSError, and all else is about content
        pass
    try:
        with _without_notice_of_starts():
            content = import_module("umbi.umb").read(File(path))
        found = import_module("umbi.ats.ats_to_umb").explicit_umb_to_explicit_ats(content)
    except Exception as error:  # of whatever kind: the package has no error of its own
        raise ModelFileError(path, f"is damaged or not a UMB file: {shown(str(error), 200)}.") from None
    if found.time != ats.TimeType.DISCRETE or found.num_players > 1 or found.has_observations:
        kind = f"time {found.time.value}, {found.num_players} players"
        raise ModelFileError(path, f"holds a model of {kind}, expected an MDP or a Markov chain in discrete time.")
    marks = content.annotations or {}  # of several annotations, `found` has only the last
    choices = list(found.choices)
    state = np.array([choice.state for choice in choices], dtype=np.int64)
    action, names = _actions(found, choices, state)
    labels = Labels(_states(content), names)
    at = np.repeat(np.arange(len(choices)), [len(choice.branches) for choice in choices])
    branches = [branch for choice in choices for branch in choice.branches]
    if not branches:
        raise ModelFileError(path, "has no transitions, expected at least one.")
    low, high, interval = _probabilities(branches)
    pays = _rewards(path, marks.get("rewards", {}), state, at)
    terminal = np.ones(found.num_states, dtype=bool)
    terminal[state] = False
    target = np.array([branch.target for branch in branches], dtype=np.int64)
    try:
        mdp = from_transitions(
            state[at], action[at], target, None if interval else low, pays,
            discount=discount, n_states=found.num_states, terminal=terminal, row_tolerance=ROW_TOLERANCE,
            lower=low if interval else None, upper=high if interval else None,
        )  # fmt: skip
    except PairError as error:
        raise ModelFileError(path, in_labels(error, labels)) from None
    except ValueError as error:
        raise ModelFileError(path, str(error)) from None
    starts = list(found.initial_states)
    holds = {
        name: np.flatnonzero(values["states"])
        for name, values in marks.get("aps", {}).items()
        if "states" in values and any(values["states"])
    }
    return replace(
        mdp,
        labels=fitting_labels(labels, mdp.n_states, mdp.n_actions),
        initial=np.bincount(starts, minlength=mdp.n_states) / len(starts) if starts else None,
        propositions=holds,
    )


def write(mdp: MDP, path: Path) -> None:
    """Writes a model; see `urbe.write_mdp`."""
    umbi = _umbi()
    assemble.require_transitions(mdp, "a UMB file")
    starts = assemble.uniform_starts(mdp, "a UMB file")
    made = umbi.ats.ExplicitAts()
    made.time, made.num_players = umbi.ats.TimeType.DISCRETE, 1
    made.num_choice_actions = mdp.n_actions
    made.choice_action_to_name = [mdp.labels.action(a) for a in range(mdp.n_actions)]
    rows = mdp.rows
    for state in range(mdp.n_states):
        made.add_state()
        for row in range(int(mdp.row_start[state]), int(mdp.row_start[state + 1])):
            choice = made.add_state_choice(state)
            choice.action = int(mdp.action[row])
            for at in range(int(rows.entry_start[row]), int(rows.entry_start[row + 1])):
                choice.add_branch(int(rows.successor[at]), _share(umbi, mdp, at))
    made.state_to_player = [0] * mdp.n_states
    made.set_initial_states(starts.tolist())
    paid = made.add_reward_annotation(REWARD)
    if rows.rewards_successors:
        paid.set_branch_values(rows.reward.tolist())
    else:
        paid.set_choice_values(rows.reward.tolist())
    for name, states in mdp.propositions.items():
        holds = np.zeros(mdp.n_states, dtype=bool)
        holds[states] = True
        made.add_ap_annotation(name).set_state_values(holds.tolist())
    if mdp.labels.states is not None:
        info = import_module("umbi.ats.model_info").ModelInfo
        made.model_info = info(comment=Labels(states=mdp.labels.states).to_json())
    with tempfile.TemporaryDirectory() as folder:
        file = File(folder, "model.umb")
        umbi.ats.write(made, file)
        content = file.read_bytes()
    replace_files({os.fspath(path): lambda out: _put(out, content)})


def _umbi() -> Any:
    extras.need("UMB files", "umbi")
    import_module("umbi.ats")
    return import_module("umbi")


@contextmanager
def _without_notice_of_starts() -> Iterator[None]:
    """Hides that `umbi` skips the file of initial states, which it always writes, of models that have none."""

    def others(record: logging.LogRecord) -> bool:
        return "unread file: state-is-initial.bin" not in record.getMessage()

    log = logging.getLogger("umbi.umb.umb_to_tar")
    log.addFilter(others)
    try:
        yield
    finally:
        log.removeFilter(others)


def _put(out: Any, content: bytes) -> None:
    out.write(content)


def _actions(found: Any, choices: list[Any], state: np.ndarray) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """`(choices,)` ids and their names; positions within the state where choices have no actions, or one twice."""
    ids = [choice.action for choice in choices]
    if any(each is None for each in ids) or len(set(zip(state.tolist(), ids, strict=True))) < len(ids):
        return np.arange(len(state)) - np.searchsorted(state, state), None
    names = found.choice_action_to_name
    plain = names is None or list(names) == [str(k) for k in range(len(names))]
    return np.array(ids, dtype=np.int64), None if plain else tuple(names)


def _states(content: Any) -> tuple[Label, ...] | None:
    """Names of the states: in the comment, or by their variables; None if there are none, or states share one."""
    about = content.index.model_data
    try:
        named = Labels.from_json(about.comment).states if about is not None and about.comment else None
    except (ValueError, TypeError):
        named = None  # a comment of somebody else
    if named is not None:
        return named if len(named) == content.index.transition_system.num_states else None
    names = [valuation(values) for values in (content.valuations or {}).get("states", [])]
    return tuple(names) if names and len(set(names)) == len(names) else None


def _probabilities(branches: list[Any]) -> tuple[FloatArray, FloatArray, bool]:
    """Lower and upper ends, and whether they are intervals."""
    given = [1 if branch.prob is None else branch.prob for branch in branches]
    interval = any(hasattr(p, "left") for p in given)
    low = np.array([float(p.left if hasattr(p, "left") else p) for p in given])
    high = np.array([float(p.right if hasattr(p, "right") else p) for p in given])
    return low, high, interval


def _rewards(path: Path, models: Any, state: np.ndarray, at: np.ndarray) -> FloatArray:
    """`(branches,)` the reward of each: the sum of the state's, the choice's and its own."""
    if len(models) > 1:
        raise ModelFileError(path, f"has the rewards {', '.join(models)}, expected one at most: export the one to use.")
    reward = np.zeros(len(at))
    for model in models.values():
        for kind, where in (("states", state[at]), ("choices", at), ("branches", np.arange(len(at)))):
            if kind in model:
                reward += np.array([float(x) for x in model[kind]])[where]
    return reward


def _share(umbi: Any, mdp: MDP, at: int) -> Any:
    if mdp.bounds is None:
        return float(mdp.rows.probability[at])
    interval = import_module(f"{umbi.__name__}.datatypes").Interval
    return interval(float(mdp.bounds[0][at]), float(mdp.bounds[1][at]))
