"""All methods: the properties every one of them must have, and the libraries as reference."""

from __future__ import annotations

import inspect
import pkgutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import piste
import piste.methods
from piste import PisteError
from piste.data.storage import from_json
from piste.methods import METHODS, Method, Task, make
from piste.methods.conversation import Conversation
from piste.methods.kernel_shap import KernelShapMethod
from piste.methods.lime import LimeMethod
from piste.methods.linear import ridge_regression
from piste.target import resolve
from tests.classifiers.pictures import loaded, photo
from tests.conftest import TEXT

# tests/vocabulary has what needs a table of words.
EVERY = [name for name, method in METHODS.items() if method.needs != "a table"]
BLACK_BOX = [name for name, method in METHODS.items() if method.needs == "answers"]
ADDITIVE = [name for name in EVERY if name != "slalom"]
EXACT = ["kernel_shap", "partition_shap", "permutation_shap", "linear", "occlusion"]
# Plain gradients point at a word, not always at the right one; attention knows no class.
ATTENTION = ("attention", "attention_norms", "attention_rollout", "attention_flow", "grad_sam")
BLIND = ("random", "centre", "zero", "gradient", "gradient_x_input", *ATTENTION)
NOT_BLIND = [name for name in EVERY if name not in BLIND]
REVIEW = "The start is awful, but the ending is wonderful and I heard the music."


def few(name: str, samples: int = 120) -> dict[str, Any]:
    """Options for a quick run."""
    known = {field.name for field in fields(METHODS[name])}
    small = {"samples": samples, "steps": 16, "copies": 4, "held_out": 10}
    return {option: value for option, value in small.items() if option in known}


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Numpy's global state for libraries that use it, as it was afterwards."""
    before = np.random.get_state()
    np.random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(before)


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


@pytest.fixture(scope="module", params=["text", "picture"])
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
    draws = name in ("slalom", "lime", "kernel_shap", "permutation_shap", "linear", "smoothgrad")
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
    if name not in ("lime", "linear"):  # those are fitted; all others add up to the answer
        assert e.predict(range(n)) == pytest.approx(e.output.value, abs=1e-4)
    assert not e.interactions().any()
    assert from_json(e.to_json()).predict([1]) == pytest.approx(e.predict([1]))


@pytest.mark.parametrize("name", [*EXACT, "lime"])
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
    # lime's ridge shrinks its weights a little
    np.testing.assert_allclose(e.scores["attribution"], truth, atol=1e-6 if name != "lime" else 0.1)
    if name != "lime":
        assert e.fidelity.r2 > 1 - 1e-9
        kept = [3, 4, 11]
        expected = weights[kept].sum(axis=0) + 0.5
        expected = expected[0] if classes == 1 else expected - expected.mean()
        np.testing.assert_allclose(e.predict(kept), expected, atol=1e-6)


def additive_but_for_a_pair(masks: Any) -> Any:
    masks = np.asarray(masks, dtype=float)
    weights = np.linspace(-1, 1, masks.shape[1])
    return masks @ weights + 2 * masks[:, 0] * masks[:, -1]


def a_task(n: int) -> Task:
    classifier = piste.load(lambda texts: [float(len(text)) for text in texts])
    subject = classifier.subject(" ".join(f"w{k}" for k in range(n)))
    whole = subject.ask([subject.whole])[0]
    target = resolve(None, whole, classifier.labels, classifier.kind)
    return Task(subject, target, whole, np.random.default_rng(0))


def test_lime_agrees_with_the_library_on_the_same_questions() -> None:
    from lime.lime_text import LimeTextExplainer

    n = 12
    with seeded(5):
        found = LimeMethod().explore(additive_but_for_a_pair, a_task(n), 200)
    with seeded(5):
        state = np.random.RandomState(np.random.randint(2**31))
    words = [f"word{k}" for k in range(n)]

    def answer(texts: list[str]) -> Any:
        masks = np.array([[word in text.split() for word in words] for text in texts])
        numbers = additive_but_for_a_pair(masks)
        return np.stack([-numbers, numbers], axis=1)

    theirs = LimeTextExplainer(random_state=state, split_expression=str.split).explain_instance(
        " ".join(words), answer, labels=(1,), num_features=n, num_samples=201
    )
    weights = dict(theirs.as_list(label=1))
    np.testing.assert_allclose(found.scores, [weights[word] for word in words])
    assert found.base == pytest.approx(theirs.intercept[1])


def test_kernel_shap_agrees_with_the_library_and_with_brute_force() -> None:
    import shap

    n = 11
    with seeded(3):
        found = KernelShapMethod().explore(additive_but_for_a_pair, a_task(n), 2100)
    with seeded(3):
        explainer = shap.KernelExplainer(additive_but_for_a_pair, np.zeros((1, n)))
        theirs = explainer.shap_values(np.ones((1, n)), nsamples=2100, l1_reg=False, silent=True)
    np.testing.assert_allclose(found.scores, theirs[0])
    truth = np.linspace(-1, 1, n)
    truth[[0, -1]] += 1  # the pair's share, half to each
    np.testing.assert_allclose(found.scores, truth, atol=1e-8)


