"""Explaining again: seeds, equal texts, shuffled models, and functions whose truth is known."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch

import piste
from piste import PisteError
from piste.evaluation.benchmark.evaluation_run import evaluate
from piste.evaluation.ground_truth import Additive, SoftMean, recovery
from piste.evaluation.metrics.ranking import agreement, rank_agreement, top_overlap
from piste.evaluation.metrics.robustness import Stability, randomised, shuffled
from piste.evaluation.paraphrases import SWAPS, swap

WEIGHTS = {"like": 2.0, "film": -1.0, "movie": -1.0, "really": 0.5, "not": 3.0, "n't": 3.0}


def opinion(texts: list[str]) -> list[float]:
    """Knows words by what they mean; of the others, their length counts a little."""
    return [sum(WEIGHTS.get(word, len(word) / 10) for word in text.split()) for text in texts]


def values(metric: Any, texts: list[str], *methods: str, classifier: Any = opinion) -> Any:
    found = evaluate(classifier, texts, methods=methods, metrics=[metric], samples=60)
    assert not found.problems()
    return found


# -- other seeds ---------------------------------------------------------------------------------


def test_stability_of_methods_without_chance_and_of_pure_chance() -> None:
    texts = [f"I really like film number {n} and its cast very much" for n in range(8)]
    found = values("stability", texts, "occlusion", "zero", "random")
    for figure in ("stability", "stability_pearson", "stability_top5"):
        for method in ("occlusion", "zero"):
            assert set(found.values(method, figure).values()) == {1.0}
    chance = list(found.values("random", "stability").values())
    assert abs(np.mean(chance)) < 0.35
    assert np.mean(list(found.values("random", "stability_top5").values())) < 0.8


def test_stability_is_the_mean_over_all_pairs_of_seeds(monkeypatch) -> None:
    from piste.evaluation.benchmark import explainers

    made: list[Any] = []
    explain = explainers.explain

    def remembering(*given: Any, **how: Any) -> Any:
        made.append(explain(*given, **how))
        return made[-1]

    monkeypatch.setattr(explainers, "explain", remembering)
    text = "I really like this film and its cast very much"
    found = values(Stability(repeats=2), [text], "random").rows[0].figures
    assert len({one.settings["seed"] for one in made}) == len(made) == 3
    a, b, c = (one.score() for one in made)
    pairs = ((a, b), (a, c), (b, c))
    from scipy.stats import pearsonr, spearmanr

    assert found["stability"] == pytest.approx(np.mean([spearmanr(*p)[0] for p in pairs]))
    assert found["stability_pearson"] == pytest.approx(np.mean([pearsonr(*p)[0] for p in pairs]))
    tops = [set(np.argsort(-np.abs(scores))[:5]) for scores in (a, b, c)]
    shared = [len(x & y) / 5 for x, y in ((tops[0], tops[1]), (tops[0], tops[2]), tops[1:])]
    assert found["stability_top5"] == pytest.approx(np.mean(shared))


def test_agreement_of_constant_scores() -> None:
    flat, steep = np.zeros(4), np.arange(4.0)
    for measure in (agreement, rank_agreement):
        assert measure(flat, flat) == 1.0
        assert math.isnan(measure(flat, steep))
        assert measure(steep, -steep) == pytest.approx(-1.0)
    assert math.isnan(agreement(flat[:1], steep[1:2]))
    assert top_overlap(steep, steep[::-1], count=2) == 0.0


# -- equal texts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("I don't like it.", "I do not like it."),
        ("It is not bad", "It isn't bad"),
        ("Movies and MOVIE and film", "Films and FILM and movie"),
        ("I’m sure they won’t", "I am sure they will not"),
        ("My favourite colour is grey.", "My favorite color is gray."),
        ("Can't they realize it?", "Cannot they realise it?"),
        ("filmic donut", "filmic  donut"),
        ("nothing  here", "nothing  here"),
        ("Dull", "Dull"),
    ],
)
def test_swaps(text: str, other: str) -> None:
    assert swap(text).text == other


def test_swaps_are_words_that_come_back() -> None:
    for known, other in SWAPS.items():
        assert known == known.lower()
        assert other != known
        assert swap(f"x {known} y").text == f"x {other} y"
    there_and_back = [known for known, other in SWAPS.items() if SWAPS.get(other) == known]
    assert len(there_and_back) > 100
    for known in there_and_back:
        assert swap(swap(f"x {known} y").text).text == f"x {known} y"


def test_what_was_not_swapped_is_found_again() -> None:
    text = "I don't like this film, I do not really like any movie."
    changed = swap(text)
    assert changed.text == "I do not like this movie, I don't really like any film."
    for word in ("I", "like", "this", "really", "any", "."):
        start, end = text.index(word), text.index(word) + len(word)
        now = changed.moved(start, end)
        assert now is not None
        assert changed.text[slice(*now)] == text[start:end]
    for word in ("don't", "n't", "film", "not", "movie"):
        assert changed.moved(text.index(word), text.index(word) + len(word)) is None


def test_equal_inputs_over_the_units_both_have() -> None:
    text = "I really like this film because it is long"
    found = values("equal_inputs", [text, "Dull"], "occlusion", "random")
    same = found.values("occlusion", "equal_inputs")
    assert same == {"0": pytest.approx(1.0)}, "NaN where nothing can be swapped"

    def fickle(texts: list[str]) -> list[float]:
        """Turns everything round once it reads of a movie."""
        return [len(text) * (-1 if "movie" in text else 1) for text in texts]

    turned = values("equal_inputs", [text], "occlusion", classifier=fickle)
    assert turned.rows[0].figures["equal_inputs"] < -0.9


# -- a model without knowledge -------------------------------------------------------------------


def test_a_shuffled_model_has_the_same_weights_elsewhere(bert: Any) -> None:
    model = bert.model
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    twin = shuffled(model, 0)
    changed = 0
    for (name, old), new in zip(model.named_parameters(), twin.parameters(), strict=True):
        assert old is not new
        assert torch.equal(old.flatten().sort().values, new.flatten().sort().values)
        is_matrix = old.ndim == 2
        changed += is_matrix
        assert torch.equal(old, new) != is_matrix, name
    assert changed > 10
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())
    again = dict(shuffled(model, 0).named_parameters())
    assert all(torch.equal(again[name], now) for name, now in twin.named_parameters())
    assert randomised(bert) is randomised(bert)
    assert randomised(bert, 1) is not randomised(bert)


def test_sanity(reviews: Any) -> None:
    texts = [
        "A slow start, but a wonderful ending, and the cast is simply perfect.",
        "I expected another dull sequel, and it is a complete waste of talent.",
        "The photography is superb, but none of it can save this awful mess.",
    ]
    found = values("sanity", texts, "occlusion", "zero", classifier=reviews)
    sane = list(found.values("occlusion", "sanity").values())
    assert len(sane) == 3
    assert abs(np.mean(sane)) < 0.6
    assert set(found.values("zero", "sanity").values()) == {1.0}, "shows nothing of the model"
    assert values("sanity", texts[:1], "occlusion").values("occlusion", "sanity") == {}


def test_what_can_not_be_explained_again_is_noted_and_costs_nothing_else(monkeypatch) -> None:
    def refuse(self: Any, first: Any) -> Any:
        raise PisteError("not today")

    monkeypatch.setattr(Stability, "reexplain", refuse)
    found = evaluate(opinion, ["I like it"], methods=["occlusion"], metrics=["stability", "single"])
    row = found.rows[0]
    assert row.note == "stability: not today"
    assert math.isnan(row.figures["stability"])
    assert row.figures["spearman_single"] == pytest.approx(1.0)
    assert not row.problem


# -- known functions -----------------------------------------------------------------------------


@pytest.mark.parametrize("function", [Additive(5, seed=1), SoftMean(5, seed=1)])
def test_the_truth_is_true(function: Any) -> None:
    """Shapley values by all orders of the units."""
    empty = 0.3 if isinstance(function, SoftMean) else function.base
    wanted = np.zeros(5)
    for order in permutations(range(5)):
        kept, before = np.zeros(5), empty
        for unit in order:
            kept[unit] = 1.0
            now = float(function.numbers(kept[None, :])[0])
            wanted[unit] += (now - before) / 120
            before = now
    np.testing.assert_allclose(function.shapley(empty), wanted, atol=1e-9)
    subject = function.subject(function.text)
    assert [unit.text for unit in subject.units] == function.text.split()
    masks = np.array([[1, 0, 1, 0, 0], [1, 1, 1, 1, 1]], dtype=float)
    asked = subject.ask([[0, 2], range(5)])[:, 0]
    np.testing.assert_allclose(asked, function.numbers(masks))


def test_methods_recover_what_they_can() -> None:
    additive, soft = recovery("slalom", samples=400)
    assert soft.figures["value_error"] < 1e-6
    assert soft.figures["importance_error"] < 1e-6
    assert soft.figures["score_error"] < 1e-6
    assert soft.figures["prediction_error"] < 1e-9
    assert additive.score == "shapley"
    additive, soft = recovery("linear", samples=400)
    assert additive.figures["score_error"] < 1e-6
    assert additive.figures["prediction_error"] < 1e-9
    assert soft.figures["prediction_error"] > 0.02, "no sum is a softmax-weighted mean"
    assert math.isnan(soft.figures["value_error"])
    random, _ = recovery("random")
    assert random.figures["score_error"] > 0.3
    assert recovery("random") == recovery("random")


def test_shap_is_exact_on_sums() -> None:
    pytest.importorskip("shap")
    additive, soft = recovery("kernel_shap", units=6, samples=400)
    assert additive.figures["score_error"] < 1e-6
    assert soft.figures["score_error"] < 0.2
    assert soft.figures["score_agreement"] > 0.97


def test_recovery_refuses() -> None:
    with pytest.raises(PisteError, match="at most 14"):
        recovery("slalom", units=40)
    with pytest.raises(PisteError, match="expected one of"):
        recovery("magic")
    with pytest.raises(PisteError, match="looks inside"):
        recovery("gradient")
    with pytest.raises(PisteError, match="its own words"):
        piste.explain(Additive(4), "something else")
