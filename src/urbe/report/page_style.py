"""The style sheet of a page: light and dark, screen and paper; no font, image or script from elsewhere."""

from __future__ import annotations

from urbe.report.style import THEMED

_LAYOUT = """\
:root { color-scheme: light dark; --page: #f4f5f7; --font: system-ui, -apple-system, "Segoe UI", "DejaVu Sans",
  sans-serif; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 1rem/1.55 var(--font); }
main, header, footer { max-width: 66rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2.5rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 0.5rem; }
h2 { font-size: 1.55rem; line-height: 1.25; margin: 0 0 0.5rem; }
h3 { font-size: 1.2rem; margin: 2.25rem 0 0.5rem; }
article { margin-top: 3.5rem; padding-top: 2rem; border-top: 2px solid var(--rule); }
p { max-width: 46rem; margin: 0.5rem 0; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav > ul { margin-top: 1.25rem; }
nav > ul > li { margin-top: 0.5rem; font-weight: 600; }
nav ul ul { display: flex; flex-wrap: wrap; gap: 0 1.25rem; font-weight: 400; font-size: 0.9rem; }
a { color: var(--robust); }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: 0.75rem 1.5rem; margin: 1.5rem 0;
  padding: 1rem 1.25rem; background: var(--card); border: 1px solid var(--rule); border-radius: 0.5rem; }
dt { color: var(--muted); font-size: 0.85rem; }
dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 1.25rem 0; padding: 1rem 1.25rem; background: var(--card); border: 1px solid var(--rule);
  border-radius: 0.5rem; }
.drawing, .scroll { overflow-x: auto; }
svg { display: block; width: 100%; min-width: 44rem; height: auto; }
figcaption { max-width: 50rem; margin-top: 0.5rem; font-size: 0.95rem; }
.verdicts { list-style: none; margin: 1rem 0; padding: 0; max-width: 50rem; }
.verdicts li { margin: 0.5rem 0; padding: 0.4rem 0 0.4rem 0.9rem; border-left: 0.3rem solid var(--muted); }
.verdicts strong { display: inline-block; min-width: 9rem; font-size: 0.9rem; color: var(--muted); }
.verdicts small { display: block; font-size: 0.85rem; color: var(--muted); }
.verdicts .holds { border-color: var(--robust); }
.verdicts .holds strong { color: var(--robust); }
.verdicts .does-not-hold { border-color: var(--nominal); }
.verdicts .does-not-hold strong { color: var(--nominal); }
.verdicts cite, .verdicts em { font-style: normal; font-size: 0.85rem; color: var(--muted); margin-right: 0.4rem; }
.verdicts em::before { content: "under: "; }
.claims ul { list-style: none; margin: 0; padding: 0; }
.claims tbody td, .claims tbody th { white-space: normal; vertical-align: top; }
.claims td { min-width: 9rem; }
.holds strong, strong.holds { color: var(--robust); }
.does-not-hold strong, strong.does-not-hold { color: var(--nominal); }
.depends strong { color: var(--violet); }
.depends strong::before { content: "\\25D1\\00a0"; }
.not-testable strong::before, strong.not-testable::before { content: "\\2013\\00a0"; }
strong.holds::before { content: "\\2713\\00a0"; }
strong.does-not-hold::before { content: "\\2717\\00a0"; }
strong.undecided::before { content: "?\\00a0"; }
.holds strong::before { content: "\\2713\\00a0"; }
.does-not-hold strong::before { content: "\\2717\\00a0"; }
.undecided strong::before { content: "?\\00a0"; }
details { margin-top: 0.5rem; }
summary { cursor: pointer; color: var(--muted); font-size: 0.9rem; }
table { border-collapse: collapse; margin: 0.75rem 0; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: 0.35rem; }
th, td { padding: 0.2rem 0.75rem; text-align: right; border-bottom: 1px solid var(--rule); }
thead th { vertical-align: bottom; font-weight: 600; }
th.words, td.words { text-align: left; }
tbody th { font-weight: 400; }
tbody th, tbody td { white-space: nowrap; }
footer { color: var(--muted); font-size: 0.85rem; padding-bottom: 3rem; margin-top: 3rem; }
@page { margin: 15mm; }
@media print {
  :root { --page: #ffffff; }
  body { font-size: 10pt; }
  nav, details { display: none; }
  main, header, footer { max-width: none; padding: 0; }
  svg { min-width: 0; }
  figure { break-inside: avoid; border: none; padding: 0; }
  h2, h3 { break-after: avoid; }
  h3 { margin-top: 1rem; }
  article { border-top: none; margin: 0; padding: 0; }
  article + article { break-before: page; }
  tr, .scroll, .verdicts li { break-inside: avoid; }
  figcaption { font-size: 9pt; }
  table { font-size: 7.5pt; }
  th, td { padding: 0.15rem 0.4rem; }
}
"""


def style_sheet() -> str:
    """The whole style sheet."""
    light = " ".join(f"--{name}: {colour};" for name, colour, _ in THEMED.values())
    dark = " ".join(f"--{name}: {colour};" for name, _, colour in THEMED.values())
    return (
        f":root {{ {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        f"{_LAYOUT}"
        "@media screen and (prefers-color-scheme: dark) { :root { --page: #121418; } }\n"
    )
