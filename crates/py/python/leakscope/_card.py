"""What a notebook shows of a result: its verdict, the numbers to remember, a small histogram, and the way to the whole page.

A card is a few kilobytes, so that a notebook with many results stays small; it needs no script and asks no server for anything.
Colours are those of the notebook's theme (JupyterLab and VS Code name theirs as CSS variables), elsewhere those of the system.
"""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

#: tiles of a page that a card shows
_TILES = 4
#: sentences of a verdict that it shows
_SENTENCES = 2
#: bars of its histogram
_BARS = 40

_STYLE = """
.leakscope-card{--ink:var(--jp-ui-font-color1,var(--vscode-editor-foreground,#1d2430));
--faint:var(--jp-ui-font-color2,var(--vscode-descriptionForeground,#5a6472));
--line:var(--jp-border-color2,var(--vscode-widget-border,#d5dae1));
--paper:var(--jp-layout-color1,var(--vscode-editor-background,#fff));
--good:#1a7f4b;--care:#a15c00;--bad:#c0272d;--bar:#3b6fb6;--link:#1f5fae;
font:14px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper);border:1px solid var(--line);border-left-width:5px;
border-radius:6px;padding:12px 16px;max-width:760px;box-sizing:border-box}
.leakscope-card.good{border-left-color:var(--good)}.leakscope-card.care{border-left-color:var(--care)}
.leakscope-card.bad{border-left-color:var(--bad)}
.leakscope-card p{margin:2px 0}.leakscope-card .of,.leakscope-card .end,.leakscope-card text{color:var(--faint);fill:var(--faint);
font-size:12px}
.leakscope-card .level{font-weight:650;font-size:16px}
.leakscope-card.good .level{color:var(--good)}.leakscope-card.care .level{color:var(--care)}.leakscope-card.bad .level{color:var(--bad)}
.leakscope-card .tiles{display:flex;flex-wrap:wrap;gap:6px 22px;margin:10px 0 6px}
.leakscope-card .tiles div{flex:1 1 130px;max-width:240px}.leakscope-card .tiles b{display:block;font-size:18px}
.leakscope-card .tiles span{color:var(--faint);font-size:12px;line-height:1.3;display:block}
.leakscope-card svg{display:block;width:100%;max-width:480px;height:auto;margin:6px 0}.leakscope-card rect{fill:var(--bar)}
.leakscope-card line{stroke:var(--line)}.leakscope-card a{color:var(--link)}
.leakscope-card code{background:none;color:var(--ink);font-size:12px}
@media (prefers-color-scheme:dark){.leakscope-card{
--ink:var(--jp-ui-font-color1,var(--vscode-editor-foreground,#e4e8ee));
--faint:var(--jp-ui-font-color2,var(--vscode-descriptionForeground,#a3adba));
--line:var(--jp-border-color2,var(--vscode-widget-border,#3a424e));
--paper:var(--jp-layout-color1,var(--vscode-editor-background,#14181f))}}
@media (prefers-color-scheme:dark){.leakscope-card{--good:#4cc38a;--care:#f0a83c;--bad:#ff7b72;--bar:#6ea8fe;--link:#7db4ff}}
[data-jp-theme-light=true] .leakscope-card,.vscode-light .leakscope-card{--good:#1a7f4b;--care:#a15c00;--bad:#c0272d;--bar:#3b6fb6;
--link:#1f5fae}
[data-jp-theme-light=false] .leakscope-card,.vscode-dark .leakscope-card{--good:#4cc38a;--care:#f0a83c;--bad:#ff7b72;--bar:#6ea8fe;
--link:#7db4ff}
"""


class _Head(HTMLParser):
    """The head of a page: its title, the verdict and the tiles, as plain text."""

    _EMPTY = {"meta", "link", "br", "img", "input", "hr", "path", "rect", "line", "circle", "use", "polyline"}

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.kind = self.title = self.headline = self.colour = ""
        self.sentences: list[str] = []
        self.tiles: list[list[str]] = []
        # every open element, with what its text is of
        self._open: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self._EMPTY:
            return
        classes = (dict(attrs).get("class") or "").split()
        inside = [role for _, role in self._open]
        role = inside[-1] if inside else ""
        if tag in ("script", "style", "details", "svg", "button"):
            role = "skip"
        elif role == "skip":
            pass
        elif "eyebrow" in classes:
            role = "kind"
        elif tag == "h1":
            role = "title"
        elif tag == "section" and "verdict" in classes:
            role, self.colour = "verdict", next((c for c in classes if c in ("good", "care", "bad")), "")
        elif "level" in classes and "verdict" in inside:
            role = "headline"
        elif tag == "p" and "verdict" in inside:
            role = "sentence"
            self.sentences.append("")
        elif "tile" in classes:
            role = "tile"
            self.tiles.append(["", ""])
        elif tag == "strong" and role == "tile":
            role = "value"
        elif tag == "span" and role == "tile":
            role = "name"
        self._open.append((tag, role))

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            if self._open.pop()[0] == tag:
                return

    def handle_data(self, data: str) -> None:
        match self._open[-1][1] if self._open else "":
            case "kind":
                self.kind += data
            case "title":
                self.title += data
            case "headline":
                self.headline += data
            case "sentence":
                self.sentences[-1] += data
            case "value":
                self.tiles[-1][0] += data
            case "name":
                self.tiles[-1][1] += data


