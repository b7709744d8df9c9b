"""A real browser (Debian's chromium, driven by Playwright), and a report with every element."""

import shutil
from pathlib import Path

import pytest

from fixtures import book
from urbe.report.export import figure_files
from urbe.report.page import render

NAMES = ("chromium", "chromium-browser", "google-chrome")
FACTS = (("Machine", "x86_64, 2 cores"), ("Scale", "quick"))
WORDS = (("greedy", "Takes the action with the highest value."), ("noisy", "Explores."))
PAGES = ("index", "curves", "maps")
LEAD = ("A lead that says what this is, in a sentence that is long enough to wrap on a phone.",)


@pytest.fixture(scope="session")
def browser():
    """One for all tests."""
    playwright = pytest.importorskip("playwright.sync_api", reason='Playwright is missing: pip install "urbe[dev]"')
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("No chromium on PATH; tests/browser/install_chromium (part of `make test`) installs it.")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the book of everything, with its files."""
    folder = tmp_path_factory.mktemp("site")
    chapters = book.chapters()
    writers, files = figure_files(chapters)
    (folder / "figures").mkdir()
    (folder / "rows").mkdir()
    for path in writers:
        (folder / path).write_bytes(b"stands for the file")  # tests/report/test_export.py reads real ones
    for chapter in chapters:
        (folder / "rows" / f"{chapter.name}.csv").write_text("a,b\n1,2\n")
        files[chapter.name] = (f"rows/{chapter.name}.csv",)
    pages = render("A small book", LEAD, FACTS, chapters, glossary=WORDS, files=files)
    for name, text in pages.items():
        (folder / name).write_text(text)
    return folder


class Visit:
    """An open page, with its console messages and requests.

    Attributes:
      page: Playwright's.
      said: errors and messages of the console.
      asked: addresses of all requests.
    """

    def __init__(self, context, path: Path) -> None:
        self.page = context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())


@pytest.fixture(scope="session")
def opened(browser, site):
    """Every page by its name, opened once, for tests that leave nothing behind."""
    with browser.new_context(viewport={"width": 1100, "height": 900}, color_scheme="light") as context:
        yield {name: Visit(context, site / f"{name}.html") for name in PAGES}


@pytest.fixture
def visit(browser):
    """Opens a page in a fresh profile: `visit(path, width=1100, scheme="light", script=True)`."""
    contexts = []

    def go(path, width=1100, scheme="light", script=True):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=script
        )
        contexts.append(context)
        return Visit(context, path)

    yield go
    for context in contexts:
        context.close()
