"""The page: well formed, self-contained, accessible."""

import re

import numpy as np
import pytest

from fixtures.html_page import Page
from urbe.report import style
from urbe.report.content import Exhibit, Highlight, PageChapter, Section, Table, Verdict
from urbe.report.curves import draw_bands
from urbe.report.figures import Figure, small, styled
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
    facts = (("Fact", "1 < 2"),)
    return render(
        "Title <b> & more",
        ("Lead",),
        facts,
        (PageChapter("chapter", "All <there> is", (section,), facts, "What & why?"),),
        glossary=(("word", "its <meaning>"),),
    )


def chapter_page():
    return small_page()["chapter.html"]


def test_well_formed_with_unique_ids_and_links_between_the_pages_alone():
    pages = small_page()
    assert list(pages) == ["index.html", "chapter.html"]
    for source in pages.values():
        page = Page(source)
        assert len(page.ids()) == len(set(page.ids()))
        inside = {f"#{name}" for name in page.ids()}
        references = [
            v for _, attributes in page.tags for k, v in attributes.items() if k.split(":")[-1] in ("href", "src")
        ]
        assert references
        assert set(references) <= inside | set(pages)
        assert set(re.findall(r"url\((#[^)]*)\)", source)) <= inside
        assert "http" not in source
        assert "@import" not in source


def test_text_is_escaped():
    page = Page(chapter_page())
    assert page.text["h1"] == ["All <there> is"]
    assert page.text["title"] == ["All <there> is - Title <b> & more"]
    assert page.text["h2"] == ["One <thing>", "How this was computed"]
    assert page.text["dd"] == ["1 < 2"]
    assert "What & why?" in page.text["p"]
    (image,) = [div for div in page.all("div") if div.get("role") == "img"][:1]
    assert image["aria-label"] == 'what "it" shows <here>'
    assert "up & away" in [text.strip() for text in page.text["text"]]
    front = Page(small_page()["index.html"])
    assert front.text["h1"] == front.text["title"] == ["Title <b> & more"]
    assert front.text["dd"] == ["its <meaning>", "1 < 2"]


def test_structure_is_semantic():
    page = Page(chapter_page())
    assert len(page.all("h1")) == 1
    assert len(page.all("figure")) == len(page.all("figcaption")) == len(page.all("details")) == 2
    assert sum(div.get("role") == "img" for div in page.all("div")) == 2
    assert {th.get("scope") for th in page.all("th")} == {"col", "row"}
    assert len(page.all("caption")) == len(page.all("table")) == 2
    assert page.all("html")[0]["lang"] == "en"


def test_columns_of_words_and_of_numbers_are_distinguished():
    page = Page(chapter_page())
    heads = [th.get("class") for th in page.all("th") if th["scope"] == "col"]
    assert heads == ["words", None] * 2


def test_every_variable_used_is_defined_for_light_and_dark():
    source = chapter_page()
    used = set(re.findall(r"var\(--([a-z]+)\)", source))
    sheet = source[source.index("<style>") : source.index("</style>")]
    for name in used:
        count = len(re.findall(rf"--{name}:", sheet))
        assert count >= (1 if name == "font" else 2), name
    drawn = source[source.index("<svg") :]
    assert not any(colour in drawn for colour in style.THEMED)


def test_same_input_gives_the_same_page():
    assert small_page() == small_page()


def two_chapters():
    """Two chapters that use the same names."""
    with styled():
        figure = Figure(figsize=(4.0, 2.0))
        figure.add_axes((0.2, 0.2, 0.6, 0.7))
    outcomes = ("holds", "does not hold", "undecided")
    verdicts = tuple(Verdict("A > B.", outcome, "1 & 2") for outcome in outcomes)
    sections = (
        Section("Controls", ("Noisy.",), appendix=True),
        Section("", ("Opening.",), facts=(("Replicates", "20"),)),
        Section("Curves", (), (Exhibit("curves", figure, "words", "See."),), verdicts=verdicts),
    )
    return render(
        "T", (), (), [PageChapter(name, name.title(), sections, (("Commit", "abc"),)) for name in ("one", "two")]
    )


