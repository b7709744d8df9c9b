"""Pages of the API reference, one for each package, from docstrings and signatures."""

from __future__ import annotations

import argparse
import dataclasses
import enum
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from docstrings import prose, to_markdown

PACKAGES = {
    "urbe.ambiguity": "Ambiguity sets",
    "urbe.mdp": "Models and logs",
    "urbe.mdp.library": "Library of models",
    "urbe.mdp.formats": "File formats of models and logs",
    "urbe.solvers": "Solvers and certificates",
    "urbe.posteriors": "Posteriors",
    "urbe.planners": "Safe policies from data",
    "urbe.variance": "Posterior variance of values",
    "urbe.belief": "Beliefs over a few models",
    "urbe.agents": "Tabular agents",
    "urbe.envs": "Finite environments",
    "urbe.simulators": "Simulators with named parameters",
    "urbe.gym": "Gymnasium",
    "urbe.deep": "Deep agents",
    "urbe.evaluation": "Returns under perturbed dynamics",
    "urbe.statistics": "Statistics over seeds",
    "urbe.runs": "Runs and agents on disk",
    "urbe.sweep": "Sweeps on many processes",
    "urbe.report": "The report",
    "urbe.paper": "Reproduction of the paper",
    "urbe.testing": "Contracts for extensions",
}
"""Each with a page. A name is on the page of the deepest of these packages that defines it."""

LISTED = ("urbe.belief", "urbe.gym", "urbe.testing", "urbe")
"""Packages that list their names in a stub."""

MODULES = (
    "urbe.ambiguity.operator", "urbe.ambiguity.nature", "urbe.ambiguity.rectangular", "urbe.ambiguity.row_nature",
    "urbe.mdp.rows", "urbe.mdp.labels", "urbe.tables",
    "urbe.posteriors.beliefs", "urbe.posteriors.radius",
    "urbe.planners.base", "urbe.planners.belief_mdp",
    "urbe.agents.learner", "urbe.agents.choose", "urbe.agents.locate",
    "urbe.envs.base", "urbe.envs.finite",
    "urbe.simulators.limits",
    "urbe.deep.paper", "urbe.deep.core.variances", "urbe.deep.training.callbacks",
    "urbe.evaluation.robustness", "urbe.evaluation.adaptation", "urbe.evaluation.trace", "urbe.evaluation.regret",
    "urbe.statistics.verdicts",
    "urbe.runs.directory", "urbe.runs.checkpoint",
    "urbe.sweep.cells", "urbe.sweep.launcher", "urbe.sweep.local", "urbe.sweep.run",
    "urbe.report.content", "urbe.report.page", "urbe.report.claims",
    "urbe.paper.chapter", "urbe.paper.results",
    "urbe.rng", "urbe.atomic", "urbe.memory",
)  # fmt: skip
"""Modules whose own public names belong to the reference although no package re-exports them."""


class Entry(NamedTuple):
    """One documented name: its shortest public path, where it is defined, and the object."""

    path: str
    home: str
    found: Any


def write_reference(folder: Path, bibliography: Path) -> list[str]:
    """Writes all pages into `folder`, and returns their names in order, without suffix."""
    folder.mkdir(parents=True, exist_ok=True)
    keys = set(re.findall(r"^@\w+\{(\w+),", bibliography.read_text(), flags=re.MULTILINE))

    def cite(key: str) -> str:
        return f"[[{key}]](../references.md#{key.lower()})" if key in keys else f"\\[{key}\\]"

    entries = list(_entries())
    pages = {"index": _index(entries), "command_line": _command_line()}
    for package, title in PACKAGES.items():
        mine = [entry for entry in entries if _package(entry.home) == package]
        about = to_markdown(inspect.getdoc(import_module(package)) or "", cite)
        body = "\n\n".join(_shown(entry, cite) for entry in sorted(mine, key=_order))
        pages[package] = f"# {title}: `{package}`\n\n{about}\n\n{body}\n"
    mine = [entry for entry in entries if _package(entry.home) == ""]
    pages["basics"] = "# Randomness, files and memory\n\n" + "\n\n".join(_shown(entry, cite) for entry in mine) + "\n"
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text)
    return list(pages)


