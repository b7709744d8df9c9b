"""The site of the documentation, built and opened from disk in a real browser."""

import re
import warnings
from functools import cache
from html.parser import HTMLParser
from urllib.parse import unquote, urlparse

import pytest

from fixtures.site_tools import tool

pytestmark = pytest.mark.slow  # building takes about half a minute

PAGES = (
    "index.html", "tutorials/research.html", "reference/urbe.ambiguity.html", "theory/robust.html", "correctness.html",
    "reference/command_line.html", "benchmarks.html",
)  # fmt: skip
WIDTHS = (360, 800, 1400)


@pytest.fixture(scope="session")
def docs(tmp_path_factory):
    """The folder of the site; building it fails on any warning."""
    pytest.importorskip("sphinx", reason='Sphinx is missing: pip install "urbe[docs]"')
    output = tmp_path_factory.mktemp("docs") / "site"
    with warnings.catch_warnings():  # extensions of Sphinx use what its next version deprecates
        warnings.filterwarnings("ignore", r"'myst_parser\.", DeprecationWarning)
        warnings.filterwarnings("ignore", r"'myst_parser\.", PendingDeprecationWarning)
        tool("build").build(output, quiet=True)
    return output


class Page(HTMLParser):
    """Ids and links of a page, and what it loads."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads = set(), set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.add(found["href"])
        for name in ("src", "href", "srcset", "data"):
            if found.get(name) and tag in ("script", "link", "img", "iframe", "source", "object", "image"):
                self.loads.add(found[name])


def report_pages(docs):
    """The pages of the report, which are beside those of the site."""
    return [path for path in (docs / "results").glob("*.html") if path.name not in ("README.html", "claims.html")]


@cache
def parsed(path):
    return Page(path.read_text())


def test_every_link_and_anchor_lands_and_nothing_is_loaded_from_elsewhere(docs):
    wrong = []
    pages = [path for path in docs.rglob("*.html") if path not in report_pages(docs)]
    assert len(pages) > 60
    for page in pages:
        for link in sorted(parsed(page).links | parsed(page).loads):
            url = urlparse(link)
            if url.scheme or url.netloc:
                wrong += [(page.name, link)] if url.scheme != "data" else []
                continue
            path = (page.parent / unquote(url.path)).resolve() if url.path else page
            if not path.is_file() or (
                url.fragment and path.suffix == ".html" and unquote(url.fragment) not in parsed(path).ids
            ):
                wrong.append((page.name, link))
    assert wrong == []


def test_styles_and_scripts_load_nothing_from_a_host(docs):
    loads = re.compile(r"""(?:url\(\s*|@import\s+|fetch\(\s*|import\(\s*|src\s*=\s*)["']?(?:https?:)?//[^/]""")
    for path in [*docs.rglob("*.css"), *docs.rglob("*.js")]:
        assert loads.search(path.read_text()) is None, path.name


def test_every_public_name_has_its_place(docs):
    listed = tool("reference").documented()
    shown = set().union(*(parsed(path).ids for path in (docs / "reference").glob("*.html")))
    assert len(listed) > 250
    assert {"urbe.solve", "urbe.deep.dqn", "urbe.testing.check_variance", "urbe.MDP"} <= listed
    assert listed - shown == set()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_their_window_and_ask_for_files_alone(visit, docs, width, scheme):
    for name in PAGES:
        seen = visit(docs / name, width=width, scheme=scheme)
        seen.page.wait_for_load_state("load")
        size = seen.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert size[0] <= size[1], (name, size)
        assert seen.said == [], name
        assert all(url.startswith(("file:", "data:")) for url in seen.asked), name
        background = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        shades = [int(part) for part in re.findall(r"\d+", background)[:3]]
        assert (sum(shades) < 200) == (scheme == "dark"), name
        seen.page.close()


def test_searching_finds_a_page_without_a_network(visit, docs):
    page = visit(docs / "index.html", width=1400).page
    page.locator(".sidebar-search").fill("rectangular")
    page.keyboard.press("Enter")
    found = page.locator("#search-results").get_by_role("link", name="Robust values and certified bounds")
    found.first.wait_for(timeout=20_000)
    assert page.url.startswith("file:")
    found.first.click()
    assert page.locator("h1").inner_text().startswith("Robust values and certified bounds")


def test_searching_finds_names_of_the_interface(visit, docs):
    page = visit(docs / "search.html", width=1400).page
    page.goto((docs / "search.html").as_uri() + "?q=KLBall")
    page.locator("#search-results").get_by_role("link", name="urbe.KLBall").first.wait_for(timeout=20_000)


def test_equations_are_drawn_by_the_browser(visit, docs):
    page = visit(docs / "theory/robust.html").page
    assert page.locator("math").count() > 20
    boxes = [each.bounding_box() for each in page.locator("math[display='block']").all()]
    assert len(boxes) >= 6
    assert all(box["height"] > 15 for box in boxes)
    assert page.locator("math merror, .math-error").count() == 0


def test_the_report_is_beside_the_pages(visit, docs):
    page = visit(docs / "results/README.html", width=1400).page
    page.get_by_role("link", name="index.html").first.click()
    page.wait_for_load_state("load")
    assert page.url.endswith("results/index.html")
    assert page.locator("figure svg").count() > 2
    page.get_by_role("link", name=re.compile("Mars")).first.click()
    page.wait_for_load_state("load")
    assert "results/mars_rover.html" in page.url
    assert page.locator("figure svg").count() > 5
    for one in report_pages(docs):
        for link in parsed(one).links | parsed(one).loads:
            url = urlparse(link)
            assert url.scheme or (one.parent / unquote(url.path)).exists(), f"{one.name}: {link}"
