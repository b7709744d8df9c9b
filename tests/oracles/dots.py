"""An experiment of a few numbers, importable by other processes. Its cells can wait, fail or crash on command.

Each run is written down beside the cell's `log`, since processes do not share memory.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from urbe.atomic import replace_files

NAME = "dots"
TITLE = "Dots"


@dataclass(frozen=True)
class Dot:
    """One cell; `deed` is what happens: nothing, "raise", "kill", "exit", "wait" or "write" (for an hour), "listen".

    To listen is to fail when the signal of Ctrl-C is not both blocked since birth and ignored.
    A deed happens only while the file `log`/deeds exists.
    """

    radius: float
    log: str
    deed: str = ""

    @property
    def name(self):
        return f"dot-{self.radius:g}"


class Row(NamedTuple):
    radius: float
    threads: str
    metric: str
    count: int
    value: float


def run(cell, _):
    log = Path(cell.log)
    (log / f"{cell.name}.{os.getpid()}.{time.monotonic_ns()}.ran").touch()
    if cell.deed and (log / "deeds").exists():
        if cell.deed == "raise":
            raise ValueError(f"{cell.name} does not feel like it")
        if cell.deed == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if cell.deed == "exit":
            os._exit(7)
        if cell.deed == "wait":
            time.sleep(3600.0)
        if cell.deed == "write":
            replace_files({log / "half": lambda _: time.sleep(3600.0)})
        if cell.deed == "listen" and not (
            signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
            and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        ):
            raise RuntimeError("Ctrl-C would be heard")
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "")
    return [Row(cell.radius, threads, "gap", i, cell.radius * 1e-9 / 3.0 + i) for i in range(3)]


def analyse(rows):
    return [(f"{row.radius:g}", f"{row.value:g}") for row in rows]


def plot(table):
    from urbe.report.content import Section, Table

    return [Section("Radii", tables=(Table("Dots", ("radius", "gap"), tuple(table)),), facts=(("Replicates", "3"),))]