def test_chapters_may_use_the_same_names():
    for source in two_chapters().values():
        page = Page(source)
        assert len(page.ids()) == len(set(page.ids()))
    pages = [Page(two_chapters()[f"{name}.html"]) for name in ("one", "two")]
    assert [page.text["h1"] for page in pages] == [["One"], ["Two"]]
    assert pages[0].ids() == [name.replace("two", "one") for name in pages[1].ids()]


def test_the_appendix_comes_last():
    page = Page(two_chapters()["one.html"])
    assert page.text["h2"] == ["Curves", "Appendix", "How this was computed"]
    assert page.text["h3"] == ["Controls"]
    assert "appendix" not in Page(chapter_page()).ids()


def test_contents_lead_to_every_section_and_neighbours_to_every_chapter():
    page = Page(two_chapters()["one.html"])
    skip, *links = [a["href"] for a in page.all("a")]
    assert skip == "#main"
    assert links == ["index.html", "#curves", "#appendix", "#provenance", "two.html"]
    assert {link[1:] for link in links if link[0] == "#"} <= set(page.ids())
    assert "Next: Two" in page.text["a"]
    assert [a["href"] for a in Page(two_chapters()["index.html"]).all("a")] == ["#main", "one.html", "two.html"]


def test_a_chapter_has_one_box_of_facts_at_its_foot():
    source = two_chapters()["one.html"]
    page = Page(source)
    assert len(page.all("dl")) == 1
    assert page.text["dt"] == ["Replicates", "Commit"]
    assert page.text["dd"] == ["20", "abc"]
    assert source.index("<dl") > source.index("</main>")
    assert "<dl" not in two_chapters()["index.html"]  # neither a glossary nor facts


def test_verdicts_fold_to_a_line_with_the_conclusion():
    page = Page(two_chapters()["one.html"])
    assert page.text["summary"] == [
        "Does not hold A > B. holds under 1 of 3 assumptions, does not hold under 1, undecided under 1"
    ]
    assert page.text["strong"] == ["Does not hold", "Holds", "Does not hold", "Undecided"]
    assert [li["class"] for li in page.all("li") if "class" in li] == ["holds", "does-not-hold", "undecided"]
    assert all("open" not in details for details in page.all("details"))


def test_an_exhibit_without_tables_folds_nothing():
    assert "The numbers" not in two_chapters()["one.html"]
    assert "The numbers" in chapter_page()


def highlighted(name, message):
    with styled():
        figure, (axes,) = small()
        axes.plot([0.0, 1.0])
    return PageChapter(name, name.title(), (), highlight=Highlight(message, Exhibit("front", figure, "A", "C")))


def test_the_front_page_has_three_highlights_and_each_leads_to_its_chapter():
    chapters = [highlighted(name, f"Message of {name}.") for name in ("one", "two", "three", "four")]
    page = Page(render("T", ("What it is.",), (), [PageChapter("none", "None", ()), *chapters])["index.html"])
    assert len(page.all("figure")) == 3
    assert page.text["h2"][:3] == ["Message of one.", "Message of two.", "Message of three."]
    assert [a["href"] for a in page.all("a")][1:4] == ["one.html", "two.html", "three.html"]


def test_numbers_with_intervals_are_numbers():
    cells = ("1", "-2.5e-05", "1.00 [\u20079.00, 10.00]", "-1.0 [-2.0, 0.0]", "inf", "-", "+0.1", "10,000", "52\xa0%")
    table = Table("T", ("row", "value"), tuple(("a", cell) for cell in cells))
    page = Page(render("T", (), (), [PageChapter("c", "C", (Section("S", tables=(table,)),))])["c.html"])
    assert all(td.get("class") is None for td in page.all("td"))
    words = Table("T", ("row", "value"), (("a", "1"), ("b", "never")))
    page = Page(render("T", (), (), [PageChapter("c", "C", (Section("S", tables=(words,)),))])["c.html"])
    assert all(td.get("class") == "words" for td in page.all("td"))


@pytest.mark.parametrize(
    ("chapters", "message"),
    [
        ([PageChapter("c", "C", ()), PageChapter("c", "D", ())], "c"),
        ([PageChapter("index", "C", ())], "index"),
        ([PageChapter("c", "C", (Section("The same"), Section("the same!")))], "the-same"),
    ],
)
def test_names_that_occur_twice_are_refused(chapters, message):
    with pytest.raises(ValueError, match=f"{message} is not unique"):
        render("T", (), (), chapters)
