"""The snippets of docs/planning.md run and print what the page says."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "planning.md"


def test_snippets_print_what_the_page_says():
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert tried > 12
    assert failed == 0
