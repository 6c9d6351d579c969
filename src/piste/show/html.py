"""An explanation as one standalone page, and as a fragment for notebooks."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from piste import storage
from piste.explanation import Explanation
from piste.show import colours, reading, svg
from piste.show.columns import Column, columns


def to_html(e: Explanation, path: str | Path | None = None) -> str:
    """A complete page that works offline, also written to ``path`` if given.

    It asks nothing of any network: styles and script are inline, and its own content security
    policy forbids everything else. All text is escaped.
    """
    kinds, found, script = reading.kinds(e), columns(e), asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(reading.prediction(e))} · Piste</title>
<style>{asset("parts.css")}{asset("page.css")}</style>
</head>
<body>
<main class="piste">
{_header(e)}
{_text_section(e, kinds, found)}
{_plane_section(e, kinds)}
{_table_section(e, kinds, found)}
{_details(e)}
</main>
<div class="piste-tip" role="tooltip" hidden></div>
<script type="application/json" class="piste-data">{_data(e, kinds, found)}</script>
<script>{script}</script>
</body>
</html>
"""
    if path is not None:
        storage.write_text(path, page)
    return page


def fragment(e: Explanation) -> str:
    """The gist for a notebook: no script, no ids, styles that touch nothing outside."""
    kinds = reading.kinds(e)
    plane = svg.plane(e, kinds, width=760, height=440)
    more = f"<details><summary>Value and importance</summary>{plane}</details>" if plane else ""
    return (
        f"<style>{asset('parts.css')}</style>"
        f'<div class="piste piste-fragment"><p><strong>{escape(reading.prediction(e))}</strong> '
        f'<span class="piste-faint">{escape(reading.explained(e))} · {escape(e.method)}</span></p>'
        f"{_warnings(e)}{_text(e, kinds)}{_legend(e)}"
        f'<p class="piste-faint">{escape(reading.trust(e))}</p>{more}</div>'
    )


@cache
def asset(name: str) -> str:
    """A style sheet or script that is part of every page."""
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8").strip()


def _warnings(e: Explanation) -> str:
    return "".join(f'<p class="piste-note">{escape(words)}</p>' for words in reading.warnings(e))


def _header(e: Explanation) -> str:
    chance, r2 = e.output.probability, e.fidelity.r2
    answer = reading.prediction(e) if chance is None else e.output.label
    percent = "" if chance is None else f" <small>{escape(reading.percent(chance))}</small>"
    model = str(e.classifier.get("name") or "the model")
    share = 100 * min(max(r2, 0.0), 1.0) if np.isfinite(r2) else 0.0
    return f"""<header>
<p class="piste-kicker">What {escape(model)} says, and why</p>
<h1>{escape(answer)}{percent}</h1>
<p>Explained: {escape(reading.explained(e))}, by {escape(e.method)} with {e.calls:,} calls
in {e.seconds:.1f} s.</p>
<p class="piste-trust"><span class="piste-meter"><i style="width:{share:.0f}%"></i></span>
<span><b>How far to trust it.</b> {escape(reading.trust(e))}</span></p>
{_warnings(e)}
</header>"""


def _text(e: Explanation, kinds: list[reading.Kind]) -> str:
    """Every unit a span with its kind, its colour and, for readers without script, its scores."""
    kind_of = {unit: index for index, kind in enumerate(kinds) for unit in kind.units}
    main = [c for c in columns(e, e.output.label) if c.name in ("value", "importance", e.ranking)]
    tips = [
        escape(" · ".join(f"{column.name} {column.shown(kind.first)}" for column in main))
        for kind in kinds
    ]
    strengths = colours.strengths(e.score())
    blocks = []
    for number, pieces in enumerate(reading.texts(e), start=1):
        parts = []
        for piece in pieces:
            words = escape(piece.text)
            if piece.unit is None:
                parts.append(f'<s class="piste-unread">{words}</s>' if piece.unread else words)
                continue
            kind, colour = kind_of[piece.unit], colours.css(float(strengths[piece.unit]))
            parts.append(
                f'<span class="piste-unit" data-k="{kind}" title="{tips[kind]}" '
                f'style="background:{colour}">{words}</span>'
            )
        if not isinstance(e.input, str):
            blocks.append(f'<p class="piste-faint">Text {number}</p>')
        blocks.append(f'<p class="piste-text" dir="auto">{"".join(parts)}</p>')
    return "".join(blocks)


def _legend(e: Explanation) -> str:
    above, below = reading.score_sides(e, e.ranking)
    steps = (-1.0, -0.6, -0.25, 0.25, 0.6, 1.0)
    swatches = "".join(f'<i style="background:{colours.css(step)}"></i>' for step in steps)
    return (
        f'<p class="piste-legend"><span class="piste-below">{escape(below)}</span> '
        f'<span class="piste-steps">{swatches}</span> '
        f'<span class="piste-above">{escape(above)}</span></p>'
    )


