"""Names are imported when asked for: found, listed, and told to type checkers."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import urbe
import urbe.testing

PACKAGES = pytest.mark.parametrize("package", [urbe, urbe.testing], ids=lambda package: package.__name__)


@PACKAGES
def test_every_name_is_there_and_is_listed(package):
    for name in package._HOME:
        assert name in dir(package)
        assert getattr(package, name) is getattr(sys.modules[package._HOME[name]], name)


@PACKAGES
def test_type_checkers_are_told_the_same_names(package):
    tree = ast.parse(Path(package.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    told = {alias.name for line in block.body for alias in line.names}
    assert told - {"library"} == {*package._HOME}


def test_a_name_that_does_not_exist_is_an_attribute_error():
    for package in (urbe, urbe.testing):
        with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nonsense'"):
            _ = package.nonsense


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, urbe; print([m for m in ('numpy', 'numba', 'scipy', 'urbe.mdp') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_asking_for_a_solver_loads_no_file_reader_planner_or_agent():
    code = (
        "import sys, urbe; urbe.solve, urbe.MDP, urbe.L1Ball; "
        "unwanted = ('urbe.mdp.formats', 'urbe.runs', 'urbe.planners', 'urbe.posteriors', 'urbe.agents'); "
        "print([m for m in unwanted if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_contract_of_sets_loads_no_agent_and_no_simulator():
    code = (
        "import sys; from urbe.testing import check_ambiguity_set; "
        "print([m for m in ('jax', 'urbe.agents', 'urbe.simulators') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
