"""Read and write models: one reader and one writer for all formats."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from urbe import checks
from urbe.mdp.formats import bmdp, craam_csv, drn, npz, parquet, prism, prism_language, umb
from urbe.mdp.formats.errors import LabelsLost
from urbe.mdp.formats.label_file import with_label_file, write_label_file
from urbe.mdp.formats.names import words_of
from urbe.mdp.model import MDP, check_model


class Format(NamedTuple):
    """A format's functions `read(path, discount=...)` and `write(mdp, path)`."""

    read: Callable[..., MDP]
    write: Callable[[MDP, str | os.PathLike[str]], None]


PROGRAM = "prism-language"

FORMATS = {
    "csv": Format(craam_csv.read, craam_csv.write),
    "parquet": Format(parquet.read, parquet.write),
    "npz": Format(npz.read, npz.write),
    "prism": Format(prism.read, prism.write),
    "bmdp": Format(bmdp.read, bmdp.write),
    "drn": Format(drn.read, drn.write),
    "umb": Format(umb.read, umb.write),
    PROGRAM: Format(prism_language.read, prism_language.write),
}
TABLES = ("csv", "parquet")

LABELLED_BESIDE = (*TABLES, "bmdp")
"""Formats without state labels, which are stored in `model.csv.lab` beside `model.csv`."""

SUFFIXES = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
    ".tra": "prism",
    ".bmdp": "bmdp",
    ".txt": "bmdp",
    ".drn": "drn",
    ".umb": "umb",
    ".prism": PROGRAM,
    ".nm": PROGRAM,
    ".pm": PROGRAM,
}


def read_mdp(
    path: str | os.PathLike[str],
    *,
    discount: float | None = None,
    format: str | None = None,
    labels: bool | None = None,
    names: Mapping[str, str] | None = None,
    constants: str | None = None,
    reward: str | None = None,
    costs: bool = False,
) -> MDP:
    """Reads a model from a file.

    | format  | suffix        | what it is                                              | what it does not hold        |
    |---------|---------------|---------------------------------------------------------|------------------------------|
    | `npz`   | `.npz`        | our own: the arrays, bit for bit                        |                              |
    | `csv`   | `.csv`        | craam's list of transitions                             | discount, first state        |
    | `parquet` | `.parquet .pq` | the columns of a CSV file; `pip install urbe[logs]`  | discount, first state        |
    | `prism` | `.tra`        | PRISM's explicit files, `.tra .sta .lab .srew .trew`    | discount, nominal in bounds  |
    | `bmdp`  | `.bmdp .txt`  | bmdp-tool's intervals; terminal states pay 1 on arrival | discount, first, nominal     |
    | `drn`   | `.drn`        | Storm's text, with labels, action names, intervals      | discount, nominal in bounds  |
    | `umb`   | `.umb`        | the binary of model checkers; `pip install urbe[umb]`   | discount, nominal in bounds  |
    | `prism-language` | `.prism .nm .pm` | a program; read only, `pip install urbe[storm]` | discount           |

    CSV, Parquet and bmdp-tool files have no labels of states (`MDP.propositions`): a file `model.csv.lab` beside
    `model.csv`, in the form of PRISM's, has them, and is read with the model.

    In a CSV file a state that is only a successor is terminal, and every id up to the largest must appear. States and
    actions of a CSV or Parquet file may be strings: they become labels (`MDP.labels`), which NPZ files keep, too.
    Text may have few digits: rows that sum to one within 1e-5 are rescaled.

    Args:
      path: the file; of a PRISM model, the `.tra` file.
      discount: in [0, 1]; needed for every format but npz, where it replaces the stored one.
      format: one of `FORMATS`, by default that of the suffix.
      labels: for a CSV or Parquet file, True reads numbers of states and actions as labels, such as ids from 1.
      names: for such a file, names of columns that differ from the usual ones, as in `{"state": "condition"}`; see
        `MDP.from_columns`.
      constants: values of undefined constants of a program in the PRISM language: "N=3,p=0.9".
      reward: name of the rewards of such a program or of a DRN file, if it has several.
      costs: the file's rewards are costs, where lower is better: read them with the opposite sign, so that values are
        minus costs. A column `cost` of a CSV file is always read so.

    Raises:
      ModelFileError: a ValueError that names the file, the line and what was expected.
      OSError: the file cannot be opened.

    >>> import tempfile, urbe
    >>> text = "idstatefrom,idaction,idstateto,probability,reward\\n0,0,0,0.5,1\\n0,0,1,0.5,1\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.csv")
    ...     _ = path.write_text(text)
    ...     urbe.read_mdp(path, discount=0.9)
    MDP(2 states (1 terminal), 1 rows, 2 entries, discount 0.9)
    """
    name = _format(path, format)
    gamma = None if discount is None else checks.discount(discount)
    if gamma is None and name != "npz":
        os.stat(path)  # a file that does not exist lacks more than a discount
        raise ValueError(
            f"discount is missing: {os.fspath(path)} cannot store one, only .npz files do. "
            "Give it, as in read_mdp(path, discount=0.95)."
        )
    checks.flag("costs", costs)
    if name == PROGRAM:
        return _paid(FORMATS[name].read(path, discount=gamma, constants=constants, reward=reward), costs)
    choice = {} if reward is None else {"reward": reward}
    for argument, value in (("constants", constants), *(choice.items() if name != "drn" else ())):
        if value is not None:
            also = "" if argument == "constants" else " and DRN files"
            raise ValueError(
                f"{argument}={value} is for programs in the PRISM language{also}, which {os.fspath(path)} is not; "
                "leave it out."
            )
    for argument, value in (("labels=True", labels), ("names={...}", names)):
        if value is not None and name not in TABLES:
            raise ValueError(f"{argument} is for CSV and Parquet files, which {os.fspath(path)} is not; leave it out.")
    if name in TABLES:
        mdp = FORMATS[name].read(path, discount=gamma, labels=labels, names=names)
    else:
        mdp = FORMATS[name].read(path, discount=gamma, **choice)
    return _paid(with_label_file(mdp, path) if name in LABELLED_BESIDE else mdp, costs)


