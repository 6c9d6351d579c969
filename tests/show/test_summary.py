"""The summary that comes first, the scores that are shown, and the plane they make."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.console import Console

from piste.explanation import Explanation, Fidelity, Output
from piste.show import score_terms, wording
from piste.show.figures import explanation_figure
from piste.show.html import explanation_html
from piste.show.score_terms import columns
from piste.show.summary import Summary
from piste.surrogates import AdditiveSurrogate, MeanSurrogate, Mixing
from piste.target import Target
from tests.show.conftest import REVIEW, explanation
from tests.show.images import explained_image
from tests.show.test_html import Page

TRUST = (
    "Predicts the model very well on texts with words removed: R² 0.93 (single words 0.91, few "
    "0.94, many 0.90); 1,000 questions, the cost of 121 full passes."
)
LABELS = ("negative", "positive")


def test_print_shows_the_two_lines(review):
    summary = Summary.of(review)
    assert str(review).splitlines() == [summary.line, summary.trust]


def printed(e: Explanation, width: int = 100) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(e)
    return out.getvalue()


def flat(text: str) -> str:
    return " ".join(text.split())


def written(figure: Figure) -> str:
    return flat(" ".join(t.get_text() for t in figure.findobj(lambda a: hasattr(a, "get_text"))))


def scored(numbers: list[float], errors: list[float] | None = None, **changes: Any) -> Explanation:
    """One score for words a, b, c …, with errors or without."""
    text = " ".join("abcdefgh"[: len(numbers)])
    fields: dict[str, Any] = {
        "scores": {"attribution": np.array(numbers)},
        "errors": {} if errors is None else {"attribution": np.array(errors)},
        "ranking": "attribution",
        "surrogate": AdditiveSurrogate(0.0, "attribution"),
    }
    return explanation(text, **(fields | changes))


# -- two lines -----------------------------------------------------------------------------------


def test_two_lines_say_why_how_well_and_at_what_cost(review):
    found = Summary.of(review)
    assert found.line == (
        "positive, 97.1 %: mostly because of wonderful, superb, perfect; against it awful, dull."
    )
    assert found.trust == TRUST


def test_the_summary_comes_first_on_every_medium(review):
    found = Summary.of(review)
    assert flat(printed(review)).startswith(f"{found.line} {TRUST}")
    reasons = found.reasons[:1].upper() + found.reasons[1:]
    for kind in ("plane", "text", "bars"):
        shown = written(explanation_figure.plot(review, kind))
        assert found.answer in shown
        assert reasons in shown
        assert "the cost of 121 full passes" in shown
    page = flat("".join(Page(explanation_html.view(review).body).texts))
    assert page.index(reasons) < page.index(TRUST) < page.index("The text")
    assert flat("".join(Page(explanation_html.fragment(review)).texts)).index(found.line) < 3000
    assert '<em dir="auto">wonderful</em>' in explanation_html.to_html(review)


def test_only_what_stands_out_from_its_error_is_named():
    numbers, errors = [3.0, 2.0, -1.0, -0.9, 0.2], [0.1, 1.5, 0.2, np.inf, 0.01]
    assert Summary.of(scored(numbers, errors)).reasons == "mostly because of a; against it c."
    assert Summary.of(scored([1.0, -1.0], [2.0, 2.0])).reasons == ("no single word stands out.")
    only = Summary.of(scored([-1.0, 0.01], [0.1, 0.1])).reasons
    assert only == "no single word stands out for it; against it a."
    unknown = Summary.of(scored([1.0, np.nan, -2.0])).reasons
    assert unknown == "mostly because of a; against it c."


def test_reasons_follow_the_answer_not_the_target():
    other = Target("class", "log-odds of 'negative'", (0,), LABELS)
    assert Summary.of(scored([1.0, -2.0], target=other)).reasons == (
        "mostly because of b; against it a."
    )
    margin = Target("margin", "negative vs positive", (0, 1), LABELS)
    assert Summary.of(scored([1.0, -2.0], target=margin)).reasons == (
        "mostly because of b; for negative a."
    )
    three = ("bad", "good", "fair")
    output = Output((0.0, 3.0, 1.0), (0.1, 0.7, 0.2), three, 1.0)
    target = Target("class", "log-odds of 'fair'", (2,), three)
    assert Summary.of(scored([1.0, -2.0], target=target, output=output)).line == (
        "good, 70.0 %: for fair speak mostly a; against it b."
    )
    stars = Output((3.2,), None, ("stars",), 3.2)
    target = Target("output", "stars", (0,), ("stars",))
    assert Summary.of(scored([1.0, -2.0], target=target, output=stars)).line == (
        "stars = +3.20: raised mostly by a; lowered by b."
    )


def test_scores_without_direction_and_names_with_signs():
    e = scored([1.0, 3.0], ranking="sensitivity", scores={"sensitivity": np.array([1.0, 3.0])})
    assert Summary.of(e).reasons == "the answer reacts most to b, a."
    assert "“row 4, column 6”, “row 5, column 5”" in Summary.of(explained_image()).reasons


@pytest.mark.parametrize(
    ("r2", "words"),
    [
        (0.8, "Predicts the model well on texts with words removed: R² 0.80;"),
        (0.6, "Predicts the model fairly well on"),
        (0.1, "Predicts the model poorly on"),
        (-0.4, "Does not predict the model on texts with words removed: R² −0.40;"),
        (np.nan, "Not measured: too few questions"),
    ],
)
def test_fidelity_in_plain_words(r2, words):
    e = scored([1.0, 2.0], fidelity=Fidelity(r2, 0.1, 30), cost=float("nan"), calls=300)
    assert Summary.of(e).trust.startswith(words)
    assert Summary.of(e).trust.endswith("; 300 questions.")


def test_short_questions_are_named_as_such(paper):
    assert "on short texts of a few of its words: R²" in Summary.of(paper).trust


# -- which scores --------------------------------------------------------------------------------


def test_importances_are_shown_only_where_they_are_determined(review, adding, paper, additive):
    assert score_terms.main_scores(review) == ["value", "importance", "contribution"]
    assert score_terms.main_scores(adding) == ["value", "contribution"]
    assert score_terms.main_scores(paper) == ["value", "importance", "linear"]
    assert score_terms.main_scores(additive) == ["attribution"]
    assert "importance" not in [column.name for column in columns(adding)]
    for shown in (printed(adding), "".join(Page(explanation_html.view(adding).body).texts)):
        assert "importance" not in shown
        assert "weights are not determined" in flat(shown)


def test_where_the_model_stands_is_said(review, adding, paper, additive):
    assert score_terms.standing(review) == (
        "Words partly add up and partly compete for weight here (mixing 0.40 ± 0.05)."
    )
    assert score_terms.standing(adding) == (
        "Words may just add up here (mixing 0.03 ± 0.04): weights are not determined."
    )
    exact = explanation(REVIEW, mixing=Mixing(0.0, 0.0))
    assert score_terms.plane_note(exact) == (
        "Words add up here (mixing 0.00): weights are not determined, so the plane shows "
        "contributions."
    )
    assumed = explanation(REVIEW, mixing=Mixing(0.5, 0.3))
    assert score_terms.plane_note(assumed) == (
        "Too little was asked to tell whether words add up or compete for weight (mixing 0.50 ± "
        "0.30): weights are not determined, so the plane shows contributions."
    )
    assert score_terms.standing(paper) == "Words compete for weight in the chosen form (mixing 1)."
    assert score_terms.standing(additive) == ""
    assert "transformers lie between, and Piste measures where" in flat(printed(review))


def test_80_columns_keep_the_errors(review, paper):
    for e in (review, paper):
        lines = printed(e, 80).splitlines()
        assert max(map(len, lines)) <= 80
        [row] = [line for line in lines if line.startswith("wonderful ")]
        assert row.count("±") == 3
        assert "━━━━" in row
    [narrow] = [line for line in printed(review, 50).splitlines() if line.startswith("wonderful ")]
    assert "±" not in narrow


# -- the plane -----------------------------------------------------------------------------------


def wordy(mixing: Mixing) -> Explanation:
    """140 words, of which a few say something."""
    rng = np.random.default_rng(4)
    words = [f"word{k}" for k in range(120)] + ["wonderful", "superb", "awful", "dull", "slow"] * 4
    return explanation(" ".join(rng.permutation(words)), mixing=mixing)


@pytest.mark.parametrize("mixing", [Mixing(0.4, 0.05), Mixing(0.0, 0.0)])
def test_only_words_that_say_something_have_names_and_bars(mixing):
    e = wordy(mixing)
    kinds = wording.kinds(e)
    named = score_terms.named(e, kinds)
    assert {"wonderful ×4", "awful ×4"} <= {kinds[index].title for index in named}
    assert len(named) <= 28 < len(kinds)
    page = explanation_html.to_html(e)
    [wide, _] = re.findall(r'<svg class="piste-plane".*?</svg>', page, re.S)
    assert wide.count("<circle") == len(kinds)
    assert wide.count('class="piste-label"') <= len(named)
    assert wide.count('class="piste-whisker"') == len(named)
    assert wide.count("piste-loose") == len(kinds) - len(named)
    axes = explanation_figure.plane(e).axes[0]
    labels = [text for text in axes.texts if text.get_gid() == "label"]
    assert len(labels) <= len(named)
    sizes = np.sort(axes.collections[-1].get_sizes())
    assert (sizes < 12).sum() == len(kinds) - len(named)
    bars = axes.containers[0].lines[2]
    assert [len(one.get_segments()) for one in bars] == [len(named)] * 2


def test_without_weights_the_plane_shows_contributions_and_says_why(adding, review):
    figure = explanation_figure.plane(adding)
    assert figure.axes[0].get_ylabel().startswith("contribution: its part here")
    assert "so the plane shows contributions." in written(figure)
    page = explanation_html.to_html(adding)
    assert "contribution: its part here (log-odds)" in page
    assert "so the plane shows contributions." in page
    weighed = explanation_figure.plane(review)
    assert weighed.axes[0].get_ylabel() == "importance: its log-weight"
    assert "for, heavy" in written(weighed)
    offsets = np.asarray(figure.axes[0].collections[-1].get_offsets())
    first = [kind.first for kind in wording.kinds(adding)]
    assert np.allclose(offsets[:, 1], adding.scores["contribution"][first])


def test_a_plane_is_never_bare():
    e = explanation(REVIEW)
    vague = explanation(REVIEW, errors={name: np.full(len(e), 99.0) for name in e.scores})
    assert len(score_terms.named(vague, wording.kinds(vague))) == 5


# -- results of other kinds ----------------------------------------------------------------------


def test_results_of_format_1_are_still_shown(old):
    assert isinstance(old.surrogate, MeanSurrogate)
    assert old.mixing is None
    assert score_terms.main_scores(old) == ["value", "importance", "linear"]
    shown = flat(printed(old))
    assert shown.startswith("positive, 97.1 %: mostly because of wonderful, superb")
    assert "Predicts the model very well on texts with units removed: R² 0.93; 1,000" in shown
    assert "An older version of Piste made this result" in shown
    assert "mixing" not in shown
    page = explanation_html.to_html(old)
    assert page.count('class="piste-plane"') == 2
    for kind in ("plane", "text", "bars"):
        explanation_figure.plot(old, kind).draw_without_rendering()


def test_the_paper_form_is_shown_with_its_own_score(paper):
    shown = flat(printed(paper))
    assert "value × e^importance, the score of the paper" in shown
    assert "by slalom (paper)" in shown
    assert explanation_figure.plane(paper).axes[0].get_ylabel() == "importance: its log-weight"


@pytest.mark.parametrize("kind", ["plane", "text", "bars"])
def test_the_summary_stays_inside_the_figure(review, kind):
    figure = explanation_figure.plot(review, kind)
    renderer = FigureCanvasAgg(figure).get_renderer()
    wide = figure.get_size_inches()[0] * figure.dpi
    assert all(text.get_window_extent(renderer).x1 <= wide for text in figure.texts)
