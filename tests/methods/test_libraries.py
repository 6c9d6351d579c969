"""LIME and SHAP held against the libraries they come from, and against brute force."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import piste
import piste.methods
from piste import PisteError
from piste.methods import Task, make
from piste.methods.kernel_shap import KernelShapMethod
from piste.methods.lime import LimeMethod
from piste.target import resolve


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Numpy's global state for libraries that use it, as it was afterwards."""
    before = np.random.get_state()
    np.random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(before)


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


def test_options_are_checked() -> None:
    for name, options, words in (
        ("lime", {"samples": 0}, "whole number"),
        ("lime", {"kernel_width": "wide"}, "a number above 0"),
        ("kernel_shap", {"l1_reg": "some"}, "num_features"),
        ("integrated_gradients", {"steps": -1}, "whole number"),
        ("integrated_gradients", {"baseline": "noise"}, "one of auto, pad, mask, mean, blur, zero"),
        ("smoothgrad", {"noise": -1}, "a number of at least 0"),
        ("linear", {"sampler": "x"}, "got 'x'"),
        ("occlusion", {"steps": 3}, "has no option 'steps'"),
    ):
        with pytest.raises(PisteError, match=words):
            make(name, options)
