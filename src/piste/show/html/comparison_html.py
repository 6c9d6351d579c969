"""Several methods on one input as a standalone page."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from piste.comparison import Comparison
from piste.explanation import Explanation
from piste.show import colours, labels, score_terms, wording
from piste.show.alignment import FIGURES, SCALED, SideBySide
from piste.show.heat_colours import Heat, image_of
from piste.show.html import (
    explanation_html,
    image_html,
    inline_figure,
    page_shell,
    pairs_html,
    verification_html,
)
from piste.show.labels import styles


def view(sides: SideBySide, *, live: bool = False) -> page_shell.View:
    """The input once per method, the plane, who was right, verdicts, and all units in a table."""
    first, asked = sides.first, bool(sides.checks) or live
    plane = next((e for e in sides.explanations if score_terms.plane_scores(e) is not None), None)
    parts = (
        _header(sides),
        f"""<div class="piste-beside">{_inputs(sides)}
{"" if plane is None else explanation_html.plane_section(plane, sides.kinds)}</div>""",
        verification_html.section(sides.explanations, sides.checks) if asked else "",
        _verdicts(sides),
        _units(sides),
        page_shell.details(
            "Settings and versions",
            {"Model": first.classifier}
            | {f"Settings of {e.method}": e.settings for e in sides.explanations}
            | {"Versions": first.versions},
        ),
    )
    checks = (
        verification_html.data(sides.explanations, sides.checks, sides.kinds, live=live)
        if asked
        else None
    )
    return page_shell.View(
        f"{wording.prediction(first)}, by {len(sides.explanations)} methods",
        "\n".join(part for part in parts if part),
        styles=("charts.css", "image.css"),
        rules=inline_figure.colours(),
        scripts=explanation_html.SCRIPTS,
        data=_data(sides) | {"checks": checks},
    )


def to_html(comparison: Comparison, path: str | Path | None = None) -> str:
    """A standalone page, also written to ``path`` if given."""
    return page_shell.document(view(SideBySide.of_comparison(comparison)), path)


def notebook(comparison: Comparison) -> str:
    """What a notebook shows."""
    return fragment(SideBySide.of_comparison(comparison))


def fragment(sides: SideBySide) -> str:
    """For a notebook: the verdict, and the whole page in a frame."""
    return (
        f'<div class="piste"><p>{explanation_html.summary_line(sides.first)}</p>'
        f"<p>{escape(sides.verdict())}</p>{page_shell.framed(view(sides), 'The whole page')}</div>"
    )


def _header(sides: SideBySide) -> str:
    e = sides.first
    model = str(e.classifier.get("name") or "the model")
    notes = "".join(
        f'<p class="piste-note">{escape(words)}</p>'
        for words in (*wording.input_warnings(e), *sides.left_out)
    )
    many = len(sides.explanations)
    return f"""<header>
<p class="piste-kicker">What {escape(model)} says, and why, by {many}
method{"s" if many > 1 else ""}</p>
{explanation_html.answer(e)}
<p class="piste-said">{explanation_html.reasons(e)}</p>
<p>{escape(sides.verdict())}</p>
{notes}
</header>"""


def _verdicts(sides: SideBySide) -> str:
    names = sides.known_figures()
    if not names:
        return ""
    heads = page_shell.head("method") + "".join(
        page_shell.head(figure.title, about=labels.meaning(figure), first=labels.sorting(figure))
        for figure in map(FIGURES.__getitem__, names)
    )
    looks = styles(sides.methods)
    rows = []
    for method in sides.methods:
        cells = []
        for name in names:
            value = sides.figure(method, name)
            key = f"{value:.6g}" if np.isfinite(value) else ""
            best = ' class="piste-best"' if method in sides.best(name) else ""
            cells.append(f'<td data-v="{key}"{best}>{sides.shown(method, name)}</td>')
        dot = f'<i class="piste-family" style="background:var(--c{looks[method].colour[1:]})"></i>'
        rows.append(f'<tr><th scope="row">{dot}{escape(method)}</th>{"".join(cells)}</tr>')
    return f"""<section>
