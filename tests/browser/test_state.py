"""The page of a run in progress, in a real browser."""

from fixtures import book
from urbe.report.content import State
from urbe.report.page import render


def test_the_head_shows_how_far_the_run_is(visit, tmp_path):
    path = tmp_path / "index.html"
    state = State(3, 10, 2, 1, 125.0, ("One failed.",))
    path.write_text(render("A run", (), (), book.chapters()[:1], state=state)["index.html"])
    seen = visit(path)
    region = seen.page.get_by_role("region", name="State of the run")
    assert "3 of 10 cells done, 2 running, 1 failed, about 2 min left" in region.inner_text()
    assert "One failed." in region.inner_text()
    bar = seen.page.get_by_role("progressbar", name="Cells done")
    assert (bar.get_attribute("value"), bar.get_attribute("max")) == ("3", "10")
    assert seen.said == []
