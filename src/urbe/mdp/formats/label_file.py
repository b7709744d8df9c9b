"""Store `MDP.propositions` for formats without state labels: a file beside the model, like PRISM's `.lab`.

CSV and bmdp-tool files have no state labels. A model with propositions is written with a second file, `model.csv.lab`
beside `model.csv`, which is read with the model; its labels `init` and `deadlock` are ignored. `model.lab` belongs to
`model.tra` and is not used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path as File

import numpy as np

from urbe.atomic import replace_files, text_writer
from urbe.mdp.formats import prism_parts
from urbe.mdp.formats.text import Path
from urbe.mdp.labels import encode
from urbe.mdp.model import MDP

SUFFIX = ".lab"
_OF_PRISM = ("init", "deadlock")


def with_label_file(mdp: MDP, path: Path) -> MDP:
    """Adds the propositions of the file beside `path`, if it exists."""
    holds = prism_parts.read_label_file(_file(path), mdp.n_states)
    found = {name: states for name, states in holds.items() if name not in _OF_PRISM}
    return replace(mdp, propositions=found) if found else mdp


def write_label_file(mdp: MDP, path: Path) -> None:
    """Writes the file if the model has propositions, else deletes the file of an earlier model."""
    file = _file(path)
    if mdp.propositions:
        replace_files({file: text_writer(label_lines({n: _as_read(mdp, s) for n, s in mdp.propositions.items()}))})
    else:
        file.unlink(missing_ok=True)


def label_lines(holds: dict[str, np.ndarray]) -> Iterator[str]:
    """The lines of a `.lab` file."""
    yield " ".join(f'{k}="{name}"' for k, name in enumerate(holds)) + "\n"
    said: dict[int, list[str]] = {}
    for k, states in enumerate(holds.values()):
        for state in np.asarray(states).tolist():
            said.setdefault(state, []).append(str(k))
    for state in sorted(said):
        yield f"{state}: {' '.join(said[state])}\n"


def _file(path: Path) -> File:
    return File(os.fspath(path) + SUFFIX)


def _as_read(mdp: MDP, states: np.ndarray) -> np.ndarray:
    """States in the order in which the file is read: that of their labels, if they have any."""
    if mdp.labels.states is None:
        return np.asarray(states)
    ids, _ = encode({"state": np.array(mdp.labels.states, dtype=object)}, labels=True)
    found: np.ndarray = ids["state"][states]
    return found
