"""The look inside a model that guides a fit to few answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

import piste
from piste.classifiers.base import state_of
from piste.methods import Task
from piste.methods.guide import guide_of
from piste.target import resolve

TEXT = (
    "What a waste of a superb cast : the plot is awful , the jokes are old and nobody will ever "
    "want to save this film , although the music is wonderful ."
)


@pytest.fixture(scope="module")
def reviews() -> Any:
    return piste.load("piste:reviews")


def task_for(classifier: Any, choice: Any = None) -> Task:
    subject = classifier.subject(TEXT)
    logits = piste.engine.Engine(classifier).ask([(subject, [subject.whole])])[0]
    target = resolve(choice, logits[0], classifier.labels, classifier.kind)
    return Task(subject, target, logits[0], np.random.default_rng(0))


def test_it_is_the_gradient_half_way_to_padding(reviews: Any) -> None:
    from captum import attr

    task = task_for(reviews)
    types = task.subject.types
    found = guide_of(task, types)
    access = reviews.gradient_access(task.subject, task.target)
    start, baseline = access.start, access.baseline("pad")
    slopes = attr.Saliency(access.numbers).attribute((start + baseline) / 2, abs=False)
    units = access.per_unit((slopes * (start - baseline))[0].sum(dim=-1))
    means = np.bincount(types, units) / np.bincount(types)
    assert found is not None
    np.testing.assert_allclose(found, means / np.sqrt((means**2).mean()), atol=1e-4)
    assert task.passes == 1


def test_few_questions_are_guided_and_many_are_not(reviews: Any) -> None:
    few = piste.explain(reviews, TEXT, samples=16)
    assert few.settings["guided"]
    assert few.calls == 16  # the gradient is one of them
    assert not piste.explain(reviews, TEXT).settings["guided"]
    fewer = piste.explain(reviews, TEXT, samples=12)  # too few to hold some of them out
    assert fewer.settings["held_out"] == 0
    assert np.isfinite(fewer.fidelity.r2)
    off = piste.explain(reviews, TEXT, samples=16, guide=False)
    assert not off.settings["guided"]
    assert not piste.explain(reviews, TEXT, samples=16, form="paper").settings["guided"]
    full = piste.explain(reviews, TEXT, samples=600)

    def agreement(e: piste.Explanation) -> float:
        return float(np.corrcoef(e.score(), full.score())[0, 1])

    assert agreement(few) > 0.6
    assert agreement(off) < agreement(few) - 0.2


def test_the_model_stays_as_it_was(reviews: Any) -> None:
    state = torch.get_rng_state()
    before = state_of(reviews.model, versions=True)
    modes = [module.training for module in reviews.model.modules()]
    piste.explain(reviews, TEXT, samples=16)
    assert torch.equal(state, torch.get_rng_state())
    assert all(one.grad is None for one in reviews.model.parameters())
    assert before == state_of(reviews.model, versions=True)
    assert modes == [module.training for module in reviews.model.modules()]


def test_a_black_box_is_asked_without_a_guide(reviews: Any) -> None:
    def answer(texts: Sequence[str]) -> list[list[float]]:
        return [[0.0, float(len(text))] for text in texts]

    e = piste.explain(piste.load(answer, labels=["short", "long"]), TEXT, samples=16)
    assert not e.settings["guided"]
    assert guide_of(task_for(reviews, "all"), reviews.subject(TEXT).types) is None


def test_a_model_whose_steps_have_no_derivative_is_asked_without_a_guide(
    reviews: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any) -> Any:
        raise RuntimeError("derivative for aten::heaviside is not implemented")

    task = task_for(reviews)
    monkeypatch.setattr(torch.autograd, "grad", refuse)
    assert guide_of(task, task.subject.types) is None
    assert task.passes == 0


def test_a_target_that_torch_refuses_is_explained_without_a_guide(reviews: Any) -> None:
    e = piste.explain(reviews, TEXT, samples=16, target=lambda z: z[:, ::-1][:, 0] * 1.0)
    assert not e.settings["guided"]
    assert e.calls == 16


def test_images_have_no_guide() -> None:
    """It ranked parts better and predicted worse."""
    classifier = piste.load("piste:fashion")
    image = np.random.default_rng(0).integers(0, 255, (28, 28, 3), dtype=np.uint8)
    assert not piste.explain(classifier, image, samples=20).settings["guided"]
