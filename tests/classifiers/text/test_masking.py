"""Units that are masked, padded or hidden from attention: the model itself is the reference."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import numpy as np
import pytest
import torch

import piste
from piste import PisteError
from piste.classifiers.text.classifier import TextClassifier
from piste.classifiers.text.prefix_sharing import PrefixRunner
from piste.engine import Engine
from piste.methods import METHODS, options_of
from tests.conftest import FAMILIES, TEXT, build, make_bytes

REMOVALS = ("mask", "pad", "attention")
COMPILED = ("partition_shap", "permutation_shap", "spex")  # their libraries take some seconds
BLACK_BOX = [
    pytest.param(name, marks=[pytest.mark.slow] if name in COMPILED else [])
    for name, method in METHODS.items()
    if method.needs == "answers"
]
DECODERS = [name for name, (_, _, tokenizer) in FAMILIES.items() if tokenizer == "byte_pairs"]


@pytest.fixture(scope="module")
def bytes_with_all() -> Any:
    """Bytes, with a mask token and a padding token (which some of the models take for theirs)."""
    return make_bytes(mask_token="~", pad_token="<|end|>")


@pytest.fixture(scope="module", params=list(FAMILIES))
def whole(request: pytest.FixtureRequest) -> tuple[str, Any, Any]:
    """(name, model, tokenizer that has a mask and a padding token) of every family."""
    kind, config, tokenizer = FAMILIES[request.param]
    named = "bytes_with_all" if tokenizer == "byte_pairs" else tokenizer
    return request.param, build(kind, **config), request.getfixturevalue(named)


def direct(model: Any, tokenizer: Any, text: str, hidden: Any, removal: str) -> np.ndarray:
    """The model's own logits with tokens replaced or masked out, by nothing but torch."""
    inputs = dict(tokenizer(text, return_tensors="pt"))
    chosen = torch.tensor(hidden, dtype=torch.long)
    if removal == "attention":
        inputs["attention_mask"][0, chosen] = 0
    else:
        inputs["input_ids"][0, chosen] = getattr(tokenizer, f"{removal}_token_id")
    accepted = inspect.signature(model.forward).parameters
    with torch.no_grad():
        return model(**{k: v for k, v in inputs.items() if k in accepted}).logits[0].numpy()


