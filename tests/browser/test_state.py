"""The page of a run under way, in a real browser: it reads itself again, at the same place, until told to stay."""

import pytest

from fixtures import book
from urbe.report.content import State
from urbe.report.page import render


@pytest.fixture(scope="module")
def pages():
    chapters = book.chapters()[:1]
    return {
        done: render("A run", (), (), chapters, state=State(done, 10, 2, 1, 125.0, ("One failed.",), refresh=1))
        for done in (3, 7)
    } | {10: render("A run", (), (), chapters)}


def test_the_head_tells_how_far_the_run_is(visit, pages, tmp_path):
    path = tmp_path / "index.html"
    path.write_text(pages[3])
    seen = visit(path)
    state = seen.page.get_by_role("region", name="State of the run")
    assert "3 of 10 cells done, 2 running, 1 failed, about 2 min left" in state.inner_text()
    assert "One failed." in state.inner_text()
    bar = seen.page.get_by_role("progressbar", name="Cells done")
    assert (bar.get_attribute("value"), bar.get_attribute("max")) == ("3", "10")
    assert seen.said == []


def test_it_follows_the_file_and_keeps_the_place_and_what_was_unfolded(visit, pages, tmp_path):
    path = tmp_path / "index.html"
    path.write_text(pages[3])
    page = visit(path).page
    page.locator("#curves--bands--numbers summary").click()
    page.evaluate("scrollTo(0, 700)")
    path.write_text(pages[7])
    page.get_by_text("7 of 10 cells done").wait_for(timeout=60_000)
    assert abs(page.evaluate("scrollY") - 700) < 5
    assert page.locator("#curves--bands--numbers").get_attribute("open") is not None
    assert page.locator("#curves--dots--numbers").get_attribute("open") is None
    page.get_by_role("checkbox").uncheck()
    path.write_text(pages[3])
    page.wait_for_timeout(1500)
    assert page.get_by_text("7 of 10 cells done").is_visible()
    page.get_by_role("checkbox").check()
    page.get_by_text("3 of 10 cells done").wait_for(timeout=60_000)
    path.write_text(pages[10])
    page.get_by_text("cells done").wait_for(state="detached", timeout=60_000)
    assert page.get_by_role("checkbox").count() == 0


def test_it_follows_without_scripts_too(visit, pages, tmp_path):
    path = tmp_path / "index.html"
    path.write_text(pages[3])
    page = visit(path, script=False).page
    assert not page.get_by_role("checkbox").is_visible()
    path.write_text(pages[7])
    page.get_by_text("7 of 10 cells done").wait_for(timeout=60_000)
