"""Shared beginnings: plans that add up, answers that stay the same, models that are refused."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import GPT2Config, GPT2ForSequenceClassification

import piste
from piste.classifiers.text.prefix_plan import Group, share
from piste.classifiers.text.prefix_sharing import PrefixRunner
from piste.slalom.sampling import draw
from tests.conftest import FAMILIES, GPT2, SMALL, build

Ids = NDArray[np.int64]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small only lose time by waiting for a second thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("gpt2", GPT2 | {"num_labels": 3, "pad_token_id": 0, "n_positions": 24}),
    "gpt2 without a pad token": ("gpt2", GPT2 | {"num_labels": 3}),
    "llama without a pad token": ("llama", SMALL | {"num_key_value_heads": 1}),
    "mistral that looks back 5 tokens": (
        "mistral",
        SMALL | {"num_key_value_heads": 1, "sliding_window": 5},
    ),
    "bloom": (
        "bloom",
        {"vocab_size": 400, "hidden_size": 16, "n_layer": 2, "n_head": 2, "num_labels": 3},
    ),
}


def alone(model: Any, rows: Sequence[Ids]) -> torch.Tensor:
    """Every row by itself, by the model's own forward."""
    with torch.inference_mode():
        return torch.cat([model(torch.from_numpy(row)[None]).logits for row in rows])


def together(runner: PrefixRunner, rows: Sequence[Ids], groups: Sequence[Group]) -> torch.Tensor:
    answers: dict[int, torch.Tensor] = {}
    for group in groups:
        answers |= dict(zip(group.rows.tolist(), runner.answer(group, rows), strict=True))
    assert len(answers) == len(rows)
    return torch.stack([answers[number] for number in range(len(rows))])


def shared_part(groups: Sequence[Group]) -> int:
    return sum(int(group.starts.sum()) for group in groups)


def rows_of(kind: str, length: int = 24, vocabulary: int = 400) -> list[Ids]:
    rng = np.random.default_rng(5)
    text = rng.integers(1, vocabulary, length)
    deletions = [text[kept] for kept in draw("deletion", length, 20, rng)]
    return {
        "deletions": deletions,
        "mixed lengths": [text[kept] for kept in draw("subsets", length, 20, rng)] + deletions,
        "duplicates": [text, text, text[:9], *deletions[:3], *deletions[:3]],
        "beginnings of others": [text[:end] for end in range(1, length + 1)],
        "two texts": [*deletions, *(row[::-1].copy() for row in deletions)],
    }[kind]


