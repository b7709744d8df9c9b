"""Claims: the rules for every combination of readings, groups, order, and the table on the front page."""

from itertools import product

import pytest

from fixtures.html_page import Page
from urbe.report.claims import RULE, claims, combine, markdown
from urbe.report.content import PageChapter, Section, Verdict
from urbe.report.page import render

OUTCOMES = ("holds", "does not hold", "undecided", "not testable")


def verdict(outcome, reading="", source="Fig. 3", claim="A beats B."):
    return Verdict(claim, outcome, "1 [0, 2]", source, reading)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_every_combination_follows_the_stated_rules(n):
    for outcomes in product(OUTCOMES, repeat=n):
        readings = [f"reading {i}" for i in range(n)]
        outcome, under = combine([verdict(o, r) for o, r in zip(outcomes, readings, strict=True)])
        holding = [r for o, r in zip(outcomes, readings, strict=True) if o == "holds"]
        if len(holding) == n:
            assert (outcome, under) == ("holds", ())
        elif holding:
            assert (outcome, under) == ("holds", tuple(holding))
        else:
            assert under == ()
            counts = [outcomes.count(o) for o in OUTCOMES]
            assert outcome == (OUTCOMES[1] if counts[1] else OUTCOMES[2] if counts[2] else OUTCOMES[3])


def test_a_reading_tested_twice_holds_only_when_both_do():
    twice = [verdict("holds", "greedy"), verdict("does not hold", "greedy")]
    assert combine(twice) == ("does not hold", ())
    assert combine([*twice, verdict("holds", "noisy")]) == ("holds", ("noisy",))
    assert combine([verdict("holds", "greedy")] * 2) == ("holds", ())


def test_no_verdicts_are_refused():
    with pytest.raises(ValueError, match="verdicts is empty"):
        combine([])


def chapter(name, *verdicts):
    return PageChapter(name, name.title(), (Section("Verdicts", verdicts=verdicts),))


def two_chapters():
    return (
        chapter(
            "late", verdict("holds", "greedy", "Fig. 10"), verdict("holds", "here"), verdict("undecided", source="")
        ),
        chapter(
            "early", verdict("does not hold", "there"), verdict("not testable", source="Fig. 2b", claim="C < D & E.")
        ),
    )  # fmt: skip


def test_claims_are_grouped_over_chapters_and_ordered_by_figure():
    found = claims(two_chapters())
    assert [(c.source, c.text) for c in found] == [
        ("Fig. 2b", "C < D & E."), ("Fig. 3", "A beats B."), ("Fig. 10", "A beats B."),
    ]  # fmt: skip
    assert [c.conclusion for c in found] == ["not testable", "holds under here", "holds"]
    assert [(v.reading, anchor) for v, anchor in found[1].found] == [
        ("here", "late.html#claim-2"),
        ("there", "early.html#claim-1"),
    ]


def test_the_front_page_has_a_line_for_each_claim_and_leads_to_its_verdict():
    pages = {name: Page(source) for name, source in render("T", (), (), two_chapters()).items()}
    front = pages["index.html"]
    counts = "1 holds, 1 holds under some assumptions and 1 could not be tested"
    assert front.text["h2"] == [f"Of the 3 claims of the paper, {counts}.", "The paper's claims", "Chapters"]
    lines = [
        ("not-testable", "Not testable C < D & E. Fig. 2b"),
        ("depends", "Holds under some assumptions A beats B. Fig. 3 Under here"),
        ("holds", "Holds A beats B. Fig. 10"),
    ]
    shown = [
        (li.get("class"), " ".join(text.split())) for li, text in zip(front.all("li"), front.text["li"], strict=True)
    ]
    assert shown[:3] == lines
    links = [a["href"] for a in front.all("a") if "#claim" in a["href"]]
    assert links == ["early.html#claim-2", "late.html#claim-2", "late.html#claim-1"]
    for link in links:
        name, anchor = link.split("#")
        assert anchor in pages[name].ids()
    anchors = {li["id"]: li["class"] for li in pages["early.html"].all("li") if "id" in li}
    assert anchors == {"claim-1": "does-not-hold", "claim-2": "not-testable"}
    assert RULE.text in front.text["p"]


def test_the_same_verdict_twice_stands_at_two_places():
    same = verdict("holds")
    page = Page(render("T", (), (), [chapter("one", same, same)])["one.html"])
    assert [name for name in page.ids() if "claim-" in name] == ["claim-1", "claim-2"]


def test_a_report_without_the_paper_s_claims_has_no_list_of_them():
    pages = render("T", (), (), [chapter("own", verdict("holds", source=""))])
    assert "claims" not in Page(pages["index.html"]).ids()
    assert "tally" not in Page(pages["index.html"]).ids()


def test_verdicts_of_a_claim_stand_together_under_its_line():
    readings = ("greedy", "noisy", "both")
    first, *others = (verdict(outcome, reading) for outcome, reading in zip(OUTCOMES, readings, strict=False))
    between = (verdict("holds", source="Fig. 4"), verdict("holds", source="", claim="Ours."))
    page = Page(render("T", (), (), [chapter("one", first, *between, *others)])["one.html"])
    assert page.text["summary"][0].endswith("holds under 1 of 3 assumptions, does not hold under 1, undecided under 1")
    assert page.text["span"] == ["A beats B.", "A beats B.", "Ours."]
    shown = [(li["id"], li["class"]) for li in page.all("li") if li.get("id", "").startswith("claim")]
    assert shown == [
        ("claim-1", "holds"), ("claim-3", "does-not-hold"), ("claim-4", "undecided"), ("claim-2", "holds"),
    ]  # fmt: skip
    assert page.text["em"] == list(readings)
    assert page.text["cite"] == ["Fig. 3", "Fig. 4"]


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
    assert "| Fig. 2 | A. | **holds** under 5 of 7 assumptions |" in text


def test_without_claims_there_is_nothing():
    assert markdown(book(Verdict("Ours.", "holds", ""))) == ""
