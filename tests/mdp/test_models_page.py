"""The snippets of docs/models.md run and print what the page shows."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def test_snippets_print_what_the_page_says() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert tried > 20
    assert failed == 0