KINDS = ("deletions", "mixed lengths", "duplicates", "beginnings of others", "two texts")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", [1, 100, 10_000])
@pytest.mark.parametrize("slots", [40, 10_000])
def test_plans_put_back_exactly_what_was_taken(kind: str, budget: int, slots: int) -> None:
    rows = rows_of(kind)
    groups = share(rows, budget, least=0.0, call=min(4, budget // 10), slots=slots)
    assert sorted(np.concatenate([group.rows for group in groups])) == list(range(len(rows)))
    assert shared_part(groups) > 0
    stores: dict[int, Ids] = {}
    for group in groups:
        # Token ids stand in for keys and values: paths must spell every row's own beginning.
        store = stores.setdefault(id(group.store), np.full(group.store.slots, -1))
        assert len(store) <= slots
        for place, row in enumerate(group.rows):
            start = group.starts[place]
            assert 0 <= start < len(rows[row]) == group.ends[place]
            assert store[group.paths[place, group.paths.shape[1] - start :]].tolist() == (
                rows[row][:start].tolist()
            )
        places, after, slot = group.kept
        for place, step, where in zip(places, after, slot, strict=True):
            store[where] = rows[group.rows[place]][group.starts[place] + step]
        assert len(group.rows) == 1 or group.tokens <= budget
        assert group.paths.shape[1] + (group.ends - group.starts).max() <= 1.25 * 24
    assert [group.last for group in groups].count(True) == len(stores)


def test_leaving_one_out_costs_half() -> None:
    text = np.arange(200)
    rows = [np.delete(text, unit) for unit in text]
    computed = sum(group.tokens for group in share(rows, 4096))
    assert 0.48 < computed / sum(map(len, rows)) < 0.58


def test_many_levels_share_more_than_one() -> None:
    """Deletions that agree in their first gap agree further than the text itself tells."""
    text = np.arange(100)
    pairs = [np.delete(text, (first, 90 - first)) for first in range(40) for _ in range(2)]
    late = [np.delete(text, (first, 95)) for first in range(40)]
    groups = share([*pairs, *late], 4096, call=8)
    known_from_text = sum(min(first + 1, 40) for first in range(40)) * 3
    assert shared_part(groups) > 2 * known_from_text


def test_no_row_waits_longer_than_it_must() -> None:
    """Who parts at the same token waits for the same row: the head of the largest family."""
    start = list(range(10))
    families = {50: 2, 60: 1, 70: 5}
    rows = [
        np.array([*start, *range(branch, branch + 5), 100 + member, 0, 0])
        for branch, members in families.items()
        for member in range(members)
    ]
    groups = share(rows, 10_000, least=0.0, call=5)
    starts = [sorted(group.starts.tolist()) for group in groups]
    assert starts == [[0], [10, 10], [15, 15, 15, 15], [15]]


def test_little_in_common_is_not_shared() -> None:
    rng = np.random.default_rng(0)
    text = rng.integers(0, 400, 200)
    rows = [text[kept] for kept in draw("subsets", 200, 100, rng)]
    groups = share(rows, 4096)
    assert shared_part(groups) == 0
    lengths = [int(group.ends.max()) for group in groups]
    assert lengths == sorted(lengths, reverse=True)
    assert share([], 10) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DECODERS)
def test_answers_stay_the_same(name: str, kind: str) -> None:
    model_type, config = DECODERS[name]
    model = build(model_type, **config)
    rows = rows_of(kind)
    runner = PrefixRunner(model)
    assert runner.usable(rows), runner.reason
    truth = alone(model, rows)
    for budget in (1, 5000):  # one row at a time, a generation at a time
        groups = share(rows, budget, pad=runner.pad, least=0.0, call=min(4, budget // 10))
        assert shared_part(groups) > 0
        answers = together(runner, rows, groups)
        torch.testing.assert_close(answers, truth, atol=2e-5, rtol=0)
        assert not any(group.store.tensors for group in groups)


def test_bundled_decoder_answers_the_same() -> None:
    classifier: Any = piste.load("piste:reviews-gpt")
    subject = classifier.subject("A slow start, but what a truly wonderful ending it had.")
    sequences = [np.delete(subject.whole, unit) for unit in subject.whole]
    questions = [question for one in sequences for question, _ in subject.encode(one)]
    rows = [question.payload[0] for question in questions]
    runner = PrefixRunner(classifier.model)
    groups = share(rows, 1000, pad=runner.pad, call=0)
    assert shared_part(groups) > 0
    with classifier.session():
        assert runner.usable(rows)
        answers = together(runner, rows, groups)
        plain = classifier.answer(questions)
    np.testing.assert_allclose(answers.numpy(), plain, atol=1e-5)


def test_rows_that_end_in_padding() -> None:
    """The head answers at the last token that is not padding: that one must run."""
    model = build("gpt2", **DECODERS["gpt2"][1])
    text = np.arange(1, 13)
    zeros = np.zeros(4, dtype=np.int64)
    rows = [np.concatenate([text[:end], zeros]) for end in (12, 12, 11, 10)] + [zeros, zeros[:3]]
    runner = PrefixRunner(model)
    groups = share(rows, 200, pad=0, least=0.0, call=0)
    assert shared_part(groups) > 0
    torch.testing.assert_close(
        together(runner, rows, groups), alone(model, rows), atol=2e-5, rtol=0
    )


def test_no_token_id_is_free_to_pad_with() -> None:
    model = build("gpt2", **GPT2 | {"vocab_size": 12, "num_labels": 2})
    text = np.arange(12)
    rows = [text, text[:11], np.delete(text, 8), text[::-1].copy(), text[:1:-1].copy()]
    runner = PrefixRunner(model)
    groups = share(rows, 500, least=0.0, call=6)
    assert any(len(set(group.ends)) > 1 and not group.starts.any() for group in groups)
    torch.testing.assert_close(
        together(runner, rows, groups), alone(model, rows), atol=2e-5, rtol=0
    )


def test_halves_answer_as_the_whole() -> None:
    model = build("gpt2", **DECODERS["gpt2"][1])
    rows = rows_of("two texts")
    groups = share(rows, 1000, pad=0, call=4)
    halves = [
        half for group in groups for half in (group.halves() if len(group.rows) > 1 else [group])
    ]
    assert len(halves) > len(groups)
    runner = PrefixRunner(model)
    answers = together(runner, rows, halves)
    torch.testing.assert_close(answers, alone(model, rows), atol=2e-5, rtol=0)
    assert not groups[0].store.tensors


def test_the_model_is_left_as_it_was() -> None:
    model = build("llama", **DECODERS["llama without a pad token"][1])
    config = copy.deepcopy(model.config.to_dict())
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    runner = PrefixRunner(model)
    rows = rows_of("deletions")
    assert runner.usable(rows)
    together(runner, rows, share(rows, 500, call=4))
    assert model.config.to_dict() == config
    assert model.config.pad_token_id is None
    assert all(torch.equal(weights[name], tensor) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("name", ["bert", "xlnet"])
def test_encoders_are_refused(name: str) -> None:
    kind, config, _ = FAMILIES[name]
    runner = PrefixRunner(build(kind, **config))
    assert not runner.usable(rows_of("deletions"))
    assert runner.reason == "the model takes no keys and values of earlier tokens"


class MeanOfTokens(GPT2ForSequenceClassification):
    """Takes a past but answers with a mean over the tokens it is given: can't share."""

    beyond = 0

    def forward(self, input_ids, attention_mask=None, past_key_values=None, position_ids=None):  # type: ignore[no-untyped-def]
        output = super().forward(input_ids, past_key_values, attention_mask, None, position_ids)
        if attention_mask is not None and attention_mask.shape[1] > self.beyond:
            output.logits = output.logits + 0.1 * input_ids.shape[1]
        return output


def test_models_that_disagree_are_refused_as_soon_as_they_do() -> None:
    torch_state = torch.random.get_rng_state()
    model = MeanOfTokens(GPT2Config(**GPT2, num_labels=2, pad_token_id=0)).eval()
    torch.random.set_rng_state(torch_state)
    model.beyond = 20  # rows of 12 tokens are answered alike, longer ones are not
    text = np.arange(1, 31)
    runner = PrefixRunner(model)
    assert runner.usable([text[:12]])
    assert not runner.usable([text[:12], text])
    assert "differently" in (runner.reason or "")
    assert not runner.usable([text[:12]])
