"""The style sheet of a page: light and dark, screen and paper; no font, image or script from elsewhere."""

from __future__ import annotations

from urbe.report.style import THEMED

_PAGE = ("page", "#f4f5f7", "#121418")
"""Behind everything: variable, light, dark."""

_LAYOUT = """\
:root { color-scheme: light dark; --font: system-ui, -apple-system, "Segoe UI", "DejaVu Sans",
  sans-serif; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 1rem/1.55 var(--font); }
main, header, footer { max-width: 66rem; margin: 0 auto; padding: 0 1.25rem; }
header { position: relative; padding-top: 2.5rem; }
:focus-visible { outline: 3px solid var(--robust); outline-offset: 2px; }
main:focus { outline: none; }
.skip { position: absolute; left: 1rem; top: -4rem; padding: 0.5rem 1rem; background: var(--card); z-index: 2; }
.skip:focus { top: 0.5rem; }
button { font: inherit; font-size: 0.9rem; padding: 0.3rem 0.9rem; color: var(--ink); background: var(--card);
  border: 1px solid var(--muted); border-radius: 1rem; cursor: pointer; }
button[aria-pressed="true"] { color: var(--card); background: var(--ink); }
#theme { position: absolute; right: 1.25rem; top: 1rem; }
.state { margin: 1.25rem 0; padding: 0.75rem 1.25rem; background: var(--card); border: 1px solid var(--muted);
  border-radius: 0.5rem; }
.state progress { width: 100%; height: 0.9rem; accent-color: var(--robust); }
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
.drawing, .scroll { position: relative; }
.tip { position: absolute; max-width: 22rem; padding: 0.15rem 0.5rem; font-size: 0.85rem; pointer-events: none;
  color: var(--card); background: var(--ink); border-radius: 0.3rem; }
.ring { fill: none; stroke: var(--ink); stroke-width: 2; }
.files { font-size: 0.85rem; white-space: nowrap; }
.files a { margin-left: 0.4rem; }
svg { display: block; width: 100%; min-width: 44rem; height: auto; }
figcaption { max-width: 50rem; margin-top: 0.5rem; font-size: 0.95rem; }
.verdicts { list-style: none; margin: 1rem 0; padding: 0; max-width: 50rem; }
.verdicts li { margin: 0.5rem 0; padding: 0.4rem 0.9rem; background: var(--card);
  border-left: 0.3rem solid var(--muted); }
.verdicts strong { display: inline-block; min-width: 9rem; font-size: 0.9rem; color: var(--muted); }
.verdicts ul { list-style: none; margin: 0.3rem 0 0; padding: 0; }
.verdicts ul li { margin: 0.2rem 0; padding: 0.1rem 0.6rem; }
.verdicts small { display: block; font-size: 0.85rem; color: var(--muted); }
.verdicts .holds { border-color: var(--robust); }
.verdicts .holds strong { color: var(--robust); }
.verdicts .does-not-hold { border-color: var(--nominal); }
.verdicts .does-not-hold strong { color: var(--nominal); }
.verdicts cite, .verdicts em { font-style: normal; font-size: 0.85rem; color: var(--muted); margin-right: 0.4rem; }
.verdicts em { color: var(--ink); }
.claims { margin-top: 2.5rem; padding: 1rem 1.25rem; background: var(--card); border: 1px solid var(--rule);
  border-radius: 0.5rem; }
.claims p { color: var(--muted); font-size: 0.9rem; }
.claims table { width: 100%; }
.claims ul { list-style: none; margin: 0; padding: 0; }
.claims tbody td, .claims tbody th { white-space: normal; vertical-align: top; }
.claims td { min-width: 9rem; }
@media (min-width: 48.01rem) { .claims td { width: 30%; } }
.claims details { margin: 0; }
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
@media (max-width: 48rem) {
  .claims thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .claims table, .claims tbody, .claims tr, .claims tbody th, .claims td, .claims caption { display: block; }
  .claims tr { padding: 0.5rem 0; border-bottom: 1px solid var(--rule); }
  .claims tbody th, .claims td { border: none; padding: 0.1rem 0; }
  .claims tbody th { font-weight: 600; }
}
@page { margin: 15mm; }
@media print {
  body { font-size: 10pt; }
  nav, figure summary, button, .skip, .tip, .ring, .files, .rows, label { display: none; }
  figure details::details-content { content-visibility: visible; block-size: auto; }
  main, header, footer { max-width: none; padding: 0; }
  svg { min-width: 0; max-height: 24cm; }
  figure, .claims { border: none; padding: 0; }
  .drawing { break-inside: avoid; break-after: avoid; }
  .drawing, .scroll { overflow: visible; }
  h2, h3, caption, thead { break-after: avoid; }
  h3 { margin-top: 1rem; }
  article { border-top: none; margin: 0; padding: 0; break-before: page; }
  tr, dl, .verdicts li { break-inside: avoid; }
  figcaption { font-size: 9pt; }
  table { font-size: 7.5pt; max-width: 100%; }
  th, td { padding: 0.15rem 0.3rem; }
  tbody th, tbody td { white-space: normal; }
  td { overflow-wrap: break-word; }
  td.words { overflow-wrap: anywhere; }
  .claims p { font-size: 8pt; }
  :focus-visible { outline: none; }
}
"""


def style_sheet() -> str:
    """The whole style sheet: the system's theme unless the reader chose one; paper is white."""
    light, dark = (" ".join(f"--{each[0]}: {each[mode]};" for each in (*THEMED.values(), _PAGE)) for mode in (1, 2))
    return (
        f":root {{ {light} }}\n"
        "@media screen and (prefers-color-scheme: dark) { "
        f':root:not([data-theme="light"]) {{ {dark} }} }}\n'
        f'@media screen {{ :root[data-theme="dark"] {{ {dark} }} }}\n'
        f"{_LAYOUT}"
        '@media screen { :root[data-theme="light"] { color-scheme: light; } '
        ':root[data-theme="dark"] { color-scheme: dark; } }\n'
        "@media print { :root { --page: #ffffff; } }\n"
    )
