"""Pieces of an HTML page that needs nothing but itself: text is escaped, figures are inside, no script."""

import base64
import html
from collections.abc import Iterable, Sequence

from paceline.reports.figures import look
from paceline.reports.markup import Markup, joined, table_element, tag
from paceline.reports.tables import Table

STYLE = """
:root { color-scheme: light dark; --ink: #1c2127; --soft: #59636e; --paper: #ffffff; --tint: #f4f6f8;
  --rule: #d5dbe1; --link: #0b5cad; --alarm: #b00020; --alarm-paper: #fdecee; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ec; --soft: #a3adb8; --paper: #14181d; --tint: #1e242b;
  --rule: #38414b; --link: #79b8ff; --alarm: #ff9aa5; --alarm-paper: #45121a; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: anywhere; }
header, main, footer { max-width: 78rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2rem; }
footer { padding-bottom: 2rem; color: var(--soft); font-size: .875rem; }
h1 { margin: 0; font-size: 1.9rem; line-height: 1.2; }
h2 { margin: 2.5rem 0 .75rem; padding-bottom: .25rem; border-bottom: 1px solid var(--rule); font-size: 1.35rem; }
h3 { margin: 1.75rem 0 .5rem; font-size: 1.1rem; }
p, ul { max-width: 48rem; margin: .5rem 0; }
a { color: var(--link); }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .875em; }
pre { margin: .5rem 0; padding: .75rem; overflow-x: auto; background: var(--tint); border-radius: 6px; }
.lead { color: var(--soft); font-size: 1.05rem; }
.note { color: var(--soft); font-size: .9rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; max-width: none; padding: 0; list-style: none; }
.alarm { margin: 1rem 0; padding: .75rem 1rem; border: 2px solid var(--alarm); border-radius: 6px;
  background: var(--alarm-paper); color: var(--alarm); font-weight: 600; }
.caption { margin: 1rem 0 0; color: var(--soft); font-size: .9rem; }
.scroll { max-width: 100%; margin: .25rem 0 1rem; overflow-x: auto; }
.scroll:focus-visible { outline: 2px solid var(--link); }
table { border-collapse: separate; border-spacing: 0; font-size: .9rem; font-variant-numeric: tabular-nums;
  overflow-wrap: normal; }
th, td { padding: .35rem .75rem; border-bottom: 1px solid var(--rule); text-align: right; vertical-align: top;
  white-space: nowrap; }
thead th { border-bottom: 2px solid var(--rule); vertical-align: bottom; white-space: normal; }
th:first-child, td:first-child, .words th, .words td { text-align: left; }
.words td, .words th { white-space: normal; }
tbody th { position: sticky; left: 0; background: var(--paper) padding-box; font-weight: 600; }
th:first-child { padding-left: 0; }
.overspent { color: var(--alarm); font-weight: 700; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 1rem;
  align-items: start; margin: .75rem 0 1.5rem; }
figure { margin: 0; padding: .5rem; border: 1px solid var(--rule); border-radius: 6px; background: #fff;
  max-width: 34rem; break-inside: avoid; }
figure img { display: block; width: 100%; height: auto; }
figcaption { padding: .25rem .25rem 0; color: #4a535c; font-size: .85rem; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; max-width: none; margin: .75rem 0 0;
  padding: .5rem .75rem; border: 1px solid var(--rule); border-radius: 6px; background: #fff; color: #1c2127;
  list-style: none; font-size: .9rem; }
.legend svg { width: 30px; height: 10px; margin-right: .4rem; vertical-align: baseline; }
details { margin: .5rem 0; border: 1px solid var(--rule); border-radius: 6px; padding: 0 1rem; }
summary { margin: 0 -1rem; padding: .5rem 1rem; cursor: pointer; }
summary:hover { background: var(--tint); }
summary strong { margin-right: .75rem; }
@media (max-width: 40rem) { header, main, footer { padding-left: .9rem; padding-right: .9rem; }
  h1 { font-size: 1.5rem; } th, td { padding: .35rem .5rem; } table { width: max-content; }
  .words table { width: auto; } tbody th { max-width: 9.5rem; white-space: normal; overflow-wrap: break-word; }
  details { padding: 0 .6rem; } summary { margin: 0 -.6rem; padding: .5rem .6rem; } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --paper: #fff; --tint: #fff; --rule: #bbb;
    --link: #000; --alarm: #b00020; --alarm-paper: #fff; }
  body { font-size: 10pt; } nav { display: none; } .scroll { overflow: visible; } th, td { white-space: normal; }
  h2, h3, summary { break-after: avoid; } tr { break-inside: avoid; }
  .figures { grid-template-columns: 1fr 1fr; } details::details-content { content-visibility: visible; } }
"""
DASHES = {"-": "", "--": "6 3", "-.": "7 2 2 2"}


def table(content: Table, caption: str, *, words: bool = False) -> Markup:
    """A table in a box that scrolls when it is too wide; ``words`` sets all columns left."""
    kind = "scroll words" if words else "scroll"
    box = tag(
        "div", table_element(content, aria_label=caption), class_=kind, tabindex="0", role="region", aria_label=caption
    )
    notes = (tag("p", note, class_="note") for note in content.notes)
    return joined([tag("p", caption, class_="caption"), box, *notes])  # the caption is not to be scrolled


def figure(svg: str, alternative: str, caption: str) -> Markup:
    """A figure that carries its image with it, what it shows in words, and a caption."""
    data = base64.b64encode(svg.encode()).decode()
    image = Markup(f'<img src="data:image/svg+xml;base64,{data}" alt="{html.escape(alternative)}">')
    return tag("figure", image, tag("figcaption", caption))


def figures(legend_of: Sequence[str], drawn: Iterable[Markup]) -> Markup:
    """Figures side by side, as many as fit, below the colours of the policies."""
    return joined([legend(legend_of), tag("div", *drawn, class_="figures")])


def legend(labels: Sequence[str]) -> Markup:
    """The colour and the dashes of each policy."""
    return tag("ul", *(tag("li", swatch(place), label) for place, label in enumerate(labels)), class_="legend")


def swatch(place: int) -> Markup:
    """A piece of the line of the policy in this place."""
    colour, dashes = look(place)
    drawn = f'stroke="{colour}" stroke-width="3" stroke-dasharray="{DASHES[dashes]}"'
    return Markup(f'<svg viewBox="0 0 30 10" aria-hidden="true"><line x1="0" y1="5" x2="30" y2="5" {drawn}/></svg>')


def document(title: str, head: Markup, body: Markup, foot: Markup) -> str:
    """The page. Its policy forbids the browser to fetch or run anything, should a label get through."""
    rules = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{rules}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            tag("title", title),
            f"<style>{STYLE}</style>",
            "</head>",
            "<body>",
            tag("header", head),
            tag("main", body),
            tag("footer", foot),
            "</body>",
            "</html>",
            "",
        ]
    )
