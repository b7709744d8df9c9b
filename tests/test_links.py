"""Every link of the Markdown pages leads to an existing file, and every anchor to a heading."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if "site" not in path.relative_to(ROOT / "docs").parts),
]
WRITTEN = {"docs/results/claims.md"}
"""By `urbe report`, into a folder where the page is beside it."""


def links(path):
    """Targets of all links and pictures outside of code."""
    text = re.sub(r"^( *)```.*?^\1```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    return re.findall(r"\]\(([^)\s]+)\)", text)


@cache
def anchors(path):
    """The anchors of a page's headings, as repositories and the site make them."""
    text = re.sub(r"^( *)```.*?^\1```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = []
    for heading in re.findall(r"^#+ +(.+?) *$", text, flags=re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.append(slug if slug not in found else f"{slug}-{found.count(slug)}")
    return found


def problem(page, target):
    """What is wrong with a link, or None."""
    if re.match(r"[a-z]+:", target):
        return "leads to a host"
    name, _, anchor = target.partition("#")
    path = (page.parent / name).resolve() if name else page
    if not path.exists():
        return "is not there"
    if not path.is_relative_to(ROOT):
        return "is outside the repository"
    if anchor and path.suffix == ".md" and anchor not in anchors(path):
        return f"has no heading #{anchor}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    wrong = {target: found for target in links(page) if (found := problem(page, target))}
    if str(page.relative_to(ROOT)) in WRITTEN:
        wrong = {target: found for target, found in wrong.items() if not target.startswith("index.html#")}
    assert wrong == {}


def test_every_page_is_reached_from_the_landing_page():
    reached, left = set(), [ROOT / "docs" / "index.md"]
    while left:
        page = left.pop()
        if page not in reached:
            reached.add(page)
            left += [
                (page.parent / target.partition("#")[0]).resolve()
                for target in links(page)
                if target.partition("#")[0].endswith(".md")
            ]
    assert {page for page in PAGES if page.is_relative_to(ROOT / "docs")} - reached == set()


def test_links_that_lead_nowhere_are_found(tmp_path):
    page = ROOT / "docs" / "index.md"
    assert problem(page, "nowhere.md") == "is not there"
    assert problem(page, "notation.md#nothing") == "has no heading #nothing"
    assert problem(page, "models.md") is None
    assert problem(page, "deep_agents.md#parts-of-your-own") is None
    (tmp_path / "page.md").write_text(
        "A [link](a.md),\n```\n[no](b.md)\n```\n`[nor](c.md)` ![picture](d.svg)\n# A `b`, c!\n"
    )
    assert links(tmp_path / "page.md") == ["a.md", "d.svg"]
    assert anchors(tmp_path / "page.md") == ["a-b-c"]
