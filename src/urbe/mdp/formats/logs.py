"""Read and write logs of transitions: CSV with a header, or Parquet.

    state,action,reward,next_state[,terminated][,episode][,step]

Columns are found by name or synonym (s, a, r, s_next, done, idstatefrom, idaction, idstateto, ...), in any order and
either case, or as `names` says; other columns are ignored. Tables of numbers with all four columns are read in bulk;
all others, with texts as labels, other separators, missing values, or next states from consecutive rows, go through
`urbe.mdp.log_columns`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from urbe import checks
from urbe.atomic import replace_files, text_writer
from urbe.mdp.formats.csv_table import csv_text, read_columns, read_header
from urbe.mdp.formats.errors import ModelFileError, NotUtf8
from urbe.mdp.formats.pipes import copied, is_pipe
from urbe.mdp.formats.text import comments_after, head, shown
from urbe.mdp.formats.text_columns import REPEATED, TextColumns, fields_of, is_number, read_text, separator_of
from urbe.mdp.frames import MISSING, STANDS_FOR, RowError, is_table
from urbe.mdp.labels import LARGEST_ID
from urbe.mdp.log_columns import NAME_THEM, Missing, log_of, probability_notes, with_id_notes
from urbe.mdp.transitions import NEEDED, OPTIONAL, Transitions, column_names
from urbe.tables import arrow_part, format_of, write_table

DROP = ' Leave out rows that lack a value with missing="drop".'

SEPARATED = " Fields may be separated by commas, semicolons, tabs or |."

_LARGEST_COUNT = 2**53  # beyond it text read as floating point would lose digits


def read_log(
    path: str | os.PathLike[str] | Any,
    *,
    names: Mapping[str, str] | None = None,
    missing: Missing = "refuse",
    missing_values: Sequence[str | float] = (),
    labels: bool | None = None,
) -> Transitions:
    """Reads a log from a CSV or Parquet file, according to the suffix.

    States and actions are ids from 0, or labels. Fields of a CSV file may be separated by commas, semicolons, tabs or
    `|`; it may be compressed by gzip, and is in UTF-8 or UTF-16, else it is read as Windows-1252. `terminated` may read
    true and false, yes and no, or 1 and 0. Without a column `next_state`, next states are those of the following row of
    the same `episode`, in the order of `step` or `time`; see `Transitions.from_columns`, also for the arguments.
    Parquet needs `pip install urbe[logs]`.

    Args:
      path: ends in .csv, .tsv or .txt, with or without .gz, or in .parquet or .pq; a pipe such as /dev/stdin, whose
        content shows its format; or the table itself, such as a pandas or polars frame, which
        `Transitions.from_columns` reads.
      names: names of columns that differ from the usual ones, as in `{"state": "condition"}`; a column `cost` is read
        as a reward with the opposite sign.
      missing: "refuse" rows that lack a value, or "drop" them; `Transitions.notes` counts them.
      missing_values: texts and numbers that stand for no value, such as `[-999, "?"]`, beside empty fields, NA, NaN,
        null and None.
      labels: True takes values of states and actions as labels, False as ids; None takes texts as labels.

    Raises:
      ModelFileError: a ValueError that names the file, the line (or row) and the column, and what was expected.
      OSError: the file cannot be opened.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("s,a,r,s_next,done\\n0,1,0.5,1,false\\n1,0,2.0,2,true\\n")
    ...     read_log(path)
    Transitions(2 rows: state, action, reward, next_state, terminated)
    """
    if is_table(path):
        return Transitions.from_columns(
            path, names=names, missing=missing, missing_values=missing_values, labels=labels
        )
    checks.file_path("path", path)
    checks.one_of("missing", missing, ("refuse", "drop"))
    if is_pipe(path):
        with copied(path) as copy:
            return read_log(copy, names=names, missing=missing, missing_values=missing_values, labels=labels)
    asked = Asked(names, missing, missing_values, labels)
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    elif suffixes[-1:] in ([".parquet"], [".pq"]):
        return _read_parquet(path, asked)
    if suffixes[-1:] not in ([".csv"], [".tsv"], [".txt"]):
        raise ValueError(
            f"{os.fspath(path)} ends in {Path(path).suffix!r}, expected .csv, .tsv, .txt, each also with .gz, .parquet "
            "or .pq. Export the table as CSV."
        )
    try:
        return _read_csv(path, asked)
    except NotUtf8:
        log = _read_any_csv(path, asked, WINDOWS)
        return replace(log, notes=(f"The file is not in UTF-8 and was read as {WINDOWS}.", *log.notes))


def write_log(path: str | os.PathLike[str], transitions: Transitions) -> None:
    """Writes a log atomically as CSV or Parquet, according to the suffix; it reads back exactly.

    States and actions are written by their labels where they have any; labels that are numbers read back as such with
    `labels=True`.
    """
    columns, labels = transitions.columns(), transitions.labels
    for name in ("state", "next_state"):
        columns[name] = labels.state_column(columns[name])
    columns["action"] = labels.action_column(columns["action"])
    if labels or format_of(path) != "csv":
        write_table(path, columns)
        return
    plain = [column.astype(np.int8) if column.dtype == bool else column for column in columns.values()]
    replace_files({path: text_writer(csv_text(list(columns), plain))})


WINDOWS = "Windows-1252"
"""The encoding of files that are not in UTF-8, such as spreadsheets often write: Latin-1, and a few characters more."""


class Asked(NamedTuple):
    """The options of `read_log`."""

    names: Mapping[str, str] | None
    missing: Missing
    missing_values: Sequence[str | float]
    labels: bool | None

    @property
    def plain(self) -> bool:
        """Whether the options ask only for ids under the usual names."""
        return not (self.names or self.missing_values or self.labels) and self.missing == "refuse"


def _read_csv(path: str | os.PathLike[str], asked: Asked) -> Transitions:
    line, text, header = read_header(path, NEEDED)
    separator = separator_of(text)
    try:
        names = column_names(header if separator == "," else fields_of(text, separator), asked.names)
    except ValueError as error:
        single = "" if len(fields_of(text, separator)) > 1 else SEPARATED
        raise ModelFileError(path, f"{error} The first line must name the columns.{single}{NAME_THEM}", line) from None
    ids = [names[name] for name in ("state", "action", "next_state") if name in names]
    simple = asked.plain and separator == "," and {"next_state", "reward"} <= set(names)
    if not (simple and _starts_with_numbers(path, header, ids)):
        return _read_any_csv(path, asked)
    given = {name: names[name] for name in (*NEEDED, *OPTIONAL) if name in names}
    flags = [names["terminated"]] if "terminated" in names else []
    columns: dict[str, Any] = {}
    try:
        table = read_columns(path, [given[n] for n in NEEDED], [given[n] for n in OPTIONAL if n in given], flags)
        for name, own in given.items():
            if name == "reward":
                columns[name] = table.numbers(own)
            elif name == "terminated":
                columns[name] = table.numbers(own)
                table.require((columns[name] == 0.0) | (columns[name] == 1.0), own, "true, false, 1 or 0")
            else:
                columns[name] = table.ids(own, _LARGEST_COUNT if name in ("episode", "step") else LARGEST_ID + 1)
    except NotUtf8:
        raise
    except ModelFileError as error:
        # Fields in quotes, separators at the end of a line, or yes and no.
        if '"' in error.message or " fields, expected" in error.message or error.column in flags:
            return _read_any_csv(path, asked)
        raise _advised(error, ids) from None
    return with_id_notes(Transitions(**columns, notes=(*probability_notes(header), *_comments(path))))


def _thousands(table: TextColumns, own: Mapping[str, str]) -> list[str]:
    """A note on rewards whose point may stand before thousands."""
    paid = own.get("cost") or own["reward"]
    example = table.thousands(paid)
    if example is None:
        return []
    return [f"{example} in the column {paid} was read with a decimal point. If it is {example.replace('.', '')}, "
            "remove the points."]  # fmt: skip


def _comments(path: str | os.PathLike[str], encoding: str | None = None) -> list[str]:
    """A note on lines that were skipped because they begin with `#`."""
    lines = comments_after(path, head(path, 1, encoding)[0][0], encoding)
    if not lines:
        return []
    count = f"1 line, line {lines[0]}" if len(lines) == 1 else f"{len(lines)} lines, from line {lines[0]} on"
    return [f"Skipped as comments, because they begin with #: {count}. If that is data, put the first field in quotes."]


def _starts_with_numbers(path: str | os.PathLike[str], header: Sequence[str], ids: Sequence[str]) -> bool:
    """Whether the first row has numbers for states and actions, not names."""
    rows = head(path, 2)[1:]
    fields = fields_of(rows[0][1], ",") if rows else []
    return len(fields) != len(header) or all(is_number(fields[header.index(name)]) for name in ids)


def _advised(error: ModelFileError, ids: Sequence[str]) -> ModelFileError:
    """Adds advice to an error."""
    if error.column is None:
        return error
    advice = ""
    found = re.match("found '([^']*)'", error.message)
    if found is not None and found[1] == error.column:
        return ModelFileError(error.path, REPEATED, error.line)
    if found is not None and found[1].lower() in MISSING:
        advice = DROP
    elif error.column in ids:
        advice = " If states and actions have names, take all values as names with labels=True."
    elif found is not None:
        advice = STANDS_FOR
    return ModelFileError(error.path, error.message + advice, error.line, error.column)


def _read_any_csv(path: str | os.PathLike[str], asked: Asked, encoding: str | None = None) -> Transitions:
    table = read_text(path, encoding)
    try:
        log = log_of(table, **asked._asdict())
        own = column_names(table.column_names, asked.names)
        return replace(log, notes=(*log.notes, *_thousands(table, own), *_comments(path, encoding)))
    except RowError as error:
        found = re.sub(r"^is (?!missing)", "found ", error.message).replace(" Rows count from 0.", "")
        found = re.sub(r"\brow (\d+)\b", lambda row: f"line {table.lines[int(row[1])]}", found)
        raise ModelFileError(path, found, table.lines[error.row], error.name) from None
    except ModelFileError:
        raise
    except (ValueError, OverflowError) as error:
        raise ModelFileError(path, str(error)) from None


def _read_parquet(path: str | os.PathLike[str], asked: Asked) -> Transitions:
    arrow, parquet = arrow_part(), arrow_part("parquet")
    with open(path, "rb") as file:  # opened here, so that a missing file is an OSError and all else is about content
        table = _trusted(path, lambda: parquet.ParquetFile(file), arrow)
        try:
            names = column_names(table.schema_arrow.names, asked.names)
        except ValueError as error:
            raise ModelFileError(path, f"{error}{NAME_THEM}") from None
        content = _trusted(path, lambda: table.read(columns=list(names.values())), arrow)
    ids = [content.column(names[name]).type for name in ("state", "action", "next_state") if name in names]
    numeric = all(arrow.types.is_integer(kind) or arrow.types.is_floating(kind) for kind in ids)
    try:
        if not (asked.plain and {"next_state", "reward"} <= set(names) and numeric):
            log: Transitions = _trusted(path, lambda: log_of(content, **asked._asdict()), arrow, (RowError, ValueError))
            return log
        names.pop("time", None)
        columns: dict[str, Any] = {name: _parquet_column(path, own, content.column(own)) for name, own in names.items()}
        return with_id_notes(Transitions(**columns))
    except ModelFileError:
        raise
    except RowError as error:
        raise ModelFileError(path, f"row {error.row} {error.message} Rows count from 0.", column=error.name) from None
    except (ValueError, OverflowError) as error:
        raise ModelFileError(path, str(error)) from None


def _parquet_column(path: str | os.PathLike[str], name: str, column: Any) -> np.ndarray:
    if column.null_count:
        row = column.is_null().to_numpy().argmax()
        raise ModelFileError(path, f"row {row} is empty, expected a value. Rows count from 0.{DROP}", column=name)
    array: np.ndarray = column.to_numpy()
    if array.dtype.kind not in "biuf":
        raise ModelFileError(path, f"holds values of type {column.type}, expected numbers.", column=name)
    return array


def _trusted(
    path: str | os.PathLike[str], read: Callable[[], Any], arrow: Any, clear: tuple[type[Exception], ...] = ()
) -> Any:
    """Calls `read`; other errors than those of `clear` become an error that names the file."""
    try:
        return read()
    except clear:
        raise
    except (arrow.ArrowException, OSError, ValueError, MemoryError) as error:
        raise ModelFileError(path, f"is damaged or not a Parquet file: {shown(str(error), 200)}.") from None