def _histogram(result: dict[str, Any]) -> tuple[list[float], list[float], str, bool] | None:
    """The edges and counts of what a document shows over records, its name, and whether the axis is logarithmic."""
    records = result.get("records")
    if isinstance(records, dict) and "histogram" in records:
        of = records["histogram"]
        columns = [series["counts"] for series in of["series"]]
        bins = max(map(len, columns), default=0)
        counts = [float(sum(c[i] for c in columns if i < len(c))) for i in range(bins)]
        edges = [of["low"] + (of["high"] - of["low"]) * i / max(bins, 1) for i in range(bins + 1)]
        return edges, counts, "information loss η of a record", False
    accounts = result.get("accounts") or {}
    for of, name in ((result.get("dfil_histogram"), "dFIL of a record"), (result.get("eta_histogram"), "η of a record"),
                     (accounts.get("histogram"), "dFIL of a record over the run")):
        if of:
            return of["edges"], of["counts"], name, bool(of["logarithmic"])
    return None


def _number(x: float) -> str:
    return f"{x:.3g}".replace("e-0", "e-").replace("e+0", "e")


def _drawing(result: dict[str, Any]) -> str:
    """A small histogram as inline SVG; nothing where the result has none."""
    histogram = _histogram(result)
    if histogram is None or not any(histogram[1]):
        return ""
    edges, counts, name, logarithmic = histogram
    by = -(-len(counts) // _BARS)
    bars = [sum(counts[i: i + by]) for i in range(0, len(counts), by)]
    width, height, most = 480.0, 64.0, max(bars)
    step = width / len(bars)
    # A bar of few records is a line at least.
    tall = [max(1.5, height * bar / most) if bar else 0.0 for bar in bars]
    drawn = "".join(f'<rect x="{i * step:.1f}" y="{height - h:.1f}" width="{max(step - 1, 0.5):.1f}" height="{h:.1f}"/>'
                    for i, h in enumerate(tall) if h)
    low, high = _number(edges[0]), _number(edges[-1])
    scale = ", logarithmic" if logarithmic else ""
    described = f"Histogram of {name}, from {low} to {high}"
    return (f'<svg viewBox="0 0 480 84" role="img" aria-label="{escape(described)}">{drawn}'
            f'<line x1="0" y1="64.5" x2="480" y2="64.5"/><text x="0" y="80">{low}</text>'
            f'<text x="240" y="80" text-anchor="middle">{escape(name + scale)}</text>'
            f'<text x="480" y="80" text-anchor="end">{high}</text></svg>')


def _way(page: Path | None) -> str:
    """A link to the page where it was written; otherwise how to get it."""
    if page is None:
        return "Whole page: <code>.open()</code> shows it, <code>.report(&quot;page.html&quot;)</code> keeps it."
    page, here = page.absolute(), Path.cwd()
    # Notebooks run in the folder that their server (or editor) resolves relative links in, also on another machine.
    near = page.is_relative_to(here)
    href = quote(page.relative_to(here).as_posix()) if near else page.as_uri()
    return f'<a href="{escape(href)}" target="_blank" rel="noopener">Open the whole page</a>'


def card(page: str, result: dict[str, Any], written: Path | None) -> str:
    """The card of a result, from its page and its document; ``written`` is where the page lies, if anywhere."""
    head = _Head()
    # What a card shows stands before the first part of the page's body.
    head.feed(re.split(r'<section class="card"', page, maxsplit=1)[0])
    sentences = "".join(f"<p>{escape(s.strip())}</p>" for s in head.sentences[:_SENTENCES] if s.strip())
    tiles = "".join(f"<div><b>{escape(value.strip())}</b><span>{escape(name.strip())}</span></div>"
                    for value, name in head.tiles[:_TILES])
    tiles = f'<div class="tiles">{tiles}</div>' if tiles else ""
    level = f'<p class="level">{escape(head.headline.strip())}</p>' if head.headline else ""
    return (f"<style>{_STYLE}</style>"
            f'<div class="leakscope-card {head.colour}"><p class="of">{escape(head.kind.strip())} · {escape(head.title.strip())}</p>'
            f'{level}{sentences}{tiles}{_drawing(result)}<p class="end">{_way(written)}</p></div>')
