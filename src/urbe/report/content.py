"""The content of a report: chapters of sections of paragraphs, verdicts, tables and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from urbe.statistics.verdicts import Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Facts = tuple[tuple[str, str], ...]
"""(name, value) pairs that describe how something was computed."""


@dataclass(frozen=True)
class Table:
    """Rows of text under a head; the first column names the row. Columns of numbers are aligned right.

    Attributes:
      title: describes what it shows.
      head: name of each column.
      rows: cells, as many as `head` has.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Verdict:
    """A claim, and whether the numbers support it.

    Attributes:
      claim: a sentence that could be false.
      outcome: whether it holds here.
      evidence: the numbers that decide, with their intervals; or why they do not decide.
      source: where the paper claims it ("Fig. 3"); empty for claims of our own.
      reading: the assumption under which the claim is tested; verdicts on the same source and claim differ in it.
    """

    claim: str
    outcome: Outcome
    evidence: str
    source: str = ""
    reading: str = ""


@dataclass(frozen=True, eq=False)
class Exhibit:
    """A figure with its caption and its numbers.

    Attributes:
      name: unique in its chapter; letters, digits, dashes, underscores.
      figure: the drawing.
      alt: a description of the drawing, for readers who cannot see it.
      caption: what to see.
      tables: its numbers, folded below the figure.
    """

    name: str
    figure: Figure
    alt: str
    caption: str
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, eq=False)
class Section:
    """A heading, then paragraphs, verdicts, tables and exhibits, in this order.

    Attributes:
      title: the heading, unique in its chapter; empty for text that opens the chapter.
      paragraphs: plain text.
      exhibits: figures.
      tables: shown open; long ones are folded beside figures and in the appendix.
      verdicts: claims.
      facts: shown in the box at the foot of the chapter: number of replicates, kind of intervals, ...
      appendix: whether it comes after all other sections, for controls and variants.
    """

    title: str
    paragraphs: tuple[str, ...] = ()
    exhibits: tuple[Exhibit, ...] = ()
    tables: tuple[Table, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    facts: Facts = ()
    appendix: bool = False


@dataclass(frozen=True, eq=False)
class Highlight:
    """A figure of the front page, a third as wide as the others, with one message.

    Attributes:
      message: what the figure shows, in one sentence.
      exhibit: the figure; see `urbe.report.figures.small`.
    """

    message: str
    exhibit: Exhibit


@dataclass(frozen=True, eq=False)
class PageChapter:
    """One experiment, on a page of its own.

    Attributes:
      name: unique in the report; letters, digits, dashes, underscores.
      title: the heading.
      sections: the content.
      facts: how it was computed, shown at the foot.
      summary: the question that it answers, in one sentence.
      highlight: its figure on the front page.
    """

    name: str
    title: str
    sections: tuple[Section, ...]
    facts: Facts = ()
    summary: str = ""
    highlight: Highlight | None = None


@dataclass(frozen=True)
class State:
    """The progress of a run whose page is written before its end.

    Attributes:
      done, total: numbers of finished cells and of all cells.
      running, failed: numbers of running cells, and of cells that failed.
      seconds_left: None when unknown.
      notes: further paragraphs.
    """

    done: int
    total: int
    running: int = 0
    failed: int = 0
    seconds_left: float | None = None
    notes: tuple[str, ...] = ()
