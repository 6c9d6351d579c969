"""An explanation as one standalone page, and as a fragment for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from piste.checking import Check
from piste.explanation import Explanation
from piste.show import checked, colours, imaged, marked, pages, reading, svg, terms
from piste.show.columns import Column, columns


def to_html(e: Explanation, path: str | Path | None = None) -> str:
    """A complete page that works offline, also written to ``path`` if given; all is escaped."""
    return pages.document(view(e), path)


def view(e: Explanation, checks: Sequence[Check] = (), *, live: bool = False) -> pages.View:
    """What is shown of an explanation; ``live`` if a model can be asked about removals."""
    kinds, found = reading.kinds(e), columns(e)
    pictured = reading.of_picture(e)
    shown = imaged.section(e, kinds, found, _tips(e, kinds)) if pictured else ""
    parts = (
        _header(e),
        f"""<div class="piste-beside">{shown or _text_section(e, kinds, found)}
{plane_section(e, kinds)}</div>""",
        checked.section([e], checks, live=live),
        _table_section(e, kinds, found),
        _glossary_section(e),
        pages.details(
            "Settings and versions",
            {"Model": e.classifier, "Settings": e.settings, "Versions": e.versions},
        ),
    )
    # A picture's colours follow the choice of a score without any script.
    own = () if pictured else ("colouring.js",)
    return pages.View(
        reading.prediction(e),
        "\n".join(part for part in parts if part),
        styles=("picture.css",) if pictured else (),
        rules=imaged.rules(found) if pictured else "",
        scripts=(*own, *SCRIPTS),
        data=_data(e, kinds, found) | {"checks": checked.data([e], checks, kinds, live=live)},
    )


SCRIPTS = ("lighting.js", "selecting.js", "removing.js", "sorting.js")
"""What every page of explanations can do."""


def fragment(e: Explanation) -> str:
    """The gist for a notebook, which needs no script, and the whole page in a frame."""
    kinds = reading.kinds(e)
    plane = svg.plane(e, kinds, width=760, height=440)
    more = f"<details><summary>The plane</summary>{plane}</details>" if plane else ""
    styles, tips = pages.asset("parts.css"), _tips(e, kinds)
    if reading.of_picture(e):
        styles += pages.asset("picture.css")
        shown = imaged.gist(e, kinds, tips)
    else:
        shown = marked.text(e, kinds, tips) + marked.legend(terms.sides(e, e.ranking))
    return (
        f"<style>{styles}</style>"
        f'<div class="piste piste-fragment"><p>{marked.summary_line(e)}<br>'
        f"{escape(reading.summary(e).trust)}</p>"
        f"{marked.warnings(e)}{shown}"
        f'<p class="piste-faint">Explained: {escape(terms.made(e))} {escape(terms.standing(e))}</p>'
        f"{more}"
        f"{pages.framed(view(e), 'The whole page')}</div>"
    )


def _header(e: Explanation) -> str:
    r2 = e.fidelity.r2
    model = str(e.classifier.get("name") or "the model")
    share = 100 * min(max(r2, 0.0), 1.0) if np.isfinite(r2) else 0.0
    return f"""<header>
<p class="piste-kicker">What {escape(model)} says, and why</p>
{marked.answer(e)}
<p class="piste-said">{marked.reasons(e)}</p>
<p class="piste-trust"><span class="piste-meter"><i style="width:{share:.0f}%"></i></span>
<span>{escape(reading.summary(e).trust)}</span></p>
{marked.warnings(e)}
</header>"""


def _glossary_section(e: Explanation) -> str:
    rows = "".join(
        f"<dt>{escape(term)}</dt><dd>{escape(words)}</dd>"
        for term, words in (terms.glossary(e) | {"explained": terms.made(e)}).items()
    )
    return f"""<section class="piste-terms">
<h2>What the terms mean</h2>
<dl>{rows}</dl>
</section>"""


def _tips(e: Explanation, kinds: list[reading.Kind]) -> list[str]:
    """The main scores of every kind, for readers without script."""
    names = terms.main_scores(e)
    main = [column for column in columns(e, e.output.label) if column.name in names]
    return [
        " · ".join(f"{column.name} {column.shown(kind.first)}" for column in main) for kind in kinds
    ]


def _text_section(e: Explanation, kinds: list[reading.Kind], found: list[Column]) -> str:
    options = "".join(
        f'<option value="{index}">{escape(column.title)}</option>'
        for index, column in enumerate(found)
    )
    return f"""<section>
<div class="piste-bar"><h2>The text</h2>
<label class="piste-choice" hidden>coloured by <select>{options}</select></label></div>
{marked.text(e, kinds, _tips(e, kinds))}
{marked.legend(terms.sides(e, e.ranking))}
<p class="piste-meaning piste-faint">{escape(found[0].meaning)}</p>
</section>"""


def plane_section(e: Explanation, kinds: list[reading.Kind]) -> str:
    """The plane of an explanation that has one, else ""."""
    wide = svg.plane(e, kinds, width=700, height=470)
    if not wide:
        return ""
    # A small screen needs labels of its own: a shrunken picture can't be read.
    small = svg.plane(e, kinds, width=380, height=440)
    across, upward = (f"{terms.meaning(e, name)}" for name in terms.plane_scores(e) or ("", ""))
    title = "What it says alone, and how much it weighs"
    if not terms.told(e):
        title = "What it says alone, and what it adds here"
    return f"""<section class="piste-planes">
<h2>{title}</h2>
<p class="piste-faint">{escape(terms.plane_note(e))} To the right: {escape(across)}. Upwards:
{escape(upward)}. Small pale dots say little.</p>
<div class="piste-wide">{wide}</div><div class="piste-small">{small}</div>
</section>"""


def _table_section(e: Explanation, kinds: list[reading.Kind], found: list[Column]) -> str:
    shown = reading.shown_class(e)
    names = [*terms.main_scores(e), *e.scores]
    chosen = sorted(
        (column for column in found if column.label in (None, shown)),
        key=lambda column: names.index(column.name),
    )
    counted = any(len(kind.units) > 1 for kind in kinds)
    titles = (
        reading.part(e),
        *(("count",) if counted else ()),
        *(column.name for column in chosen),
    )
    heads = "".join(pages.head(title) for title in titles)
    order = reading.by_size(e.score()[[kind.first for kind in kinds]])
    rows = "".join(_row(kinds[index], index, chosen, counted) for index in order)
    note = "" if shown is None else f" Scores of {escape(shown)}."
    if not all(np.isnan(column.errors).all() for column in chosen):
        note = f" ± is one standard error.{note}"
    return f"""<section>
<h2>All {reading.part(e)}s</h2>
<p class="piste-faint">The strongest by {escape(e.ranking)} come first; click a heading to sort
otherwise.{note}</p>
<div class="piste-scroll" tabindex="0"><table><thead><tr>{heads}</tr></thead>
<tbody>{rows}</tbody></table></div>
</section>"""


def _row(kind: reading.Kind, index: int, chosen: list[Column], counted: bool) -> str:
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


def _data(e: Explanation, kinds: list[reading.Kind], found: list[Column]) -> dict[str, Any]:
    """What the scripts need."""
    first, shown = [kind.first for kind in kinds], reading.shown_class(e)
    return {
        "names": [kind.title for kind in kinds],
        "parts": "parts" if reading.of_picture(e) else "words",
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
