"""Made-up models and texts that explainers are timed on; random weights cost no less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    PreTrainedTokenizerFast,
)

import piste

# Where BERT's own vocabulary has them, because the published package expects them there.
SPECIALS = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103}
WORDS = 30_000
VOCABULARY = 30_522
AS_PUBLISHED: Mapping[str, Any] = {"form": "paper"}
"""SLALOM as published: eq. 4, fitted to answers to short questions."""


@dataclass
class Case:
    """One model and one or more texts."""

    name: str
    model: Any
    tokenizer: Any
    texts: list[str]

    @cached_property
    def classifier(self) -> piste.Classifier:
        return piste.load(self.model, self.tokenizer)

    @cached_property
    def subject(self) -> piste.Subject:
        return self.classifier.subject(self.texts[0])


def word_tokenizer(framed: bool, words: Sequence[str] | None = None) -> PreTrainedTokenizerFast:
    """Words w1, w2 … that are called by their ids, or given ones, around BERT's special tokens."""
    free = [number for number in range(WORDS + len(SPECIALS)) if number not in SPECIALS.values()]
    named = [f"w{number}" for number in free] if words is None else words
    vocabulary = SPECIALS | dict(zip(named, free, strict=False))
    backend = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = Whitespace()
    if framed:
        ends = [(name, SPECIALS[name]) for name in ("[CLS]", "[SEP]")]
        backend.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"][:: 1 if framed else 2],
    )


def made_up_text(tokens: int, seed: int = 0) -> str:
    """Words that recur as in real texts: about two thirds of 200 are different ones.

    >>> made_up_text(3)
    'w19469 w15821 w19469'
    """
    rng = np.random.default_rng(seed)
    kinds = rng.choice(np.arange(1000, WORDS), size=2 * tokens, replace=False)
    weights = 1.0 / np.arange(1, 2 * tokens + 1)
    return " ".join(f"w{kind}" for kind in rng.choice(kinds, tokens, p=weights / weights.sum()))


def drawn(make: Any, config: Any, seed: int = 0) -> Any:
    """A model with random weights, the same every time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make(config).eval()


def encoder(tokens: int = 200, layers: int = 6, width: int = 768) -> Case:
    """A BERT with random weights."""
    config = BertConfig(
        vocab_size=VOCABULARY,
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
    )
    model = drawn(BertForSequenceClassification, config)
    name = f"BERT, {layers} layers, {tokens} tokens"
    return Case(name, model, word_tokenizer(framed=True), [made_up_text(tokens - 2)])


def decoder(tokens: int = 200, layers: int = 6) -> Case:
    """A GPT-2, 768 wide, with random weights."""
    config = GPT2Config(vocab_size=VOCABULARY, n_layer=layers, pad_token_id=0, num_labels=2)
    model = drawn(GPT2ForSequenceClassification, config)
    name = f"GPT-2, {layers} layers, {tokens} tokens"
    return Case(name, model, word_tokenizer(framed=False), [made_up_text(tokens)])
