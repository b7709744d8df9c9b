"""Import public names on first use, so that `import urbe` is fast.

A package lists its names once, in a stub `__init__.pyi` of lines `from module import name as name`, or `import *` for
all that another package lists: type checkers and editors read them there, and so does Python.
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
    """From each public name to its module and its name there; a package among the names is its own module."""
    return _names_in(Path(str(sys.modules[package].__file__)).with_suffix(".pyi"))


def _names_in(file: Path) -> dict[str, tuple[str, str]]:
    found = {}
    for line in (node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ImportFrom)):
        module = str(line.module)
        other = file.parent.joinpath(*module.split(".")[1:], "__init__.py")  # of a package of urbe
        for alias in line.names:
            names = list(_names_in(other)) if alias.name == "*" else [alias.name]
            found.update({alias.asname or name: (module, name) for name in names})
    return found


def public_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` for a package with a stub."""
    names = listed_names(package)

    def get(name: str) -> Any:
        if name == "__all__":  # of `import *`
            return sorted(names)
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, own = names[name]
        path = f"{module}.{own}"
        found = import_module(path) if _is_module(module, own) else getattr(import_module(module), own)
        setattr(sys.modules[package], name, found)
        return found

    return get, lambda: sorted({*vars(sys.modules[package]), *names})


def _is_module(module: str, name: str) -> bool:
    """Whether a name is a subpackage rather than an attribute of the module."""
    folder = Path(str(getattr(find_spec(module), "origin", ""))).parent
    return (folder / name / "__init__.py").is_file()
