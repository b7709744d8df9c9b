"""Read and write models as Parquet files with the columns of a CSV file; needs `pip install urbe[logs]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urbe.mdp.formats import craam_csv
from urbe.mdp.formats.errors import ModelFileError
from urbe.mdp.formats.text import Path, shown
from urbe.mdp.model import MDP
from urbe.tables import arrow_part, write_table


def read(path: Path, *, discount: float, labels: bool | None = None, names: Mapping[str, str] | None = None) -> MDP:
    """Reads a Parquet file; see `urbe.read_mdp`."""
    return craam_csv.model_of_table(path, table_in(path), discount=discount, labels=labels, names=names)


def table_in(path: Path) -> Any:
    """Reads the table in a Parquet file, an Arrow table."""
    arrow, parquet = arrow_part(), arrow_part("parquet")
    with open(path, "rb") as file:  # a missing file is an OSError, and all else is about content
        try:
            return parquet.read_table(file)
        except (arrow.ArrowException, OSError, ValueError) as error:
            raise ModelFileError(path, f"is damaged or not a Parquet file: {shown(str(error), 200)}.") from None


def write(mdp: MDP, path: Path) -> None:
    """Writes a model, states and actions by their labels where they have any; see `urbe.write_mdp`."""
    write_table(path, craam_csv.columns_of(mdp, "a Parquet file"), format="parquet")