def _text_section(e: Explanation, kinds: list[reading.Kind], found: list[Column]) -> str:
    options = "".join(
        f'<option value="{index}">{escape(column.title)}</option>'
        for index, column in enumerate(found)
    )
    # With one score only, there is no plane below to explain how to read it.
    meaning = found[0].meaning if len(found) > 1 else reading.how_to_read(e)
    return f"""<section>
<div class="piste-bar"><h2>The text</h2>
<label class="piste-choice" hidden>coloured by <select>{options}</select></label></div>
{_text(e, kinds)}
{_legend(e)}
<p class="piste-meaning piste-faint">{escape(meaning)}</p>
</section>"""


def _plane_section(e: Explanation, kinds: list[reading.Kind]) -> str:
    wide = svg.plane(e, kinds)
    if not wide:
        return ""
    # A small screen needs labels of its own: a shrunken picture can't be read.
    small = svg.plane(e, kinds, width=380, height=440)
    return f"""<section>
<h2>What it says, and how much it weighs</h2>
<p class="piste-faint">{escape(reading.how_to_read(e))}</p>
<div class="piste-wide">{wide}</div><div class="piste-small">{small}</div>
</section>"""


def _table_section(e: Explanation, kinds: list[reading.Kind], found: list[Column]) -> str:
    shown = reading.shown_class(e)
    names = ["value", "importance", e.ranking, *e.scores]
    chosen = sorted(
        (column for column in found if column.label in (None, shown)),
        key=lambda column: names.index(column.name),
    )
    heads = "".join(_head(name) for name in ("unit", "count", *(c.name for c in chosen)))
    order = reading.by_size(e.score()[[kind.first for kind in kinds]])
    rows = "".join(_row(kinds[index], index, chosen) for index in order)
    note = "" if shown is None else f" Scores of {escape(shown)}."
    if not all(np.isnan(column.errors).all() for column in chosen):
        note = f" ± is one standard error.{note}"
    return f"""<section>
<h2>All units</h2>
<p class="piste-faint">The strongest by {escape(e.ranking)} come first; click a heading to sort
otherwise.{note}</p>
<div class="piste-scroll" tabindex="0"><table><thead><tr>{heads}</tr></thead>
<tbody>{rows}</tbody></table></div>
</section>"""


def _head(name: str) -> str:
    button = f'<button type="button">{escape(name)}</button>'
    return f'<th scope="col" aria-sort="none">{button}</th>'


def _row(kind: reading.Kind, index: int, chosen: list[Column]) -> str:
    cells = []
    for column in chosen:
        value = float(column.scores[kind.first])
        key = f"{value:.6g}" if np.isfinite(value) else ""
        number, _, error = escape(column.shown(kind.first)).partition(" ± ")
        spread = f" <small>± {error}</small>" if error else ""
        cells.append(f'<td data-v="{key}">{number}{spread}</td>')
    return (
        f'<tr data-k="{index}"><th scope="row" dir="auto">{escape(kind.name)}</th>'
        f'<td data-v="{len(kind.units)}">{len(kind.units)}</td>{"".join(cells)}</tr>'
    )


def _details(e: Explanation) -> str:
    parts = {"Model": e.classifier, "Settings": e.settings, "Versions": e.versions}
    lists = "".join(f"<h3>{title}</h3>{_listed(things)}" for title, things in parts.items())
    return f"<details><summary>Settings and versions</summary>{lists}</details>"


def _listed(things: Mapping[str, Any]) -> str:
    rows = []
    for name, thing in things.items():
        plain = thing if isinstance(thing, str) else json.dumps(thing, default=str)
        rows.append(f"<dt>{escape(str(name))}</dt><dd>{escape(plain)}</dd>")
    return f"<dl>{''.join(rows)}</dl>"


def _data(e: Explanation, kinds: list[reading.Kind], found: list[Column]) -> str:
    """What the script needs, as JSON that can't end its element or open another."""
    first, shown = [kind.first for kind in kinds], reading.shown_class(e)
    data = {
        "names": [kind.title for kind in kinds],
        "columns": [
            {
                "name": column.name,
                "meaning": column.meaning,
                "sides": column.sides,
                "strengths": np.round(colours.strengths(column.scores)[first], 3).tolist(),
                "shown": [column.shown(unit) for unit in first],
                "tip": column.label in (None, shown),
            }
            for column in found
        ],
        "palette": {
            "for": colours.FOR,
            "against": colours.AGAINST,
            "strongest": colours.STRONGEST,
            "visible": colours.VISIBLE,
        },
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