def write_references(path: Path, bibliography: Path) -> None:
    """A page of all that is cited."""
    parts = ["# References\n"]
    for key, body in re.findall(r"^@\w+\{(\w+),\n(.*?)^\}", bibliography.read_text(), flags=re.MULTILINE | re.DOTALL):
        fields = dict(re.findall(r"(\w+)\s*=\s*\{(.*)\},?$", body, flags=re.MULTILINE))
        where = next((fields[name] for name in ("journal", "booktitle", "publisher", "school", "howpublished", "note")
                      if name in fields), "")  # fmt: skip
        text = ". ".join(fields[name] for name in ("author", "title") if name in fields)
        cited = ", ".join(each for each in (where, fields.get("year", "")) if each)
        text = re.sub(r"[{}]", "", f"{text}. {cited}." if cited else text).replace("--", "–").replace("\\&", "&")
        parts.append(f"({key.lower()})=\n**[{key}]** {prose(text, str)}\n")
    path.write_text("\n".join(parts))


def documented() -> set[str]:
    """The public paths that the reference has."""
    return {entry.path for entry in _entries()}


def _entries() -> Iterator[Entry]:
    """Every public name once, under its shortest path."""
    seen: set[int] = set()
    for holder in ("urbe", *PACKAGES, *MODULES):
        module = import_module(holder)
        names = dir(module) if holder in LISTED else vars(module)
        for name in names:
            found = getattr(module, name)
            home = getattr(found, "__module__", "") or ""
            if name.startswith("_") or isinstance(found, ModuleType) or not home.startswith("urbe"):
                continue
            if holder in MODULES and home != holder:
                continue
            if id(found) not in seen and (inspect.isclass(found) or callable(found)):
                seen.add(id(found))
                yield Entry(f"{holder}.{name}", home, found)


def _order(entry: Entry) -> tuple[int, str]:
    """What most people need first: names of `urbe`, then of the package, then of its modules."""
    return entry.path.count("."), entry.path.casefold()


def _package(home: str) -> str:
    return max((each for each in PACKAGES if home == each or home.startswith(each + ".")), key=len, default="")


def _shown(entry: Entry, cite: Any) -> str:
    """A heading, so that the contents of a page list it, and the object with its members."""
    kind = "class" if inspect.isclass(entry.found) else "function"
    name = entry.path.rpartition(".")[2]
    body = [_doc(entry.found, cite)]
    if kind == "class":
        body += [_member(entry, name, member, cite) for name, member in _members(entry.found)]
    inner = "\n\n".join(filter(None, body))
    where = f"Source: `src/{entry.home.replace('.', '/')}.py`" if "." in entry.home else ""
    directive = _directive(kind, f"{entry.path}{_signature(entry.found)}", f"{inner}\n\n{where}", 6)
    return f"## `{name}`\n\n{directive}"


