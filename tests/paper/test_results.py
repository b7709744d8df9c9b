"""The table of a chapter's rows: selection, groups and arrays, against plain Python."""

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from urbe.paper.results import Results, common_seeds


class Row(NamedTuple):
    agent: str
    seed: int
    at: float
    value: float


ROWS = [Row(agent, seed, at, seed + 10 * at) for agent, seed, at in product(("b", "a"), (3, 1), (0.5, 0.25))][:-1]
RESULTS = Results.of(ROWS, Row)


def rows_of(results):
    return [Row(*each) for each in zip(*map(results.column, Row._fields), strict=True)]


def test_rows_come_back():
    assert rows_of(RESULTS) == ROWS
    assert len(RESULTS) == len(ROWS) == 7


@pytest.mark.parametrize(
    "wanted", [{"agent": "a"}, {"agent": ("a", "b"), "seed": 1}, {"at": [0.5, 7.0]}, {"agent": "nobody"}, {}]
)
def test_rows_are_selected_by_values(wanted):
    def fits(row):
        return all(
            getattr(row, name) in (value if isinstance(value, (tuple, list)) else (value,))
            for name, value in wanted.items()
        )

    found = RESULTS.where(**wanted)
    assert rows_of(found) == [row for row in ROWS if fits(row)]
    assert bool(found) == any(map(fits, ROWS))
    assert rows_of(found.where(**wanted)) == rows_of(found)


def test_values_are_listed_in_the_order_of_the_rows():
    assert (RESULTS.unique("agent"), RESULTS.unique("seed")) == (["b", "a"], [3, 1])
    assert RESULTS.where(agent="a").one("agent") == "a"
    with pytest.raises(ValueError, match="agent has the values b, a, expected one"):
        RESULTS.one("agent")


def test_groups_are_in_the_order_of_the_rows():
    groups = RESULTS.groups("agent", "seed")
    assert [names for names, _ in groups] == [("b", 3), ("b", 1), ("a", 3), ("a", 1)]
    assert [row for _, part in groups for row in rows_of(part)] == ROWS


def test_arrays_are_in_increasing_order_with_gaps():
    found = RESULTS.where(agent="a").pivot("seed", "at")
    np.testing.assert_array_equal(found, [[np.nan, 6.0], [5.5, 8.0]])
    assert RESULTS.where(agent="a", seed=3).by("at") == {0.5: 8.0, 0.25: 5.5}


def test_no_rows_are_a_table_too():
    empty = Results.of([], Row)
    assert (len(empty), empty.unique("agent"), empty.groups("seed")) == (0, [], [])
    assert empty.pivot("seed").shape == (0,)


def test_pairs_have_the_seeds_in_common():
    first, second = RESULTS.where(agent="b"), RESULTS.where(agent="a", at=0.25)
    assert [part.unique("seed") for part in common_seeds(first, second)] == [[3], [3]]


def test_an_unknown_column_is_named():
    with pytest.raises(KeyError, match="colour is not a column, expected one of agent, seed, at, value"):
        RESULTS.where(colour="red")
