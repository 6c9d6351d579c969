"""The rules that must hold for every classifier."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

import piste
from piste.classifiers.text.batching import ALONE, EQUAL, LEFT, PaddedRunner
from tests.conftest import FAMILIES, SMALL, TEXT, build

Family = tuple[str, Any, Any]


def own_logits(model: Any, tokenizer: Any, *texts: str) -> np.ndarray:
    import inspect

    accepted = inspect.signature(model.forward).parameters
    encoded = {k: v for k, v in tokenizer(*texts, return_tensors="pt").items() if k in accepted}
    with torch.no_grad():
        return model(**encoded).logits.numpy().astype(np.float64)


@pytest.mark.parametrize("units", ["words", "tokens", "sentences"])
def test_everything_kept_is_the_models_own_output(family: Family, units: Any) -> None:
    _, model, tokenizer = family
    subject = piste.load(model, tokenizer).subject(TEXT, units=units)
    assert np.array_equal(subject.ask([subject.whole]), own_logits(model, tokenizer, TEXT))


def test_binding_asks_the_model_nothing(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    _, model, tokenizer = family
    classifier = piste.load(model, tokenizer)
    monkeypatch.setattr(type(model), "__call__", None)  # would fail if called
    assert len(classifier.subject(TEXT)) > 1
    assert classifier.calibration.batches == 0


def test_a_batch_of_one_equals_a_batch_of_many(family: Family) -> None:
    _, model, tokenizer = family
    subject = piste.load(model, tokenizer).subject(TEXT)
    sequences = [subject.whole, [3], [2, 4, 9], [1, 1], list(range(7)), [5, 2], [4]]
    alone = np.concatenate([subject.ask([sequence]) for sequence in sequences])
    assert np.ptp(alone, axis=0).max() > 1e-2, "the questions must differ for this to mean much"
    np.testing.assert_allclose(subject.ask(sequences), alone, atol=2e-5)
    np.testing.assert_allclose(subject.ask(sequences[::-1])[::-1], alone, atol=2e-5)


def test_the_users_model_stays_as_it_was(family: Family) -> None:
    _, model, tokenizer = family
    model = copy.deepcopy(model).train()
    model.base_model.eval()  # a mixture of modes must come back as a mixture
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    config, modes = model.config.to_dict(), [module.training for module in model.modules()]
    hooks = [len(module._forward_hooks) for module in model.modules()]
    side, pad = tokenizer.padding_side, tokenizer.pad_token_id
    piste.explain(piste.load(model, tokenizer), TEXT, samples=40)
    assert all(torch.equal(weights[name], now) for name, now in model.state_dict().items())
    assert model.config.to_dict() == config
    assert [module.training for module in model.modules()] == modes
    assert [len(module._forward_hooks) for module in model.modules()] == hooks
    assert (tokenizer.padding_side, tokenizer.pad_token_id) == (side, pad)
    assert not any(p.is_inference() or p.grad is not None for p in model.parameters())


def test_training_mode_is_restored_after_a_failure(bert: Any) -> None:
    model = copy.deepcopy(bert.model).train()
    classifier = piste.load(model, bert.tokenizer)
    with classifier.session():
        assert not model.training
    assert model.training
    model.forward = None  # the next question fails inside the session
    subject = bert.subject(TEXT)
    subject.classifier = classifier
    with pytest.raises(TypeError):
        subject.ask([[0]])
    assert model.training


def test_left_padding_tokenizer_gives_the_same_answers(byte_pairs: Any) -> None:
    model = build("gpt2", **FAMILIES["gpt2-pad"][1])
    left = copy.deepcopy(byte_pairs)
    left.padding_side = "left"
    sequences = [[0, 1, 2, 3, 4, 5], [2], [1, 4]]
    one = piste.load(model, byte_pairs).subject(TEXT).ask(sequences)
    other = piste.load(model, left).subject(TEXT).ask(sequences)
    np.testing.assert_allclose(one, other, atol=2e-5)


def test_the_way_of_padding_is_found_not_listed(request: pytest.FixtureRequest) -> None:
    found = {}
    for name in ("xlnet", "fnet", "bert"):
        kind, config, tokenizer = FAMILIES[name]
        classifier = piste.load(build(kind, **config), request.getfixturevalue(tokenizer))
        classifier.calibrate(classifier.subject(TEXT))
        found[name] = classifier._runner.layout
    assert found["xlnet"].side == "left"  # pools the very last position
    assert found["fnet"] == EQUAL  # mixes all positions, has no mask
    assert found["bert"].side == "right"


def test_a_model_that_bears_no_batch_is_asked_one_by_one(bert: Any) -> None:
    subject = bert.subject(TEXT)
    questions = [subject.encode(sequence)[0][0] for sequence in ([0], [0, 1], [2, 3, 4], [1, 5])]

    def forward(batch: Any) -> torch.Tensor:
        if len(batch.ids) > 1:
            raise ValueError("one at a time, please")
        return torch.tensor(batch.ids.sum(axis=1, keepdims=True), dtype=torch.float32)

    runner = PaddedRunner(forward, pad=0, side="right", positions=False)
    assert runner.settle(questions) == ALONE
    assert runner.answer(questions).shape == (4, 1)
    assert LEFT in runner._candidates


def test_pairs_of_texts(bert: Any) -> None:
    first, second = "A slow start, you think?", "What a wonderful ending it had."
    subject = bert.subject((first, second))
    expected = own_logits(bert.model, bert.tokenizer, first, second)
    assert np.array_equal(subject.ask([subject.whole]), expected)
    assert {unit.segment for unit in subject.units} == {0, 1}
    for unit in subject.units:
        assert (first, second)[unit.segment][unit.start : unit.end] == unit.text
    # Order between the texts is the frame's business: units never leave their own text.
    second_only = [k for k, unit in enumerate(subject.units) if unit.segment == 1]
    (question, _) = subject.encode(second_only)[0]
    ids, kinds = question.payload
    assert ids[:2].tolist() == [2, 3]
    assert kinds[2:].all()
    explanation = piste.explain(bert, (first, second), samples=60)
    assert explanation.input == (first, second)


def test_special_tokens_are_never_players(bert: Any) -> None:
    text = "A slow [SEP] start"
    subject = bert.subject(text)
    assert [unit.text for unit in subject.units] == ["A", "slow", "start"]
    assert np.array_equal(
        subject.ask([subject.whole]), own_logits(bert.model, bert.tokenizer, text)
    )


@pytest.mark.parametrize(
    ("problem", "labels", "kind"),
    [
        (None, 2, "classes"),
        (None, 5, "classes"),
        ("multi_label_classification", 4, "labels"),
        (None, 1, "regression"),
        ("regression", 2, "regression"),
    ],
)
def test_heads(wordpiece: Any, problem: str | None, labels: int, kind: str) -> None:
    config = FAMILIES["bert"][1] | {"num_labels": labels, "problem_type": problem}
    classifier = piste.load(build("bert", **config), wordpiece)
    assert classifier.kind == kind
    assert len(classifier.labels) == labels
    explanation = piste.explain(classifier, TEXT, samples=60)
    probabilities = explanation.output.probabilities
    assert (probabilities is None) == (kind == "regression")
    if kind == "classes":
        assert sum(probabilities) == pytest.approx(1)
    if kind == "regression":
        assert explanation.output.value == explanation.output.logits[0]


def test_same_seed_same_result_and_other_seed_other_questions(bert: Any) -> None:
    first, again = (piste.explain(bert, TEXT, samples=60, seed=3) for _ in range(2))
    other = piste.explain(bert, TEXT, samples=60, seed=4)
    for name in first.scores:
        np.testing.assert_array_equal(first.scores[name], again.scores[name])
    assert not np.array_equal(first.scores["value"], other.scores["value"])


def test_a_list_gives_what_single_texts_give(bert: Any) -> None:
    texts = [TEXT, "The film is good.", TEXT]
    for method in ("occlusion", "slalom"):
        together = piste.explain(bert, texts, method=method, samples=60)
        for text, one in zip(texts, together, strict=True):
            alone = piste.explain(bert, text, method=method, samples=60)
            # Other batches round otherwise, and so a fit may end some steps earlier.
            close = 0.1 * alone.errors[alone.ranking] if method == "slalom" else 1e-5
            assert (np.abs(one.score() - alone.score()) <= close).all()
            assert one.calls == alone.calls


def test_a_small_vocabulary_may_leave_no_id_to_pad_with(byte_pairs: Any) -> None:
    tokenizer = Tokenizer(models.WordLevel({word: k for k, word in enumerate("abcdefghij")}, "a"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    model = build("gpt2", **(FAMILIES["gpt2-no-pad"][1] | {"vocab_size": 10}))
    subject = piste.load(model, fast).subject("a b c d e f g h i j")
    sequences = [subject.whole, [1, 2], [5], [9, 0, 3]]
    alone = np.concatenate([subject.ask([sequence]) for sequence in sequences])
    np.testing.assert_allclose(subject.ask(sequences), alone, atol=2e-5)


def test_a_row_of_nothing_but_the_pad_id_is_asked_apart(byte_pairs: Any) -> None:
    framed = copy.deepcopy(byte_pairs)
    framed.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A <|end|>", special_tokens=[("<|end|>", 0)]
    )
    framed.padding_side = "left"
    config = FAMILIES["llama-no-pad"][1] | {"pad_token_id": 0}
    subject = piste.load(build("llama", **config), framed).subject(TEXT)
    sequences = [subject.whole, [], [3], [1, 2]]
    alone = np.concatenate([subject.ask([sequence]) for sequence in sequences])
    np.testing.assert_allclose(subject.ask(sequences), alone, atol=2e-5)


def test_models_that_exchange_their_own_parts_get_them_back(wordpiece: Any) -> None:
    config = SMALL | {"block_size": 4, "num_random_blocks": 1, "max_position_embeddings": 64}
    model = build("big_bird", **config)
    parts = {name: type(module) for name, module in model.named_modules()}
    kind = model.base_model.attention_type
    piste.explain(piste.load(model, wordpiece), TEXT, samples=30)
    assert model.base_model.attention_type == kind == "block_sparse"
    assert {name: type(module) for name, module in model.named_modules()} == parts