def write_mdp(mdp: MDP, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Writes a model to a file, atomically.

    Numbers are written so that they read back exactly; `read_mdp` says what each format cannot hold. CSV files have
    labels in place of ids if the model has labels; read back, states are then in the order of their labels, and
    labels that are numbers need `read_mdp(path, labels=True)`. A CSV file mentions terminal states that no transition
    leads to as successors of probability zero. A PRISM file cannot hold an initial distribution that is not uniform
    over some states, and PRISM itself rejects intervals that start at 0. A DRN file cannot hold such a distribution
    either, nor rewards that depend on the successor. A bmdp-tool file cannot hold rewards other than 1 for entering a
    terminal state. Propositions (`MDP.propositions`) are kept by all formats; beside CSV and bmdp-tool files they are
    in a file of their own, `model.csv.lab`. Labels of states and actions (`MDP.labels`) are kept by all formats but
    bmdp-tool's; PRISM files hold names of actions without blanks that are not all numbers, and blanks in those of DRN
    files become `_`. A `LabelsLost` warning says which labels the format does not hold.

    Args:
      mdp: the model.
      path: the file; of a PRISM model, the `.tra` file, the others are written beside it.
      format: one of `FORMATS`, by default that of the suffix.
    """
    check_model("mdp", mdp)
    name = _format(path, format)
    FORMATS[name].write(mdp, path)
    if name in LABELLED_BESIDE:
        write_label_file(mdp, path)
    if lost := labels_lost(mdp, path, format):
        warnings.warn(lost, LabelsLost, stacklevel=2)


def labels_lost(mdp: MDP, path: str | os.PathLike[str], format: str | None = None) -> str | None:
    """What a file of this format cannot hold of the labels of a model, in a sentence; None if it holds them all."""
    name, lost = _format(path, format), []
    states, actions = mdp.labels.state_texts(range(mdp.n_states)), mdp.labels.action_texts(range(mdp.n_actions))
    if name == "bmdp" and not _are_ids(states):
        lost.append("states")
    kept = {"bmdp": False, "prism": prism.keeps_names(actions), "drn": list(words_of(actions)) == actions}
    if not (kept.get(name, True) or _are_ids(actions)):
        lost.append("actions")
    advice = "Write .npz or .csv to keep them."
    return f"{os.fspath(path)} does not hold the names of {' and '.join(lost)}. {advice}" if lost else None


def _are_ids(names: list[str]) -> bool:
    return names == [str(k) for k in range(len(names))]


def _paid(mdp: MDP, costs: bool) -> MDP:
    """The model, with the opposite rewards if they are costs."""
    return replace(mdp, rows=replace(mdp.rows, reward=0.0 - mdp.rows.reward)) if costs else mdp


def _format(path: str | os.PathLike[str], format: str | None) -> str:
    checks.file_path("path", path)
    if format is not None:
        return checks.one_of("format", format, tuple(FORMATS))
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{os.fspath(path)} ends in {suffix!r}, expected one of {', '.join(SUFFIXES)}; "
            f"or give format= one of {', '.join(map(repr, FORMATS))}."
        )
    return SUFFIXES[suffix]
