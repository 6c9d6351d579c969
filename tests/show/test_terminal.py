from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from piste.explanation import Explanation, Fidelity
from piste.show import wording
from piste.show.terminal import explanation_text
from piste.show.wording import texts


def printed(e: Explanation, width: int = 100, colours: str | None = None) -> str:
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=colours is not None, color_system=colours
    )
    console.print(explanation_text.render(e))
    return out.getvalue()


def test_says_what_how_well_and_which_words(review):
    shown = printed(review)
    for words in ("positive, 97.1 %", "log-odds of 'positive'", "R² 0.93", "very well", "slalom"):
        assert words in shown
    assert "wonderful+++" in shown
    assert "awful---" in shown
    assert "didn't ×2" in shown
    assert "+3.10 ± 0.30" in shown
    assert "its log-weight against the other words" in shown


def test_colours_replace_signs(review):
    shown = printed(review, colours="truecolor")
    assert "wonderful+" not in shown
    assert "48;2;31;120;209m" in shown  # the ground of a strong blue
    assert "48;2;234;106;0m" in shown
    assert "black" not in printed(review, colours="standard")


@pytest.mark.parametrize("width", [30, 50, 80, 200])
def test_never_wider_than_the_terminal(review, width):
    assert max(map(len, printed(review, width).splitlines())) <= width


def test_markup_is_text(markup):
    shown = printed(markup)
    assert '[bold]"wonderful"[/bold]' in shown
    assert "<script>alert(1)</script>" in shown


def test_a_text_cannot_steer_the_terminal(make):
    assert "\x1b" not in printed(make("red \x1b[31m alert \u202e txt"))


def test_other_methods_pairs_classes_and_unknown_errors(additive, pair, classwise, unsure):
    assert "attribution" in printed(additive)
    assert "importance" not in printed(additive).lower()
    assert "Text 2" in printed(pair)
    assert "scores shown for class 3" in printed(classwise)
    assert "Not measured" in printed(unsure)
    assert "±" not in printed(unsure)


def test_unbounded_errors_are_told(make, review):
    errors = {name: np.array(array) for name, array in review.errors.items()}
    errors["contribution"][0] = np.inf
    shown = printed(make(review.input, errors=errors))
    assert "Nothing was asked about 1 of 60 words" in shown


def test_cut_texts_and_bad_fits_are_told(long, make):
    assert "last 388 tokens were cut off" in " ".join(printed(long).split())
    windows = make("a b c", settings={"input": {"long": "windows"}})
    assert "read in windows" in printed(windows)
    assert "do not rely" in printed(make("a b c", fidelity=Fidelity(0.2, 1.0, 50)))


def test_long_texts_are_shortened(long):
    shown = printed(long)
    assert "300 more units not shown here" in " ".join(shown.split())


def test_pieces_join_to_the_input(review, pair, foreign, markup):
    for e in (review, pair, foreign, markup):
        parts = (e.input,) if isinstance(e.input, str) else e.input
        joined = ["".join(piece.text for piece in pieces) for pieces in texts(e)]
        assert joined == list(parts)


def test_same_words_with_other_scores_stay_apart(make):
    shared = make("good good film")
    assert [kind.title for kind in wording.kinds(shared)] == ["good ×2", "film"]
    scores = {name: np.arange(3.0) for name in shared.scores}
    assert len(wording.kinds(make("good good film", scores=scores))) == 3


@pytest.mark.parametrize(
    ("chance", "shown"), [(0.99999, "> 99.9 %"), (1.0, "100.0 %"), (0.5, "50.0 %")]
)
def test_chances_are_not_rounded_to_certainty(chance, shown):
    assert wording.percent(chance) == shown
