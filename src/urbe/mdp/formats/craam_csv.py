"""Read and write models as CSV files in the format of craam and craam2.

    idstatefrom,idaction,idoutcome,idstateto,probability,reward

Columns are found by their names, other columns are ignored, ids are 0-based; texts in their place are labels. Repeated
transitions: probabilities add up, rewards average by probability. Two columns are ours: `lower` and `upper`, the bounds
of interval models. The format knows neither discount nor first state. A state that is only a successor is terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from urbe import checks
from urbe.atomic import replace_files, text_writer
from urbe.mdp.formats import assemble
from urbe.mdp.formats.assemble import ROW_TOLERANCE
from urbe.mdp.formats.csv_table import csv_text, read_columns
from urbe.mdp.formats.errors import ModelFileError
from urbe.mdp.formats.text import Path, TextTable, head, line_of
from urbe.mdp.formats.text_columns import fields_of, is_number, read_text, separator_of
from urbe.mdp.frames import STANDS_FOR, RowError
from urbe.mdp.intervals import PairError
from urbe.mdp.log_columns import NAME_THEM
from urbe.mdp.model import MDP
from urbe.mdp.model_columns import model_of
from urbe.mdp.transitions import SYNONYMS
from urbe.tables import write_table
from urbe.types import BoolArray, FloatArray, IntArray

_IDS = ("idstatefrom", "idaction", "idstateto")
_LARGEST_SCENARIOS = 2**29  # numbers, 4 GiB


def read(path: Path, *, discount: float, labels: bool | None = None, names: Mapping[str, str] | None = None) -> MDP:
    """Reads a CSV file; see `urbe.read_mdp`."""
    if labels or names or _has_labels(path):
        texts = read_text(path)
        return model_of_table(path, texts, discount=discount, labels=labels, names=names, lines=texts.lines)
    table = read_columns(path, (*_IDS, "reward"), ("probability", "lower", "upper", "idoutcome"))
    if ("lower" in table) != ("upper" in table):
        raise ModelFileError(
            path, "has only one of the columns lower and upper; intervals need both.", line_of(path, 0)
        )
    if "probability" not in table and "lower" not in table:
        raise ModelFileError(
            path, "has no column probability; only lower and upper together can replace it.", line_of(path, 0)
        )
    s, a, t = (table.ids(name) for name in _IDS)
    if "idoutcome" in table:
        _one_outcome(table, s, a)
    p = table.probabilities("probability") if "probability" in table else None
    bounds = (table.numbers("lower"), table.numbers("upper")) if "lower" in table else None
    n_states, terminal = _states(table, s, t)
    r = table.numbers("reward")
    return assemble.model(table, s, a, t, p, r, discount=discount, n_states=n_states, terminal=terminal, bounds=bounds)


def _has_labels(path: Path) -> bool:
    """Whether the table is none of craam's: texts as ids, other separators, costs, or columns of other names."""
    lines = head(path, 2)
    if len(lines) < 2:
        return False
    separator = separator_of(lines[0][1])
    header, first = (fields_of(line, separator) for _, line in lines)
    if separator != "," or len(header) != len(first):
        return separator != ","
    named = dict(zip(header, first, strict=True))
    if all(name in named for name in _IDS):
        costs = "reward" not in named and not {"cost", *SYNONYMS["cost"]}.isdisjoint(map(str.lower, header))
        return costs or not all(is_number(named[name]) for name in _IDS)
    return not any(name in named for name in _IDS)


def model_of_table(
    path: Path,
    table: Any,
    *,
    discount: float,
    labels: bool | None,
    names: Mapping[str, str] | None,
    lines: Sequence[int] | None = None,
) -> MDP:
    """The model in the columns of a file; errors name the line of a row, or the row if `lines` is None."""
    if "idoutcome" in table.column_names:
        raise ModelFileError(
            path, "has labels or costs, and a column idoutcome; expected ids 0, 1, 2, ... and rewards with outcomes."
        )
    try:
        return model_of(table, discount=discount, labels=labels, names=names, row_tolerance=ROW_TOLERANCE)
    except RowError as error:
        message = error.message.replace(STANDS_FOR, "")
        if lines is None:
            raise ModelFileError(path, f"row {error.row} {message} Rows count from 0.", column=error.name) from None
        raise ModelFileError(path, message, lines[error.row], error.name) from None
    except PairError as error:
        raise ModelFileError(path, error.message) from None
    except ModelFileError:
        raise
    except (ValueError, OverflowError) as error:
        said = str(error).replace(NAME_THEM, f"{NAME_THEM} A log without probabilities is for plan.")
        raise ModelFileError(path, said) from None


