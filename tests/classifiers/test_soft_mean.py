"""A transformer that is a SLALOM (proposition 5.1) is recovered from its answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

import piste
from studies.synthetic import word_tokenizer

WORDS = tuple(f"w{number}" for number in range(12))
TEXT = " ".join([*WORDS, WORDS[3]])


class SoftMeanConfig(PretrainedConfig):
    model_type = "soft_mean"

    def __init__(self, vocab_size: int = 200, pooled: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.vocab_size, self.pooled = vocab_size, pooled


class SoftMean(PreTrainedModel):
    """One query, keys s(τ), values v(τ); ``pooled`` adds a mean that passes attention by."""

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
        if self.config.pooled:
            mixed = mixed + self.values(input_ids)[..., 0].mean(dim=1)
        return SequenceClassifierOutput(logits=torch.stack([-mixed / 2, mixed / 2], dim=1))


def soft_mean(**options: Any) -> SoftMean:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = SoftMean(SoftMeanConfig(4 + len(WORDS), pad_token_id=0, **options))
        for table, spread in ((model.weights, 0.7), (model.values, 2.0)):
            torch.nn.init.normal_(table.weight, std=spread)
    return model.eval()


@pytest.mark.parametrize("options", [{"form": "paper"}, {"form": "auto"}, {"solver": "analytic"}])
def test_values_and_importances_are_recovered(options: dict[str, Any]) -> None:
    model = soft_mean()
    classifier = piste.load(model, word_tokenizer("gpt2", WORDS))
    e = piste.explain(classifier, TEXT, target=1, samples=200, **options)
    ids = [4 + WORDS.index(unit.text) for unit in e.units]
    values, weights = (
        table.weight.detach().double().numpy()[ids, 0] for table in (model.values, model.weights)
    )
    np.testing.assert_allclose(e.scores["value"], values, atol=2e-3)
    differences = e.scores["importance"] - weights
    np.testing.assert_allclose(differences, differences[0], atol=5e-3)
    assert e.surrogate.mixing.value == 1.0
    assert e.fidelity.r2 > 0.99999


def test_what_passes_attention_by_is_no_slalom() -> None:
    classifier = piste.load(soft_mean(pooled=True), word_tokenizer("gpt2", WORDS))
    e = piste.explain(classifier, TEXT, target=1, samples=200, form="paper")
    assert e.fidelity.r2 < 0.9999
