"""Claims as Markdown: a row each, in one line each, with the readings they depend on."""

from urbe.report.claims import RULE
from urbe.report.claims_text import markdown
from urbe.report.content import PageChapter, Section, Verdict


def book(*verdicts):
    return [PageChapter("c", "C", (Section("", (), verdicts=verdicts),))]


def test_a_claim_is_a_row_with_the_readings_it_holds_under():
    text = markdown(
        book(
            Verdict("B | c,\nd.", "undecided", "", "Fig. 10"),
            Verdict("A.", "holds", "", "Fig. 2", "one"),
            Verdict("A.", "does not hold", "", "Fig. 2", "two"),
            Verdict("Ours.", "holds", ""),
        )
    )
    assert text.splitlines() == [
        "| where | claim of the paper | verdict |",
        "|---|---|---|",
        "| Fig. 2 | A. | **holds** under one |",
        r"| Fig. 10 | B \| c, d. | **undecided** |",
        "",
        RULE.text,
    ]


def test_many_readings_are_counted():
    outcomes = ["holds"] * 5 + ["undecided"] * 2
    text = markdown(book(*(Verdict("A.", outcome, "", "Fig. 2", f"{i}") for i, outcome in enumerate(outcomes))))
    assert "| Fig. 2 | A. | **holds** under 5 of 7 readings |" in text


def test_without_claims_there_is_nothing():
    assert markdown(book(Verdict("Ours.", "holds", ""))) == ""
