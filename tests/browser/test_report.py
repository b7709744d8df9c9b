"""Pages of runs in a real browser: a real experiment with all its files, and an unfinished run."""

from dataclasses import replace

import pytest

from fixtures import finished_run as run
from urbe.paper import price_of_robustness as real
from urbe.paper.chapter import everywhere
from urbe.paper.pages import write_report
from urbe.paper.price_of_robustness import PriceCell


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The price of robustness of one model at three radii."""
    cells = tuple(PriceCell("riverswim", "L1", radius) for radius in (0.0, 0.5, 1.0))
    price = replace(real.CHAPTER, cells=everywhere(cells))
    output = tmp_path_factory.mktemp("report")
    run.lay(output, [price], compute=True)
    return write_report(output, [price])


def test_a_real_chapter_shows_its_figures_and_leads_to_its_files(visit, report):
    front = visit(report)
    assert front.said == []
    assert front.page.locator("figure").count() == 0  # the model of the highlight was not solved
    seen = visit(report.with_name("price_of_robustness.html"))
    page = seen.page
    assert seen.said == []
    assert [url for url in seen.asked if not url.startswith("data:")] == [page.url]
    assert page.locator("figure").count() == 2
    assert all(each.bounding_box()["height"] > 100 for each in page.locator("figure svg").all())
    links = page.eval_on_selector_all("a[aria-label]", "all => all.map((a) => a.getAttribute('href'))")
    assert len(links) == 2 + 2 * 3
    assert all((report.parent / link).stat().st_size > 0 for link in links)
    page.locator("figure .drawing").first.focus()
    page.keyboard.press("ArrowRight")
    assert ", at L1 radius 0" in page.locator("figure .tip").first.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_an_image_of_the_page_s_files_opens(visit, report):
    page = visit(report.with_name("price_of_robustness.html")).page
    with page.expect_navigation():
        page.get_by_role("link", name=".png").first.click()
    assert page.locator("img").evaluate("(each) => each.naturalWidth") == 2000
