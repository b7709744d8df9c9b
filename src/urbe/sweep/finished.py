"""Read the plan of a sweep and its finished cells, whatever version of the code computed them.

`sweep.json` in the output folder is written when a sweep begins:

    {"version": 1,
     "scale": "quick",
     "options": "--seeds 5",
     "experiments": {"<NAME>": {"module": "<module>", "cells": ["<directory under cells/<NAME>>", ...]}, ...}}

`options` are those of a sweep of part of an experiment, and may be missing. The directories are in the order of the
experiment's cells. The file describes the last sweep of the folder; cells of earlier sweeps stay and are reused.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from urbe import checks
from urbe.atomic import replace_files, text_writer
from urbe.sweep.cells import ROWS, Job
from urbe.sweep.store import Stored, load

CELLS, PLAN = "cells", "sweep.json"
VERSION = 1


class SweepPlan(NamedTuple):
    """The plan of a sweep.

    Attributes:
      scale: name of the scale.
      cells: directories of the cells of each experiment, in order.
      options: options of the command that chose part of an experiment.
    """

    scale: str
    cells: dict[str, tuple[str, ...]]
    options: str = ""


class Finished(NamedTuple):
    """The finished cells of an experiment.

    Attributes:
      cells: rows and records, in the order of the plan.
      missing: directories of cells that are not finished, or whose rows had other columns.
      other_code: names of the cells that were computed by other code than the given one.
    """

    cells: tuple[Stored, ...]
    missing: tuple[str, ...]
    other_code: tuple[str, ...]

    def rows(self) -> list[Any]:
        """The rows of all cells."""
        return [row for cell in self.cells for row in cell.rows]


def write_plan(output: Path, scale: str, jobs: Mapping[str, Sequence[Job]], options: str = "") -> None:
    """Writes `sweep.json`; `jobs` are those of each experiment, by its name."""
    planned = {
        name: {"module": mine[0].module if mine else "", "cells": [job.folder.name for job in mine]}
        for name, mine in jobs.items()
    }
    content = {"version": VERSION, "scale": scale, **({"options": options} if options else {}), "experiments": planned}
    replace_files({output / PLAN: text_writer([json.dumps(content, indent=1), "\n"])})


def read_plan(output: Path) -> SweepPlan:
    """Reads `sweep.json`.

    Raises:
      FileNotFoundError: nothing was run into the folder.
      ValueError: the file is not the plan of a sweep.
    """
    path = output / PLAN
    try:
        content = json.loads(path.read_text())
        planned = content["experiments"]
        if content["version"] != VERSION:
            raise ValueError(f"version is {content['version']}, expected {VERSION}")
        return SweepPlan(
            str(content["scale"]),
            {name: tuple(map(str, part["cells"])) for name, part in planned.items()},
            str(content.get("options", "")),
        )
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} is missing: no sweep was run into {output}; run one with: urbe reproduce --output {output}"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not the plan of a sweep: {error!r}; run urbe reproduce again.") from None


def load_finished(output: Path, experiment: str, row: type[Any], codes: Collection[str] = ()) -> Finished:
    """Loads the finished cells of an experiment of the last sweep, with their records, whatever code computed them.

    Args:
      output: folder of the sweep.
      experiment: its name.
      row: its current row type.
      codes: digests of the current code (`urbe.sweep.sources.code_digest`), to find cells of other code.

    Raises:
      ValueError: a cell was computed by urbe 0.1.0, whose files are not supported.
    """
    plan = read_plan(output)
    if experiment not in plan.cells:
        raise KeyError(
            f"{experiment} is not an experiment of {output}, expected one of {checks.listing(list(plan.cells))}."
        )
    found: list[Stored] = []
    missing: list[str] = []
    for directory in plan.cells[experiment]:
        path = output / CELLS / experiment / directory / ROWS
        if path.with_name("rows.npz").exists() and not path.exists():
            raise ValueError(
                f"{path.parent} was written by urbe 0.1.0, expected {ROWS}; run it again, or draw it with urbe 0.1.0."
            )
        stored = load(path, row)
        if stored is None:
            missing.append(directory)
        else:
            found.append(stored)
    others = tuple(cell.record.cell for cell in found if codes and cell.record.code not in codes)
    return Finished(tuple(found), tuple(missing), others)
