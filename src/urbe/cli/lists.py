"""Lists in options: `a,b`, with quotes around items that have commas, as in CSV files."""

from __future__ import annotations

import csv
from typing import Any

from urbe.mdp.labels import Labels


def items(text: str) -> list[str]:
    """The items of a list.

    >>> items('a, b,"c, d"')
    ['a', 'b', 'c, d']
    """
    return [item.strip() for item in next(csv.reader([text], skipinitialspace=True), [])]


def states_of(text: str, labels: Labels) -> list[Any]:
    """Reads a list of states: labels, or ids where there are none. A label with commas that is alone needs no quotes.

    >>> states_of("ward 1, bed 2", Labels(states=("ward 1, bed 2", "home")))
    ['ward 1, bed 2']
    """
    called = {str(label): label for label in labels.states or ()}
    words = [text.strip()] if text.strip() in called else items(text)
    if labels.states is None:
        return [int(word) if word.isdecimal() else word for word in words]
    return [called.get(word, word) for word in words]
