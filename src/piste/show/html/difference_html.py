"""Two explanations side by side, as the page shows them."""

from __future__ import annotations

from html import escape

import numpy as np

from piste.explanation import Explanation
from piste.show import colours, wording
from piste.show.difference import Difference
from piste.show.html import explanation_html, page_shell
from piste.show.summary import Summary
from piste.types import Floats


def view(before: Explanation, now: Explanation) -> page_shell.View:
    """Both answers, both texts in one scale of colours, and all units in a table."""
    found = Difference.of(before, now)
    shades = np.split(
        colours.strengths(np.concatenate([before.score(), now.score()])), [len(before)]
    )
    told = "".join(f"<p>{escape(words)}</p>" for words in found.told())
    texts = "".join(_text(found, index, shade) for index, shade in zip((0, 1), shades, strict=True))
    head = f"{_answer(before)} → {_answer(now)}"
    body = f"""<section class="piste-difference">
<p class="piste-kicker">Side by side: {escape(_about(found))}</p>
<h2>{head}</h2>
<div class="piste-told">{told}</div>
<div class="piste-pair-of-texts">{texts}</div>
{explanation_html.legend(found.sides) if found.comparable else ""}
{_table(found)}
</section>"""
    return page_shell.View(
        f"{before.output.label} → {now.output.label}",
        body,
        scripts=("lighting.js", "sorting.js"),
        data=_data(found),
    )


def _about(found: Difference) -> str:
    models = [str(e.classifier.get("name") or "the model") for e in (found.before, found.now)]
    same_text = found.before.input == found.now.input
    if models[0] != models[1]:
        return f"{models[0]} and {models[1]}{', one text' if same_text else ', two texts'}"
    return f"two texts, {models[0]}" if not same_text else f"one text, {models[0]}, other settings"


def _answer(e: Explanation) -> str:
    chance = e.output.probability
    said = wording.prediction(e) if chance is None else e.output.label
    percent = "" if chance is None else f" <small>{escape(wording.percent(chance))}</small>"
    return f"{escape(said)}{percent}"


def _text(found: Difference, index: int, shades: Floats) -> str:
    e = (found.before, found.now)[index]
    title = ("First", "Second")[index]
    units = [(row.before, row.now)[index] for row in found.rows]
    kinds = [
        wording.Kind(found.name(row), () if unit is None else (unit,))
        for row, unit in zip(found.rows, units, strict=True)
    ]
    tips = _shown(found)
    summary = Summary.of(e)
    return f"""<div class="piste-method"><h3>{title} <small>{escape(summary.answer)}</small></h3>
<p class="piste-faint">{escape(summary.reasons[:1].upper() + summary.reasons[1:])}</p>
{explanation_html.text(e, kinds, tips[index], shades)}
<p class="piste-faint">{escape(summary.trust)}</p></div>"""


def _shown(found: Difference) -> list[list[str]]:
    """The columns of numbers as a reader wants them."""
    columns = found.numbers
    places = max(wording.digits(column) for column in columns)
    return [[wording.number(value, places) for value in column] for column in columns]


def _titles(found: Difference) -> tuple[str, ...]:
    return ("first", "second", "difference") if found.comparable else ("first", "second")


def _table(found: Difference) -> str:
    shown, titles = _shown(found), _titles(found)
    heads = "".join(page_shell.head(name) for name in (wording.part(found.before), *titles))
    strengths = colours.strengths(found.numbers[2])
    rows = []
    for index in found.order:
        cells = ""
        for place in range(len(titles)):
            value = float(found.numbers[place][index])
            key = f"{value:.6g}" if np.isfinite(value) else ""
            ground = colours.css(float(strengths[index])) if place == 2 else "transparent"
            style = "" if ground == "transparent" else f' style="background:{ground}"'
            cells += f'<td data-v="{key}"{style}>{shown[place][index]}</td>'
        name = escape(found.name(found.rows[index]))
        rows.append(f'<tr data-k="{index}"><th scope="row" dir="auto">{name}</th>{cells}</tr>')
    return f"""<details class="piste-plain" open><summary>What differs, {wording.part(found.before)}
by {wording.part(found.before)}</summary>
<p class="piste-faint">{escape(found.before.ranking.capitalize())} in both; the largest differences
come first. A dash: not in this text.</p>
<div class="piste-scroll piste-differences" tabindex="0"><table><thead><tr>{heads}</tr></thead>
<tbody>{"".join(rows)}</tbody></table></div></details>"""


def _data(found: Difference) -> dict[str, object]:
    shown = _shown(found)
    return {
        "names": [found.name(row) for row in found.rows],
        "columns": [
            {"name": name, "shown": column, "tip": True}
            for name, column in zip(_titles(found), shown, strict=False)
        ],
    }
