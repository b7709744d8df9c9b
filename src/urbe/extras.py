"""Optional dependencies: the extra of each package, and a message on how to install it.

Results depend on neither pandas nor matplotlib: they get data frames, and by its name the module of `urbe.report` that
draws them, from here. This is the only upward dependency between layers; a missing package raises an error.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    """Raises if a package is missing, and names the extra that provides it.

    Args:
      purpose: the purpose of the packages, as a plural subject of a sentence.
      packages: names to import.

    Raises:
      ModuleNotFoundError: one is not installed.
    """
    for package in packages:
        if find_spec(package) is None:
            extra = EXTRAS[package]
            raise ModuleNotFoundError(
                f"{purpose} need {package}, which is not installed; install it with: "
                f'pip install "urbe[{extra}]" (or pip install ".[{extra}]" in a clone or unpacked archive).',
                name=package,
            )


def data_frame(table: Mapping[str, Any]) -> Any:
    """A pandas frame of some columns.

    Raises:
      ModuleNotFoundError: pandas is not installed.
    """
    need("Data frames", "pandas")
    return import_module("pandas").DataFrame(dict(table))


def drawings() -> Any:
    """The module that draws results.

    Raises:
      ModuleNotFoundError: matplotlib is not installed.
    """
    need("Figures", "matplotlib")
    return import_module("urbe.report.results")
