"""What every method must do, on texts and images."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterable
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import piste
import piste.methods
from piste import PisteError
from piste.data.storage import from_json
from piste.methods import METHODS, Method, make
from tests.classifiers.images import loaded, photo
from tests.conftest import TEXT

# shapiq needs Python 3.11.
THERE = {
    name: one for name, one in METHODS.items() if one.extra != "interactions" or find_spec("shapiq")
}
SLOW = ("spex", "proxyspex")  # they search for seconds where others regress
FITTED = ("lime", "linear", "contextcite", "clime")
POLYNOMIAL = ("spex", "proxyspex", "faith_banzhaf", "ksii")


def marked(names: Iterable[str]) -> list[Any]:
    """Names as parameters, those of slow methods marked."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in names]


# tests/vocabulary has what needs a table of words.
_EVERY = [name for name, method in THERE.items() if method.needs != "a table"]
EVERY = marked(_EVERY)
BLACK_BOX = [name for name, method in THERE.items() if method.needs == "answers"]
ADDITIVE = [name for name in _EVERY if name not in ("slalom", *POLYNOMIAL)]
EXACT = ["kernel_shap", "partition_shap", "permutation_shap", "linear", "occlusion", "clime"]
PAIRS = [name for name in ("faith_banzhaf", "ksii") if name in THERE]
# Plain gradients point at a word, not always at the right one; attention knows no class.
ATTENTION = ("attention", "attention_norms", "attention_rollout", "attention_flow", "grad_sam")
BLIND = ("random", "centre", "zero", "gradient", "gradient_x_input", *ATTENTION)
NOT_BLIND = marked(name for name in _EVERY if name not in BLIND)
REVIEW = "The start is awful, but the ending is wonderful and I heard the music."


def few(name: str, samples: int = 120) -> dict[str, Any]:
    """Options for a quick run."""
    known = {field.name for field in fields(METHODS[name])}
    # The shortest code of SPEX, and as many as there are pairs: fewer determine nothing.
    samples = {"spex": 500, "faith_banzhaf": 300, "ksii": 300}.get(name, samples)
    small = {"samples": samples, "steps": 16, "copies": 4, "held_out": 10}
    return {option: value for option, value in small.items() if option in known}


def test_every_method_there_is_is_listed() -> None:
    found = set()
    for module in pkgutil.iter_modules(piste.methods.__path__):
        for _, thing in inspect.getmembers(import_module(f"piste.methods.{module.name}")):
            if not inspect.isclass(thing) or inspect.isabstract(thing):
                continue
            if issubclass(thing, Method):
                found.add(thing)
    assert found == set(METHODS.values())
    assert all(method.about and method.needs for method in METHODS.values())


