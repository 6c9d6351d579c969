"""An explanation as one standalone page, and as a fragment for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from piste.explanation import Explanation
from piste.show import colours, score_terms, wording
from piste.show.html import (
    answer_html,
    image_html,
    page_shell,
    pairs_html,
    plane_svg,
    verification_html,
)
from piste.show.score_terms import Column, columns, part_sums, strongest
from piste.show.summary import Summary
from piste.types import Floats
from piste.verification import Check


def to_html(e: Explanation, path: str | Path | None = None) -> str:
    """A complete page that works offline, also written to ``path`` if given; all is escaped."""
    return page_shell.document(view(e), path)


def view(
    e: Explanation, checks: Sequence[Check] = (), *, live: bool = False, spans: bool = True
) -> page_shell.View:
    """What is shown of an explanation; ``live`` if a server can be asked about removals and spans.

    Without one, the spans of an answer are explained beforehand, unless ``spans`` is false.
    """
    kinds, found = wording.kinds(e), columns(e)
    is_image, asked = wording.of_image(e), bool(checks) or live
    shown = image_html.section(e, kinds, found, _tips(e, kinds)) if is_image else ""
    parts = (
        _header(e),
        f"""<div class="piste-beside">{shown or _text_section(e, kinds, found)}
{plane_section(e, kinds)}</div>""",
        verification_html.section([e], checks) if asked else "",
        _table_section(e, kinds, found),
        _glossary_section(e),
        page_shell.details(
            "Settings and versions",
            {"Model": e.classifier, "Settings": e.settings, "Versions": e.versions},
        ),
    )
    # An image's colours follow the choice of a score without any script.
    own: tuple[str, ...] = () if is_image else ("colouring.js",)
    answered = wording.of_answer(e)
    if answered:
        own = (*own, "plane.js", "redrawing.js", "spans.js")
    return page_shell.View(
        wording.prediction(e),
        "\n".join(part for part in parts if part),
        styles=("image.css",) if is_image else (),
        rules=image_html.rules(found) if is_image else "",
        scripts=(*own, *SCRIPTS),
        data=_data(e, kinds, found)
        | {"checks": verification_html.data([e], checks, kinds, live=live) if asked else None}
        | {"answer": answer_html.data(e, kinds, live=live, spans=spans) if answered else None},
    )


SCRIPTS = ("lighting.js", "pairs.js", "selecting.js", "removing.js", "sorting.js")
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
        shown = text(e, kinds, tips) + legend(score_terms.sides(e, e.ranking))
        shown += _pairs(e)
    return (
        f"<style>{styles}</style>"
        f'<div class="piste piste-fragment"><p>{summary_line(e)}<br>'
        f"{escape(Summary.of(e).trust)}</p>"
        f"{warnings(e)}{shown}"
        f'<p class="piste-faint">Explained: {escape(score_terms.made(e))} '
        f"{escape(score_terms.standing(e))}</p>"
        f"{more}"
        f"{page_shell.framed(view(e, spans=False), 'The whole page')}</div>"
    )


def _header(e: Explanation) -> str:
    r2 = e.fidelity.r2
    model = str(e.classifier.get("name") or "the model")
    share = 100 * min(max(r2, 0.0), 1.0) if np.isfinite(r2) else 0.0
    verb = "answers" if wording.of_answer(e) else "says"
    return f"""<header>
<p class="piste-kicker">What {escape(model)} {verb}, and why</p>
{answer(e)}
<p class="piste-said">{reasons(e)}</p>
<p class="piste-trust"><span class="piste-meter"><i style="width:{share:.0f}%"></i></span>
<span>{escape(Summary.of(e).trust)}</span></p>
{warnings(e)}
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
<div class="piste-bar"><h2>The {wording.what(e)}</h2>
<label class="piste-choice" hidden>coloured by <select>{options}</select></label></div>
{text(e, kinds, _tips(e, kinds))}
{legend(score_terms.sides(e, e.ranking))}
<p class="piste-meaning piste-faint">{escape(found[0].meaning)}</p>
{_pairs(e)}
{answer_html.panel(e) if wording.of_answer(e) else ""}
{_parts(e)}
</section>"""


def _pairs(e: Explanation) -> str:
    return pairs_html.section(e) if e.pairs or e.settings.get("phrases") else ""


def _parts(e: Explanation) -> str:
    table = parts_table(e)
    return f"<h3>Parts of the prompt</h3>{table}" if table else ""


def plane_section(e: Explanation, kinds: list[wording.Kind]) -> str:
    """The plane of an explanation that has one, else ""."""
    wide = plane_svg.plane(e, kinds, width=700, height=470)
    if not wide:
        return ""
    # A small screen needs labels of its own: a shrunken figure can't be read.
    small = plane_svg.plane(e, kinds, width=380, height=440)
    return f"""<section class="piste-planes">
