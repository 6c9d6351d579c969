"""What the words of a corpus do, as a page: a plane, and a table to sort and search."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from piste.corpus.part_store import read_manifest
from piste.corpus.words import LEAST, Word, disagreeing, from_vocabulary, words
from piste.show import colours, wording
from piste.show.html import page_shell, plane_svg
from piste.vocabulary import Vocabulary

MOST = 300
"""Words shown of each target: more dots hide each other, and nobody reads them all."""
_ODD = 100
"""How many of them may be words whose value and importance disagree."""
_MOST_LABELS = 70
_ERRORS = ("value", "importance", "effect")
_CLASS = re.compile(r"log-odds of '(.*)'", re.DOTALL)
Errors = Mapping[str, Mapping[str, float]]
"""By word, the standard errors of its value, its importance and its effect."""


def of_run(
    folder: str | Path,
    *,
    by: str | None = None,
    score: str | None = None,
    least: int | None = None,
    model: str | None = None,
) -> page_shell.View:
    """The words of a corpus run; options as :func:`piste.corpus.words` has them.

    Without ``least``, words in five documents, or in fewer if no word is in so many; ``model`` is
    what the model is called.
    """
    found: list[Word] = []
    for fewest in (LEAST, 2, 1) if least is None else (least,):
        found = words(folder, by=by, score=score, least=fewest)
        if found:
            break
    manifest = read_manifest(folder)
    documents = int(manifest["counts"]["documents"])
    about = (
        f"Words in at least {fewest} of {documents:,} documents; capitals don't count. Effect is "
        "the mean of a word's scores over its documents, value and importance likewise (importance "
        "where weights are determined); the small numbers are its 95 % interval."
    )
    return view(found, about, model=model or _name(manifest["classifier"]), by=by)


def of_vocabulary(vocabulary: Vocabulary) -> page_shell.View:
    """The words of a vocabulary."""
    known, about = vocabulary.errors, vocabulary.about
    columns = [known[name].tolist() for name in _ERRORS]
    rows = from_vocabulary(vocabulary, least=1)
    usual = [row for row in rows if row.documents >= LEAST]
    rare = len(rows) - len(usual) if usual else 0
    told = (
        f"One SLALOM for {about['documents']:,} documents: R² {about['r2']:.2f} on documents it "
        "was not fitted to. Effect is what a word adds to a neutral text of usual length, before "
        "saturation; the small numbers are its 95 % interval, lines on the dots one standard error."
        + ("" if vocabulary.mixing.told else " Words add up: weights are not determined.")
        + (f" {rare:,} words in fewer than {LEAST} documents are left out." if rare else "")
    )
    errors = {
        word: dict(zip(_ERRORS, own, strict=True))
        for word, *own in zip(vocabulary.words, *columns, strict=True)
    }
    return view(usual or rows, told, model=_name(about.get("model")), errors=errors)


def view(
    rows: Sequence[Word],
    about: str,
    *,
    model: str = "the model",
    by: str | None = None,
    errors: Errors | None = None,
) -> page_shell.View:
    """Words as they were collected: one plane and one table for every target and slice."""
    heading = f"{len({row.word for row in rows}):,} words"
    shown: list[Word] = []
    parts = []
    for (target, part), own in groupby(rows, key=lambda row: (row.target, row.slice)):
        chosen = most_informative(list(own))
        body = _group(chosen, errors or {}, first=len(shown))
        title = target if part is None else f"{target}, {by} = {part}"
        parts.append((title, body))
        shown += chosen
    left = len(rows) - len(shown)
    note = f" The {len(shown):,} most telling are shown." if left else ""
    header = f"""<header><p class="piste-kicker">What words do to {escape(model)}</p>
<h1>{heading}</h1><p>{escape(about)}{note}</p>
<p class="piste-find" hidden><label>Find <input type="search" maxlength="100"></label>
<span role="status" class="piste-faint"></span></p></header>"""
    return page_shell.View(
        heading,
        "\n".join((header, *_grouped(parts))),
        styles=("words.css",),
        scripts=("lighting.js", "selecting.js", "sorting.js", "filtering.js"),
        data=_data(shown),
    )


def most_informative(rows: Sequence[Word], most: int = MOST) -> list[Word]:
    """The words that surely do most, and those whose value and importance disagree.

    >>> rows = [Word("fine", "t", None, 9, 2.0, 0.1), Word("rare", "t", None, 2, 3.0, 2.9)]
    >>> [row.word for row in most_informative(rows, 1)]
    ['fine']
    """
    if len(rows) <= most:
        odd: list[Word] = []
    else:
        odd = disagreeing(rows, min(_ODD, most // 3))
    surest = sorted(rows, key=lambda row: (-_sure(row), -abs(row.effect), row.word))
    chosen = {row.word: row for row in odd}
    for row in surest:
        if len(chosen) >= most:
            break
        chosen.setdefault(row.word, row)
    return sorted(chosen.values(), key=lambda row: (-abs(row.effect), row.word))


def _sure(row: Word) -> float:
    """How much a word does at least: the end of its interval that is nearer to 0."""
    reach = 0.5 * (row.high - row.low)
    return max(abs(row.effect) - reach, 0.0) if _measured(row) else 0.0


def _measured(row: Word) -> bool:
    """Whether there is an interval: one document has none."""
    return row.documents > 1 or row.freedom is not None


def _name(classifier: Any) -> str:
    name = classifier.get("name") if isinstance(classifier, Mapping) else classifier
    return str(name or "the model")


def _grouped(parts: Sequence[tuple[str, str]]) -> list[str]:
    """The first target open, others on demand."""
    if not parts:
        return ["<section><p>No word is in so many documents.</p></section>"]
    title, body = parts[0]
    opened = [f'<h2 class="piste-target">{escape(title)}</h2>{body}' if parts[1:] else body]
    return opened + [
        f'<details class="piste-more-words"><summary>{escape(title)}</summary>{body}</details>'
        for title, body in parts[1:]
    ]


def _group(rows: Sequence[Word], errors: Errors, first: int) -> str:
    above, below = _sides(rows[0].target)
    points = _points(rows, errors, first)
    wide = plane_svg.draw(points, most=_MOST_LABELS)
    weighed = _known(rows, "importance")
    plane = ""
    if wide:
        small = plane_svg.draw(points, width=380, height=440, most=_MOST_LABELS // 2)
        title = "how much they weigh" if weighed else "what they do in a text"
        more = (
            "Importance is its log-weight against others: 0 is average, +0.7 counts double."
            if weighed
            else "Weights are not determined, so the plane shows effects."
        )
        plane = f"""<section><h2>What words say alone, and {title}</h2>
