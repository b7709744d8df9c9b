"""The rows of a chapter as a table, from which claims, tables and figures are computed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from urbe import checks
from urbe.sweep.cells import columns
from urbe.types import FloatArray


class Results:
    """Rows by column.

    Args:
      table: for each column its values, row by row; columns of text as indices into `words`.
      words: the texts of each such column.

    >>> from typing import NamedTuple
    >>> class Row(NamedTuple):
    ...     agent: str
    ...     seed: int
    ...     value: float
    >>> results = Results.of([Row("dqn", 2, 0.5), Row("dqn", 1, 0.25), Row("urbe", 1, 1.0)], Row)
    >>> results.unique("agent"), results.where(agent="dqn").by("seed")
    (['dqn', 'urbe'], {2: 0.5, 1: 0.25})
    >>> results.pivot("agent", "seed")
    array([[0.25, 0.5 ],
           [1.  ,  nan]])
    """

    def __init__(self, table: Mapping[str, NDArray[Any]], words: Mapping[str, Sequence[str]]) -> None:
        self._table, self._words = table, words
        self._masks: dict[tuple[str, Any], NDArray[np.bool_]] = {}

    @classmethod
    def of(cls, rows: Sequence[Any], row: type[Any]) -> Results:
        """The table of some rows.

        Args:
          rows: rows of one type.
          row: that type.
        """
        table: dict[str, NDArray[Any]] = {}
        words: dict[str, Sequence[str]] = {}
        values = zip(*rows, strict=True) if rows else iter([()] * len(row._fields))
        for (name, kind), column in zip(columns(row).items(), values, strict=True):
            if kind is str:
                index = {word: i for i, word in enumerate(dict.fromkeys(column))}
                words[name], column = list(index), tuple(index[word] for word in column)
            table[name] = np.array(column, dtype=np.float64 if kind is float else np.int64)
        return cls(table, words)

    def __len__(self) -> int:
        return len(next(iter(self._table.values())))

    def where(self, **wanted: Any) -> Results:
        """The rows with these values.

        Args:
          wanted: for each column a value, or a collection of values that are all wanted.
        """
        mask = np.ones(len(self), dtype=bool)
        for name, value in wanted.items():
            mask &= self._mask(name, value)
        return Results({name: column[mask] for name, column in self._table.items()}, self._words)

    def column(self, name: str) -> list[Any]:
        """The values of a column, row by row."""
        found: list[Any] = self._column(name).tolist()
        return [self._words[name][i] for i in found] if name in self._words else found

    def unique(self, name: str) -> list[Any]:
        """The distinct values of a column, in the order of the rows."""
        found = self._column(name)
        first = np.sort(np.unique(found, return_index=True)[1])
        values: list[Any] = found[first].tolist()
        return [self._words[name][i] for i in values] if name in self._words else values

    def one(self, name: str) -> Any:
        """The single value of a column."""
        found = self.unique(name)
        if len(found) != 1:
            raise ValueError(f"{name} has the values {checks.listing(list(map(str, found)))}, expected one.")
        return found[0]

    def groups(self, *names: str) -> list[tuple[tuple[Any, ...], Results]]:
        """The rows of each combination of values of some columns, in the order in which these first appear."""
        combined = np.stack([self._column(name) for name in names], axis=1)
        _, first, group = np.unique(combined, axis=0, return_index=True, return_inverse=True)
        found = []
        for k in np.argsort(first):
            rows = np.flatnonzero(group.ravel() == k)
            part = Results({name: column[rows] for name, column in self._table.items()}, self._words)
            found.append((tuple(part.one(name) for name in names), part))
        return found

    def by(self, key: str) -> dict[Any, float]:
        """A mapping from the values of a column to those of the column `value`; the last row with a key counts."""
        return dict(zip(self.column(key), self._column("value").tolist(), strict=True))

    def pivot(self, *axes: str, value: str = "value") -> FloatArray:
        """An array with an axis for each of some columns, in increasing order; NaN if there is no row.

        Args:
          axes: columns; text is in the order of the rows.
          value: the column with the numbers.
        """
        keys = [np.unique(self._column(name), return_inverse=True) for name in axes]
        out = np.full([len(values) for values, _ in keys], np.nan)
        out[tuple(place.ravel() for _, place in keys)] = self._column(value)
        return out

    def _column(self, name: str) -> NDArray[Any]:
        if name not in self._table:
            raise KeyError(f"{name} is not a column, expected one of {checks.listing(list(self._table))}.")
        return self._table[name]

    def _mask(self, name: str, value: Any) -> NDArray[np.bool_]:
        wanted = tuple(value) if isinstance(value, Collection) and not isinstance(value, str) else (value,)
        if (name, wanted) not in self._masks:
            if name in self._words:
                words = list(self._words[name])
                keys: list[Any] = [words.index(word) for word in wanted if word in words]
            else:
                keys = list(wanted)
            self._masks[name, wanted] = np.isin(self._column(name), keys)
        return self._masks[name, wanted]


def common_seeds(*parts: Results) -> list[Results]:
    """The rows of the seeds that all parts share, for comparisons paired by seed."""
    seeds = sorted(set.intersection(*(set(part.unique("seed")) for part in parts)))
    return [part.where(seed=seeds) for part in parts]
