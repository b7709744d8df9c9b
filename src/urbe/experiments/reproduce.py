"""From experiments to a page of figures, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from urbe.experiments.base import SCALES, AnyExperiment, Scale, check_experiments
from urbe.experiments.pages import write_report
from urbe.sweep import cells
from urbe.sweep.finished import CELLS
from urbe.sweep.launcher import Launcher
from urbe.sweep.local import Local
from urbe.sweep.run import Watch, sweep
from urbe.sweep.sources import code_digest


def reproduce(
    output: Path,
    watch: Watch | None = None,
    *,
    scale: Scale = "quick",
    figures: Sequence[AnyExperiment] | None = None,
    launcher: Launcher | None = None,
) -> Path:
    """Runs the experiments and writes the page with their figures.

    Writes into `output`: `index.html`, `rows/<NAME>.csv`, `manifest.json`, and a directory in `cells/<NAME>/` for each
    cell. Cells finished before, by the same code, are read rather than run; interrupted ones go on.

    Args:
      output: folder to write into; made if missing.
      watch: called with the status (`urbe.sweep.status`) while the sweep runs.
      scale: how much to run, see `urbe.experiments.base`.
      figures: experiments; by default all, `urbe.experiments.FIGURES`.
      launcher: where cells run; by default `Local()`, a process for each core. Rows do not depend on it.

    Returns:
      the path of the page.

    Raises:
      CellsFailed: when cells raised or crashed; all others are finished and kept, the page is as it was.
      RunLocked: another sweep works in the folder.
    """
    from urbe.experiments import FIGURES

    if find_spec("matplotlib") is None:
        raise ModuleNotFoundError(
            'Drawing needs matplotlib, which is not installed; install it with: pip install "urbe[plots]"',
            name="matplotlib",
        )
    if scale not in SCALES:
        raise ValueError(f"scale is {scale!r}, expected one of {', '.join(SCALES)}.")
    chosen = FIGURES if figures is None else figures
    check_experiments(chosen)
    jobs = {}
    for experiment in chosen:
        code = cells.Code(experiment.__name__, experiment.NAME, experiment.Row, code_digest(experiment.__name__))
        jobs[experiment.NAME] = cells.jobs(code, experiment.CELLS[scale], output / CELLS)
    sweep(output, jobs, launcher or Local(), scale=scale, watch=watch)
    return write_report(output, chosen)