def some_sequences(n: int) -> list[list[int]]:
    full = list(range(n))
    return [full, full[:-1], full[1:], full[::2], [n - 1], [0], [], full[3:7], full[: n // 2]]


@pytest.mark.parametrize("removal", REMOVALS)
def test_hidden_questions_are_what_the_model_itself_says(
    whole: tuple[str, Any, Any], removal: Any
) -> None:
    name, model, tokenizer = whole
    units: Any = "tokens" if name in ("bert", "gpt2-pad") else "words"
    classifier = piste.load(model, tokenizer)
    if name == "fnet" and removal == "attention":
        with pytest.raises(PisteError, match="takes none"):
            classifier.subject(TEXT, removal=removal)
        return
    subject = classifier.subject(TEXT, units=units, removal=removal)
    sequences = some_sequences(len(subject))
    hidden = [
        [p for p, unit in enumerate(subject.token_units) if unit >= 0 and unit not in kept]
        for kept in sequences
    ]
    truth = np.array([direct(model, tokenizer, TEXT, one, removal) for one in hidden])
    assert np.ptp(truth, axis=0).max() > 1e-2, "the questions must differ for this to mean much"
    np.testing.assert_array_equal(subject.ask([subject.whole])[0], truth[0])
    np.testing.assert_allclose(subject.ask(sequences), truth, atol=2e-5)
    np.testing.assert_allclose(subject.ask(sequences[::-1])[::-1], truth, atol=2e-5)
    alone = np.concatenate([subject.ask([sequence]) for sequence in sequences])
    np.testing.assert_allclose(alone, truth, atol=2e-5)


@pytest.mark.parametrize(
    ("removal", "side"),
    [("mask", "left"), ("pad", "left"), ("attention", "left"), ("attention", "right")],
)
@pytest.mark.parametrize("name", DECODERS)
def test_texts_of_different_length_share_a_batch(
    name: str, removal: Any, side: str, bytes_with_all: Any
) -> None:
    tokenizer = copy.deepcopy(bytes_with_all)
    tokenizer.padding_side = side
    kind, config, _ = FAMILIES[name]
    classifier = piste.load(build(kind, **config), tokenizer)
    subjects = [classifier.subject(text, removal=removal) for text in (TEXT, "A film it had.")]
    jobs = [(subject, some_sequences(len(subject))) for subject in subjects]
    together = Engine(classifier).ask(jobs)
    for (subject, sequences), answers in zip(jobs, together, strict=True):
        alone = np.concatenate([subject.ask([sequence]) for sequence in sequences])
        np.testing.assert_allclose(answers, alone, atol=2e-5)


def test_pairs_of_texts(bert: Any) -> None:
    first, second = "A slow start?", "What a wonderful ending."
    subject = bert.subject((first, second), removal="mask")
    kept = [0, 1, 4, 5]
    (question, _) = subject.encode(kept)[0]
    ids, kinds = question.payload
    encoded = bert.tokenizer(first, second)
    units = subject.token_units
    assert kinds.tolist() == encoded["token_type_ids"]
    for place, (unit, own) in enumerate(zip(units, encoded["input_ids"], strict=True)):
        shown = unit < 0 or unit in kept
        assert ids[place] == (own if shown else bert.tokenizer.mask_token_id)


def test_a_pruned_copy_does_not_answer_where_it_would_read_elsewhere(bytes_with_all: Any) -> None:
    """Its head reads the last token, a model's the last one that is not the padding id."""
    model = build("gpt2", **FAMILIES["gpt2-pad"][1])
    for removal in ("pad", "attention"):
        classifier = piste.load(model, bytes_with_all)
        subject = classifier.subject(TEXT, removal=removal)
        classifier.calibrate(subject)
        assert classifier._backend.is_replaced, "without a pruned copy this shows nothing"
        n = len(subject)
        sequences = [list(range(n - k)) for k in range(1, 6)]
        hidden = [np.nonzero(subject.token_units >= n - k)[0] for k in range(1, 6)]
        truth = [direct(model, bytes_with_all, TEXT, one, removal) for one in hidden]
        np.testing.assert_allclose(subject.ask(sequences), truth, atol=2e-5)


def test_other_runtimes_read_hidden_questions_rightly(bytes_with_all: Any) -> None:
    model = build("gpt2", **FAMILIES["gpt2-pad"][1])
    answers = []
    for pruned in (True, False):
        classifier = TextClassifier(
            model, bytes_with_all, runtime="torch-int8", tolerance=9.0, pruned=pruned
        )
        subject = classifier.subject(TEXT, removal="attention")
        answers.append(subject.ask([list(range(len(subject) - k)) for k in range(5)]))
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-4)


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("sequence", [[0, 0], [1, 0], [2, 1, 3]])
def test_repeats_and_reordering_are_refused(bert: Any, removal: Any, sequence: Any) -> None:
    with pytest.raises(PisteError, match=r"units can only be dropped: .* in order"):
        bert.subject(TEXT, removal=removal).ask([sequence])


def test_what_is_missing_is_said_in_one_sentence(bert: Any, byte_pairs: Any) -> None:
    gpt = piste.load(build("gpt2", **FAMILIES["gpt2-pad"][1]), byte_pairs)
    for removal in ("mask", "pad"):
        with pytest.raises(PisteError, match=f"needs a {removal} token.* has none: choose"):
            gpt.subject(TEXT, removal=removal)  # type: ignore[arg-type]
    with pytest.raises(PisteError, match="needs a tokenizer"):
        piste.explain(lambda texts: [len(t) for t in texts], TEXT, removal="mask")
    with pytest.raises(PisteError, match="one of delete, mask, pad, attention, got 'blur'"):
        piste.explain(bert, TEXT, removal="blur")  # type: ignore[call-overload]
    long = " ".join(["good film"] * 60)
    for choice in ("error", "windows"):
        with pytest.raises(PisteError, match=r"must fit the model.*long='truncate'"):
            bert.subject(long, removal="mask", long=choice)
    cut = bert.subject(long, removal="mask", long="truncate")
    assert cut.notes["truncated_tokens"] > 0
    assert cut.encode([0])[0][0].length == bert.limit


def test_functions_of_tokens_can_be_masked(wordpiece: Any) -> None:
    mask_id = wordpiece.mask_token_id
    counting = piste.load(
        lambda ids, mask: (ids == mask_id).sum(1) + 100.0 * mask.sum(1), wordpiece
    )
    tokens = len(wordpiece(TEXT)["input_ids"])
    for removal, shown, masked in (("mask", tokens, 1), ("attention", tokens - 1, 0)):
        subject = counting.subject(TEXT, removal=removal)  # type: ignore[arg-type]
        one = next(k for k, unit in enumerate(subject.units) if unit.tokens == 1)
        answer = subject.ask([np.delete(subject.whole, one)]).item()
        assert answer == 100 * shown + masked


@pytest.mark.parametrize("method", BLACK_BOX)
def test_every_method_runs_with_masks(bert: Any, method: str) -> None:
    text = "A slow start, but a wonderful ending."
    enough = 400 if method == "spex" else 60  # its codes need more
    options = {"samples": enough} if "samples" in options_of(method) else {}
    e = piste.explain(bert, text, method=method, removal="mask", **options)
    assert e.settings["input"]["removal"] == "mask"
    assert all(np.isfinite(scores).all() for scores in e.scores.values())
    plain = piste.explain(bert, text, method=method, **options)
    assert plain.settings["input"]["removal"] == "delete"
    if method not in ("random", "zero", "centre"):
        assert not np.allclose(plain.score(), e.score())


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("name", ["reviews", "reviews_gpt"])
def test_bundled_models(name: str, removal: Any, request: pytest.FixtureRequest) -> None:
    classifier = request.getfixturevalue(name)
    text = "A slow start, but what a wonderful ending it had."
    if getattr(classifier.tokenizer, f"{removal}_token_id", 0) is None:
        with pytest.raises(PisteError, match=f"needs a {removal} token"):
            piste.explain(classifier, text, removal=removal)
        return
    e = piste.explain(classifier, text, removal=removal, samples=120)
    assert e.settings["input"]["removal"] == removal
    assert e.units[int(np.argmax(e.score()))].text == "wonderful"


def test_beginnings_are_not_shared_by_hidden_questions(
    reviews_gpt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = " ".join([TEXT] * 4)
    calls = []
    own = PrefixRunner.answer
    monkeypatch.setattr(PrefixRunner, "answer", lambda *a: calls.append(1) or own(*a))
    deleted = [np.delete(np.arange(60), k) for k in range(60)]
    reviews_gpt.subject(text).ask(deleted)
    assert calls, "without sharing at all this shows nothing"
    calls.clear()
    reviews_gpt.subject(text, removal="attention").ask(deleted)
    assert not calls


def test_beginnings_shared_by_padded_questions_change_nothing(reviews_gpt: Any) -> None:
    subject = reviews_gpt.subject(" ".join([TEXT] * 4), removal="pad")
    assert reviews_gpt._backend.is_replaced, "without a pruned copy this shows nothing"
    rest = np.arange(len(subject) - 3)  # the last units are padding in every question
    sequences = [np.delete(rest, k) for k in range(10, 40)]
    alone = np.concatenate([subject.ask([sequence]) for sequence in sequences])
    np.testing.assert_allclose(subject.ask(sequences), alone, atol=2e-5)


def test_hidden_questions_are_told_apart_from_all_others(bert: Any) -> None:
    subjects = [bert.subject(TEXT, removal=removal) for removal in ("delete", *REMOVALS)]
    some = [[0, 1], [0, 2], [1], [], list(range(5))]
    keys = [subject.encode(sequence)[0][0].key for subject in subjects for sequence in some]
    assert len(set(keys)) == len(keys)
    wholes = {subject.encode(subject.whole)[0][0].key for subject in subjects}
    assert len(wholes) == 1  # the input itself is one and the same question
