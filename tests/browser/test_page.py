"""A page in a real browser: it loads from disk alone, shows every figure, its links and switches work, it prints."""

import re
import zlib
from itertools import pairwise
from urllib.parse import unquote, urlparse

import pytest

LINES = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"

OVERFLOWS = """() => [...document.querySelectorAll("h1, h2, h3, p, dl, li, table, svg, figcaption, td, th")]
  .filter((each) => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((each) => each.outerHTML.slice(0, 80))"""

# WCAG contrast of every piece of text with what lies behind it; text on coloured bars is black or white by itself
CONTRASTS = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const level = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (each) => {
    for (let at = each; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const each = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || each.closest("script") || !each.getClientRects().length) continue;
    const style = getComputedStyle(each);
    const ink = parse(each.closest("svg") ? style.fill : style.color);
    if (each.closest("svg") && ["0,0,0", "255,255,255"].includes(ink.slice(0, 3).join())) continue;
    const [low, high] = [level(ink), level(behind(each))].sort((a, b) => a - b);
    found.push([(high + 0.05) / (low + 0.05), walk.currentNode.data.trim()]);
  }
  return found;
}"""  # noqa: E501


def test_it_loads_from_disk_without_a_word_and_asks_for_nothing_else(opened, site):
    opened.page.wait_for_load_state("load")
    assert opened.said == []
    assert [url for url in opened.asked if not url.startswith("data:image/png")] == [site.as_uri()]


def test_every_figure_is_there_with_a_size_and_ink(opened):
    page = opened.page
    figures = page.locator("figure")
    assert figures.count() == 6
    for i in range(figures.count()):
        box = figures.nth(i).locator("svg").bounding_box()
        assert box["width"] > 600
        assert box["height"] > 50
        assert figures.nth(i).locator("svg path").count() > 2
    for image in page.locator("svg image").all():
        assert image.bounding_box()["width"] > 10


def test_every_link_lands(opened):
    page = opened.page
    links = page.eval_on_selector_all("a[href^='#']", "all => all.map((a) => a.getAttribute('href'))")
    assert len(links) > 10
    for link in dict.fromkeys(links):
        page.evaluate("(link) => { location.hash = ''; location.hash = link; }", link)
        target = page.locator(f"[id='{link[1:]}']")
        assert target.count() == 1, link
        assert page.evaluate(
            "(name) => { const box = document.getElementById(name).getBoundingClientRect();"
            " return box.top < innerHeight && box.bottom > 0; }",
            link[1:],
        ), link


def test_a_link_takes_the_reader_along(opened):
    page = opened.page
    page.get_by_role("link", name="chain reading").click()
    assert page.url.endswith("#curves--claim-2")
    assert page.evaluate("scrollY") > 100


def test_files_beside_the_page_are_there(opened, site):
    page = opened.page
    links = page.eval_on_selector_all("a:not([href^='#'])", "all => all.map((a) => a.href)")
    assert len(links) == 6 * 3 + 2
    for link in links:
        path = site.parent / unquote(urlparse(link).path)
        assert path.is_relative_to(site.parent)
        assert path.stat().st_size > 0


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_until_chosen_and_the_choice_stays(visit, site, scheme):
    page = visit(site, scheme=scheme).page
    other = {"light": "dark", "dark": "light"}[scheme]
    button = page.get_by_role("button", name="Dark")
    first = background(page)
    assert button.get_attribute("aria-pressed") == str(scheme == "dark").lower()
    button.click()
    chosen = background(page)
    assert chosen != first
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == other
    page.reload()
    assert background(page) == chosen
    button.focus()
    page.keyboard.press("Enter")
    assert background(page) == first
    page.keyboard.press(" ")
    assert background(page) == chosen
    page.emulate_media(media="print")
    assert background(page) == "rgb(255, 255, 255)"


def test_the_theme_follows_a_system_that_changes(visit, site):
    page = visit(site).page
    first = background(page)
    page.emulate_media(color_scheme="dark")
    assert background(page) != first
    assert page.get_by_role("button", name="Dark").get_attribute("aria-pressed") == "true"


def test_numbers_unfold_by_mouse_and_keys(visit, site):
    page = visit(site).page
    fold = page.locator("#curves--bands--numbers")
    cell = fold.get_by_role("rowheader", name="300").first
    assert not cell.is_visible()
    fold.locator("summary").click()
    assert cell.is_visible()
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    assert not cell.is_visible()


def test_tab_leads_to_the_content_first_and_focus_is_seen(visit, site):
    page = visit(site).page
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    assert skip.evaluate("(each) => each === document.activeElement")
    assert skip.bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    seen = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("getComputedStyle(document.activeElement).outlineStyle"))
    assert seen == {"solid"}


def place(page, figure, name, where):
    """On the screen: the point of the series `name` shown at `where`, from the data of the page."""
    return page.evaluate(
        """([figure, name, where]) => {
          const box = document.getElementById(figure), svg = box.querySelector("svg");
          svg.scrollIntoView({block: "center"});
          const [[, , all]] = JSON.parse(box.querySelector("script").textContent);
          const [x, y] = all.find((each) => each[0] === name)[1].find((point) => point[2] === where);
          const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
          return [at.x, at.y];
        }""",
        [figure, name, where],
    )


@pytest.mark.parametrize(
    ("figure", "name", "where", "expected"),
    [
        ("curves--bands", "UBE", "300", "UBE: 900 [891, 909], at episode 300"),
        ("curves--dots", "UBE, first", "", "UBE, first: 1.00 [0.50, 1.50]"),
        ("maps--policies", "s0", "0.5", "s0: right, at radius 0.5"),
        ("maps--lines", "nominal", "2", "nominal: 4, at radius 2"),
        ("maps--heat", "row 1", "2", "row 1: 8.33 %, at column 2"),
    ],
)
def test_pointing_shows_the_value(opened, figure, name, where, expected):
    page = opened.page
    tip = page.locator(f"[id='{figure}'] .tip")
    assert not tip.is_visible()
    x, y = place(page, figure, name, where)
    page.mouse.move(x + 2, y + 1)
    assert tip.inner_text() == expected
    box, outer = tip.bounding_box(), page.locator(f"[id='{figure}']").bounding_box()
    assert outer["x"] <= box["x"]
    assert box["x"] + box["width"] <= outer["x"] + outer["width"] + 1
    ring = page.locator(f"[id='{figure}'] .ring").bounding_box()
    assert abs(ring["x"] + ring["width"] / 2 - x) < 1.5
    assert abs(ring["y"] + ring["height"] / 2 - y) < 1.5
    page.mouse.move(2, 2)
    assert not tip.is_visible()


def test_arrow_keys_read_the_values(visit, site):
    page = visit(site).page
    page.locator("#maps--lines .drawing").focus()
    tip = page.locator("#maps--lines .tip")

    def after(*keys):
        for key in keys:
            page.keyboard.press(key)
        return tip.inner_text()

    assert after("ArrowRight") == "robust: 0, at radius 0"
    assert after("ArrowRight", "ArrowRight") == "robust: 0.5, at radius 0.5"
    assert after("ArrowDown") == "nominal: 0.25, at radius 0.5"
    assert after("End", "ArrowRight") == "nominal: 4, at radius 2"
    assert after("ArrowUp") == "robust: 2, at radius 2"
    assert after("Home", "ArrowLeft") == "robust: 0, at radius 0"
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    page.locator("#maps--heat .drawing").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#maps--heat .tip").inner_text() == "row 1: 0 %, at column 1. Panel: visits"
    page.locator("#maps--lines .drawing").focus()
    assert after("ArrowRight").startswith("robust: 0.25")
    page.keyboard.press("Tab")
    assert not tip.is_visible()
    assert page.locator("#maps--lines .tip").get_attribute("role") == "status"


@pytest.mark.parametrize("width", [320, 390, 760])
def test_narrow_screens_do_not_scroll_sideways(visit, site, width):
    page = visit(site, width=width).page
    assert page.evaluate(LINES)
    button, title = page.get_by_role("button", name="Dark").bounding_box(), page.locator("h1").bounding_box()
    assert button["y"] + button["height"] <= title["y"] + 20 or button["x"] > title["x"]


def test_paper_shows_everything_within_its_width(visit, site):
    page = visit(site, width=680, scheme="dark").page  # A4 without margins of 15 mm
    page.emulate_media(media="print")
    assert page.evaluate(OVERFLOWS) == []
    assert page.evaluate(LINES)
    inner = page.locator("#curves--bands--numbers table").first
    assert inner.is_visible()
    assert not page.locator("figure summary").first.is_visible()
    assert page.locator(".claims summary").first.is_visible()
    assert not page.get_by_role("button", name="Dark").is_visible()
    paper = page.pdf(format="A4", prefer_css_page_size=True)
    assert 4 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 14
    streams = [zlib.decompress(s) for s in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", paper, re.S) if s[:1] == b"x"]
    assert sum(map(len, streams)) > 50_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_on_what_is_behind_it(visit, site, scheme):
    page = visit(site, scheme=scheme).page
    page.eval_on_selector_all("details", "all => all.forEach((each) => { each.open = true; })")
    found = page.evaluate(CONTRASTS)
    assert len(found) > 300
    low, text = min(found)
    assert low >= 4.5, text  # WCAG AA


def test_the_accessibility_tree_names_everything(opened):
    page = opened.page
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    by_role = {}
    for node in tree:
        if not node["ignored"]:
            by_role.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    assert [name for name in by_role["image"] if "Four lines" in name] == ["Four lines rise, URBE most."]
    assert len(by_role["image"]) == 6
    for role in ("image", "button", "link", "heading", "table", "rowheader", "navigation", "article"):
        assert all(by_role[role]), role
    labels = page.eval_on_selector_all("[tabindex='0']", "all => all.map((each) => each.ariaLabel)")
    assert all(labels)
    charts = [label for label in labels if label.startswith("Chart")]
    assert len(set(charts)) == 6
    assert len(by_role["main"]) == len(by_role["banner"]) == 1
    levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map((each) => Number(each.tagName[1]))")
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_without_scripts_everything_is_there_and_nothing_is_dead(visit, site):
    page = visit(site, script=False).page
    assert page.locator("figure svg").count() == 6
    assert page.locator("#claims").is_visible()
    assert not page.locator("button").is_visible()
    page.locator("#curves--bands--numbers summary").click()
    assert page.locator("#curves--bands--numbers table").first.is_visible()
