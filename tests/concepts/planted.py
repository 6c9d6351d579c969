"""Small models that learned one thing only, so that it is known what they react to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    PreTrainedTokenizerFast,
    ViTConfig,
    ViTForImageClassification,
    ViTImageProcessor,
)

import piste
from piste.concepts import draw

FILLERS = [f"f{number}" for number in range(20)]
GOOD = [f"good{number}" for number in range(6)]
BAD = [f"bad{number}" for number in range(6)]
IDLE = [f"idle{number}" for number in range(6)]
"""Words as common as the others that say nothing about the class."""


def texts(words: list[str], count: int, seed: int) -> list[str]:
    """Texts of 4 to 9 words, two of which are among the given ones."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        body = [str(word) for word in rng.choice(FILLERS, rng.integers(2, 8))]
        for word in rng.choice(words, 2):
            body.insert(int(rng.integers(len(body) + 1)), str(word))
        found.append(" ".join(body))
    return found


def tokenizer(framed: bool) -> PreTrainedTokenizerFast:
    """One token per word; with [CLS] and [SEP] around a text or nothing."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: n for n, word in enumerate([*special, *FILLERS, *GOOD, *BAD, *IDLE])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if framed:
        made.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
    names: dict[str, Any] = {"unk_token": "[UNK]"}
    if framed:
        names |= {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=made, **names)


@contextmanager
def _repeatably() -> Iterator[None]:
    """The same weights wherever it runs: sums depend on the number of threads."""
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            yield
    finally:
        torch.set_num_threads(threads)


@cache
def text_classifier(kind: str, sure: bool = False) -> Any:
    """Says "yes" to good words, "no" to bad ones, and nothing to idle ones.

    Not ``sure``: one answer in ten is wrong, so that it always has gradients.
    """
    framed = kind == "bert"
    reader = tokenizer(framed)
    sizes: dict[str, Any] = {"vocab_size": len(reader), "num_labels": 2}
    if framed:
        sizes |= {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
        sizes |= {"intermediate_size": 64, "max_position_embeddings": 32}
    else:
        sizes |= {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 32}
    rng = np.random.default_rng(0)
    chances = {"good": 1.0, "bad": 0.0} if sure else {"good": 0.9, "bad": 0.1, "idle": 0.5}
    sources = {"good": GOOD, "bad": BAD, "idle": IDLE}
    given = [
        (text, int(rng.random() < chance))
        for name, chance in chances.items()
        for text in texts(sources[name], 300, 7)
    ]
    with _repeatably():
        config = AutoConfig.for_model(
            kind, **sizes, id2label={0: "no", 1: "yes"}, label2id={"no": 0, "yes": 1}
        )
        model = AutoModelForSequenceClassification.from_config(config)
        _learn(model, reader, given, framed, rounds=80 if sure else 20)
    return piste.load(model.eval(), reader, name=f"planted {kind}")


def _learn(
    model: Any, reader: Any, given: list[tuple[str, int]], framed: bool, rounds: int
) -> None:
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    by_length: dict[int, list[tuple[list[int], int]]] = {}
    for text, label in given:
        ids = reader(text)["input_ids"]
        by_length.setdefault(len(ids), []).append((ids, label))
    if not framed:
        model.config.pad_token_id = 0  # only while it learns from batches
    for _ in range(rounds):
        for rows in by_length.values():
            ids, labels = (torch.tensor(part) for part in zip(*rows, strict=True))
            optimiser.zero_grad()
            model(input_ids=ids, labels=labels).loss.backward()
            optimiser.step()
    model.config.pad_token_id = 0 if framed else None
    model.zero_grad(set_to_none=True)


@cache
def image_classifier() -> Any:
    """Says "warm" the more red there is than blue, and is never quite sure."""
    kinds = ("red", "blue", "green", "yellow", "blotched", "chequered")
    drawn = [one.pixels for kind in kinds for one in draw(kind, (16, 16), count=50, seed=9)]
    values = torch.from_numpy(np.stack(drawn)).permute(0, 3, 1, 2).float() / 127.5 - 1
    means = values.mean(dim=(2, 3))
    chance = torch.sigmoid(2 * (means[:, 0] - means[:, 2]))
    goals = torch.stack([chance, 1 - chance], dim=1)
    with _repeatably():
        config = ViTConfig(
            image_size=16, patch_size=4, hidden_size=32, num_hidden_layers=2,
            num_attention_heads=2, intermediate_size=64, id2label={0: "warm", 1: "cold"},
            label2id={"warm": 0, "cold": 1},
        )  # fmt: skip
        model = ViTForImageClassification(config)
        optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
        for _ in range(40):
            optimiser.zero_grad()
            logits = model(pixel_values=values).logits
            torch.nn.functional.cross_entropy(logits, goals).backward()
            optimiser.step()
        model.zero_grad(set_to_none=True)
    processor = ViTImageProcessor(
        size={"height": 16, "width": 16}, image_mean=[0.5] * 3, image_std=[0.5] * 3
    )
    return piste.load(model.eval(), processor, name="planted vit")