def read_scenarios(path: Path, *, discount: float) -> tuple[MDP, FloatArray]:
    """Reads a model and K alternatives of each of its rows, from a CSV file with a column `idoutcome`.

    Outcome k of a pair is one distribution over its successors. A pair has the outcomes 0, ..., K - 1, or a single
    one, which then stands for all K. The model's nominal probabilities are the means over the outcomes,

        p(s' | s, a) = 1/K sum_k p_k(s' | s, a),

    with the union of the outcomes' successors; rewards of a successor are averaged by probability over the outcomes.

    Args:
      path: the file.
      discount: in [0, 1].

    Returns:
      the model, and `(E, K)` probabilities: column k lists those of outcome k, aligned with the model's entries.
    """
    discount = checks.discount(discount)
    table = read_columns(path, (*_IDS, "probability", "reward"), ("idoutcome",))
    s, a, t = (table.ids(name) for name in _IDS)
    k = table.ids("idoutcome") if "idoutcome" in table else np.zeros(len(table), dtype=np.int64)
    p, r = table.probabilities("probability"), table.numbers("reward")
    n_states, terminal = _states(table, s, t)

    pair = _groups(s, a)
    n_outcomes, rank = _ranked_outcomes(table, s, a, k, pair)
    largest = int(n_outcomes.max())
    p = _normal_outcomes(table, s, a, k, p)
    entry = _groups(s, a, t)
    n_entries = int(entry.max()) + 1
    if n_entries * largest > _LARGEST_SCENARIOS:
        raise ModelFileError(path, f"asks for {n_entries} x {largest} scenario probabilities, too many to hold.")
    scenarios = np.zeros((n_entries, largest))
    single = n_outcomes[pair] == 1
    np.add.at(scenarios, (entry[~single], rank[~single]), p[~single])
    alone = np.zeros(n_entries)
    np.add.at(alone, entry[single], p[single])
    scenarios[entry[single]] = alone[entry[single], None]
    share = p / n_outcomes[pair]
    mdp = assemble.model(table, s, a, t, share, r, discount=discount, n_states=n_states, terminal=terminal)
    return mdp, scenarios


def write(mdp: MDP, path: Path) -> None:
    """Writes a model, states and actions by their labels if they have any; see `urbe.write_mdp`."""
    columns = columns_of(mdp, "a CSV file")
    if mdp.labels:
        write_table(path, columns, format="csv")
    else:
        replace_files({path: text_writer(csv_text(list(columns), list(columns.values())))})


def columns_of(mdp: MDP, format_name: str) -> dict[str, np.ndarray]:
    """The columns of a model."""
    assemble.require_transitions(mdp, format_name)
    s, a, t, p, r = assemble.entry_columns(mdp)
    names = [*_IDS, "probability", "reward"]
    columns: list[np.ndarray] = [s, a, t, p, r]
    unseen = mdp.terminal.copy()
    unseen[t] = False
    ghosts = np.flatnonzero(unseen)
    if len(ghosts):
        # A terminal state that no row leads to would be lost: list it as an impossible successor of the first row.
        n = len(ghosts)
        reward = 0.0 if mdp.rows.rewards_successors else r[0]
        more = (np.full(n, s[0]), np.full(n, a[0]), ghosts, np.zeros(n), np.full(n, reward))
        columns = [np.concatenate(both) for both in zip(columns, more, strict=True)]
    if mdp.bounds is not None:
        names += ["lower", "upper"]
        columns += [np.append(bound, np.zeros(len(ghosts))) for bound in mdp.bounds]
    if mdp.labels:
        s, a, t = (columns[k] for k in range(3))
        columns[:3] = [mdp.labels.state_column(s), mdp.labels.action_column(a), mdp.labels.state_column(t)]
    return dict(zip(names, columns, strict=True))


