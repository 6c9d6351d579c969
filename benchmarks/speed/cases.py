"""The models and texts that everyone in the table has to explain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
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
from piste.slalom import sampling

Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]

# Where BERT's own vocabulary has them, because the published package expects them there.
SPECIALS = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103}


@dataclass
class Case:
    """One model and one or more texts, with the questions explanations are judged by."""

    name: str
    model: Any
    tokenizer: Any
    texts: list[str]
    unseen: int = 100

    @cached_property
    def classifier(self) -> piste.Classifier:
        return piste.load(self.model, self.tokenizer)

    @cached_property
    def subject(self) -> piste.Subject:
        return self.classifier.subject(self.texts[0])

    @cached_property
    def target(self) -> piste.Target:
        return piste.explain(self.classifier, self.texts[0], samples=20, sampler="short").target

    def log_odds(self, masks: Masks) -> Floats:
        """The model's own answers, the truth."""
        return np.asarray(self.target(self.subject.ask([np.nonzero(mask)[0] for mask in masks])))

    @cached_property
    def removals(self) -> tuple[Masks, Floats]:
        """Removals of every size that nobody was fitted to, and what the model says to them."""
        rng = np.random.default_rng(12345)
        return self._asked(sampling.draw("subsets", len(self.subject), self.unseen, rng))

    @cached_property
    def few(self) -> tuple[Masks, Floats]:
        """Three units each, what the published package fits to."""
        rng = np.random.default_rng(54321)
        n = len(self.subject)
        return self._asked([np.sort(rng.choice(n, 3, replace=False)) for _ in range(200)])

    def _asked(self, kept: list[NDArray[np.int64]]) -> tuple[Masks, Floats]:
        masks = np.zeros((len(kept), len(self.subject)), dtype=bool)
        for row, units in zip(masks, kept, strict=True):
            row[units] = True
        return masks, self.log_odds(masks)


def word_tokenizer(words: int, framed: bool) -> PreTrainedTokenizerFast:
    """A vocabulary of words w0, w1 … after BERT's special ids."""
    vocabulary = dict(SPECIALS)
    free = (number for number in range(words + len(SPECIALS)) if number not in SPECIALS.values())
    vocabulary |= {f"w{number}": number for number in free}
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
    """Words that recur as in real texts: about two thirds of 200 are different ones."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(np.arange(1000, 30000), size=2 * tokens, replace=False)
    weights = 1.0 / np.arange(1, 2 * tokens + 1)
    return " ".join(f"w{kind}" for kind in rng.choice(kinds, tokens, p=weights / weights.sum()))


def encoder(tokens: int = 200, layers: int = 6) -> Case:
    """A BERT, 768 wide, with random weights."""
    config = BertConfig(vocab_size=30522, num_hidden_layers=layers)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BertForSequenceClassification(config).eval()
    text = made_up_text(tokens - 2)
    return Case(
        f"BERT, {layers} layers, {tokens} tokens", model, word_tokenizer(30000, True), [text]
    )


def decoder(tokens: int = 200, layers: int = 6) -> Case:
    """A GPT-2, 768 wide, with random weights."""
    config = GPT2Config(vocab_size=30522, n_layer=layers, pad_token_id=0, num_labels=2)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = GPT2ForSequenceClassification(config).eval()
    text = made_up_text(tokens)
    name = f"GPT-2, {layers} layers, {tokens} tokens"
    return Case(name, model, word_tokenizer(30000, False), [text])


def bundled(name: str, texts: list[str]) -> Case:
    """One of Piste's own trained models on real reviews."""
    loaded: Any = piste.load(name)
    return Case(name, loaded.model, loaded.tokenizer, texts, unseen=200)