<h2>How faithful each method is here</h2>
<p class="piste-faint">R² is every method's own, as it says alone. The rest is measured on random
removals, the same for all. <b>Bold</b> is best on this one
{wording.what(sides.first)}; click a heading to sort.</p>
<div class="piste-scroll piste-tall" tabindex="0"><table><thead><tr>{heads}</tr></thead>
<tbody>{"".join(rows)}</tbody></table></div>
</section>"""


def _inputs(sides: SideBySide) -> str:
    if wording.of_image(sides.first):
        found = _images(sides)
    else:
        legend = explanation_html.legend(score_terms.sides(sides.first, sides.first.ranking))
        found = legend + "".join(
            f'<div class="piste-method">{_name(sides, e)}'
            f"{explanation_html.text(e, sides.kinds, _tips(sides, row))}"
            f"{pairs_html.section(e)}</div>"
            for row, e in enumerate(sides.explanations)
        )
    return f"""<section>
<h2>The {wording.what(sides.first)}, as every method sees it</h2>
<p class="piste-faint">Explained: {escape(wording.explained(sides.first))}.</p>
{found}
</section>"""


def _images(sides: SideBySide) -> str:
    """The image itself, then a heat map per method; a part lights up in all of them."""
    paths = image_html.unit_paths(sides.first)
    name = escape(image_of(sides.first).name)
    figures = [
        f"<figure><h3>{name} <small>the image itself</small></h3>"
        f"{image_html.bare(sides.first, sides.kinds, paths)}</figure>"
    ]
    for row, e in enumerate(sides.explanations):
        heat = Heat.of(e)
        drawn = image_html.heat_map(e, sides.kinds, [heat], paths, _tips(sides, row))
        drawn += image_html.scale(heat)
        figures.append(f'<figure class="piste-method">{_name(sides, e)}{drawn}</figure>')
    return f'<div class="piste-images piste-row">{"".join(figures)}</div>'


def _tips(sides: SideBySide, row: int) -> list[str]:
    method = sides.methods[row]
    return [
        f"{method} {wording.number(float(sides.scaled[row, kind.first]))}" for kind in sides.kinds
    ]


def _name(sides: SideBySide, e: Explanation) -> str:
    return f"<h3>{escape(e.method)} <small>{escape(sides.badge(e))}</small></h3>"


def _units(sides: SideBySide) -> str:
    heads = "".join(page_shell.head(name) for name in (wording.part(sides.first), *sides.methods))
    rows = []
    for index in sides.strongest(len(sides.kinds)):
        kind = sides.kinds[index]
        cells = "".join(_cell(float(value)) for value in sides.scaled[:, kind.first])
        rows.append(
            f'<tr data-k="{index}"><th scope="row" dir="auto">{escape(kind.title)}</th>{cells}</tr>'
        )
    return f"""<section>
<h2>All {wording.part(sides.first)}s</h2>
<p class="piste-faint">{SCALED} The strongest over all methods come first; click a heading to
sort otherwise.</p>
<div class="piste-scroll" tabindex="0"><table class="piste-heat"><thead><tr>{heads}</tr></thead>
<tbody>{"".join(rows)}</tbody></table></div>
</section>"""


def _cell(value: float) -> str:
    if not np.isfinite(value):
        return f'<td data-v="">{wording.number(value)}</td>'
    ground = colours.css(value)
    style = "" if ground == "transparent" else f' style="background:{ground}"'
    return f'<td data-v="{value:.4g}"{style}>{wording.number(value)}</td>'


def _data(sides: SideBySide) -> dict[str, Any]:
    """What the scripts need: names of units, and every method's number for them."""
    first = [kind.first for kind in sides.kinds]
    return {
        "names": [kind.title for kind in sides.kinds],
        "parts": "parts" if wording.of_image(sides.first) else "words",
        "label": sides.first.output.label,
        "columns": [
            {
                "name": e.method,
                "shown": [wording.number(float(value)) for value in sides.scaled[row, first]],
                "tip": True,
            }
            for row, e in enumerate(sides.explanations)
        ],
    }
