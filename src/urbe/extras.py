"""Optional dependencies: which extra installs a package, and the error if it is missing.

Results do not know drawing: they ask here for the module of `urbe.report` that draws them, by its name. This is the one
way up the layers, and it ends in a message where a package is missing.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

EXTRAS = {
    "gymnasium": "gym",
    "jax": "deep",
    "jaxtyping": "deep",
    "matplotlib": "plots",
    "minari": "minari",
    "pandas": "frames",
    "pyarrow": "logs",
    "ray": "ray",
    "stormpy": "storm",
    "tensorboardX": "tensorboard",
    "umbi": "umb",
}
"""The extra of each optional package."""


def need(purpose: str, *packages: str) -> None:
    """Raises if a package is missing, naming the extra that installs it.

    Args:
      purpose: what needs the packages, a plural noun that begins the message.
      packages: import names.

    Raises:
      ModuleNotFoundError: a package is not installed.
    """
    for package in packages:
        if find_spec(package) is None:
            extra = EXTRAS[package]
            raise ModuleNotFoundError(
                f"{purpose} need {package}, which is not installed; install it with: "
                f'pip install "urbe[{extra}]" (or pip install ".[{extra}]" in a clone or unpacked archive).',
                name=package,
            )


def drawings() -> Any:
    """Imports the module that draws results.

    Raises:
      ModuleNotFoundError: matplotlib is not installed.
    """
    need("Figures", "matplotlib")
    return import_module("urbe.report.results")
