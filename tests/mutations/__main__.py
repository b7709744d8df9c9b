"""Breaks the compiled kernels on purpose and counts the models of the corpus until a claim fails.

    cd tests; python -m mutations --count 5 --seed 0 [--until 5] [--only shared_budget/l2.py ...]

A mutation changes one operator, comparison, constant or choice in the compiled code of a kernel, drawn from the seed.
It is caught when a claim of some solution becomes false, an exception is raised, or the solver does not return.
Mutations that survive are printed with their line: each is either equivalent (a starting point, a tie that may go both
ways) or a hole in the corpus. Kernels run interpreted: compiling each broken copy would take longer than its models.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from mutations.mutate import Mutation, mutations

ROOT = Path(__file__).parents[2]
SHARED = ("s_l1", "s_l2", "s_linf", "s_kl")
KERNELS = {
    "exact.py": ("exact",),
    "l1.py": ("l1", "optimistic l1"),
    "l1_dense.py": ("l1", "long l1"),
    "l1_search.py": ("long l1",),
    "weighted_l1.py": ("weighted_l1", "optimistic weighted_l1"),
    "l2.py": ("l2", "optimistic l2"),
    "interval.py": ("interval", "linf"),
    "kl.py": ("kl", "optimistic kl"),
    "likelihood.py": ("likelihood", "optimistic likelihood"),
    "chi2.py": ("chi2", "optimistic chi2"),
    "contamination.py": ("contamination",),
    "wasserstein_kernels.py": ("wasserstein", "optimistic wasserstein"),
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
    parser.add_argument("--until", type=int, help="go on to the next kernel once so many were caught")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=KERNELS, default=list(KERNELS))
    parser.add_argument("--models", type=int, default=300, help="of each family")
    options = parser.parse_args()
    tried: dict[str, int] = {}
    survived: dict[str, int] = {}
    for kernel in options.only:
        path = ROOT / "src/urbe/ambiguity" / kernel
        possible = mutations(path.read_text())
        rng = np.random.default_rng(options.seed)
        for at in rng.choice(len(possible), min(options.count, len(possible)), replace=False):
            verdict = _run(kernel, possible[at], options.models)
            tried[kernel] = tried.get(kernel, 0) + 1
            survived[kernel] = survived.get(kernel, 0) + verdict.startswith("SURVIVED")
            print(f"{kernel}:{possible[at].line}: {possible[at].what}: {verdict}", flush=True)
            if tried[kernel] - survived[kernel] == options.until:
                break
    print("kernel | tried | caught | survived")
    for kernel, count in tried.items():
        print(f"{kernel} | {count} | {count - survived[kernel]} | {survived[kernel]}")


def _run(kernel: str, mutation: Mutation, models: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", Path(folder, "src"), ignore=shutil.ignore_patterns("__pycache__"))
        Path(folder, "src/urbe/ambiguity", kernel).write_text(mutation.text)
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([f"{folder}/src", str(ROOT / "tests")]),
            "NUMBA_DISABLE_JIT": "1",
        }
        command = [sys.executable, "-W", "ignore", str(Path(__file__).parent / "notice.py"), str(models)]
        done = subprocess.run(
            [*command, *KERNELS[kernel]], env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode == -signal.SIGALRM:
        return "caught: does not return"
    if done.returncode not in (0, 1):
        return f"caught: {done.stderr.strip().splitlines()[-1]}"
    return done.stdout.strip()


if __name__ == "__main__":
    main()