<h2>{score_terms.plane_heading(score_terms.is_determined(e))}</h2>
<p class="piste-faint piste-note-of-plane">{escape(score_terms.plane_legend(e))}</p>
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
    return f"""<section class="piste-all">
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
        "plain": [kind.name for kind in kinds],
        "parts": "parts" if wording.of_image(e) else "words",
        "more": e.more_samples,
        "label": e.output.label,
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


def text(
    e: Explanation,
    kinds: Sequence[wording.Kind],
    tips: Sequence[str],
    strengths: Floats | None = None,
) -> str:
    """Every unit a span with its kind, its colour and, for readers without script, its tip.

    ``strengths`` colours the units by another scale than the explanation's own.
    """
    kind_of = {unit: index for index, kind in enumerate(kinds) for unit in kind.units}
    strengths = colours.strengths(e.score()) if strengths is None else strengths
    shown = []
    for block in wording.blocks(e):
        parts = []
        for piece in block.pieces:
            words = escape(piece.text)
            if piece.unit is None:
                parts.append(f'<s class="piste-unread">{words}</s>' if piece.unread else words)
                continue
            kind, colour = kind_of[piece.unit], colours.css(float(strengths[piece.unit]))
            parts.append(
                f'<span class="piste-unit" data-k="{kind}" data-u="{piece.unit}" '
                f'title="{escape(tips[kind])}" style="background:{colour}">{words}</span>'
            )
        if block.title is not None:
            shown.append(f'<p class="piste-faint piste-part" dir="auto">{escape(block.title)}</p>')
        look = "piste-text piste-pinned" if block.is_pinned else "piste-text"
        shown.append(f'<p class="{look}" dir="auto">{"".join(parts)}</p>')
    return f'<div class="piste-marked">{"".join(shown)}</div>'


def parts_table(e: Explanation) -> str:
    """What each named part of a prompt contributes in sum, with its strongest units, or ""."""
    sums = part_sums(e)
    if not sums:
        return ""
    rows = "".join(
        f'<tr data-part="{escape(part.name)}"><th scope="row" dir="auto">{escape(part.name)}</th>'
        f"<td>{wording.number(part.total)}</td>"
        f'<td class="piste-names" dir="auto">{escape(strongest(e, part))}</td></tr>'
        for part in sums
    )
    return f"""<div class="piste-scroll" tabindex="0"><table class="piste-sums"><thead><tr>
<th scope="col">part</th><th scope="col">{escape(e.ranking)} in sum</th>
<th scope="col">strongest in it</th></tr></thead><tbody>{rows}</tbody></table></div>"""


def legend(sides: tuple[str, str]) -> str:
    """What the two colours mean."""
    above, below = sides
    steps = (-1.0, -0.6, -0.25, 0.25, 0.6, 1.0)
    swatches = "".join(f'<i style="background:{colours.css(step)}"></i>' for step in steps)
    return (
        f'<p class="piste-legend"><span class="piste-below">{escape(below)}</span> '
        f'<span class="piste-steps">{swatches}</span> '
        f'<span class="piste-above">{escape(above)}</span></p>'
    )


def answer(e: Explanation) -> str:
    """The model's answer as a heading."""
    chance = e.output.probability
    if wording.of_answer(e):
        said = escape(wording.answer_name(e, 160))
        number = wording.prediction(e).removeprefix(wording.answer_name(e)).strip(" ()")
        return f'<h1 class="piste-quoted" dir="auto">{said} <small>{escape(number)}</small></h1>'
    said = wording.prediction(e) if chance is None else e.output.label
    percent = "" if chance is None else f" <small>{escape(wording.percent(chance))}</small>"
    return f"<h1>{escape(said)}{percent}</h1>"


def reasons(e: Explanation) -> str:
    """What the answer is mostly due to, as a sentence of its own."""
    said = _emphasised(Summary.of(e))
    return said[:1].upper() + said[1:]


def summary_line(e: Explanation) -> str:
    """The answer and its reasons in one line."""
    summary = Summary.of(e)
    return f"<strong>{escape(summary.answer)}</strong>: {_emphasised(summary)}"


def _emphasised(summary: Summary) -> str:
    return "".join(
        f'<em dir="auto">{escape(words)}</em>' if name else escape(words)
        for words, name in summary.pieces
    )


def warnings(e: Explanation) -> str:
    """What a reader must not miss."""
    return "".join(f'<p class="piste-note">{escape(words)}</p>' for words in wording.warnings(e))
