"""Names are imported when asked for: found, listed, and told to type checkers."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import urbe


def test_every_name_is_there_and_is_listed():
    for name in urbe._HOME:
        assert name in dir(urbe)
        assert getattr(urbe, name) is getattr(sys.modules[urbe._HOME[name]], name)


def test_type_checkers_are_told_the_same_names():
    tree = ast.parse(Path(urbe.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    told = {alias.name for line in block.body for alias in line.names}
    assert told == {*urbe._HOME, "library"}


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = urbe.nonsense


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