def _directive(kind: str, signature: str, body: str, ticks: int) -> str:
    fence = "`" * ticks
    return f"{fence}{{py:{kind}}} {signature}\n\n{body}\n{fence}"


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Its own public methods and properties that say what they do, and those of its bases here."""
    if issubclass(cls, enum.Enum):
        return
    shown: set[str] = set()
    for base in cls.__mro__:
        if not base.__module__.startswith("urbe"):
            continue
        for name, member in vars(base).items():
            plain = member.__func__ if isinstance(member, staticmethod | classmethod) else member
            if name.startswith("_") or name in shown or not isinstance(plain, FunctionType | property):
                continue
            if inspect.getdoc(plain):
                shown.add(name)
                yield name, member


def _member(entry: Entry, name: str, member: Any, cite: Any) -> str:
    if isinstance(member, property):
        return _directive("property", f"{entry.path}.{name}", _doc(member, cite), 5)
    kind = {staticmethod: "staticmethod", classmethod: "classmethod"}.get(type(member), "method")
    plain = getattr(entry.found, name) if kind != "method" else member
    return _directive(
        kind, f"{entry.path}.{name}{_signature(plain, skip_self=kind == 'method')}", _doc(member, cite), 5
    )


def _doc(found: Any, cite: Any) -> str:
    text = inspect.getdoc(found) or ""
    if inspect.isclass(found):
        if "__doc__" not in vars(found) or not vars(found)["__doc__"] or text.startswith(f"{found.__name__}("):
            text = ""
        if issubclass(found, enum.Enum):
            text += "\n\nOne of " + ", ".join(f"`{each.name}`" for each in found) + "."
    return to_markdown(text, cite)


def _signature(found: Any, *, skip_self: bool = False) -> str:
    if inspect.isclass(found) and (issubclass(found, enum.Enum | Exception) or getattr(found, "_is_protocol", False)):
        return ""
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return "(...)"
    parameters = list(signature.parameters.values())[1 if skip_self else 0 :]
    shown = [each.replace(annotation=_annotation(each.annotation), default=_default(each)) for each in parameters]
    returns = _annotation(signature.return_annotation)
    if inspect.isclass(found):
        returns = inspect.Signature.empty
    text = str(signature.replace(parameters=shown, return_annotation=returns))
    return re.sub(r"(?<=: )'([^']*)'|(?<=-> )'([^']*)'", lambda each: each[1] or each[2], text)


class _Text:
    """Printed without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _annotation(found: Any) -> Any:
    """Without the shapes of jaxtyping, which a parser of Python refuses; docstrings have them."""
    if found is inspect.Parameter.empty:
        return found
    text = found if isinstance(found, str) else inspect.formatannotation(found)
    text = re.sub(r"ForwardRef\('([^']*)'[^)]*\)", r"\1", text)
    text = re.sub(r"\b\w+\[(\w+), [\"'][^\"']*[\"']\]", r"\1", text)
    return _Text(re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", text))


def _default(parameter: inspect.Parameter) -> Any:
    if parameter.default is inspect.Parameter.empty:
        return parameter.default
    if isinstance(parameter.default, type(dataclasses.MISSING)):
        return _Text("...")
    text = repr(parameter.default)
    text = re.sub(r"<factory>|<function (\w+)[^>]*>|<class '(?:\w+\.)*(\w+)'>|<(?:\w+\.)*(\w+\.\w+): [^>]*>",
                  lambda each: each[1] or each[2] or each[3] or "...", text)  # fmt: skip
    return _Text("..." if len(text) > 60 or "<" in text else text)


def _index(entries: list[Entry]) -> str:
    parts = [
        "# API reference\n\nEvery public name, from the docstrings. `import urbe` gives the names of the last table; "
        "other packages are imported by themselves, as in `from urbe import deep`. Commands of the shell are on "
        "[a page of their own](command_line.md).\n\n| package | content |\n|---|---|"
    ]
    parts += [f"| [`{package}`]({package}.md) | {title} |" for package, title in PACKAGES.items()]
    parts += ["| [`urbe.rng`, `urbe.atomic`, `urbe.memory`](basics.md) | Randomness, files and memory |"]
    parts += ["\n## Names of `urbe`\n\n| name | description |\n|---|---|"]
    for entry in sorted(entries, key=lambda each: each.path.casefold()):
        if entry.path.count(".") == 1:
            text = " ".join((inspect.getdoc(entry.found) or "").split("\n\n")[0].split())
            text = prose(text, lambda key: f"\\[{key}\\]")
            parts.append(f"| {{py:obj}}`{entry.path}` | {text} |")
    return "\n".join(parts) + "\n"


def _command_line() -> str:
    from urbe.cli.main import build_parser

    parts = ["# The command line\n\nWhat each command prints when asked for `--help`."]
    main = build_parser()
    commands = next(each.choices for each in main._actions if isinstance(each, argparse._SubParsersAction))
    for name, parser in {"urbe": main, **{f"urbe {name}": each for name, each in commands.items()}}.items():
        parts.append(f"## `{name}`\n\n```text\n{parser.format_help().rstrip()}\n```")
    return "\n\n".join(parts) + "\n"
