"""What tests that kill sweeps share: starting one, waiting for a moment of its life, and reading what is left."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from oracles import sweep_driver
from urbe.runs.directory import saved_steps

AGENTS = tuple(f"agent-{i}" for i in range(len(sweep_driver.STEPS)))
SUMS = tuple(f"sum-{i}" for i in sweep_driver.SUMS)

PATIENCE = 1800.0
"""Seconds after which a test counts as hanging: far more than a slow machine takes."""


class Sweep:
    """A folder of results, and the sweeps that are run into it."""

    def __init__(self, folder, *where, **environment):
        self.output, self.log = folder / "results", folder / "log"
        self.log.mkdir(parents=True)
        self._where, self._environment = where, environment

    def start(self):
        """A process group of its own."""
        paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, sweep_driver.__file__, str(self.output), str(self.log), *self._where]
        return subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": paths, **self._environment}, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def hold(self, cell, step):
        """Lets a cell come this far and no further until it is held elsewhere, or let go (None)."""
        file = self.log / f"{cell}.hold"
        if step is None:
            file.unlink()
        else:
            new = file.with_suffix(".new")
            new.write_text(str(step))
            new.replace(file)

    def finish(self, process=None):
        """Lets a sweep end, and well."""
        process = process or self.start()
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err

    def folder(self, cell):
        found = list((self.output / "cells" / "deep_cells").glob(f"{cell}-*"))
        return found[0] if found else self.output / "nothing"

    def step(self, cell):
        """Of the newest checkpoint; -1 before the first."""
        return max((max(saved_steps(path), default=-1) for path in self.folder(cell).glob("work-*/run")), default=-1)

    def worker(self, cell):
        """The process that works on a cell; None when nobody does."""
        try:
            return int(json.loads((self.folder(cell) / "running.json").read_text())["pid"])
        except FileNotFoundError:
            return None

    def finished(self):
        """Names of the cells with rows."""
        return {cell for cell in (*AGENTS, *SUMS) if (self.folder(cell) / "rows.npz").exists()}

    def began(self, cell):
        """The steps at which a cell was begun, in order."""
        found = sorted(self.log.glob(f"{cell}.*.began"), key=lambda path: path.stat().st_mtime_ns)
        return [int(path.name.split(".")[2]) for path in found]

    def record(self, cell):
        return json.loads((self.folder(cell) / "record.json").read_text())

    def status(self):
        return json.loads((self.output / "status.json").read_text())

    def rows(self):
        """The bytes of all columns of all cells."""
        found = {}
        for cell in self.finished():
            with np.load(self.folder(cell) / "rows.npz") as file:
                columns = [name for name in file.files if name.startswith("column_")]
                words = json.loads(file["header"].tobytes())["words"]
                found[cell] = ({name: file[name].tobytes() for name in columns}, words)
        return found


def until(condition, process=None):
    """Waits for something to come true; fails when it does not, or the process ends before."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if process is not None and process.poll() is not None:
            raise AssertionError(f"ended with {process.returncode} too early: {process.communicate()[1]}")
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def is_gone(pid):
    """Whether a process has ended; one that its parent has not asked about counts as such."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
