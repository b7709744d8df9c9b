"""Lazily imported names are found, listed, and known to type checkers."""

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import urbe
import urbe.testing
from urbe.lazy import listed_names

PACKAGES = pytest.mark.parametrize("package", [urbe, urbe.testing], ids=lambda package: package.__name__)


@PACKAGES
def test_every_name_is_there_and_is_listed(package):
    for name, (module, own) in listed_names(package.__name__).items():
        assert name in dir(package)
        found = getattr(package, name)
        assert found is (found if isinstance(found, ModuleType) else getattr(sys.modules[module], own))
        assert getattr(package, name) is found


@PACKAGES
def test_import_of_all_names_brings_the_listed_ones(package):
    found = {}
    exec(f"from {package.__name__} import *", found)
    assert found.keys() - {"__builtins__"} == listed_names(package.__name__).keys()


@pytest.mark.parametrize("package", ["agents", "deep", "gym", "simulators"])
def test_import_of_all_names_does_not_hide_urbe(package):
    found = {}
    exec(f"from urbe.{package} import *", found)
    assert found.get("urbe", urbe) is urbe


@PACKAGES
def test_names_are_listed_in_order_and_once(package):
    lines = Path(package.__file__).with_suffix(".pyi").read_text().splitlines()
    names = [line.split() for line in lines if line.startswith("from ") and not line.endswith("*")]
    listed = {line[5] for line in names}
    assert len(listed) == len(names)
    assert all(line[3] == line[5] for line in names)  # what is public is called what it is
    for other in (line.split()[1] for line in lines if line.endswith("import *")):
        assert not listed & {n for n, x in vars(sys.modules[other]).items() if not isinstance(x, ModuleType)}


def test_no_two_packages_list_one_name():
    owners: dict[str, list[str]] = {}
    for package in ("agents", "ambiguity", "deep", "envs", "gym", "planners", "posteriors", "simulators", "solvers"):
        for name in _listed(package):
            owners.setdefault(name, []).append(package)
    assert {name: found for name, found in owners.items() if len(found) > 1} == {}


def _listed(package):
    file = Path(urbe.__file__).parent / package / "__init__.py"
    stub = file.with_suffix(".pyi")
    lines = ast.parse((stub if stub.exists() else file).read_text()).body
    return {
        name.name
        for line in lines
        if isinstance(line, ast.ImportFrom)
        for name in line.names
        if name.asname == name.name
    }


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
