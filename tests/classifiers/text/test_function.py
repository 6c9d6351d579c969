"""Functions as classifiers: of texts, of tokens, with any kind of output."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import piste
from piste import PisteError
from tests.conftest import TEXT

WORDS = {"good": 2.0, "bad": -3.0, "film": 0.3}


def score(text: str) -> float:
    return sum(WORDS.get(word.strip(".,"), 0.0) for word in text.split())


OUTPUTS = {
    "list": lambda texts: [score(t) for t in texts],
    "array": lambda texts: np.array([score(t) for t in texts]),
    "column": lambda texts: np.array([[score(t)] for t in texts]),
    "tensor": lambda texts: torch.tensor([[0.0, score(t)] for t in texts], requires_grad=True),
    "tensors": lambda texts: [torch.tensor([0.0, score(t)]) for t in texts],
    "half": lambda texts: torch.tensor([[0.0, score(t)] for t in texts]).half(),
    "probabilities": lambda texts: [
        [1 - p, p] for p in (1 / (1 + np.exp(-score(t))) for t in texts)
    ],
    "one probability": lambda texts: [1 / (1 + np.exp(-score(t))) for t in texts],
}


@pytest.mark.parametrize("kind", list(OUTPUTS))
def test_all_kinds_of_output_give_the_same_log_odds(kind: str) -> None:
    classifier = piste.load(OUTPUTS[kind])
    text = "a good film , not a bad film"
    target = None if kind in ("list", "array", "column", "one probability") else 1
    explanation = piste.explain(classifier, text, target=target, samples=80)
    assert explanation.output.value == pytest.approx(score(text), abs=2e-2)


def test_one_column_of_small_logits_is_not_taken_for_probabilities() -> None:
    classifier = piste.load(lambda texts: [0.4 if len(t) > 5 else 3.0 for t in texts])
    subject = classifier.subject("one two three")
    assert subject.ask([subject.whole, [0]]).ravel().tolist() == [0.4, 3.0]


def test_a_wrong_guess_is_reported_not_hidden() -> None:
    classifier = piste.load(lambda texts: [1.7 if t == "one three" else len(t) / 90 for t in texts])
    subject = classifier.subject("one two three")
    with pytest.raises(PisteError, match="outputs='logits'"):
        subject.ask([[0, 2]])
    stated = piste.load(classifier.function, outputs="logits").subject("one two three")
    assert stated.ask([[0, 2]]).item() == 1.7


def test_multi_label_probabilities() -> None:
    classifier = piste.load(lambda texts: [[0.9, 0.8, 0.1] for _ in texts], labels=["a", "b", "c"])
    explanation = piste.explain(classifier, "one two three", target="b")
    assert classifier.kind == "labels"
    assert explanation.output.value == pytest.approx(np.log(4))


def test_the_whole_text_comes_back_unchanged_and_parts_read_well() -> None:
    heard: list[str] = []

    def listen(texts: list[str]) -> list[float]:
        heard.extend(texts)
        return [float(len(t)) for t in texts]

    text = '\tHe said "hello",  then left. '
    subject = piste.load(listen).subject(text)
    heard.clear()
    subject.ask([subject.whole, [0, 1, 3], [1, 3, 4]])
    assert set(heard) == {text, "\tHe said hello", 'said hello",'}


def test_functions_of_token_ids(wordpiece: Any) -> None:
    weights = np.random.default_rng(0).normal(size=200)

    def with_numpy(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        return (weights[ids.astype(int)] * mask).sum(axis=1)

    def with_torch(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        table = torch.nn.functional.embedding(ids, torch.tensor(weights)[:, None]).squeeze(-1)
        return (table * mask).sum(dim=1)

    sequences = [[0, 1, 2], [3], [4, 4]]
    first = piste.load(with_numpy, wordpiece).subject(TEXT).ask(sequences)
    second = piste.load(with_torch, wordpiece).subject(TEXT).ask(sequences)
    np.testing.assert_allclose(first, second, atol=1e-6)
    ids = wordpiece("A slow start")["input_ids"]
    np.testing.assert_allclose(first[0, 0], weights[ids].sum(), atol=1e-6)
    assert (
        piste.explain(piste.load(with_torch, wordpiece), TEXT, samples=60).units[1].text == "slow"
    )


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda texts: [1.0], "rows"),
        (lambda texts: ["good" for _ in texts], "numbers"),
        (lambda texts: None, "numbers"),
        (lambda texts: [[[1.0]] for _ in texts], "shape"),
        (lambda texts: [float("nan") for _ in texts], "NaN"),
    ],
)
def test_bad_answers_are_refused_in_one_sentence(function: Any, words: str) -> None:
    with pytest.raises(PisteError, match=words):
        piste.explain(function, "one two three")


def test_double_precision_survives() -> None:
    value = 0.1234567890123
    subject = piste.load(lambda texts: torch.full((len(texts), 1), value).double() * 10).subject(
        "a b"
    )
    exact = piste.load(lambda texts: torch.full((len(texts), 1), 1 + 1e-12, dtype=torch.float64))
    assert exact.subject("a b").ask([[0]]).item() == 1 + 1e-12
    assert subject.ask([[0]]).item() == pytest.approx(value * 10, abs=1e-6)


def test_reading_does_not_depend_on_a_short_first_text() -> None:
    def chance(texts: list[str]) -> list[float]:
        return [min(0.9, 0.1 + 0.2 * t.count("good")) for t in texts]

    classifier = piste.load(chance)
    classifier.subject("good")
    explanation = piste.explain(classifier, "a good film with a good end", samples=60)
    assert explanation.classifier["outputs"] == "probabilities"


def test_marks_stay_with_their_letters_and_the_first_word_keeps_its_distance() -> None:
    subject = piste.load(lambda texts: [len(t) * 1.5 for t in texts]).subject(
        "फ़िल्म cafe\u0301 film"
    )
    assert [unit.text for unit in subject.units] == ["फ़िल्म", "cafe\u0301", "film"]
    faces = piste.load(lambda texts: [len(t) * 1.5 for t in texts]).subject("😀 good film")
    assert faces.encode([1, 0])[0][0].payload == "good 😀"
