"""The snippets of every page of the documentation run and print what the page shows."""

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if ">>>" in path.read_text()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_snippets_print_what_the_page_says(page):
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried > 0
    assert failed == 0


def test_pages_with_snippets_are_found():
    assert {"posteriors.md", "planning.md", "agents.md"} <= {page.name for page in PAGES}
