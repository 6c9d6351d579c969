"""How the text models are trained and evaluated: data, augmentation, loss and scoring."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from tools.zoo.optimising import Scores, optimise
from tools.zoo.text_recipes import MAX_TOKENS, TextRecipe

logger = logging.getLogger(__name__)

HELD_OUT_REVIEWS = 2_000
# A causal model has read too little before this position to be asked for the label.
FIRST_SCORED_POSITION = 10


class Example(NamedTuple):
    """One review as token ids, without any framing tokens."""

    ids: np.ndarray
    label: int


class Split(NamedTuple):
    """Raw reviews with their labels."""

    texts: list[str]
    labels: list[int]


def read_split(data: Path, split: str) -> Split:
    """Read one official split of the parquet file (columns text, label, split)."""
    table = pd.read_parquet(data, columns=["text", "label", "split"])
    chosen = table[table["split"] == split]
    if split == "train":
        # A few reviews occur twice or in both official splits; training on those would let the
        # held-out and the test accuracy count memorised texts.
        test_texts = table.loc[table["split"] == "test", "text"]
        chosen = chosen[~chosen["text"].isin(test_texts)].drop_duplicates("text")
    return Split(chosen["text"].tolist(), [int(label) for label in chosen["label"]])


def hold_out(split: Split, seed: int) -> tuple[Split, Split]:
    """Split off the reviews on which settings are compared, so that the test split stays unseen."""
    order = np.random.default_rng(seed).permutation(len(split.texts))

    def pick(indices: np.ndarray) -> Split:
        return Split([split.texts[i] for i in indices], [split.labels[i] for i in indices])

    return pick(order[HELD_OUT_REVIEWS:]), pick(order[:HELD_OUT_REVIEWS])


def augment(
    ids: np.ndarray, recipe: TextRecipe, longest: int, random: np.random.Generator
) -> np.ndarray:
    """Crop a review and delete a random share of its tokens.

    Deletion keeps a small model from memorising reviews, and teaches it to judge partial inputs
    soberly, which is what explanation methods ask of it.
    """
    if random.random() < recipe.short_crop_share:
        # Uniform on a log scale: single words are as common as half a paragraph.
        length = int(math.exp(random.uniform(0.0, math.log(recipe.short_crop_limit + 1))))
        length = max(length - 1, recipe.shortest_input)
        start = int(random.integers(0, max(len(ids) - length, 0) + 1))
        return ids[start : start + length]
    kept = ids[random.random(len(ids)) >= random.uniform(0.0, recipe.highest_deletion_rate)]
    if len(kept) < recipe.shortest_input:
        kept = ids
    if len(kept) > longest:
        # Half of the crops start at the head, as the truncation in use does.
        start = int(random.integers(0, len(kept) - longest + 1)) if random.random() < 0.5 else 0
        kept = kept[start : start + longest]
    return kept


class Framing(NamedTuple):
    """The tokens that the tokenizer puts around a text, and the padding token."""

    before: list[int]
    after: list[int]
    pad: int

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerFast) -> Framing:
        """Read the framing off an encoded empty text: first half before, second half after."""
        frame = tokenizer("")["input_ids"]
        middle = len(frame) // 2
        return cls(frame[:middle], frame[middle:], tokenizer.pad_token_id)

    def collate(self, sequences: Sequence[np.ndarray]) -> tuple[Tensor, Tensor]:
        """Frame the sequences and pad them to a common length; give ids and attention mask."""
        framed = [[*self.before, *ids.tolist(), *self.after] for ids in sequences]
        width = max(len(ids) for ids in framed)
        input_ids = torch.full((len(framed), width), self.pad)
        mask = torch.zeros((len(framed), width), dtype=torch.long)
        for row, ids in enumerate(framed):
            input_ids[row, : len(ids)] = torch.tensor(ids)
            mask[row, : len(ids)] = 1
        return input_ids, mask


def epoch_batches(
    examples: Sequence[Example],
    recipe: TextRecipe,
    framing: Framing,
    longest: int,
    random: np.random.Generator,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Give augmented batches of reviews of similar length, so that little padding is computed."""
    content = longest - len(framing.before) - len(framing.after)
    order = random.permutation(len(examples))
    pool_size = recipe.batch_size * 50
    for pool_start in range(0, len(order), pool_size):
        pool = [
            Example(augment(examples[i].ids, recipe, content, random), examples[i].label)
            for i in order[pool_start : pool_start + pool_size]
        ]
        pool.sort(key=lambda example: len(example.ids))
        starts = random.permutation(range(0, len(pool), recipe.batch_size))
        for start in starts:
            batch = pool[start : start + recipe.batch_size]
            input_ids, mask = framing.collate([example.ids for example in batch])
            yield input_ids, mask, torch.tensor([example.label for example in batch])