def _states(table: TextTable, s: IntArray, t: IntArray) -> tuple[int, BoolArray]:
    """Number of states and which of them are terminal; every id below the largest must be mentioned."""
    n_states = int(max(s.max(), t.max())) + 1
    if n_states > 2 * len(table):  # ids are missing for certain, and nothing may be allocated
        _refuse_gap(table, s, t)
    seen = np.zeros((2, n_states), dtype=bool)
    seen[0, s] = True
    seen[1, t] = True
    if not seen.any(axis=0).all():
        _refuse_gap(table, s, t)
    return n_states, ~seen[0]


def _refuse_gap(table: TextTable, s: IntArray, t: IntArray) -> NoReturn:
    ids = np.union1d(s, t)
    gap, last = int(np.argmax(ids != np.arange(len(ids)))), int(ids[-1])
    column, where = ("idstatefrom", s) if (s == last).any() else ("idstateto", t)
    table.fail(
        int(np.argmax(where == last)),
        f"found state {last}, but state {gap} appears nowhere; expected the states 0, 1, 2, ... without gaps. "
        "If ids are names, take them as such with labels=True.",
        column,
    )


def _groups(*ids: IntArray) -> IntArray:
    """`(N,)` the rank of each row's tuple of ids among the distinct tuples, in lexicographic order."""
    order = np.lexsort(ids[::-1])
    new = np.zeros(len(order), dtype=bool)
    for column in ids:
        new[1:] |= np.diff(column[order]) != 0
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.cumsum(new)
    return rank


def _one_outcome(table: TextTable, s: IntArray, a: IntArray) -> None:
    k = table.ids("idoutcome")
    pair = _groups(s, a)
    low = np.full(int(pair.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(low, pair, k)
    several = k != low[pair]
    if several.any():
        at = int(np.argmax(several))
        table.fail(
            at,
            f"state {s[at]}, action {a[at]} has more than one outcome, that is several models of one pair; "
            "read such a file with urbe.read_scenarios.",
            "idoutcome",
        )


def _ranked_outcomes(
    table: TextTable, s: IntArray, a: IntArray, k: IntArray, pair: IntArray
) -> tuple[IntArray, IntArray]:
    """Number of outcomes of each pair, and the rank of each row's outcome within its pair."""
    outcome = _groups(pair, k)
    owner = np.zeros(int(outcome.max()) + 1, dtype=np.int64)
    owner[outcome] = pair
    n_outcomes = np.bincount(owner)
    rank = outcome - np.concatenate(([0], np.cumsum(n_outcomes)[:-1]))[pair]
    largest = int(n_outcomes.max())
    odd = (n_outcomes[pair] != 1) & ((n_outcomes[pair] != largest) | (rank != k))
    if odd.any():
        at = int(np.argmax(odd))
        ids = np.unique(k[pair == pair[at]]).tolist()
        table.fail(
            at,
            f"state {s[at]}, action {a[at]} has the outcomes {checks.listing(ids)}, expected 0, ..., {largest - 1} "
            "as the pair with the most outcomes has, or a single one.",
            "idoutcome",
        )
    return n_outcomes, rank


def _normal_outcomes(table: TextTable, s: IntArray, a: IntArray, k: IntArray, p: FloatArray) -> FloatArray:
    """`p` with each outcome rescaled to one if its sum is further from one than rounding."""
    outcome = _groups(s, a, k)
    total, length = np.bincount(outcome, weights=p), np.bincount(outcome)
    wrong = ~(np.abs(total - 1.0) <= ROW_TOLERANCE)
    if wrong.any():
        at = int(np.argmax(wrong[outcome]))
        table.fail(
            at,
            f"the probabilities of state {s[at]}, action {a[at]}, outcome {k[at]} sum to {total[outcome[at]]:.12g}, "
            "expected 1.",
        )
    scale = np.where(np.abs(total - 1.0) > length * 2.0**-52, total, 1.0)
    return p / scale[outcome]
