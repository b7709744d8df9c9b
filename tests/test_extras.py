"""Missing optional packages: the message names the extra and a command that installs it."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from urbe import extras

HIDDEN = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == sys.argv[1] else find(name, package)
try:
    __import__(sys.argv[2])
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.parametrize("package", ["jax", "jaxtyping"])
@pytest.mark.parametrize(("module", "what"), [("urbe.deep", "Deep agents"), ("urbe.simulators", "Simulators")])
def test_importing_a_package_without_its_extra_says_what_to_install(package, module, what):
    command = [sys.executable, "-c", HIDDEN, package, module]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        f"{what} need {package}, which is not installed; install it with: "
        'pip install "urbe[deep]" (or pip install ".[deep]" in a clone or unpacked archive).'
    )


def test_what_is_installed_is_not_refused():
    extras.need("Tests", "gymnasium", "jax")


def test_extras_bring_the_packages_they_are_named_for():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    for package, extra in extras.EXTRAS.items():
        assert any(line.startswith(package) for line in project["optional-dependencies"][extra])
