"""Slopes: key biases in attention, wherever torch computes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

import piste
from piste.classifiers.slopes import KeyBias, NoSlopesError, SlopeRunner
from piste.engine import Engine, opened
from piste.errors import PisteError
from piste.target import resolve
from tests.conftest import TEXT, build


class SoftMeanConfig(PretrainedConfig):
    model_type = "soft_mean"

    def __init__(self, vocab_size: int = 200, pooled: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.vocab_size, self.pooled = vocab_size, pooled


class SoftMean(PreTrainedModel):
    """A transformer that is a SLALOM (Proposition 5.1): one query, keys s(τ), values v(τ)."""

    config_class = SoftMeanConfig

    def __init__(self, config: SoftMeanConfig) -> None:
        super().__init__(config)
        self.weights = torch.nn.Embedding(config.vocab_size, 1)
        self.values = torch.nn.Embedding(config.vocab_size, 1)
        self.post_init()

    def get_input_embeddings(self) -> torch.nn.Module:
        return self.weights

    def forward(self, input_ids: Any, attention_mask: Any = None, **_: Any) -> Any:
        scores = self.weights(input_ids).transpose(1, 2)[:, None]
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask[:, None, None] == 0, -1e30)
        mixed = (torch.softmax(scores, dim=-1) @ self.values(input_ids)[:, None])[:, 0, 0, 0]
        if self.config.pooled:  # and something that flows past attention
            mixed = mixed + self.values(input_ids)[..., 0].mean(dim=1)
        return SequenceClassifierOutput(logits=torch.stack([-mixed / 2, mixed / 2], dim=1))


def soft_mean(tokenizer: Any, **options: Any) -> tuple[SoftMean, Any]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = SoftMean(SoftMeanConfig(len(tokenizer), pad_token_id=0, **options))
        for table, spread in ((model.weights, 0.7), (model.values, 2.0)):
            torch.nn.init.normal_(table.weight, std=spread)
    return model.eval(), tokenizer


def load_pair(model: Any, tokenizer: Any) -> Any:
    return piste.load(model, tokenizer=tokenizer)


def asked(classifier: Any, text: str, sequences: Any, target: Any = 1) -> Any:
    subject = classifier.subject(text)
    chosen = resolve(target, np.zeros(len(classifier.labels)), classifier.labels, classifier.kind)
    return (subject, *Engine(classifier).ask_slopes(subject, sequences, chosen))


def test_slopes_are_derivatives(reviews: Any) -> None:
    """Against finite differences of the biased model, for encoder and questions of any length."""
    subject, logits, slopes = asked(reviews, TEXT, [range(8), [1, 4, 6]])
    np.testing.assert_allclose(logits, subject.ask([range(8), [1, 4, 6]]), atol=1e-5)
    inputs = {}
    for row, sequence in enumerate(([*range(8)], [1, 4, 6])):
        ((question, _),) = subject.encode(sequence)
        inputs = {
            "input_ids": torch.from_numpy(question.payload[0])[None],
            "attention_mask": torch.ones(1, question.length, dtype=torch.long),
        }
        owners = subject.owners(sequence)
        for unit in sequence:
            numbers = []
            for step in (-0.01, 0.01):
                bias = torch.zeros(1, question.length)
                bias[0, owners == unit] = step
                with torch.no_grad(), KeyBias(bias):
                    got = reviews.model(**inputs).logits[0].double()
                numbers.append(float(got[1] - got[0]))
            assert slopes[row, unit] == pytest.approx((numbers[1] - numbers[0]) / 0.02, abs=2e-3)
        absent = np.setdiff1d(np.arange(len(subject)), sequence)
        assert (slopes[row, absent] == 0).all()


def test_no_weight_is_a_hidden_key(bert: Any) -> None:
    """λ = 0 says what the attention mask says."""
    subject = bert.subject(TEXT, removal="attention")
    kept = [*range(3), *range(5, len(subject))]
    truth = subject.ask([kept])[0]
    ((question, _),) = bert.subject(TEXT).encode(range(len(subject)))
    inputs = {
        "input_ids": question.payload[0][None],
        "attention_mask": np.ones((1, question.length), dtype=np.int64),
    }
    bias = torch.zeros(1, question.length)
    bias[0, np.isin(subject.token_units, [3, 4])] = -1e4
    with torch.no_grad():
        hidden = SlopeRunner(bert.model).logits(inputs, None, bias)[0]
    np.testing.assert_allclose(hidden.double().numpy(), truth, atol=1e-5)


def test_families_have_slopes_or_say_why_not(family: tuple[str, Any, Any]) -> None:
    name, model, tokenizer = family
    classifier = piste.load(model, tokenizer=tokenizer)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    subject = classifier.subject(TEXT)
    reason = classifier.why_no_slopes(subject)
    assert (reason is None) == (name != "fnet")  # which has no attention
    if reason is None:
        _, logits, slopes = asked(classifier, TEXT, [subject.whole, [0, 2, 5, 6]])
        truth = subject.ask([subject.whole, [0, 2, 5, 6]])
        np.testing.assert_allclose(logits, truth, atol=2e-4 * np.abs(truth).max())
        assert np.nanmax(np.abs(slopes[0])) > 0
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert not any(weight.grad is not None for weight in model.parameters())


def test_most_families_have_slopes() -> None:
    """Encoders with attention of torch or of their own; a model without attention has none."""
    for kind, config, expected in (
        ("bert", {"attn_implementation": "eager"}, True),
        ("bert", {"attn_implementation": "sdpa"}, True),
        ("fnet", {}, False),
    ):
        model = build(kind, **config)
        ids = np.arange(5, 17)[None] % model.config.vocab_size
        runner = SlopeRunner(model)
        inputs = {"input_ids": ids}
        if kind != "fnet":
            inputs["attention_mask"] = np.ones_like(ids)
            assert runner.hides(inputs, None, 6, 3) is expected
        else:
            with pytest.raises(NoSlopesError, match="no attention"):
                runner.hides(inputs, None, 6, 3)


def test_information_that_flows_past_attention_is_found_out(wordpiece: Any) -> None:
    honest = load_pair(*soft_mean(wordpiece))
    assert honest.why_no_slopes(honest.subject(TEXT)) is None
    pooled = load_pair(*soft_mean(wordpiece, pooled=True))
    assert "one unit" in str(pooled.why_no_slopes(pooled.subject("film")))  # and not remembered
    assert "still matters" in str(pooled.why_no_slopes(pooled.subject(TEXT)))
    e = piste.explain(pooled, TEXT, samples=100)
    assert "still matters" in e.settings["slopes"]
    with pytest.raises(PisteError, match="slopes=True is not possible"):
        piste.explain(pooled, TEXT, samples=100, slopes=True)


def test_a_decoder_reads_its_last_token_past_all_keys(reviews_gpt: Any) -> None:
    subject, _, slopes = asked(reviews_gpt, TEXT, [[0, 1, 2, 3], [4, 6]])
    assert reviews_gpt.why_no_slopes(subject) is None
    _, _, slopes = asked(reviews_gpt, TEXT, [[0, 1, 2, 3], [4, 6]])
    assert np.isnan(slopes[0, 3])
    assert np.isnan(slopes[1, 6])
    assert np.isfinite(slopes[0, :3]).all()


def test_a_transformer_that_is_a_slalom_is_recovered_by_a_handful_of_questions(
    wordpiece: Any,
) -> None:
    model, tokenizer = soft_mean(wordpiece)
    classifier = piste.load(model, tokenizer=tokenizer)
    e = piste.explain(classifier, TEXT, target=1, units="tokens", samples=20, slopes=True)
    subject = classifier.subject(TEXT, units="tokens")
    ids = subject.encode(subject.whole)[0][0].payload[0][subject.token_units >= 0]
    truth = model.values.weight.detach().double().numpy()[ids, 0]
    weights = model.weights.weight.detach().double().numpy()[ids, 0]
    np.testing.assert_allclose(e.scores["value"], truth, atol=2e-3)
    differences = e.scores["importance"] - weights
    np.testing.assert_allclose(differences, differences.mean(), atol=2e-3)
    assert e.fidelity.r2 > 0.99999
    # Answers alone are not enough: as many equations as unknowns are missing.
    alone = piste.explain(
        classifier, TEXT, target=1, units="tokens", samples=20, slopes=False, link=False
    )
    assert np.abs(alone.scores["value"] - truth).max() > 0.1


def test_black_boxes_are_asked_without_slopes() -> None:
    e = piste.explain(lambda texts: [len(t) for t in texts], "a b c d e f g h i", samples=60)
    assert "only gives answers" in e.settings["slopes"]


def test_two_tokens_of_a_decoder_are_enough_to_tell() -> None:
    fresh = piste.load("piste:reviews-gpt")
    assert fresh.why_no_slopes(fresh.subject("good film")) is None


def test_answers_that_came_with_slopes_are_kept(reviews: Any, tmp_path: Any) -> None:
    subject, sequences = reviews.subject(TEXT), [[0, 1, 2], [3, 5]]
    target = resolve(1, np.zeros(2), reviews.labels, reviews.kind)
    with opened(tmp_path / "kept") as cache:
        logits, _ = Engine(reviews, cache=cache).ask_slopes(subject, sequences, target)
    with opened(tmp_path / "kept") as cache:
        later = Engine(reviews, cache=cache)
        (again,) = later.ask([(subject, sequences)])
    assert later.asked == 0
    assert np.array_equal(again, logits)


def test_another_runtime_answers_without_slopes(wordpiece: Any) -> None:
    quick = piste.load(build("bert"), wordpiece, runtime="torch-int8", tolerance=10.0)
    assert "no gradients" in str(quick.why_no_slopes(quick.subject(TEXT)))