@pytest.mark.parametrize("name", ["permutation_shap", "partition_shap"])
def test_shap_values_share_out_the_answer(name: str) -> None:
    with seeded(1):
        found = make(name, {}).explore(additive_but_for_a_pair, a_task(8), 200)  # type: ignore[attr-defined]
    truth = np.linspace(-1, 1, 8)
    truth[[0, -1]] += 1
    np.testing.assert_allclose(found.scores, truth, atol=1e-9)
    assert found.base == pytest.approx(0.0)


def test_the_budget_is_kept(reviews: Any) -> None:
    for name in ("lime", "kernel_shap", "partition_shap", "permutation_shap", "linear", "slalom"):
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


@pytest.mark.parametrize("name", [name for name in EVERY if name not in BLACK_BOX])
def test_a_black_box_can_not_be_looked_into(name: str) -> None:
    with pytest.raises(PisteError, match="only gives answers"):
        piste.explain(lambda texts: [len(text) for text in texts], "one two", method=name)


def test_ridge_regression_agrees_with_leaving_each_row_out() -> None:
    rng = np.random.default_rng(0)
    rows = (rng.random((40, 12)) < 0.5).astype(float)
    numbers = rows @ rng.normal(size=12) + rng.normal(size=40)
    weights, base, ridge = ridge_regression(rows, numbers)

    def fitted(keep: Any, penalty: float) -> Any:
        x, y = rows[keep], numbers[keep]
        centre = x.mean(axis=0)
        x = x - centre
        found = np.linalg.solve(x.T @ x + penalty * np.eye(12), x.T @ (y - y.mean()))
        return found, y.mean() - centre @ found

    own, intercept = fitted(slice(None), ridge)
    np.testing.assert_allclose(weights, own)
    assert base == pytest.approx(intercept)

    def left_out(penalty: float) -> float:
        errors = []
        for row in range(40):
            found, level = fitted(np.arange(40) != row, penalty)
            errors.append(numbers[row] - level - rows[row] @ found)
        return float(np.mean(np.square(errors)))

    assert left_out(ridge) <= min(left_out(ridge / 20), left_out(ridge * 20))


# -- the conversation ----------------------------------------------------------------------------


def test_a_library_that_fails_is_heard() -> None:
    def work(game: Any) -> None:
        game(np.eye(2, dtype=bool))
        raise ZeroDivisionError("inside")

    talk = Conversation(work, seed=0)
    assert talk.step() is not None
    with pytest.raises(ZeroDivisionError, match="inside"):
        talk.step(np.zeros(2))


def test_an_abandoned_conversation_ends_its_thread() -> None:
    talk = Conversation(lambda game: game(np.eye(2, dtype=bool)), seed=0)
    talk.step()
    thread = talk._thread
    assert thread.is_alive()
    del talk
    thread.join(timeout=5)
    assert not thread.is_alive()


def test_a_failed_run_leaves_no_thread(reviews: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = threading.active_count()

    def fail(self: Any, questions: Any) -> Any:
        if len(questions) > 40:
            raise ZeroDivisionError
        return answer(self, questions)

    answer = type(reviews).answer
    monkeypatch.setattr(type(reviews), "answer", fail)
    with pytest.raises(ZeroDivisionError):
        piste.explain(reviews, [REVIEW, REVIEW + " Good."], method="lime", samples=300)
    for _ in range(100):
        if threading.active_count() <= before:
            break
        time.sleep(0.05)
    assert threading.active_count() <= before


def test_what_was_asked_again_is_no_proof() -> None:
    e = piste.explain(lambda texts: [len(t) for t in texts], "a bb c d ee f", method="lime")
    assert e.fidelity.questions < 10  # of six units nearly every subset was fitted to


def test_a_library_that_breaks_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import shap

    def broken(*_: object, **__: object) -> None:
        raise ValueError("singular")

    monkeypatch.setattr(shap.KernelExplainer, "shap_values", broken)
    with pytest.raises(PisteError, match=r"'kernel_shap' failed in the library.*singular"):
        piste.explain(lambda texts: [len(t) for t in texts], "a bb c", method="kernel_shap")


def test_interleaved_conversations_draw_their_own_numbers() -> None:
    def work(game: Any) -> list[float]:
        drawn = []
        for _ in range(3):
            drawn.append(float(np.random.random()))
            game(np.ones((1, 1), dtype=bool))
        return drawn

    def run(*seeds: int) -> list[Any]:
        talks = [Conversation(work, seed) for seed in seeds]
        for talk in talks:
            talk.step()
        for _ in range(3):
            for talk in talks:
                talk.step(np.zeros(1))
        return [talk.result for talk in talks]

    assert run(1, 2) == [*run(1), *run(2)]


def test_options_are_checked() -> None:
    for name, options, words in (
        ("lime", {"samples": 0}, "whole number"),
        ("lime", {"kernel_width": "wide"}, "a number above 0"),
        ("kernel_shap", {"l1_reg": "some"}, "num_features"),
        ("integrated_gradients", {"steps": -1}, "whole number"),
        ("integrated_gradients", {"baseline": "noise"}, "choose auto, pad, mask, mean, blur, zero"),
        ("smoothgrad", {"noise": -1}, "a number from 0"),
        ("linear", {"sampler": "x"}, "unknown"),
        ("occlusion", {"steps": 3}, "has no option 'steps'"),
    ):
        with pytest.raises(PisteError, match=words):
            make(name, options)
