"""The code on which an experiment depends: small packages written by the test."""

import sys

import pytest

from urbe.sweep import sources
from urbe.sweep.sources import Sources, code_digest, digest, package_versions

TREE = {
    "lab/__init__.py": "from lab.engine import turn\nfrom lab import unrelated",
    "lab/engine.py": "from lab.gears import ratio\ndef turn(): return ratio",
    "lab/gears.py": "ratio = 2",
    "lab/unrelated.py": "import lab.deep.nobody",
    "lab/deep/__init__.py": "from lab.deep.inner import value",
    "lab/deep/inner.py": "value = 1",
    "lab/deep/value.py": "shadowed = True",
    "lab/deep/nobody.py": "",
    "lab/drawing.py": "",
    "lab/hints.py": "",
    "lab/late.py": "",
    "lab/experiment.py": """
        from __future__ import annotations
        from typing import TYPE_CHECKING
        import json
        import numpy as np
        from lab import gears
        if TYPE_CHECKING:
            from lab import hints
        def run(cell):
            from lab.late import x
    """,
}


@pytest.fixture
def lab(tmp_path):
    """Writes the tree; returns a function from a module's text to the names of what it depends on."""
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_dedent(text))

    def depends(text, name="lab.main"):
        path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
        path.write_text(_dedent(text))
        return sources.sources(name, {"lab": tmp_path})

    return depends


def _dedent(text):
    lines = text.strip("\n").splitlines()
    margin = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    return "\n".join(line[margin:] for line in lines)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", set()),
        ("import lab.engine", {"lab.engine", "lab.gears"}),
        ("from lab import engine", {"lab.engine", "lab.gears"}),
        ("from lab.engine import turn", {"lab.engine", "lab.gears"}),
        ("from lab import turn", {"lab", "lab.engine", "lab.gears", "lab.unrelated", "lab.deep.nobody"}),
        ("import lab", {"lab", "lab.engine", "lab.gears", "lab.unrelated", "lab.deep.nobody"}),
        ("from lab import *", {"lab", "lab.engine", "lab.gears", "lab.unrelated", "lab.deep.nobody"}),
        ("from lab import unrelated", {"lab.unrelated", "lab.deep.nobody"}),
        ("from . import gears", {"lab.gears"}),
        ("from .gears import ratio", {"lab.gears"}),
        ("from .deep.inner import value", {"lab.deep.inner"}),
        ("from lab.deep import value", {"lab.deep", "lab.deep.inner", "lab.deep.value"}),
        ("from lab import nothing_there", {"lab", "lab.engine", "lab.gears", "lab.unrelated", "lab.deep.nobody"}),
        ("def f():\n    import lab.gears", {"lab.gears"}),
        ("class A:\n    def plot(self):\n        import lab.gears", {"lab.gears"}),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import lab.gears", set()),
        ("import typing\nif typing.TYPE_CHECKING:\n    pass\nelse:\n    import lab.gears", {"lab.gears"}),
        ("try:\n    import lab.gears\nexcept ImportError:\n    pass", {"lab.gears"}),
    ],
)
def test_modules_are_found_through_every_kind_of_import(lab, text, found):
    assert set(lab(text).files) == found | {"lab.main"}


def test_relative_imports_count_from_the_package(lab):
    assert set(lab("from ..gears import ratio\nfrom .inner import value", "lab.deep.main").files) == {
        "lab.deep.main", "lab.gears", "lab.deep.inner",
    }  # fmt: skip


def test_how_results_are_shown_does_not_count(lab, tmp_path):
    lab("import urbe.report.style\nfrom urbe.report.numbers import number\nfrom urbe import checks")
    found = sources.sources("lab.main", {"lab": tmp_path, "urbe": sources.PACKAGE.parent})
    assert set(found.files) == {"lab.main", "urbe.checks", "urbe.types"}


def test_cycles_end(lab):
    lab("import lab.second", "lab.first")
    assert set(lab("import lab.first", "lab.second").files) == {"lab.first", "lab.second"}


def test_other_packages_are_named_and_the_standard_library_is_not(lab):
    found = lab("import json, numpy.linalg\nfrom scipy import stats\nimport lab.engine")
    assert found.packages == ("numpy", "scipy")
    versions = package_versions(found.packages)
    assert set(versions) == {"python", "numpy", "scipy"}


def test_only_what_computes_changes_the_digest(lab):
    first = digest(lab("import lab.gears\nx = 1"))
    assert digest(lab('"""Words."""\nimport lab.gears  # why\n\nx   =   1\n"""More words."""')) == first
    assert digest(lab("import lab.gears\nx = 2")) != first
    lab("ratio = 2  # two", "lab.gears")
    assert digest(lab("import lab.gears\nx = 1")) == first
    lab("ratio = 3", "lab.gears")
    assert digest(lab("import lab.gears\nx = 1")) != first


def test_strings_that_are_not_docstrings_count(lab):
    assert digest(lab("def f(): return 'a'")) != digest(lab("def f(): return 'b'"))
    assert digest(lab("def f():\n    'a'")) == digest(lab("def f():\n    'b'"))


def test_other_versions_are_another_digest(lab, monkeypatch):
    found = lab("import numpy")
    first = digest(found)
    monkeypatch.setattr(sources, "version", lambda _: "0.0")
    assert digest(found) != first


def test_an_experiment_outside_the_package_is_found_by_its_file(lab, tmp_path, monkeypatch):
    lab("", "lab.main")
    monkeypatch.syspath_prepend(str(tmp_path))
    digests = []
    for text in ("ratio = 2", "ratio = 3"):
        lab(text, "lab.gears")
        digests.append(code_digest("lab.experiment"))
    monkeypatch.setattr(sys, "modules", {name: m for name, m in sys.modules.items() if name.split(".")[0] != "lab"})
    assert digests[0] != digests[1]


def test_the_price_of_robustness_depends_on_solvers_and_not_on_how_it_is_shown():
    found = sources.sources("urbe.paper.price_of_robustness.run", {"urbe": sources.PACKAGE.parent})
    assert {"urbe.ambiguity.l1", "urbe.solvers.solve", "urbe.paper.models"} <= set(found.files)
    for name in found.files:
        assert not name.startswith(("urbe.cli", "urbe.report", "urbe.mdp.formats", "urbe.runs", "urbe.sweep"))
    assert "urbe" not in found.files
    assert "urbe.paper" not in found.files
    assert "urbe.paper.chapter" not in found.files
    assert "urbe.paper.price_of_robustness.figures" not in found.files
    assert set(found.packages) >= {"numpy", "scipy", "numba"}
    assert "matplotlib" not in found.packages
    assert isinstance(found, Sources)
