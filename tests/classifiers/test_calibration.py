"""Binding and planning ask a model nothing; what is tried out is one step, and counted."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from torch.nn.modules.module import register_module_forward_pre_hook

import piste
from piste.classifiers import base
from piste.methods import METHODS, Task, make
from piste.target import resolve

REVIEW = "A slow start, but a wonderful ending."


@pytest.fixture
def passes() -> Any:
    """Counts forward passes of any module that has a config."""
    counted: list[str] = []

    def count(module: Any, given: Any) -> None:
        if hasattr(module, "config") and hasattr(module.config, "num_labels"):
            counted.append(type(module).__name__)

    handle = register_module_forward_pre_hook(count)
    yield counted
    handle.remove()


@pytest.mark.parametrize("model", ["piste:reviews", "piste:reviews-gpt"])
def test_binding_asks_nothing_and_calibration_is_counted_once(model: str, passes: Any) -> None:
    classifier = piste.load(model)
    subject = classifier.subject(REVIEW)
    classifier.subject(REVIEW, removal="attention")
    assert not passes
    assert classifier.calibration.batches == 0
    subject.ask([subject.whole])
    first = classifier.calibration.batches
    assert 0 < first < len(passes)
    assert classifier.calibration.seconds > 0
    classifier.subject("Another text, of more words.").ask([[0, 1]])
    assert classifier.calibration.batches == first
    assert f"calibrated by {first} batches" in repr(classifier)


@pytest.mark.parametrize("model", ["piste:reviews", "piste:reviews-gpt"])
def test_nothing_is_counted_where_nothing_is_tried(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = piste.load(model).subject(REVIEW)
    subject.ask([subject.whole, [0], [1, 2]])
    monkeypatch.setattr(base, "register_module_forward_pre_hook", None)  # would fail if called
    assert subject.ask([subject.whole, [2], [0, 1, 3]]).shape == (3, 2)


def test_passes_of_other_threads_are_not_counted() -> None:
    one, other = piste.load("piste:reviews"), piste.load("piste:reviews")
    subject = other.subject(REVIEW)
    subject.ask([[0]])
    asked = threading.Thread(target=lambda: subject.ask([subject.whole, [1, 2], [3]]))
    with base.counting_calibration(one):
        asked.start()
        asked.join()
    assert one.calibration.batches == 0
    with base.counting_calibration(one), base.counting_calibration(one):
        subject.ask([[1], [1, 2, 3]])
    assert one.calibration.batches > 0
    assert other.calibration.batches > 0


@pytest.mark.parametrize("removal", ["delete", "attention", "mean"])
def test_binding_an_image_asks_nothing(removal: Any, passes: Any) -> None:
    classifier = piste.load("piste:fashion")
    image = np.arange(28 * 28 * 3, dtype=np.uint8).reshape(28, 28, 3)
    subject = classifier.subject(image, removal=removal)
    assert len(subject) > 1
    assert not passes
    assert classifier.calibration.batches == 0
    subject.ask([subject.whole, [0]])
    first = classifier.calibration.batches
    assert 0 < first < len(passes)
    classifier.subject(image[::-1].copy(), removal=removal).ask([[0]])
    assert classifier.calibration.batches == first, "once for a size"


def test_a_function_is_not_called_before_it_is_asked() -> None:
    called = []

    def loud(texts: list[str]) -> list[float]:
        called.append(len(texts))
        return [float(text.count("!")) for text in texts]

    subject = piste.load(loud).subject("Stop it now !")
    assert not called
    subject.ask([[0]])
    assert called


@pytest.mark.parametrize(
    "name", [name for name, method in METHODS.items() if method.needs == "answers"]
)
def test_planning_asks_nothing(name: str, passes: Any) -> None:
    classifier = piste.load("piste:reviews")
    subject = classifier.subject(REVIEW)
    whole = subject.ask([subject.whole])[0]
    del passes[:]
    target = resolve(None, whole, classifier.labels, classifier.kind)
    task = Task(subject, target, whole, np.random.default_rng(0))
    make(name, {}).plan(task)
    task.clear()
    assert not passes
