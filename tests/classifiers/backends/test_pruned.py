"""Less work per question must not change the answers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import piste
from piste.classifiers.backends.pruned import OneRow
from piste.classifiers.text.classifier import TextClassifier
from piste.classifiers.text.prefix_plan import share
from piste.classifiers.text.prefix_sharing import PrefixRunner
from piste.slalom.sampling import draw
from tests.conftest import FAMILIES, TEXT, build

REDUCED = {"bert", "roberta", "deberta-v2", "gpt2-pad", "gpt2-no-pad", "llama-no-pad", "bloom"}


def questions(subject: piste.Subject) -> list[Any]:
    n, rng = len(subject), np.random.default_rng(0)
    return [range(n), [0], [n - 1, 0], *draw("mix", n, 30, rng)]


def reduced_layers(classifier: Any) -> int:
    module = classifier._backend.module
    return sum(isinstance(part, OneRow) for part in module.modules())


def test_a_pruned_copy_answers_as_the_model_does(family: Any) -> None:
    name, model, tokenizer = family
    pruned, plain = TextClassifier(model, tokenizer), TextClassifier(model, tokenizer, pruned=False)
    one, other = pruned.subject(TEXT), plain.subject(TEXT)
    assert np.allclose(one.ask(questions(one)), other.ask(questions(other)), atol=2e-5)
    assert reduced_layers(plain) == 0
    assert reduced_layers(pruned) >= 3 or name not in REDUCED
    assert not any(isinstance(part, OneRow) for part in model.modules())


def test_alone_the_model_itself_answers(bert: Any) -> None:
    ids = bert.tokenizer(TEXT, return_tensors="pt")
    with torch.inference_mode():
        own = bert.model(**ids).logits.double().numpy()
    subject = bert.subject(TEXT)
    bert.calibrate(subject)
    assert bert._backend.is_replaced
    assert np.array_equal(subject.ask([subject.whole]), own)


def test_keys_and_values_are_never_reduced(bert: Any) -> None:
    bert.calibrate(bert.subject(TEXT))
    parts = dict(bert._backend.module.named_modules())
    reduced = {name for name, part in parts.items() if isinstance(part, OneRow)}
    assert reduced
    assert not any(name.endswith(("key", "value")) for name in reduced)
    assert all("layer.1." in name for name in reduced), "only the last of two layers"


def test_a_model_changed_after_loading_is_noticed(wordpiece: Any) -> None:
    model = build("bert", **FAMILIES["bert"][1])
    classifier = TextClassifier(model, wordpiece)
    subject = classifier.subject(TEXT)
    before = subject.ask([[0], [1, 2]])
    with torch.no_grad():
        model.classifier.bias += 1.0  # in place: a twin shares it
    assert np.allclose(subject.ask([[0], [1, 2]]), before + 1.0, atol=1e-5)
    old = model.classifier
    with torch.random.fork_rng(), torch.no_grad():
        model.classifier = torch.nn.Linear(16, 3, bias=False)
        model.classifier.weight.copy_(2 * old.weight)
    expected = TextClassifier(model, wordpiece, pruned=False).subject(TEXT).ask([[0], [1, 2]])
    assert np.allclose(classifier.subject(TEXT).ask([[0], [1, 2]]), expected, atol=1e-5)


def test_a_model_with_hooks_is_left_to_run_as_it_is(wordpiece: Any) -> None:
    model = build("bert", **FAMILIES["bert"][1])
    heard: list[int] = []
    model.bert.encoder.register_forward_hook(lambda *_: heard.append(1))
    classifier = TextClassifier(model, wordpiece)
    subject = classifier.subject(TEXT)
    heard.clear()
    subject.ask([[0], [1, 2]])
    assert heard
    assert reduced_layers(classifier) == 0


def test_a_twin_that_is_wrong_on_long_questions_is_dropped(
    wordpiece: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build("bert", **FAMILIES["bert"][1])
    classifier = TextClassifier(model, wordpiece)
    subject = classifier.subject("good film " * 25)
    classifier.calibrate(subject)
    short = OneRow.forward

    def wrong_when_long(self: OneRow, x: torch.Tensor) -> torch.Tensor:
        return short(self, x) + (1.0 if x.shape[1] > 30 else 0.0)

    monkeypatch.setattr(OneRow, "forward", wrong_when_long)
    classifier._backend._checked_length = 2
    answers = subject.ask([subject.whole, subject.whole[1:]])
    assert not classifier._backend.is_replaced
    plain = TextClassifier(model, wordpiece, pruned=False).subject("good film " * 25)
    assert np.allclose(answers, plain.ask([plain.whole, plain.whole[1:]]), atol=1e-5)


@pytest.mark.parametrize("kind", ["gpt2-pad", "gpt2-no-pad", "llama-no-pad"])
def test_decoders_share_beginnings_through_the_engine(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    architecture, config, tokenizer = FAMILIES[kind]
    classifier = TextClassifier(
        build(architecture, **config), request.getfixturevalue(tokenizer), name=kind
    )
    subject = classifier.subject(TEXT)
    n = len(subject)
    sequences = [np.delete(np.arange(n), k) for k in range(n)] * 2 + draw(
        "deletion", n, 60, np.random.default_rng(0)
    )
    ran: list[int] = []
    answer = PrefixRunner.answer

    def counted(self: PrefixRunner, group: Any, rows: Any) -> torch.Tensor:
        ran.append(group.tokens)
        return answer(self, group, rows)

    monkeypatch.setattr(PrefixRunner, "answer", counted)
    # The text is so short that calls cost more than sharing saves: make them free.
    monkeypatch.setattr(
        "piste.classifiers.text.classifier.share", partial(share, call=0, least=0.0)
    )
    shared = subject.ask(sequences)
    assert ran, "deletions begin alike"
    monkeypatch.setattr(TextClassifier, "share", lambda *_: None)
    plain = subject.ask(sequences)
    assert np.abs(shared - plain).max() < 2e-5 * max(np.abs(plain).max(), 1.0)


def test_memory_that_ends_while_beginnings_are_shared_costs_nothing(
    reviews_gpt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "A slow start , but a truly wonderful ending that nobody expected at all , really . " * 3
    subject = reviews_gpt.subject(text)
    n = len(subject)
    sequences = [np.delete(np.arange(n), k) for k in range(n)]
    expected = subject.ask(sequences)
    answer = PrefixRunner.answer
    sizes: list[int] = []

    def narrow(self: PrefixRunner, group: Any, rows: Any) -> torch.Tensor:
        sizes.append(len(group.rows))
        if len(group.rows) > 5:
            raise RuntimeError("out of memory")
        return answer(self, group, rows)

    monkeypatch.setattr(PrefixRunner, "answer", narrow)
    assert np.allclose(subject.ask(sequences), expected, atol=1e-5)
    assert max(sizes) > 5 >= min(sizes)
