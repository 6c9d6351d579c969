"""An explanation as one standalone page, and as a fragment for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from piste.explanation import Explanation
from piste.show import colours, score_terms, wording
from piste.show.html import image_html, page_shell, plane_svg, text_html, verification_html
from piste.show.score_columns import Column, columns
from piste.verification import Check


def to_html(e: Explanation, path: str | Path | None = None) -> str:
    """A complete page that works offline, also written to ``path`` if given; all is escaped."""
    return page_shell.document(view(e), path)


def view(e: Explanation, checks: Sequence[Check] = (), *, live: bool = False) -> page_shell.View:
    """What is shown of an explanation; ``live`` if a model can be asked about removals."""
    kinds, found = wording.kinds(e), columns(e)
    is_image = wording.of_image(e)
    shown = image_html.section(e, kinds, found, _tips(e, kinds)) if is_image else ""
    parts = (
        _header(e),
        f"""<div class="piste-beside">{shown or _text_section(e, kinds, found)}
{plane_section(e, kinds)}</div>""",
        verification_html.section([e], checks, live=live),
        _table_section(e, kinds, found),
        _glossary_section(e),
        page_shell.details(
            "Settings and versions",
            {"Model": e.classifier, "Settings": e.settings, "Versions": e.versions},
        ),
    )
    # An image's colours follow the choice of a score without any script.
    own = () if is_image else ("colouring.js",)
    return page_shell.View(
        wording.prediction(e),
        "\n".join(part for part in parts if part),
        styles=("image.css",) if is_image else (),
        rules=image_html.rules(found) if is_image else "",
        scripts=(*own, *SCRIPTS),
        data=_data(e, kinds, found)
        | {"checks": verification_html.data([e], checks, kinds, live=live)},
    )


SCRIPTS = ("lighting.js", "selecting.js", "removing.js", "sorting.js")
"""What every page of explanations can do."""


def fragment(e: Explanation) -> str:
    """A summary for a notebook, which needs no script, and the whole page in a frame."""
    kinds = wording.kinds(e)
    plane = plane_svg.plane(e, kinds, width=760, height=440)
    more = f"<details><summary>The plane</summary>{plane}</details>" if plane else ""
    styles, tips = page_shell.asset("parts.css"), _tips(e, kinds)
    if wording.of_image(e):
        styles += page_shell.asset("image.css")
        shown = image_html.summary_row(e, kinds, tips)
    else:
        shown = text_html.text(e, kinds, tips) + text_html.legend(score_terms.sides(e, e.ranking))
    return (
        f"<style>{styles}</style>"
        f'<div class="piste piste-fragment"><p>{text_html.summary_line(e)}<br>'
        f"{escape(wording.summary(e).trust)}</p>"
        f"{text_html.warnings(e)}{shown}"
        f'<p class="piste-faint">Explained: {escape(score_terms.made(e))} '
        f"{escape(score_terms.standing(e))}</p>"
        f"{more}"
        f"{page_shell.framed(view(e), 'The whole page')}</div>"
    )


def _header(e: Explanation) -> str:
    r2 = e.fidelity.r2
    model = str(e.classifier.get("name") or "the model")
    share = 100 * min(max(r2, 0.0), 1.0) if np.isfinite(r2) else 0.0
    return f"""<header>
<p class="piste-kicker">What {escape(model)} says, and why</p>
{text_html.answer(e)}
<p class="piste-said">{text_html.reasons(e)}</p>
<p class="piste-trust"><span class="piste-meter"><i style="width:{share:.0f}%"></i></span>
<span>{escape(wording.summary(e).trust)}</span></p>
{text_html.warnings(e)}
</header>"""


def _glossary_section(e: Explanation) -> str:
    rows = "".join(
        f"<dt>{escape(term)}</dt><dd>{escape(words)}</dd>"
        for term, words in (score_terms.glossary(e) | {"explained": score_terms.made(e)}).items()
    )
    return f"""<section class="piste-terms">
