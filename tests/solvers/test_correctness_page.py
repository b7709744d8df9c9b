"""docs/correctness.md names existing files, and all tests of solvers and sets."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = set(re.findall(r"`(tests/[\w/]+\.py)`", (ROOT / "docs" / "correctness.md").read_text()))


def test_every_file_named_exists():
    assert [name for name in sorted(NAMED) if not (ROOT / name).is_file()] == []


def test_every_test_of_sets_operators_and_solvers_is_named():
    present = {
        str(path.relative_to(ROOT))
        for kind in ("ambiguity", "variance", "solvers")
        for path in (ROOT / "tests" / kind).glob("test_*.py")
    }
    assert present - NAMED == {"tests/solvers/test_correctness_page.py"}
