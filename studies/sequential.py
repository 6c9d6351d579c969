"""BLOOM-, Llama- and Mamba-style classifiers of any size, with random weights or trained small."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import (
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    AutoConfig,
    AutoModelForSequenceClassification,
    MambaConfig,
    MambaModel,
    MambaPreTrainedModel,
)
from transformers.modeling_outputs import SequenceClassifierOutput

from piste.classifiers import Classifier
from piste.evaluation import Example
from studies.cases import VOCABULARY, drawn, word_tokenizer
from studies.finetuning import fine_tune
from studies.synthetic import ADDITIVE, MOST_WORDS, SUM, draw_texts

KINDS = ("bloom", "llama", "mamba")
LABELS = ("no", "yes")


class MambaForSequenceClassification(MambaPreTrainedModel):  # type: ignore[misc]  # untyped
    """The state after the last token, through a linear layer, as decoders have it.

    Tokens are read one after the other and nothing attends to anything: no transformer.
    """

    def __init__(self, config: MambaConfig) -> None:
        super().__init__(config)
        self.backbone = MambaModel(config)
        self.score = nn.Linear(config.hidden_size, config.num_labels, bias=False)
        self.post_init()

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None
    ) -> SequenceClassifierOutput:
        """Logits; padding may stand on the right only, for what comes first changes the state."""
        states = self.backbone(
            input_ids, attention_mask=attention_mask, use_cache=False
        ).last_hidden_state
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        last = attention_mask.sum(dim=1) - 1
        return SequenceClassifierOutput(logits=self.score(states[torch.arange(len(last)), last]))


# So that folders with a Mamba can be loaded; a head of transformers' own would go first.
if MambaConfig not in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING:
    AutoModelForSequenceClassification.register(
        MambaConfig, MambaForSequenceClassification, exist_ok=True
    )


@dataclass(frozen=True)
class Shape:
    """How large a model is; a layer of Mamba is half as large as one of the others.

    >>> Shape("bloom", 30, 4096, 250_880).parameters()
    (7069024256, 6041419776)
    """

    kind: str
    layers: int
    width: int
    vocabulary: int = VOCABULARY

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.layers} layers, {self.width} wide"

    def config(self) -> Any:
        heads = max(self.width // 64, 2)
        sizes: dict[str, dict[str, int]] = {
            "bloom": {"n_layer": self.layers, "n_head": heads},
            "llama": {
                "num_hidden_layers": self.layers,
                "num_attention_heads": heads,
                "intermediate_size": 8 * self.width // 3,
            },
            "mamba": {"num_hidden_layers": self.layers},
        }
        common = {"vocab_size": self.vocabulary, "hidden_size": self.width, "pad_token_id": 0}
        return AutoConfig.for_model(self.kind, **common, **sizes[self.kind])

    def drawn(self, seed: int = 0) -> Any:
        """The model with random weights."""
        return drawn(AutoModelForSequenceClassification.from_config, self.config(), seed)

    def parameters(self) -> tuple[int, int]:
        """All, and those that every token is multiplied by; nothing is allocated."""
        with torch.device("meta"):
            return count(AutoModelForSequenceClassification.from_config(self.config()))


def count(model: nn.Module) -> tuple[int, int]:
    """All parameters, and those without the table of embeddings, of which tokens read a row."""
    everything = sum(one.numel() for one in model.parameters())
    table: Any = model.get_input_embeddings()  # type: ignore[operator]  # transformers' models
    return everything, everything - table.weight.numel()


def train(shape: Shape, texts: int, rate: float, seed: int, folder: Path) -> Classifier:
    """A classifier of texts whose log-odds are the sum of their words' weights.

    It is kept in ``folder`` and only trained if it is not there.
    """
    own = f"additive-{shape.kind}-{shape.layers}-{shape.width}-{texts}-{rate}-{seed}"
    start = folder / f"{own}-start"
    if not (start / "model.safetensors").is_file():
        shape.drawn(seed).save_pretrained(start)
        word_tokenizer(False, tuple(ADDITIVE)).save_pretrained(start)
    rng = np.random.default_rng([seed, 3])
    numbers, read = draw_texts(texts, rng)
    chances = 1 / (1 + np.exp(-SUM.truth(numbers)))
    labels = (rng.random(texts) < chances).astype(int).tolist()
    examples = [
        Example(str(number), text, label=label)
        for number, (text, label) in enumerate(zip(read, labels, strict=True))
    ]
    settings = {"tokens": MOST_WORDS, "rate": rate, "size": 32, "seed": seed}
    return fine_tune(start, examples, LABELS, folder / own, **settings)
