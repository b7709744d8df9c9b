"""Large models: a million states are solved within memory to the stated gap."""

import subprocess
import sys

import numpy as np
import pytest

import urbe

CODE = """
import resource, urbe
mdp = urbe.library.garnet(10**6, 4, 3, seed=0, discount=0.99)
solution = urbe.solve(mdp, urbe.L1Ball(0.5), threads=2)
print(solution.gap, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.slow
def test_a_million_states_within_four_gigabytes():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    gap, peak = map(float, done.stdout.split())
    assert gap <= 1e-6
    assert peak <= 4e9


@pytest.mark.slow
def test_krylov_steps_agree_with_sweeps_on_a_large_grid():
    mdp = urbe.library.grid_world(120, 120, discount=0.9999)
    newton = urbe.solve(mdp, urbe.L1Ball(0.2), urbe.PartialPolicyIteration(1e-4))
    sweeps = urbe.solve(mdp, urbe.L1Ball(0.2), urbe.PartialPolicyIteration(1e-4, linear="never"))
    assert np.abs(newton.value - sweeps.value).max() <= newton.gap + sweeps.gap
    assert (newton.lower <= sweeps.upper).all()
    assert (sweeps.lower <= newton.upper).all()