def batch_loss(
    model: PreTrainedModel, recipe: TextRecipe, input_ids: Tensor, mask: Tensor, labels: Tensor
) -> Tensor:
    """Cross-entropy of the prediction, and for causal models of the running prediction too."""
    smoothing = recipe.label_smoothing
    if recipe.every_position_weight == 0.0:
        logits = model(input_ids=input_ids, attention_mask=mask).logits
        return functional.cross_entropy(logits, labels, label_smoothing=smoothing)
    causal: Any = model
    hidden = causal.transformer(input_ids=input_ids, attention_mask=mask).last_hidden_state
    running = causal.score(hidden)
    last = mask.sum(dim=1) - 1
    final = running[torch.arange(len(labels)), last]
    loss = functional.cross_entropy(final, labels, label_smoothing=smoothing)
    scored = mask.bool()
    scored[:, :FIRST_SCORED_POSITION] = False
    if scored.any():
        targets = labels[:, None].expand_as(mask)[scored]
        loss = loss + recipe.every_position_weight * functional.cross_entropy(
            running[scored], targets, label_smoothing=smoothing
        )
    return loss


def fit(
    recipe: TextRecipe, tokenizer: PreTrainedTokenizerFast, training: Split, held_out: Split
) -> PreTrainedModel:
    """Train the recipe's model and return the running average of its weights."""
    torch.manual_seed(recipe.seed)
    random = np.random.default_rng(recipe.seed)
    encoded = tokenizer(training.texts, add_special_tokens=False, verbose=False)["input_ids"]
    examples = [
        Example(np.asarray(ids, dtype=np.int64), label)
        for ids, label in zip(encoded, training.labels, strict=True)
    ]
    framing = Framing.of(tokenizer)
    model = recipe.build_model(tokenizer)

    def batch_losses(epoch: int) -> Iterator[Tensor]:
        longest = recipe.epoch_lengths[epoch]
        for input_ids, mask, labels in epoch_batches(examples, recipe, framing, longest, random):
            yield batch_loss(model, recipe, input_ids, mask, labels)

    return optimise(
        model,
        recipe,
        epochs=len(recipe.epoch_lengths),
        steps_per_epoch=math.ceil(len(examples) / recipe.batch_size),
        batch_losses=batch_losses,
        score_epoch=lambda average: evaluate(average, tokenizer, held_out),
    )


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, out: Path) -> None:
    """Write weights, configuration and tokenizer to a folder that ``from_pretrained`` reads."""
    out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(out)
    # Evaluation leaves its truncation set in the tokenizer; a saved one should not cut silently.
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.save_pretrained(out)
    # The class name that is saved by default is unknown to transformers before version 5; this
    # one is known to all.
    settings_file = out / "tokenizer_config.json"
    settings = json.loads(settings_file.read_text(encoding="utf-8"))
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    settings_file.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def train_text_model(recipe: TextRecipe, data: Path, out: Path) -> PreTrainedModel:
    """Train the recipe's model and save it with its tokenizer."""
    training, held_out = hold_out(read_split(data, "train"), recipe.seed)
    logger.info("training on %d reviews, %d held out", len(training.texts), len(held_out.texts))
    tokenizer = recipe.build_tokenizer(training.texts)
    model = fit(recipe, tokenizer, training, held_out)
    save(model, tokenizer, out)
    return model


@torch.inference_mode()
def evaluate(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, split: Split, batch_size: int = 32
) -> Scores:
    """Score raw reviews, truncated at the model's limit, the way a user would run the model."""
    model.eval()
    encoded = tokenizer(split.texts, truncation=True, max_length=MAX_TOKENS)["input_ids"]
    order = sorted(range(len(encoded)), key=lambda index: len(encoded[index]))
    logits = torch.empty((len(encoded), 2))
    for start in range(0, len(order), batch_size):
        indices = order[start : start + batch_size]
        batch = tokenizer.pad({"input_ids": [encoded[i] for i in indices]}, return_tensors="pt")
        logits[indices] = model(**batch).logits
    return Scores.of(logits, torch.tensor(split.labels))


def evaluate_text_folder(folder: Path, data: Path) -> Scores:
    """Evaluate a saved model on the official test split."""
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    return evaluate(model, tokenizer, read_split(data, "test"))
