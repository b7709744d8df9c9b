"""A report in a real browser: it loads from disk, shows every figure, and its links, switches and print work."""

import re
import zlib
from itertools import pairwise
from urllib.parse import unquote, urlparse

import pytest

PAGES = ("index", "curves", "maps")

LINES = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"

OVERFLOWS = """() => [...document.querySelectorAll("h1, h2, h3, p, dl, li, table, svg, figcaption, td, th")]
  .filter((each) => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((each) => each.outerHTML.slice(0, 80))"""

SEEN = """(name) => {
  const box = document.getElementById(name).getBoundingClientRect();
  return box.top < innerHeight && box.bottom > 0;
}"""

# text of drawings that leaves its image, which would clip it
CLIPPED = """() => [...document.querySelectorAll("figure svg")].flatMap((svg) => {
  const view = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter((text) => {
    const box = text.getBoundingClientRect();
    return box.width && (box.left < view.left - 1 || box.right > view.right + 1 || box.top < view.top - 1
      || box.bottom > view.bottom + 1);
  }).map((text) => text.textContent);
})"""

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


@pytest.mark.parametrize("name", PAGES)
def test_it_loads_from_disk_without_a_message_and_asks_for_nothing_else(opened, site, name):
    seen = opened[name]
    seen.page.wait_for_load_state("load")
    assert seen.said == []
    assert [url for url in seen.asked if not url.startswith("data:image/png")] == [(site / f"{name}.html").as_uri()]


def test_every_figure_is_there_with_a_size_and_ink(opened):
    counts = {}
    for name, seen in opened.items():
        figures = seen.page.locator("figure")
        counts[name] = figures.count()
        for image in seen.page.locator("figure svg").all():
            box = image.bounding_box()
            assert box["width"] > 200
            assert box["height"] > 20
            assert image.locator("path").count() > 2
        for image in seen.page.locator("svg image").all():
            assert image.bounding_box()["width"] > 10
    assert counts == {"index": 1, "curves": 2, "maps": 4}


def test_every_link_within_a_page_lands(opened):
    for seen in opened.values():
        page = seen.page
        links = page.eval_on_selector_all("a[href^='#']", "all => all.map((a) => a.getAttribute('href'))")
        for link in dict.fromkeys(links):
            page.evaluate("(link) => { location.hash = ''; location.hash = link; }", link)
            assert page.locator(f"[id='{link[1:]}']").count() == 1, link
            assert page.evaluate(SEEN, link[1:]), link


def test_every_claim_leads_to_its_verdict_which_unfolds(visit, site):
    page = visit(site / "index.html").page
    count = page.locator(".claims a").count()
    assert count == 4
    for i in range(count):
        page.goto((site / "index.html").as_uri())
        link = page.locator(".claims a").nth(i)
        claim = link.inner_text()
        link.click()
        page.wait_for_url("**/curves.html#claim-*")
        target = page.locator(f"[id='{page.url.split('#')[1]}']")
        assert target.is_visible()
        assert claim in page.locator("details[open] summary").inner_text()


def test_a_reader_gets_to_every_chapter_and_back(visit, site):
    page = visit(site / "index.html").page
    page.get_by_role("link", name="Agents that learn").last.click()
    assert page.locator("h1").inner_text() == "Agents that learn"
    page.get_by_role("link", name="Next: Maps & <policies>").click()
    assert page.url == (site / "maps.html").as_uri()
    page.get_by_role("link", name="Overview").click()
    assert page.url == (site / "index.html").as_uri()


def test_the_front_page_is_short_and_says_what_was_found(opened):
    page = opened["index"].page
    text = page.locator("body").inner_text()
    order = [
        "Of the 4 claims of the paper, 1 holds, 1 holds under some assumptions, 1 is undecided and 1 could not be",
        "URBE learns to be far better than all others.", "Glossary", "The paper's claims", "Chapters",
        "How this was computed",
    ]  # fmt: skip
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    assert "Lines that coincide: robust, nominal." in text
    heading = page.locator("#tally").bounding_box()
    assert heading["y"] + heading["height"] < 400


def test_files_beside_the_pages_are_there(opened, site):
    links = set()
    for seen in opened.values():
        links |= set(seen.page.eval_on_selector_all("a[aria-label]", "all => all.map((a) => a.href)"))
    assert len(links) == 6 * 3 + 2
    for link in links:
        path = site / unquote(urlparse(link).path)
        assert path.is_relative_to(site)
        assert path.stat().st_size > 0


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_until_chosen_and_the_choice_stays(visit, site, scheme):
    page = visit(site / "index.html", scheme=scheme).page
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
    page = visit(site / "index.html").page
    first = background(page)
    page.emulate_media(color_scheme="dark")
    assert background(page) != first
    assert page.get_by_role("button", name="Dark").get_attribute("aria-pressed") == "true"


def test_numbers_unfold_by_mouse_and_keys(visit, site):
    page = visit(site / "curves.html").page
    fold = page.locator("#figure-bands--numbers")
    cell = fold.get_by_role("rowheader", name="300").first
    assert not cell.is_visible()
    fold.locator("summary").click()
    assert cell.is_visible()
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    assert not cell.is_visible()


