"""Figures as files: readable, on white, with embedded fonts, in the drawn size, the same bytes each time."""

import io
import re
import zlib

import matplotlib
import numpy as np
import pytest

from fixtures import book
from fixtures.html_page import Page
from urbe.report.content import Exhibit, PageChapter, Section
from urbe.report.export import DPI, FORMATS, figure_files
from urbe.report.figures import WIDTH, panels
from urbe.report.page import render


def written(writer):
    buffer = io.BytesIO()
    writer(buffer)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def bytes_of():
    writers, _ = figure_files(book.chapters()[:1])
    return {path: written(writer) for path, writer in writers.items()}


def test_every_figure_has_every_format_and_the_page_leads_to_each():
    chapters = book.chapters()
    writers, files = figure_files(chapters)
    names = ["curves-bands", "curves-dots", "maps-policies", "maps-lines", "maps-heat", "maps-bare"]
    assert list(writers) == [f"figures/{name}.{kind}" for name in names for kind in FORMATS]
    rendered = render("T", (), (), chapters, files=files)
    pages = [Page(rendered[f"{chapter.name}.html"]) for chapter in chapters]
    assert [a["href"] for page in pages for a in page.all("a") if "aria-label" in a] == list(writers)
    labels = [a["aria-label"] for a in pages[0].all("a") if "aria-label" in a]
    assert labels[0] == "curves-bands.png"
    assert {name for name in pages[0].text["a"] if name in ("PNG", "SVG", "PDF")} == {"PNG", "SVG", "PDF"}


def test_pictures_are_white_and_as_large_as_promised(bytes_of):
    image = matplotlib.image.imread(io.BytesIO(bytes_of["figures/curves-bands.png"]))
    assert image.shape[1] == WIDTH * DPI
    assert (image[[0, 0, -1, -1], [0, -1, 0, -1]] == 1.0).all()
    assert (image[..., :3].min(axis=(0, 1)) < 0.5).all()


def test_vector_files_carry_their_fonts_and_refer_to_nothing(bytes_of):
    drawing = bytes_of["figures/curves-bands.svg"].decode()
    assert "<text" not in drawing  # letters are outlines
    references = re.findall(r'(?:href|src)="([^"]*)"', drawing)
    assert references
    assert all(reference.startswith("#") for reference in references)
    assert "var(--" not in drawing
    assert 'style="fill: #ffffff"' in drawing
    paper = bytes_of["figures/curves-bands.pdf"]
    assert paper.startswith(b"%PDF")
    assert b"/FontFile2" in paper
    streams = [zlib.decompress(s) for s in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", paper, re.S) if s[:1] == b"x"]
    assert any(b"glyf" in stream for stream in streams)


def test_the_same_figure_gives_the_same_bytes(bytes_of):
    again, _ = figure_files(book.chapters()[:1])
    assert {path: written(writer) for path, writer in again.items()} == bytes_of


def test_names_that_would_share_a_file_are_refused():
    def chapter(name, exhibit):
        return PageChapter(name, name, (Section("", (), (Exhibit(exhibit, panels()[0], "", ""),)),))

    with pytest.raises(ValueError, match=r"Two figures would be written to figures/a-b-c\.png"):
        figure_files([chapter("a-b", "c"), chapter("a", "b-c")])


def test_formats_can_be_chosen():
    writers, files = figure_files(book.chapters()[:1], ("svg", "csv"))
    assert writers
    assert {path.rpartition(".")[2] for path in writers} == {"svg"}
    assert sorted(path for paths in files.values() for path in paths) == sorted(writers)


def test_writing_files_changes_no_drawing():
    chapters = book.chapters()[:1]
    before = render("T", (), (), chapters)
    writers, _ = figure_files(chapters)
    for writer in writers.values():
        written(writer)
    after = render("T", (), (), chapters)
    assert np.array_equal(before, after)
