"""The page: well formed, self-contained, accessible."""

import re

import numpy as np
import pytest

from oracles.html_page import Page
from urbe.report import style
from urbe.report.content import Chapter, Exhibit, Section, Table
from urbe.report.figures import Figure, Line, draw_lines, styled
from urbe.report.numbers import number
from urbe.report.page import render


def small_page():
    exhibits = []
    for name in ("first", "second"):
        with styled():
            figure = Figure(figsize=(4.0, 2.0))
            axes = figure.add_axes((0.2, 0.2, 0.6, 0.7))
            draw_lines(axes, np.arange(3.0), (Line(np.arange(3.0), "up & away", style.ROBUST),))
        table = Table("Numbers", ("state", "value"), (("s0", "1.5"), ("s1", "-2e-05")))
        exhibits.append(Exhibit(name, figure, 'what "it" shows <here>', "See & tell", (table,)))
    section = Section("One <thing>", ("A & B",), tuple(exhibits))
    return render(
        "Title <b> & more", ("Lead",), (("Fact", "1 < 2"),), (Chapter("chapter", "All <there> is", (section,)),)
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


def test_columns_of_words_and_of_numbers_are_told_apart():
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


@pytest.mark.parametrize(
    ("value", "text"), [(-1e-12, "0"), (0.0, "0"), (1234.56789, "1234.57"), (-0.25, "-0.25"), (2e-7, "2e-07")]
)
def test_numbers_read_well(value, text):
    assert number(value) == text


def test_same_input_gives_the_same_page():
    assert small_page() == small_page()
