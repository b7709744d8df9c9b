"""Runs all measurements and writes the table: `python -m benchmarks.compare --write docs/benchmarks.md`."""

from __future__ import annotations

import argparse
import platform
import re
import sys
import warnings
from datetime import date
from importlib.metadata import version
from pathlib import Path

from benchmarks import agents, measures
from benchmarks.measures import Line
from benchmarks.page import FIRST, read_section, write_section

PACKAGES = ("numpy", "numba", "jax", "mdpsolver", "quantecon", "pymdptoolbox", "stable-baselines3", "torch")

SECTION = """\
# Benchmarks

This page compares the speed of urbe with other libraries. It was written by `make bench`
on {day}: {machine}, Python {python}, {packages}.
One thread unless stated. Every figure is the minimum over repeats, with peers and urbe taking turns in the same run;
ratios are of CPU time. Building models is not timed.

Models: **sparse** is a Garnet with 2000 states, 10 actions and 20 successors, **dense** one with 500 states, 10
actions and 500 successors; discount 0.99, L1 radius 0.5, tolerance 1e-6. **Slow mixing** is a Garnet of 2000 states
whose successors lie within 15 states. The peers (mdpsolver, QuantEcon, pymdptoolbox) solve the *nominal* model: no
robust solver can be installed from PyPI. "Off by" is the distance of their values from urbe's; pymdptoolbox stops on
the span and returns unshifted values. A second solve of an mdpsolver model starts from the first one's policy, so each
of its solves has a fresh model. urbe's solves include certified bounds. Residual-stopped modified policy iteration runs
on urbe's own kernels, with the best of several numbers of evaluation sweeps. Tabular agents are compared with
`benchmarks/naive.py`: NumPy, one replicate at a time, replanning from scratch before each episode. **Deep** agents
learn CartPole with the network 4-128-128-128-2, mini-batches of 256, one gradient step per step, one thread
(`benchmarks/deep.py`). For **adaptive** agents the cost of a training step is compared with DQN-URBE, and the time of a
step of a deployment is measured (`benchmarks/adaptive.py`).

| measurement | result | target | | detail |
|---|---:|---:|---|---|
{lines}
"""


def main() -> None:
    """Measures, prints, and writes the page when asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table to a Markdown page")
    parser.add_argument(
        "--only",
        nargs="*",
        metavar="NAME",
        help="solves, sweeps, slow, threads, variance, large, start, systems, agents, deep, adaptive; other lines "
        "of the page stay",
    )
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="mdptoolbox")
    groups = {
        "solves": lambda: measures.solves(options.repeats),
        "sweeps": lambda: measures.sweeps(options.repeats),
        "slow": lambda: measures.slow_mixing(5),
        "threads": lambda: measures.threads(options.repeats),
        "variance": lambda: measures.variance(options.repeats),
        "large": lambda: measures.large(10**6, 4.0) + measures.large(10**7, 12.0),
        "start": lambda: measures.cold_start(5),
        "systems": measures.systems,
        "agents": lambda: agents.agents(options.repeats),
        "deep": _deep,
        "adaptive": _adaptive,
    }
    lines: list[Line] = []
    for name, measure in groups.items():
        if options.only is None or name in options.only:
            for line in measure():
                lines.append(line)
                print(_row(line), flush=True)
    if options.write is not None:
        page, whole = read_section(options.write, FIRST), options.only is None
        write_section(options.write, _section(lines) if whole or not page else _renewed(page, lines))
        print(f"Written to {options.write}", file=sys.stderr)


def _deep() -> list[Line]:
    from benchmarks.deep import deep_agents  # JAX reads its settings when it is imported

    return deep_agents()


def _adaptive() -> list[Line]:
    from benchmarks.adaptive import adaptive_agents  # as does this

    return adaptive_agents()


def _row(line: Line) -> str:
    return f"| {line.what} | {line.found:.3g} | {line.target} | {_verdict(line)} | {line.detail} |"


def _verdict(line: Line) -> str:
    if not line.target:
        return ""
    relation, limit = line.target.split()
    met = line.found <= float(limit) if relation == "<=" else line.found >= float(limit)
    return "met" if met else "**missed**"


def _renewed(section: str, measured: list[Line]) -> str:
    """Returns the section of an earlier run with the measured lines in the place of old ones, and their date."""
    new: dict[str, list[str]] = {}
    for line in measured:
        new.setdefault(_subject(f"| {line.what} |"), []).append(_row(line))
    names = ", ".join(dict.fromkeys(f"`{line.what.split(':')[0]}`" for line in measured))
    lines: list[str] = []
    for row in section.strip().splitlines():
        subject = _subject(row) if row.startswith("| ") else ""
        if subject not in new:
            lines.append(row)
        elif new[subject][0] not in lines:  # all lines of a subject, in the place of the first one
            lines += new[subject]
    lines += [row for rows in new.values() if rows[0] not in lines for row in rows]
    lines = [row for row in lines if not (row.startswith("Measured on ") and row.endswith(f": {names}."))]
    at = next(k for k, row in enumerate(lines) if row.startswith("| measurement"))
    dated = [*lines[:at], f"Measured on {date.today().isoformat()}: {names}.", "", *lines[at:]]
    return re.sub("\n{3,}", "\n\n", "\n".join(dated))


def _subject(row: str) -> str:
    """Returns the name of a row without the peer that it is compared with."""
    return row.split("|")[1].split(" / ")[0].strip()


def _section(lines: list[Line]) -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return SECTION.format(
        day=date.today().isoformat(),
        machine=f"{platform.machine()}, {_cores()} cores",
        python=platform.python_version(),
        packages=packages,
        lines="\n".join(map(_row, lines)),
    )


def _cores() -> int:
    import os

    return len(os.sched_getaffinity(0))


if __name__ == "__main__":
    main()