<h2>What the terms mean</h2>
<dl>{rows}</dl>
</section>"""


def _tips(e: Explanation, kinds: list[wording.Kind]) -> list[str]:
    """The main scores of every kind, for readers without script."""
    names = score_terms.main_scores(e)
    main = [column for column in columns(e, e.output.label) if column.name in names]
    return [
        " · ".join(f"{column.name} {column.shown(kind.first)}" for column in main) for kind in kinds
    ]


def _text_section(e: Explanation, kinds: list[wording.Kind], found: list[Column]) -> str:
    options = "".join(
        f'<option value="{index}">{escape(column.title)}</option>'
        for index, column in enumerate(found)
    )
    return f"""<section>
<div class="piste-bar"><h2>The text</h2>
<label class="piste-choice" hidden>coloured by <select>{options}</select></label></div>
{text_html.text(e, kinds, _tips(e, kinds))}
{text_html.legend(score_terms.sides(e, e.ranking))}
<p class="piste-meaning piste-faint">{escape(found[0].meaning)}</p>
</section>"""


def plane_section(e: Explanation, kinds: list[wording.Kind]) -> str:
    """The plane of an explanation that has one, else ""."""
    wide = plane_svg.plane(e, kinds, width=700, height=470)
    if not wide:
        return ""
    # A small screen needs labels of its own: a shrunken figure can't be read.
    small = plane_svg.plane(e, kinds, width=380, height=440)
    across, upward = (
        f"{score_terms.meaning(e, name)}" for name in score_terms.plane_scores(e) or ("", "")
    )
    title = "What it says alone, and how much it weighs"
    if not score_terms.is_determined(e):
        title = "What it says alone, and what it adds here"
    return f"""<section class="piste-planes">
<h2>{title}</h2>
<p class="piste-faint">{escape(score_terms.plane_note(e))} To the right: {escape(across)}. Upwards:
{escape(upward)}. Small pale dots say little.</p>
<div class="piste-wide">{wide}</div><div class="piste-small">{small}</div>
</section>"""


def _table_section(e: Explanation, kinds: list[wording.Kind], found: list[Column]) -> str:
    shown = wording.shown_class(e)
    names = [*score_terms.main_scores(e), *e.scores]
    chosen = sorted(
        (column for column in found if column.label in (None, shown)),
        key=lambda column: names.index(column.name),
    )
    counted = any(len(kind.units) > 1 for kind in kinds)
    titles = (
        wording.part(e),
        *(("count",) if counted else ()),
        *(column.name for column in chosen),
    )
    heads = "".join(page_shell.head(title) for title in titles)
    order = wording.by_size(e.score()[[kind.first for kind in kinds]])
    rows = "".join(_row(kinds[index], index, chosen, counted) for index in order)
    note = "" if shown is None else f" Scores of {escape(shown)}."
    if not all(np.isnan(column.errors).all() for column in chosen):
        note = f" ± is one standard error.{note}"
    return f"""<section>
<h2>All {wording.part(e)}s</h2>
<p class="piste-faint">The strongest by {escape(e.ranking)} come first; click a heading to sort
otherwise.{note}</p>
<div class="piste-scroll" tabindex="0"><table><thead><tr>{heads}</tr></thead>
<tbody>{rows}</tbody></table></div>
</section>"""


def _row(kind: wording.Kind, index: int, chosen: list[Column], counted: bool) -> str:
    cells = [f'<td data-v="{len(kind.units)}">{len(kind.units)}</td>'] if counted else []
    for column in chosen:
        value = float(column.scores[kind.first])
        key = f"{value:.6g}" if np.isfinite(value) else ""
        number, _, error = escape(column.shown(kind.first)).partition(" ± ")
        spread = f" <small>± {error}</small>" if error else ""
        cells.append(f'<td data-v="{key}">{number}{spread}</td>')
    return (
        f'<tr data-k="{index}"><th scope="row" dir="auto">{escape(kind.name)}</th>'
        f"{''.join(cells)}</tr>"
    )


def _data(e: Explanation, kinds: list[wording.Kind], found: list[Column]) -> dict[str, Any]:
    """What the scripts need."""
    first, shown = [kind.first for kind in kinds], wording.shown_class(e)
    return {
        "names": [kind.title for kind in kinds],
        "parts": "parts" if wording.of_image(e) else "words",
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
