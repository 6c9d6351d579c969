"""Planted concepts are found, random ones are not, and everything is told that a reader needs."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

import piste
from piste import PisteError
from piste.concepts import KINDS, ConceptReport, draw, score, sentences
from tests.concepts import planted
from tests.concepts.conftest import concepts_of_texts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "kinds", "layer"),
    # A decoder's tokens know nothing of what comes after them: its last one knows everything.
    # How far its derivatives point one way depends on the last digits of its training.
    [("bert", ("moved", "attention", "tokens"), 1), ("gpt2", ("moved",), 2)],
)
def test_a_planted_word_is_found(architecture: str, kinds: tuple[str, ...], layer: int) -> None:
    found = score(
        planted.text_classifier(architecture),
        planted.texts(planted.IDLE, 30, 3),
        concepts_of_texts(),
        target="yes",
        layers=[layer],
        repeats=8,
    )
    assert set(found.kinds) == set(KINDS)
    read = [found.of(name, layer=layer, kind="reader").score for name in ("good", "bad")]
    assert read[0] > read[1]
    for kind in kinds:
        good, bad, idle = (
            found.of(name, layer=layer, kind=kind) for name in ("good", "bad", "idle")
        )
        assert good.score > 0.9
        assert bad.score < 0.1
        assert max(good.p, bad.p) < idle.p
        assert min(good.accuracy, bad.accuracy) > 0.75
        if architecture == "bert":  # in 32 dimensions random vectors point anywhere in a decoder
            assert good.verdict == "raises"
            assert bad.verdict == "lowers"


@pytest.mark.slow
def test_a_model_that_is_sure_is_moved_all_the_same() -> None:
    """It has hardly any derivatives left, and their signs are chance."""
    sure = planted.text_classifier("bert", sure=True)
    data = planted.texts(planted.GOOD, 15, 3) + planted.texts(planted.BAD, 15, 4)
    found = score(sure, data, concepts_of_texts(), target="yes", layers=[1], repeats=8)
    good, bad = (found.of(name, layer=1) for name in ("good", "bad"))
    assert good.kind == bad.kind == "moved"
    assert good.score > 0.9
    assert bad.score < 0.1
    assert good.verdict == "raises"
    assert bad.verdict == "lowers"
    by_derivative = found.of("good", layer=1, kind="attention")
    assert abs(by_derivative.sensitivity) < 0.01 * good.sensitivity


def test_classes_mirror_each_other(report: ConceptReport) -> None:
    yes = report.of("good", layer=1, target="yes")
    no = report.of("good", layer=1, target="no")
    assert yes.verdict == "raises"
    assert no.verdict == "lowers"
    assert yes.accuracy == no.accuracy  # the vectors are the same


def test_a_colour_is_found_in_images(reader_of_images: Any) -> None:
    data = draw("chequered", (16, 16), count=20, seed=4)
    found = score(
        reader_of_images,
        data,
        ["red", "blue"],
        target="warm",
        layers=[1],
        repeats=8,
    )
    for kind in ("moved", "attention", "tokens", "mean"):
        assert found.of("red", layer=1, kind=kind).score > 0.9
        assert found.of("blue", layer=1, kind=kind).score < 0.1


@pytest.mark.slow
def test_a_random_set_is_no_concept(encoder: Any) -> None:
    """Ten sets drawn from one source: none may be told apart, and none may be said to matter."""
    mixed = [
        text
        for words in (planted.GOOD, planted.BAD, planted.IDLE)
        for text in planted.texts(words, 100, 21)
    ]
    order = np.random.default_rng(0).permutation(len(mixed))
    sets = {f"random {n}": [mixed[i] for i in order[30 * n : 30 * n + 30]] for n in range(10)}
    data = planted.texts(planted.IDLE, 20, 3)
    found = score(encoder, data, sets, target="yes", layers=[1], repeats=6)
    verdicts = [one.verdict for kind in found.kinds for one in found.select(kind=kind)]
    assert verdicts.count("not separable") >= 0.8 * len(verdicts)
    assert not {"raises", "lowers"} & set(verdicts)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_report(encoder: Any) -> None:
    data, concepts = planted.texts(planted.IDLE, 12, 3), concepts_of_texts()
    options: Any = {"target": "yes", "layers": [1], "repeats": 3}
    first, second = (score(encoder, data, concepts, **options) for _ in range(2))
    assert first.scores == second.scores
    other = score(encoder, data, concepts, **options, seed=1)
    assert other.scores != first.scores


@pytest.mark.slow
def test_the_order_of_the_data_does_not_matter(encoder: Any) -> None:
    data, concepts = planted.texts(planted.IDLE, 12, 3), concepts_of_texts()
    options: Any = {"target": "yes", "layers": [1], "repeats": 3}
    first = score(encoder, data, concepts, **options)
    second = score(encoder, data[::-1], concepts, **options)
    for one, other in zip(first.scores, second.scores, strict=True):
        assert one.score == pytest.approx(other.score)
        assert one.p == pytest.approx(other.p, rel=1e-3)


@pytest.mark.slow
def test_negatives_of_ones_own_and_single_concepts(encoder: Any) -> None:
    data = planted.texts(planted.IDLE, 12, 3)
    good = {"good": planted.texts(planted.GOOD, 30, 11)}
    fillers = planted.texts(planted.FILLERS, 40, 5)
    found = score(encoder, data, good, target="yes", negatives=fillers, layers=[1], repeats=5)
    assert found.negatives == 40
    assert found.of("good", layer=1).score > 0.6  # few repeats: planted concepts are tested above
    told = score("piste:reviews", sentences("acting"), "praise", target=1, layers=[1], repeats=3)
    assert told.negatives == len(sentences("everyday"))
    assert told.of("praise", layer=1).score > 0.7


def test_long_texts_are_cut_and_counted(encoder: Any) -> None:
    data = [" ".join([text] * 12) for text in planted.texts(planted.IDLE, 12, 3)]
    options: Any = {"target": "yes", "layers": [1], "repeats": 2}
    found = score(encoder, data, concepts_of_texts(), **options)
    assert found.notes == ("The data of 'yes': 12 were longer than the model reads, and cut.",)
    with pytest.raises(PisteError, match=r"data of 'yes', example 0: .*long='truncate'"):
        score(encoder, data, concepts_of_texts(), **options, long="error")


def test_repeated_examples_count_once(encoder: Any) -> None:
    concepts = {name: texts * 2 for name, texts in concepts_of_texts().items()}
    data = planted.texts(planted.IDLE, 12, 3)
    found = score(encoder, data, concepts, target="yes", layers=[1], repeats=2)
    assert found.concepts == dict.fromkeys(concepts, 30)
    assert found.notes[0] == "The concept 'good': 30 repeated examples were left out."


def test_models_without_attention_have_the_other_kinds(request: pytest.FixtureRequest) -> None:
    from tests.conftest import FAMILIES, SENTENCES, build

    kind, config, tokenizer = FAMILIES["fnet"]
    classifier = piste.load(build(kind, **config), request.getfixturevalue(tokenizer))
    texts = [f"{one} {two}" for one in SENTENCES for two in SENTENCES][:12]
    found = score(
        classifier, texts, {"a": texts, "b": texts[::-1]}, target=0, layers=[1], repeats=2
    )
    assert found.kinds == ("moved", "tokens", "mean", "reader")
    assert "attention was not met" in found.notes[0]


def _state(model: torch.nn.Module) -> list[Any]:
    return [
        model.training,
        [module.training for module in model.modules()],
        copy.deepcopy(model.state_dict()),
        model.config.to_dict(),
        [parameter.requires_grad for parameter in model.parameters()],
        [parameter.grad for parameter in model.parameters()],
        [len(module._forward_hooks) for module in model.modules()],
    ]


def _same(before: list[Any], after: list[Any]) -> bool:
    weights = [
        torch.equal(one, other)
        for one, other in zip(before[2].values(), after[2].values(), strict=True)
    ]
    return all(weights) and before[:2] + before[3:] == after[:2] + after[3:]


@pytest.mark.parametrize("fails", [False, True])
def test_the_model_comes_back_as_it_was(reader_of_texts: Any, fails: bool) -> None:
    model = reader_of_texts.model
    model.train()
    model.get_input_embeddings().weight.requires_grad_(False)
    try:
        before = _state(model)
        data = planted.texts(planted.IDLE, 12, 3)
        concepts = concepts_of_texts() | ({"odd": [" " * n for n in range(1, 21)]} if fails else {})
        options: Any = {"target": "yes", "layers": [1], "repeats": 2}
        if fails:
            with pytest.raises(PisteError, match="concept 'odd', example 0: The text is empty"):
                score(reader_of_texts, data, concepts, **options)
        else:
            score(reader_of_texts, data, concepts, **options)
        assert _same(before, _state(model))
    finally:
        model.get_input_embeddings().weight.requires_grad_(True)
        model.eval()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target": "maybe"}, r"no class 'maybe': the model has 0 'no', 1 'yes'"),
        ({"target": None}, "No class was named: choose target from 'no', 'yes'"),
        ({"target": "all"}, "Expected one class"),
        ({"target": ["yes", 1]}, "'yes' was named twice"),
        ({"data": ["f1", "f2", "f3"]}, "data of 'yes': expected at least 10 examples, got 3"),
        (
            {"concepts": {"few": ["good1"] * 20}},
            "concept 'few': expected at least 10 examples, got 1",
        ),
        ({"concepts": {}}, "No concept was given"),
        ({"concepts": ["magic"]}, "Expected a file of texts or .*, got 'magic'"),
        ({"concepts": {"one": 3}}, "Expected a list of examples"),
        ({"negatives": planted.FILLERS[:12]}, "negatives: expected at least 20 examples, got 12"),
        ({"layers": [3]}, r"no layer 3: the model has 0 \(its embeddings\) to 2"),
        ({"layers": "1"}, "list of numbers"),
        ({"repeats": 1}, "repeats: expected"),
        ({"number": "chance"}, "expected one of logit, log-odds"),
        ({"correction": "none"}, "expected one of holm, bh"),
    ],
)
def test_mistakes_are_one_sentence(encoder: Any, changes: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {
        "data": planted.texts(planted.IDLE, 12, 3),
        "concepts": concepts_of_texts(),
        "target": "yes",
        "repeats": 2,
    } | changes
    with pytest.raises(PisteError, match=words):
        score(encoder, given.pop("data"), given.pop("concepts"), **given)


def test_black_boxes_are_refused() -> None:
    with pytest.raises(PisteError, match="only gives answers, and concepts are looked for inside"):
        score(lambda texts: [len(t) for t in texts], ["a b"] * 12, ["praise"], target=0)


def test_models_whose_states_are_out_of_reach_are_refused(request: pytest.FixtureRequest) -> None:
    from tests.conftest import FAMILIES, SENTENCES, build

    kind, config, tokenizer = FAMILIES["xlnet"]
    classifier = piste.load(build(kind, **config), request.getfixturevalue(tokenizer))
    texts = [f"{one} {two}" for one in SENTENCES for two in SENTENCES]
    with pytest.raises(PisteError, match=r"has no gradient at the states .* another model"):
        score(classifier, texts, ["praise", "blame"], target=0, repeats=2)
