"""Public names that are imported on first use, so that `import urbe` is fast.

A package lists its names once, in a stub `__init__.pyi` of lines `from module import name as name`: type checkers and
editors read them there, and so does Python.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def listed_names(package: str) -> dict[str, tuple[str, str]]:
    """Maps each public name to its module and its name there; a package among the names is its own module."""
    stub = Path(str(sys.modules[package].__file__)).with_suffix(".pyi")
    lines = [node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: (str(line.module), alias.name) for line in lines for alias in line.names}


def public_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package with a stub."""
    names = listed_names(package)

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, own = names[name]
        path = f"{module}.{own}"
        found = import_module(path) if _is_module(module, own) else getattr(import_module(module), own)
        setattr(sys.modules[package], name, found)
        return found

    return get, lambda: sorted({*vars(sys.modules[package]), *names})


def _is_module(module: str, name: str) -> bool:
    """Whether a name is a module rather than an attribute of one."""
    folder = Path(str(getattr(find_spec(module), "origin", ""))).parent
    return (folder / name / "__init__.py").is_file()
