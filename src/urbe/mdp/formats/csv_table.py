"""Read and write CSV files with a header and columns of numbers."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from urbe.mdp.formats.errors import ModelFileError
from urbe.mdp.formats.text import (
    BLANK,
    FLAG,
    NUMBER,
    Explain,
    Grammar,
    Path,
    TextTable,
    head,
    lines_of_numbers,
    read_table,
    shown,
)
from urbe.mdp.formats.text_columns import fields_of

# Atomic: a field in quotes is never read again as one without.
_EXTRA_FIELD = rf'(?>{BLANK}"[^"\n]*+"{BLANK}|[^,\n]*+)'


def read_header(path: Path, needed: Sequence[str]) -> tuple[int, str, tuple[str, ...]]:
    """Line, text and column names of the header."""
    first = head(path, 1)
    if not first:
        raise ModelFileError(path, f"is empty, expected a header with {', '.join(needed)}.")
    line, text = first[0]
    return line, text, tuple(fields_of(text, ","))


def read_columns(
    path: Path, needed: Sequence[str], optional: Sequence[str] = (), flags: Sequence[str] = ()
) -> TextTable:
    """The named columns of a CSV file; others are ignored, and so is the order. Flags may read true and false."""
    line, text, header = read_header(path, needed)
    missing = [name for name in needed if name not in header]
    if missing:
        raise ModelFileError(
            path, f"found the header {shown(text, 80)}, expected the columns {', '.join(needed)}; "
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing.", line,
        )  # fmt: skip
    taken = tuple(name for name in header if name in needed or name in optional)
    if len(set(taken)) < len(taken):
        twice = next(name for name in taken if taken.count(name) > 1)
        raise ModelFileError(path, f"the header names {twice} twice, expected each column once.", line)
    kinds = {name: FLAG if name in flags else NUMBER for name in taken}
    fields = (f"{BLANK}({kinds[name]}){BLANK}" if name in taken else _EXTRA_FIELD for name in header)
    template = " ".join(rf"\g<{i}>" for i in range(1, len(taken) + 1))
    plain = "," if len(taken) == len(header) else None
    grammar = Grammar(taken, ",".join(fields), template, _explain(header, kinds), plain, tuple(flags))
    table = read_table(path, grammar, skip=1)
    if not len(table):
        raise ModelFileError(path, "has a header and no rows, expected at least one.")
    return table


def csv_text(names: Sequence[str], columns: Sequence[np.ndarray]) -> Iterator[str]:
    """Header and lines of a CSV file, in parts."""
    yield ",".join(names) + "\n"
    yield from lines_of_numbers(columns, ",")


def _explain(header: tuple[str, ...], kinds: Mapping[str, str]) -> Explain:
    def explain(line: str) -> tuple[str | None, str]:
        try:
            fields = next(csv.reader([line]))
        except (csv.Error, StopIteration):
            fields = line.split(",")
        if len(fields) != len(header):
            return None, f"found {shown(line, 80)} with {len(fields)} fields, expected {len(header)} as in the header."
        for name, field in zip(header, fields, strict=True):
            if name in kinds and not re.fullmatch(kinds[name], field.strip(" \t\n"), re.ASCII):
                wanted = "true, false, 1 or 0" if kinds[name] == FLAG else "a number"
                return name, f"found {shown(field)}, expected {wanted}."
        return None, f"found {shown(line, 80)}, expected numbers without quotes, separated by commas."

    return explain