@pytest.fixture(scope="module", params=["text", "image"])
def given(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """A classifier and an input of both kinds: methods must not know the difference."""
    if request.param == "text":
        return request.getfixturevalue("bert"), TEXT
    return loaded("vit"), photo()


@pytest.mark.parametrize("name", EVERY)
def test_the_same_seed_gives_the_same_result_and_another_one_may_not(
    name: str, given: tuple[Any, Any]
) -> None:
    one, same, other = (
        piste.explain(*given, method=name, seed=seed, **few(name)) for seed in (0, 0, 1)
    )
    for score in one.scores:
        assert np.array_equal(one.scores[score], same.scores[score])
    regressions = ("slalom", "kernel_shap", "permutation_shap", "smoothgrad", *FITTED)
    draws = name in (*regressions, *POLYNOMIAL)
    assert np.allclose(one.score(), other.score(), 1e-4) == (not draws and name != "random")
    assert one.method == name
    assert one.calls == same.calls > 0
    assert np.isfinite(one.fidelity.r2)


@pytest.mark.parametrize("name", EVERY)
def test_many_inputs_are_explained_as_each_alone(name: str, reviews_gpt: Any) -> None:
    texts = [REVIEW, "A dull film.", "Good!", "What a bad, bad, boring mess it is."]
    together = piste.explain(reviews_gpt, texts, method=name, **few(name))
    for text, e in zip(texts, together, strict=True):
        alone = piste.explain(reviews_gpt, text, method=name, **few(name))
        assert e.input == text
        scale = np.abs(alone.score()).max() + 1e-3
        np.testing.assert_allclose(e.score(), alone.score(), atol=2e-2 * scale)
        assert e.calls == alone.calls


@pytest.mark.parametrize("model", ["reviews", "reviews_gpt"])
@pytest.mark.parametrize("name", NOT_BLIND)
def test_the_telling_word_comes_out_on_top(
    name: str, model: str, request: pytest.FixtureRequest
) -> None:
    e = piste.explain(request.getfixturevalue(model), REVIEW, method=name, target="positive")
    assert e.units[int(np.argmax(e.score()))].text == "wonderful"
    if name in BLACK_BOX:  # gradients may not tell for from against
        assert e.score()[[unit.text for unit in e.units].index("awful")] < 0


@pytest.mark.parametrize("name", ADDITIVE)
def test_predictions_are_sums(name: str, given: tuple[Any, Any]) -> None:
    e = piste.explain(*given, method=name, **few(name))
    scores, n = e.score(), len(e)
    assert e.ranking == make(name, {}).score  # type: ignore[attr-defined]
    nothing = e.predict([])
    assert e.predict([2, 5]) == pytest.approx(nothing + scores[2] + scores[5])
    if name not in FITTED:  # those are fitted; all others add up to the answer
        assert e.predict(range(n)) == pytest.approx(e.output.value, abs=1e-4)
    assert not e.interactions().any()
    assert from_json(e.to_json()).predict([1]) == pytest.approx(e.predict([1]))


@pytest.mark.parametrize("name", [*EXACT, *PAIRS, "lime"])
@pytest.mark.parametrize("classes", [1, 3])
def test_a_sum_is_recovered(name: str, classes: int) -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(20, classes))
    text = " ".join(f"w{k}" for k in range(20))

    def total(texts: list[str]) -> Any:
        return [0.5 + weights[[int(word[1:]) for word in t.split()]].sum(axis=0) for t in texts]

    target = "all" if classes > 1 else None
    e = piste.explain(total, text, method=name, target=target, **few(name, 400))
    truth = weights[:, 0] if classes == 1 else weights - weights.mean(axis=1, keepdims=True)
    # lime's ridge shrinks its weights a little; shapiq weighs what must be exact by 10⁸
    close = {"lime": 0.1, "ksii": 1e-5}.get(name, 1e-6)
    np.testing.assert_allclose(e.scores["attribution"], truth, atol=close)
    if name != "lime":
        assert e.fidelity.r2 > 1 - 1e-9
        kept = [3, 4, 11]
        expected = weights[kept].sum(axis=0) + 0.5
        expected = expected[0] if classes == 1 else expected - expected.mean()
        np.testing.assert_allclose(e.predict(kept), expected, atol=close)


def test_the_budget_is_kept(reviews: Any) -> None:
    names = ["lime", "kernel_shap", "partition_shap", "permutation_shap", "linear", "slalom"]
    for name in [*names, "contextcite", *PAIRS]:
        e = piste.explain(reviews, REVIEW, method=name, samples=200)
        least = 150 if name == "permutation_shap" else 170  # it only takes whole walks
        assert least <= e.calls <= 200, (name, e.calls)


@pytest.mark.parametrize("name", BLACK_BOX)
@pytest.mark.parametrize("text", ["Good", "Good film", "good good good"])
def test_hardly_any_units(name: str, text: str, reviews: Any, reviews_gpt: Any) -> None:
    for classifier in (reviews, reviews_gpt):
        e = piste.explain(classifier, text, method=name, **few(name))
        assert np.isfinite(e.score()).all()
        assert np.isfinite(e.predict([0]))


@pytest.mark.parametrize("name", [name for name in _EVERY if name not in BLACK_BOX])
def test_a_black_box_can_not_be_looked_into(name: str) -> None:
    with pytest.raises(PisteError, match="only gives answers"):
        piste.explain(lambda texts: [len(text) for text in texts], "one two", method=name)
