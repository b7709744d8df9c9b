"""Runs all trainings and writes the table: `python -m benchmarks.learning --write docs/benchmarks.md`.

Finished trainings are kept and not repeated: the program can be stopped and started again. Rows of
`benchmarks/learning/trainings.csv` count as finished; delete them to train again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.learning.cells import LEARNERS, Cell, cells, run_cell, run_missing
from benchmarks.learning.problems import PROBLEMS

SEEDS = range(10)
CHANGES = ["decay.last=0.1"]
"""Of urbe's settings, chosen on seeds that are not among `SEEDS`."""


def main() -> None:
    """Trains and tests; one cell in this process with `--run`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=Path, default=Path("results/learning"), metavar="FOLDER")
    parser.add_argument("--environments", nargs="*", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--learners", nargs="*", choices=LEARNERS, default=list(LEARNERS))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument(
        "--set", nargs="*", default=CHANGES, metavar="FIELD=VALUE", help="change urbe's settings, as urbe train does"
    )
    parser.add_argument("--run", nargs=3, metavar=("ENVIRONMENT", "LEARNER", "SEED"), help="train in this process")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table to its section of a Markdown page")
    parser.add_argument("--only-write", action="store_true", help="train nothing: write what there is")
    options = parser.parse_args()
    if options.run is not None:
        environment, learner, seed = options.run
        run_cell(Cell(environment, learner, int(seed)), options.cells, options.set)
        return
    if not options.only_write:
        run_missing(cells(options.environments, options.learners, options.seeds), options.cells, options.set)
    if options.write is not None:
        _write(options.write, options.cells, options.seeds)


def _write(page: Path, folder: Path, seeds: list[int]) -> None:
    from benchmarks.learning.table import section
    from benchmarks.page import write_section

    write_section(page, section(folder, seeds))


if __name__ == "__main__":
    main()
