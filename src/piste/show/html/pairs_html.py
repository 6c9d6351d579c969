"""Words that act together as a list under the text."""

from __future__ import annotations

from html import escape

from piste.explanation import Explanation
from piste.show import pair_terms, wording


def section(e: Explanation) -> str:
    """The pairs with what they add, and the phrases that were joined; "" without any.

    A script lights both units of a pair; a server's page adds a button that joins them.
    """
    joined = set(pair_terms.joined(e))
    phrases = "".join(
        f'<li dir="auto" data-span="{unit.segment} {unit.start} {unit.end}">'
        f"{escape(unit.text)}</li>"
        for unit in e.units
        if unit.text in joined
    )
    found = ""
    if phrases:
        found += f"""<div class="piste-joined"><h3>Joined into one unit</h3>
<ul class="piste-pairs">{phrases}</ul></div>"""
    rows = "".join(
        f'<li class="piste-pair" tabindex="0" data-units="{pair.units[0]} {pair.units[1]}" '
        f'data-span="{pair.segment} {pair.start} {pair.end}">'
        f'<b dir="auto">{escape(pair.name)}</b> <span>{escape(pair.effect)}</span></li>'
        for pair in pair_terms.shown_pairs(e)
    )
    if rows:
        found += f"""<div class="piste-together">
<h3>{wording.part(e).capitalize()}s that act together</h3>
<ul class="piste-pairs">{rows}</ul>
<p class="piste-faint">{escape(_capital(pair_terms.meaning(e)))}</p></div>"""
    return found


def _capital(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"
