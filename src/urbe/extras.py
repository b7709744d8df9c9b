"""Optional dependencies: which extra brings a package, and a message that says how to get it."""

from __future__ import annotations

from importlib.util import find_spec

EXTRAS = {
    "gymnasium": "gym",
    "jax": "deep",
    "jaxtyping": "deep",
    "matplotlib": "plots",
    "pyarrow": "logs",
    "ray": "ray",
    "tensorboardX": "tensorboard",
}
"""The extra of each optional package."""


def need(purpose: str, *packages: str) -> None:
    """Raises when a package is missing, naming the extra that brings it.

    Args:
      purpose: what needs the packages, as the subject of a sentence in the plural.
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
