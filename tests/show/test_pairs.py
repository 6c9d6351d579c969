"""Words that act together, in the summary, in a terminal and on a page."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from piste.explanation import Explanation
from piste.show import pair_terms
from piste.show.summary import Summary
from piste.slalom.pairs import PairEffect
from piste.surrogates import SlalomSurrogate
from tests.show.conftest import ADDED, explanation

TEXT = "The food was not so bad, not dull"


def paired(
    *pairs: PairEffect, carried: bool = True, text: str = TEXT, own: dict[str, float] | None = None
) -> Explanation:
    """Words with contributions of their own, and half of every pair in those of its units."""
    plain = explanation(text, mixing=ADDED)
    own = {"bad": -1.0, "dull": -0.8, "food": 0.4} if own is None else own
    contribution = np.array([own.get(unit.text, 0.0) for unit in plain.units])
    for pair in pairs if carried else ():
        contribution[[pair.first, pair.second]] += pair.effect / 2
    kept = tuple((pair.first, pair.second, pair.effect) for pair in pairs) if carried else ()
    return replace(
        plain,
        scores=dict(plain.scores) | {"contribution": contribution},
        errors=dict(plain.errors) | {"contribution": np.full(len(plain), 0.05)},
        pairs=pairs,
        surrogate=SlalomSurrogate(ADDED, 0.1, 0.0, pairs=kept),
    )


NOT_BAD = PairEffect(3, 5, 3.0, 0.2)
NOT_DULL = PairEffect(6, 7, 1.5, 0.2)


def printed(e: Explanation, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(e)
    return out.getvalue()


def test_a_pair_is_named_as_a_phrase() -> None:
    assert Summary.of(paired(NOT_BAD, NOT_DULL)).reasons == (
        "mostly because of “not … bad”, not dull, food."
    )
    # The effect is smaller than what one of the words says apart: they stay words.
    apart = paired(NOT_DULL, own={"dull": -3.0})
    assert Summary.of(apart).reasons == "mostly because of “not #2”; against it dull."
    # The error of the effect tells whether a phrase stands out.
    assert "not dull" not in Summary.of(paired(PairEffect(6, 7, 1.5, 0.6))).reasons


def test_a_pair_that_is_not_carried_is_only_listed() -> None:
    e = paired(NOT_DULL, carried=False)
    assert Summary.of(e).reasons == "mostly because of food; against it bad, dull."
    assert "together: not dull +1.50 ± 0.20" in printed(e)
    assert "no score has it" in pair_terms.meaning(e)


def test_equal_phrases_are_counted() -> None:
    e = paired(
        PairEffect(0, 1, 3.0, 0.1), PairEffect(2, 3, 3.5, 0.1), text="Not bad, not bad", own={}
    )
    assert Summary.of(e).reasons == "mostly because of not bad ×2."


@pytest.mark.parametrize("width", [50, 80])
def test_the_line_fits_the_terminal(width: int) -> None:
    lines = printed(paired(NOT_BAD, NOT_DULL), width).splitlines()
    [line] = [line for line in lines if "together:" in line]
    assert len(line) <= width
    assert "not … bad +3.00 ± 0.20" in line
    assert ("1 more" in line) == (width == 50)
    assert "together" not in printed(explanation(TEXT))


def test_the_page_lists_pairs_and_phrases() -> None:
    e = paired(NOT_BAD)
    page = e.to_html()
    assert 'data-units="3 5" data-span="0 13 23"' in page
    assert '<b dir="auto">not … bad</b> <span>+3.00 ± 0.20</span>' in page
    joined = replace(e, pairs=(), settings=dict(e.settings) | {"phrases": ["dull"]})
    assert '<li dir="auto" data-span="0 29 33">dull</li>' in joined.to_html()
    assert "piste-pair" in e._repr_html_()
    assert "piste-pairs" not in explanation(TEXT).to_html().split("</style>")[1]


def test_an_effect_that_turned_out_to_be_nothing_is_not_shown() -> None:
    nothing = PairEffect(0, 1, 0.1, 0.2), PairEffect(1, 2, 1e-9, 1e-12)
    e = paired(*nothing, NOT_BAD)
    assert [pair.name for pair in pair_terms.shown_pairs(e)] == ["not … bad"]
    assert "more;" not in repr(e)


def test_names_are_escaped() -> None:
    e = paired(PairEffect(0, 1, 2.0, 0.1), text="<b>x</b>", own={})
    assert "<b>x</b>" not in e.to_html().split("</style>")[1]


def test_the_short_form_names_the_strongest() -> None:
    assert "together not … bad +3.00 and 1 more;" in repr(paired(NOT_DULL, NOT_BAD))
