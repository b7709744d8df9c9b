"""Every file with a compiled kernel has mutations."""

from mutations.__main__ import KERNELS, ROOT
from mutations.mutate import count

FOLDER = ROOT / "src/urbe/ambiguity"
NOT_OF_VALUES = {"moments.py", "operator.py"}
"""Loops for variances and for policies, which have tests of their own."""

OUTSIDE_THE_CORPUS = "closed_form/"
"""Formulas, some of which leave the simplex: tests/ambiguity/test_twice_regularised.py holds them to other solvers."""


def test_no_kernel_is_left_out():
    compiled = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.py") if count(path.read_text())}
    drawn = {name for name in compiled if not name.startswith(OUTSIDE_THE_CORPUS)}
    assert set(KERNELS) == drawn - NOT_OF_VALUES
