"""A sweep of small deep agents and sums, as a process of its own that can be killed.

    python sweep_driver.py OUTPUT LOG LAUNCHER [ADDRESS]

LAUNCHER is "local" or "ray". Cells tell in LOG where they began, see `oracles.deep_cells`.
"""

import sys
from pathlib import Path

from oracles import deep_cells
from urbe.sweep import cells
from urbe.sweep.run import sweep
from urbe.sweep.sources import code_digest

STEPS = (600, 3000, 3000)
SUMS = (3, 4)


def jobs(output, log):
    """Three agents, the first of which is done soon, and two sums."""
    module = deep_cells.__name__
    agents = [deep_cells.Small(seed, str(log), steps) for seed, steps in enumerate(STEPS)]
    sums = [deep_cells.Small(seed, str(log)) for seed in SUMS]
    code = cells.Code(module, deep_cells.NAME, deep_cells.Row, code_digest(module))
    return {code.experiment: cells.jobs(code, [*agents, *sums], Path(output, "cells"))}


def launcher(name, address=None):
    """Two cells at once."""
    from urbe.sweep.local import Local
    from urbe.sweep.ray import Ray

    return Local(2) if name == "local" else Ray(address, at_once=2)


if __name__ == "__main__":
    output, log, *where = sys.argv[1:]
    sweep(Path(output), jobs(output, log), launcher(*where))
