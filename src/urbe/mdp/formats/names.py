"""Names of states and actions in formats of other tools: as words, as texts, and as values of variables.

A label is written as it prints if that reads back as the same label, and else as JSON: `idle`, `7`, `"7"` for the text,
`"two\\nlines"`. States of programs are named by their variables, `!broken & x=1`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from urbe.mdp.labels import Label

_WHOLE = re.compile(r"-?(?:0|[1-9]\d*)", re.ASCII)
_PART = re.compile(r"(!?)([A-Za-z_]\w*)|([A-Za-z_]\w*)=(-?\d[\w.+-]*)", re.ASCII)
AND = " & "


def text_of(label: Label) -> str:
    """One line that `label_of` reads as this label."""
    text = str(label)
    plain = text.isprintable() and text == text.strip() and text[:1] not in ("", '"')
    return text if plain and label_of(text) == label else json.dumps(label, ensure_ascii=False)


def label_of(text: str) -> Label:
    """The label of such a line; other text is a label itself."""
    if text.startswith('"'):
        try:
            found = json.loads(text)
        except ValueError:
            return text
        return found if isinstance(found, str) else text
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        return float(text) if repr(float(text)) == text else text
    except ValueError:
        return text


def words_of(labels: Sequence[Label]) -> tuple[str, ...]:
    """The labels as words for formats that separate fields by blanks, which become `_`."""
    return tuple(re.sub(r"\s|^\[|^$", "_", str(label)) for label in labels)


def valuation(values: Mapping[str, object]) -> str:
    """The name of a state of a program.

    >>> valuation({"broken": False, "x": 1})
    '!broken & x=1'
    """
    return AND.join(
        f"{'' if value else '!'}{name}" if isinstance(value, bool) else f"{name}={value}"
        for name, value in values.items()
    )


def variables_of(labels: Sequence[Label]) -> tuple[tuple[str, ...], list[list[str]]] | None:
    """The variables in such names, and their values in each; None if they are other names.

    >>> variables_of(["!broken & x=1", "broken & x=2"])
    (('broken', 'x'), [['false', '1'], ['true', '2']])
    """
    variables: tuple[str, ...] | None = None
    rows = []
    for label in labels:
        parts = [_PART.fullmatch(part) for part in str(label).split(AND)]
        found = [part for part in parts if part is not None]
        names = tuple(part[2] or part[3] for part in found)
        if len(found) < len(parts) or len(set(names)) < len(names) or variables not in (None, names):
            return None
        variables = names
        rows.append([part[4] or ("false" if part[1] else "true") for part in found])
    values = {value for row in rows for value in row}
    return None if variables is None or values == {"true"} else (variables, rows)  # a single word is a name