<p class="piste-faint">Value is the answer that is expected of a word alone: above 0 it
{escape(above)}, below 0 it {escape(below)}. {more}</p>
<div class="piste-wide">{wide}</div><div class="piste-small">{small}</div></section>"""
    known = [name for name in ("value", "importance") if _known(rows, name)]
    names = ("word", "documents", "effect", *known)
    heads = "".join(page_shell.head(name) for name in names)
    shown = _columns(rows)
    lines = "".join(_row(rows, shown, place, first, known) for place in range(len(rows)))
    table = f"""<section><h2>What they do</h2>
<p class="piste-faint">An effect above 0 {escape(above)}, one below 0 {escape(below)}. Pale ones may
be 0; of words that do nothing, 1 in 20 is not pale. Click a heading to sort.</p>
<div class="piste-scroll piste-words" tabindex="0"><table><thead><tr>{heads}</tr></thead>
<tbody>{lines}</tbody></table></div></section>"""
    return f'<div class="piste-beside">{plane}{table}</div>'


def _row(
    rows: Sequence[Word],
    shown: Mapping[str, list[str]],
    place: int,
    first: int,
    known: Sequence[str],
) -> str:
    row = rows[place]
    interval = f" <small>{shown['95 %'][place]}</small>" if _measured(row) else ""
    pale = ' class="piste-faint"' if row.low <= 0 <= row.high or not _measured(row) else ""
    cells = [
        f'<td data-v="{row.documents}">{row.documents:,}</td>',
        f'<td data-v="{row.effect:.6g}"{pale}>{shown["effect"][place]}{interval}</td>',
    ]
    for name in known:
        number: float | None = getattr(row, name)
        key = "" if number is None else f"{number:.6g}"
        cells.append(f'<td data-v="{key}">{shown[name][place]}</td>')
    return (
        f'<tr data-k="{first + place}"><th scope="row" dir="auto">'
        f"{escape(wording.short(row.word))}</th>{''.join(cells)}</tr>"
    )


_UPWARD = {"importance": "importance: its log-weight", "effect": "effect: what it does in a text"}


def _sides(target: str) -> tuple[str, str]:
    found = _CLASS.fullmatch(target)
    if found:
        return f"speaks for {found[1]}", f"speaks against {found[1]}"
    return f"raises {target}", f"lowers {target}"


def _points(rows: Sequence[Word], errors: Errors, first: int) -> plane_svg.Points:
    upward = "importance" if _known(rows, "importance") else "effect"
    both = ("value", upward)
    places = np.array(
        [[getattr(row, name) for name in both] for row in rows], dtype=np.float64
    ).reshape(-1, 2)
    effects = np.array([row.effect for row in rows])
    shares = [np.abs(part) / colours.scale(part) for part in (effects, *places.T)]
    unknown = dict.fromkeys(_ERRORS, np.nan)
    spreads = [[errors.get(row.word, unknown)[name] for name in both] for row in rows]
    weighed = upward == "importance"
    return plane_svg.Points(
        names=[wording.short(row.word) for row in rows],
        places=places,
        errors=np.array(spreads, dtype=np.float64),
        radii=np.clip(2.0 * np.array([row.documents for row in rows]) ** 0.2, 2.5, 9.0),
        strengths=colours.strengths(effects),
        order=wording.by_size(np.max(np.nan_to_num(shares), axis=0)),
        loose=np.array([row.low <= 0 <= row.high for row in rows]),
        sides=_sides(rows[0].target),
        about=f"Value against {upward} of the most telling words",
        first=first,
        titles=("value: expected of it alone", _UPWARD[upward]),
        upward=("heavier", "lighter") if weighed else ("for it", "against it"),
    )


def _known(rows: Sequence[Word], name: str) -> bool:
    """Whether any word has this score."""
    return any(getattr(row, name) is not None for row in rows)


def _columns(rows: Sequence[Word]) -> dict[str, list[str]]:
    """Numbers as a reader wants them."""
    effects = np.array([row.effect for row in rows])
    places = wording.digits(effects)
    shown = {
        "documents": [f"{row.documents:,}" for row in rows],
        "effect": [wording.number(row.effect, places) for row in rows],
        "95 %": [
            f"{wording.number(row.low, places)} to {wording.number(row.high, places)}"
            if _measured(row)
            else "–"
            for row in rows
        ],
    }
    for name in ("value", "importance"):
        if not _known(rows, name):
            continue
        numbers = np.array([getattr(row, name) for row in rows], dtype=np.float64)
        most = wording.digits(numbers)
        shown[name] = [wording.number(number, most) for number in numbers.tolist()]
    return shown


def _data(rows: Sequence[Word]) -> dict[str, Any]:
    columns = _columns(rows) if rows else {}
    return {
        "names": [row.word for row in rows],
        "columns": [{"name": name, "shown": cells, "tip": True} for name, cells in columns.items()],
    }