def test_tab_leads_to_the_content_first_and_focus_is_seen(visit, site):
    page = visit(site / "curves.html").page
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
          const box = document.getElementById(figure);
          const [[, , all]] = JSON.parse(box.querySelector("script").textContent);
          const [x, y] = all.find((each) => each[0] === name)[1].find((point) => point[2] === where);
          const svg = [...box.querySelectorAll("svg")].find(({ viewBox: { baseVal: view } }) => x >= view.x
            && x <= view.x + view.width && y >= view.y && y <= view.y + view.height);
          svg.scrollIntoView({block: "center"});
          const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
          return [at.x, at.y];
        }""",
        [figure, name, where],
    )


@pytest.mark.parametrize(
    ("chapter", "figure", "name", "where", "expected"),
    [
        ("curves", "bands", "UBE", "300", "UBE: 900 [891, 909], at episode 300"),
        ("curves", "dots", "UBE, first", "", "UBE, first: 1.00 [0.50, 1.50]"),
        ("maps", "policies", "s0", "0.5", "s0: right, at radius 0.5"),
        ("maps", "lines", "nominal", "2", "nominal: 4, at radius 2"),
        ("maps", "heat", "row 1", "2", "row 1: 8.33 %, at column 2"),
    ],
)
def test_pointing_shows_the_value(opened, chapter, figure, name, where, expected):
    page = opened[chapter].page
    page.bring_to_front()
    figure = f"figure-{figure}"
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
    page = visit(site / "maps.html").page
    page.locator("#figure-lines .drawing").focus()
    tip = page.locator("#figure-lines .tip")

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
    page.locator("#figure-heat .drawing").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#figure-heat .tip").inner_text() == "row 1: 0 %, at column 1. Panel: visits"
    page.locator("#figure-lines .drawing").focus()
    assert after("ArrowRight").startswith("robust: 0.25")
    page.keyboard.press("Tab")
    assert not tip.is_visible()
    assert page.locator("#figure-lines .tip").get_attribute("role") == "status"


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [320, 400, 760, 1400])
def test_no_width_scrolls_sideways_or_clips_a_drawing(visit, site, width, name):
    page = visit(site / f"{name}.html", width=width).page
    assert page.evaluate(LINES)
    assert page.evaluate(CLIPPED) == []
    button, title = page.get_by_role("button", name="Dark").bounding_box(), page.locator("h1").bounding_box()
    assert button["y"] + button["height"] <= title["y"] + 20 or button["x"] > title["x"]


@pytest.mark.parametrize(("width", "below"), [(400, True), (1100, False)])
def test_panels_stand_side_by_side_and_stack_on_a_phone(visit, site, width, below):
    page = visit(site / "curves.html", width=width).page
    left, right = (image.bounding_box() for image in page.locator("#figure-bands svg").all())
    assert (right["y"] >= left["y"] + left["height"] - 1) == below
    assert (right["x"] >= left["x"] + left["width"] - 1) != below
    texts = [
        [text.strip() for text in image.locator("text").all_text_contents()]
        for image in page.locator("#figure-bands svg").all()
    ]
    assert all({"URBE", "reward", "episode", "a belief"} <= set(each) for each in texts)


@pytest.mark.parametrize(("width", "beside"), [(400, False), (900, True), (1400, False)])
def test_the_caption_of_a_front_figure_is_beside_it_on_a_tablet(visit, site, width, beside):
    page = visit(site / "index.html", width=width).page
    drawing, caption = (page.locator(f".highlight {each}").first.bounding_box() for each in (".drawing", "figcaption"))
    assert (caption["x"] >= drawing["x"] + drawing["width"]) == beside
    assert (caption["y"] >= drawing["y"] + drawing["height"] - 1) != beside


def test_paper_shows_the_pages_within_their_width(visit, site):
    total = 0
    for name in PAGES:
        page = visit(site / f"{name}.html", width=680, scheme="dark").page  # A4 without margins of 15 mm
        page.emulate_media(media="print")
        assert page.evaluate(OVERFLOWS) == []
        assert page.evaluate(LINES)
        assert not page.get_by_role("button", name="Dark").is_visible()
        assert not page.locator("figure summary").first.is_visible() or name == "index"
        paper = page.pdf(format="A4", prefer_css_page_size=True)
        total += len(re.findall(rb"/Type\s*/Page\b", paper))
        streams = [
            zlib.decompress(s) for s in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", paper, re.S) if s[:1] == b"x"
        ]
        assert sum(map(len, streams)) > 10_000
    assert 3 <= total <= 8


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_on_what_is_behind_it(visit, site, scheme):
    found = []
    for name in PAGES:
        page = visit(site / f"{name}.html", scheme=scheme).page
        page.eval_on_selector_all("details", "all => all.forEach((each) => { each.open = true; })")
        found += page.evaluate(CONTRASTS)
    assert len(found) > 300
    low, text = min(found)
    assert low >= 4.5, text  # WCAG AA


@pytest.mark.parametrize(("name", "images"), [("index", 1), ("curves", 2), ("maps", 4)])
def test_the_accessibility_tree_names_everything(opened, name, images):
    page = opened[name].page
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    by_role = {}
    for node in tree:
        if not node["ignored"]:
            by_role.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    assert len(by_role["image"]) == images
    for role in ("image", "button", "link", "heading", "table", "rowheader", "navigation"):
        assert all(by_role.get(role, [])), role
    if name == "curves":
        assert [text for text in by_role["image"] if "Four lines" in text] == ["Four lines rise, URBE most."]
    labels = page.eval_on_selector_all("[tabindex='0']", "all => all.map((each) => each.ariaLabel)")
    assert all(labels)
    charts = [label for label in labels if label.startswith("Chart")]
    assert len(set(charts)) == images
    assert len(by_role["main"]) == len(by_role["banner"]) == 1
    levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map((each) => Number(each.tagName[1]))")
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_without_scripts_everything_is_there_and_nothing_is_dead(visit, site):
    front, page = (visit(site / f"{name}.html", script=False).page for name in ("index", "curves"))
    assert front.locator("#claims").is_visible()
    assert page.locator("figure").count() == 2
    assert not page.locator("button").is_visible()
    page.locator("#figure-bands--numbers summary").click()
    assert page.locator("#figure-bands--numbers table").first.is_visible()
