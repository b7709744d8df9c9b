"""Find the code that the results of an experiment depend on, by following imports, and hash it.

Editing a module that an experiment does not import, directly or through others, leaves its finished cells valid; so do
comments, docstrings and layout anywhere. Imports that compute nothing are ignored: those for type checkers,
`urbe.report`, writers of tables, and the modules that define chapters and cells. Modules imported under a name that is
computed at run time are not found.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import platform
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions, version
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parent.parent

IDLE = ("urbe.report", "urbe.mdp.formats.tables", "urbe.paper.chapter", "urbe.paper.choice", "urbe.sweep.cells")
"""Modules and packages that compute no rows."""


class Sources(NamedTuple):
    """Modules of ours, by name, with their files; and the other installed packages that they import."""

    files: dict[str, Path]
    packages: tuple[str, ...]


def code_digest(experiment: str, *also: str) -> str:
    """A hash of the code on disk that an experiment's rows depend on, and of the versions it runs with.

    Args:
      experiment: name of its module.
      also: other modules that are imported by a name computed at run time.
    """
    return digest(experiment_sources(experiment, *also))


def experiment_sources(experiment: str, *also: str) -> Sources:
    """The modules of urbe and beside the experiment that it depends on, and the packages that they import."""
    found = [_module_sources(module) for module in (experiment, *also)]
    files = {name: path for each in found for name, path in each.files.items()}
    return Sources(files, tuple(sorted({package for each in found for package in each.packages})))


def _module_sources(experiment: str) -> Sources:
    file = importlib.import_module(experiment).__file__
    if file is None:
        raise ValueError(f"The experiment {experiment} has no file, so a change of its code cannot be detected.")
    above = experiment.count(".") + (Path(file).name == "__init__.py")
    return sources(
        experiment, {PACKAGE.name: PACKAGE.parent, experiment.split(".")[0]: Path(file).resolve().parents[above]}
    )


def digest(found: Sources) -> str:
    """A hash of the sources without comments and docstrings, and of the versions of packages."""
    result = hashlib.sha256(repr(sorted(package_versions(found.packages).items())).encode())
    for module, path in sorted(found.files.items()):
        result.update(f"\0{module}\0{_parsed(path.read_bytes()).meaning}".encode())
    return result.hexdigest()


def package_versions(packages: tuple[str, ...]) -> dict[str, str]:
    """Version of Python and of each distribution that provides one of the importable `packages`."""
    names = {name for package in packages for name in _providers().get(package, ())}
    return {"python": platform.python_version()} | {name.lower(): version(name) for name in sorted(names)}


def sources(module: str, roots: Mapping[str, Path]) -> Sources:
    """Finds the modules that `module` depends on, including itself.

    Packages on the way to a module are no part of it: `import a.b` runs `a/__init__.py`, but takes nothing from it.
    `from a import b` does, unless b is a module that `a/__init__.py` does not name.

    Args:
      module: the module to start from.
      roots: top-level packages to follow, and the folder each lies in; other packages are named, not followed.
    """
    files: dict[str, Path] = {}
    packages: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _file(name, roots)
        if path is None or name in files or _is_idle(name):
            continue
        files[name] = path
        for statement in _parsed(path.read_bytes()).imports:
            origin = _origin(statement, path, name)
            top = origin.split(".")[0]
            if top in roots:
                waiting += _targets(origin, statement.member, roots)
            elif top not in sys.stdlib_module_names:
                packages.add(top)
    return Sources(files, tuple(sorted(packages)))


def _is_idle(module: str) -> bool:
    return any(f"{module}.".startswith(f"{idle}.") for idle in IDLE)


class _Import(NamedTuple):
    """`from module import member`, or `import module` when there is no member; and the name it gets.

    The module is as written, with a dot before it for each level of a relative import.
    """

    module: str
    member: str | None
    name: str


class _Parsed(NamedTuple):
    """The imports of a module, and its syntax tree as text, without docstrings."""

    imports: tuple[_Import, ...]
    meaning: str


@cache
def _parsed(content: bytes) -> _Parsed:
    tree = ast.parse(content)
    imports: list[_Import] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            imports += [_Import(alias.name, None, alias.asname or alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            imports += [_Import(module, alias.name, alias.asname or alias.name) for alias in node.names]
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            # also bare strings after assignments, which document attributes
            node.body = [child for child in node.body if not _is_text(child)]
    return _Parsed(tuple(imports), ast.dump(tree))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _targets(origin: str, member: str | None, roots: Mapping[str, Path]) -> list[str]:
    """The modules that `import origin` or `from origin import member` depends on."""
    inner, path = f"{origin}.{member}", _file(origin, roots)
    if member is None or path is None or _file(inner, roots) is None:
        return [origin]
    shadowed = any(
        other.name == member and f"{_origin(other, path, origin)}.{other.member}" != inner
        for other in _parsed(path.read_bytes()).imports
    )
    return [origin, inner] if shadowed else [inner]


def _origin(statement: _Import, path: Path, module: str) -> str:
    """The absolute name of the module that a statement in `module` imports from."""
    return resolve_name(statement.module, module if path.name == "__init__.py" else module.rpartition(".")[0])


def _file(module: str, roots: Mapping[str, Path]) -> Path | None:
    folder = roots.get(module.split(".")[0])
    if folder is None:
        return None
    place = folder.joinpath(*module.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


@cache
def _providers() -> Mapping[str, list[str]]:
    return packages_distributions()
