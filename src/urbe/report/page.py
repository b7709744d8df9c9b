"""Write the report as HTML: a front page and a page for each chapter, linked by relative paths.

The pages open from disk, print well, follow the reader's light or dark theme, and refer to nothing outside their
folder. Their only script, small and inline, shows values in charts and switches the theme; the pages are complete
without it. The markup is in `page.html`, cut into fragments by comments that name them; the layout in `page.css`; the
script in `page.js`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

from urbe.report.chapter_page import anchors_of, chapter_foot, chapter_head, chapter_main
from urbe.report.claims import file_of
from urbe.report.content import Facts, PageChapter, State
from urbe.report.front import FRONT, front_head, front_main, provenance
from urbe.report.markup import fill, read
from urbe.report.style import THEMED

PAGE = ("page", "#f4f5f7", "#121418")
"""The background: variable, light, dark."""


def render(
    title: str,
    lead: Sequence[str],
    facts: Facts,
    chapters: Sequence[PageChapter],
    *,
    glossary: Facts = (),
    files: Mapping[str, Sequence[str]] | None = None,
    state: State | None = None,
) -> dict[str, str]:
    """Returns the text of each page, by its file name: `index.html`, and `NAME.html` for the chapter `NAME`.

    Args:
      title: title of the report.
      lead: opening paragraphs; the first one is a sentence that says what the report is about.
      facts: how the whole report was computed.
      chapters: the content.
      glossary: the terms a reader needs, with their meanings.
      files: relative paths of files beside the pages, by the name of a chapter (its rows) or `<chapter>-<exhibit>`
        (the drawing in other formats).
      state: the progress of an unfinished run.
    """
    _check_names(chapters)
    style = style_sheet()
    script = read("page.js")

    def page(name: str, head: str, main: str, foot: str) -> str:
        return fill("page", name=escape(name), style=style, head=head, main=main, foot=foot, script=script)

    found = {FRONT: page(title, front_head(title, lead, state), front_main(chapters, glossary), provenance(facts))}
    for i, chapter in enumerate(chapters):
        near = (chapters[i - 1] if i else None, chapters[i + 1] if i + 1 < len(chapters) else None)
        found[file_of(chapter)] = page(
            f"{chapter.title} - {title}",
            chapter_head(chapter),
            chapter_main(chapter, files or {}),
            chapter_foot(chapter, files or {}, near),
        )
    return found


def style_sheet() -> str:
    """The whole style sheet: the system's theme unless the reader chose one; paper is white."""
    light, dark = (" ".join(f"--{each[0]}: {each[mode]};" for each in (*THEMED.values(), PAGE)) for mode in (1, 2))
    return (
        f":root {{ {light} }}\n"
        "@media screen and (prefers-color-scheme: dark) { "
        f':root:not([data-theme="light"]) {{ {dark} }} }}\n'
        f'@media screen {{ :root[data-theme="dark"] {{ {dark} }} }}\n'
        f"{read('page.css')}"
        '@media screen { :root[data-theme="light"] { color-scheme: light; } '
        ':root[data-theme="dark"] { color-scheme: dark; } }\n'
        "@media print { :root { --page: #ffffff; } }\n"
    )


def _check_names(chapters: Sequence[PageChapter]) -> None:
    """Raises if a file name or an anchor is not unique."""
    _check_unique("the report", [chapter.name.casefold() for chapter in chapters] + ["index"])
    for chapter in chapters:
        if re.fullmatch(r"[A-Za-z0-9_-]+", chapter.name) is None:
            raise ValueError(f"{chapter.name!r} names a file, expected letters, digits, dashes and underscores.")
        _check_unique(f"the page of {chapter.name}", anchors_of(chapter))


def _check_unique(where: str, names: Sequence[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{twice[0]} is not unique in {where}. Rename one of the chapters, sections or exhibits.")
