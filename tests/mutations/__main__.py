"""Breaks kernels, solvers and certificates on purpose and counts the models of the corpus until a claim fails.

    cd tests; python -m mutations --count 5 --seed 0 [--until 5] [--only shared_budget/l2.py ...]
    cd tests; python -m mutations --chosen [--only solvers/certificate.py ...]

A mutation changes one operator, comparison, constant or choice in the compiled code of a kernel, drawn from the seed;
those of `mutations.chosen` were chosen by reading. It is caught when a claim of some solution becomes false, an
exception is raised, or the solver does not return. Mutations that survive are printed with their line: each is either
equivalent (a starting point, a tie that may go both ways) or a hole in the corpus. Kernels run interpreted: compiling
each broken copy would take longer than its models.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mutations.chosen import CHOSEN
from mutations.mutate import mutations

ROOT = Path(__file__).parents[2]
SOURCE, AMBIGUITY = ROOT / "src/urbe", "ambiguity/"
SHARED = ("s_l1", "s_l2", "s_linf", "s_kl")
KERNELS = {
    "exact.py": ("exact", "dense exact"),
    "l1.py": ("l1", "optimistic l1"),
    "l1_dense.py": ("dense l1", "l1"),
    "l1_search.py": ("long l1",),
    "weighted_l1.py": ("weighted_l1", "optimistic weighted_l1"),
    "l2.py": ("l2", "optimistic l2"),
    "interval.py": ("interval", "linf"),
    "kl.py": ("kl", "optimistic kl"),
    "likelihood.py": ("likelihood", "optimistic likelihood"),
    "chi2.py": ("chi2", "optimistic chi2"),
    "contamination.py": ("contamination",),
    "wasserstein_kernels.py": ("wasserstein", "optimistic wasserstein", "dense wasserstein"),
    "scenario_nature.py": ("scenarios", "value_at_risk", "conditional_value_at_risk"),
    "shared_budget/l1.py": ("s_l1",),
    "shared_budget/l2.py": ("s_l2",),
    "shared_budget/linf.py": ("s_linf",),
    "shared_budget/kl.py": ("s_kl",),
    "shared_budget/improve.py": SHARED,
    "shared_budget/evaluate.py": SHARED,
    "shared_budget/gather.py": SHARED,
    "budget_search.py": ("weighted_l1", "wasserstein"),
    "block_sweep.py": ("kl", "likelihood", "long kl"),
    "exponential.py": ("kl", "likelihood"),
    "sweep.py": ("l2", "weighted_l1"),
}


def main() -> None:
    """Draws, runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5, help="mutations of each kernel")
    parser.add_argument("--until", type=int, help="go on to the next file once so many were caught")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chosen", action="store_true", help="mutations chosen by reading instead of drawn ones")
    parser.add_argument("--only", nargs="*", help="files, as the tables list them")
    parser.add_argument("--models", type=int, default=300, help="of each family")
    options = parser.parse_args()
    tried: dict[str, int] = {}
    survived: dict[str, int] = {}
    for trial in _chosen() if options.chosen else _drawn(options.count, options.seed):
        file = trial.path.removeprefix(AMBIGUITY)
        known = tried.setdefault(file, 0), survived.setdefault(file, 0)
        if (options.only and file not in options.only) or known[0] - known[1] == options.until:
            continue
        verdict = _run(trial, options.models)
        tried[file] += 1
        survived[file] += verdict.startswith("SURVIVED")
        print(f"{file}: {trial.what}: {verdict}", flush=True)
    print("file | tried | caught | survived")
    for file, count in tried.items():
        if count:
            print(f"{file} | {count} | {count - survived[file]} | {survived[file]}")


class Trial(NamedTuple):
    """A file in `src/urbe`, its changed text, what was changed, and the families that should notice."""

    path: str
    text: str
    what: str
    families: tuple[str, ...]


def _drawn(count: int, seed: int) -> Iterator[Trial]:
    for kernel, families in KERNELS.items():
        path = AMBIGUITY + kernel
        possible = mutations((SOURCE / path).read_text())
        rng = np.random.default_rng(seed)
        for at in rng.choice(len(possible), min(count, len(possible)), replace=False):
            yield Trial(path, possible[at].text, f"line {possible[at].line}: {possible[at].what}", families)


def _chosen() -> Iterator[Trial]:
    for each in CHOSEN:
        text = (SOURCE / each.path).read_text()
        what = f"{each.before!r}  ->  {each.after!r}"
        yield Trial(each.path, text.replace(each.before, each.after), what, each.families)


def _run(trial: Trial, models: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", Path(folder, "src"), ignore=shutil.ignore_patterns("__pycache__"))
        Path(folder, "src/urbe", trial.path).write_text(trial.text)
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([f"{folder}/src", str(ROOT / "tests")]),
            "NUMBA_DISABLE_JIT": "1",
        }
        command = [sys.executable, "-W", "ignore", str(Path(__file__).parent / "notice.py"), str(models)]
        done = subprocess.run([*command, *trial.families], env=environment, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGALRM:
        return "caught: does not return"
    if done.returncode not in (0, 1):
        return f"caught: {done.stderr.strip().splitlines()[-1]}"
    return done.stdout.strip()


if __name__ == "__main__":
    main()
