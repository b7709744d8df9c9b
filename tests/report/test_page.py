"""The page: well formed, self-contained, accessible."""

import re

import numpy as np
import pytest

from fixtures.html_page import Page
from urbe.report import style
from urbe.report.content import Exhibit, PageChapter, Section, Table, Verdict
from urbe.report.curves import draw_bands
from urbe.report.figures import Figure, styled
from urbe.report.page import render
from urbe.statistics.estimates import Band


def small_page():
    exhibits = []
    for name in ("first", "second"):
        with styled():
            figure = Figure(figsize=(4.0, 2.0))
            axes = figure.add_axes((0.2, 0.2, 0.6, 0.7))
            draw_bands(axes, np.arange(3.0), {"up & away": Band(*[np.arange(3.0)] * 3)})
        table = Table("Numbers", ("state", "value"), (("s0", "1.5"), ("s1", "-2e-05")))
        exhibits.append(Exhibit(name, figure, 'what "it" shows <here>', "See & tell", (table,)))
    section = Section("One <thing>", ("A & B",), tuple(exhibits))
    return render(
        "Title <b> & more", ("Lead",), (("Fact", "1 < 2"),), (PageChapter("chapter", "All <there> is", (section,)),)
    )


def test_well_formed_with_unique_ids_and_no_outside_references():
    source = small_page()
    page = Page(source)
    assert len(page.ids()) == len(set(page.ids()))
    inside = {f"#{name}" for name in page.ids()}
    references = [
        v for _, attributes in page.tags for k, v in attributes.items() if k.split(":")[-1] in ("href", "src")
    ]
    assert references
    assert set(references) <= inside
    assert set(re.findall(r"url\((#[^)]*)\)", source)) <= inside
    assert "http" not in source
    assert "@import" not in source


def test_text_is_escaped():
    page = Page(small_page())
    assert page.text["h1"] == ["Title <b> & more"]
    assert page.text["h2"] == ["All <there> is"]
    assert page.text["h3"] == ["One <thing>"]
    assert page.text["dd"] == ["1 < 2"]
    assert page.all("svg")[0]["aria-label"] == 'what "it" shows <here>'
    assert "up & away" in [text.strip() for text in page.text["text"]]


def test_structure_is_semantic():
    page = Page(small_page())
    assert len(page.all("h1")) == 1
    assert len(page.all("figure")) == len(page.all("figcaption")) == len(page.all("details")) == 2
    assert all(svg["role"] == "img" and svg["aria-label"] for svg in page.all("svg"))
    assert {th.get("scope") for th in page.all("th")} == {"col", "row"}
    assert len(page.all("caption")) == len(page.all("table")) == 2
    assert page.all("html")[0]["lang"] == "en"


def test_columns_of_words_and_of_numbers_are_distinguished():
    page = Page(small_page())
    heads = [th.get("class") for th in page.all("th") if th["scope"] == "col"]
    assert heads == ["words", None] * 2


def test_every_variable_used_is_defined_for_light_and_dark():
    source = small_page()
    used = set(re.findall(r"var\(--([a-z]+)\)", source))
    sheet = source[source.index("<style>") : source.index("</style>")]
    for name in used:
        count = len(re.findall(rf"--{name}:", sheet))
        assert count >= (1 if name == "font" else 2), name
    drawn = source[source.index("<svg") :]
    assert not any(colour in drawn for colour in style.THEMED)


def test_same_input_gives_the_same_page():
    assert small_page() == small_page()


def book():
    """Two chapters that use the same names."""
    with styled():
        figure = Figure(figsize=(4.0, 2.0))
        figure.add_axes((0.2, 0.2, 0.6, 0.7))
    outcomes = ("holds", "does not hold", "undecided")
    verdicts = tuple(Verdict("A > B.", outcome, "1 & 2") for outcome in outcomes)
    sections = (
        Section("", ("Opening.",), facts=(("Replicates", "20"),)),
        Section("Curves", (), (Exhibit("curves", figure, "words", "See."),), verdicts=verdicts),
    )
    return render(
        "T", (), (), [PageChapter(name, name.title(), sections, (("Commit", "abc"),)) for name in ("one", "two")]
    )


def test_chapters_may_use_the_same_names():
    page = Page(book())
    assert len(page.ids()) == len(set(page.ids()))
    assert page.text["h2"] == ["One", "Two"]
    assert page.text["h3"] == ["Curves", "Curves"]


def test_contents_lead_to_every_chapter_and_section():
    page = Page(book())
    skip, *links = [a["href"] for a in page.all("a")]
    assert skip == "#main"
    assert links == ["#one", "#one-curves", "#two", "#two-curves"]
    assert {link[1:] for link in links} <= set(page.ids())


def test_a_chapter_has_one_box_of_facts():
    page = Page(book())
    assert len(page.all("dl")) == 2  # none for the page, which has no facts
    assert page.text["dt"] == ["Replicates", "Commit"] * 2
    assert page.text["dd"] == ["20", "abc"] * 2


def test_verdicts_are_words_first():
    page = Page(book())
    assert page.text["strong"] == ["holds", "does not hold", "undecided"] * 2
    assert "A > B." in page.text["span"]
    assert [li.get("class") for li in page.all("li") if "class" in li][:3] == ["holds", "does-not-hold", "undecided"]


def test_an_exhibit_without_tables_folds_nothing():
    assert "<details" not in book()


def test_numbers_with_intervals_are_numbers():
    cells = ("1", "-2.5e-05", "1.00 [\u20079.00, 10.00]", "-1.0 [-2.0, 0.0]", "inf", "-")
    table = Table("T", ("row", "value"), tuple(("a", cell) for cell in cells))
    page = Page(render("T", (), (), [PageChapter("c", "C", (Section("S", tables=(table,)),))]))
    assert all(td.get("class") is None for td in page.all("td"))
    words = Table("T", ("row", "value"), (("a", "1"), ("b", "never")))
    page = Page(render("T", (), (), [PageChapter("c", "C", (Section("S", tables=(words,)),))]))
    assert all(td.get("class") == "words" for td in page.all("td"))


@pytest.mark.parametrize(
    ("chapters", "message"),
    [
        ([PageChapter("c", "C", ()), PageChapter("c", "D", ())], "c"),
        ([PageChapter("c", "C", (Section("The same"), Section("the same!")))], "c-the-same"),
    ],
)
def test_names_that_occur_twice_are_refused(chapters, message):
    with pytest.raises(ValueError, match=f"{message} is not unique"):
        render("T", (), (), chapters)
