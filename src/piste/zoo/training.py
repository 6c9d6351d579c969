"""How the shipped models are trained and evaluated: data, augmentation, loss and loop."""

from __future__ import annotations

import copy
import logging
import math
import time
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

from piste.zoo.recipes import MAX_TOKENS, Recipe

logger = logging.getLogger(__name__)

HELD_OUT_REVIEWS = 2_000
# A causal model has read too little before this position to be asked for the label.
FIRST_SCORED_POSITION = 10
LOG_EVERY_STEPS = 100
# Sums are rounded differently with another number of threads, so one is the documented default.
DEFAULT_THREADS = 1


class Example(NamedTuple):
    """One review as token ids, without any framing tokens."""

    ids: np.ndarray
    label: int


class Split(NamedTuple):
    """Raw reviews with their labels."""

    texts: list[str]
    labels: list[int]


class Scores(NamedTuple):
    """What an evaluation measures."""

    accuracy: float
    log_loss: float
    # Largest absolute logit difference, to notice absurd confidence.
    largest_margin: float
    reviews: int


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
    ids: np.ndarray, recipe: Recipe, longest: int, random: np.random.Generator
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
    recipe: Recipe,
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
    model: PreTrainedModel, recipe: Recipe, input_ids: Tensor, mask: Tensor, labels: Tensor
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


def _parameter_groups(model: PreTrainedModel, weight_decay: float) -> list[dict[str, object]]:
    """Biases and layer norms are not decayed: shrinking them hurts without regularising."""
    matrices = [parameter for parameter in model.parameters() if parameter.ndim >= 2]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    return [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]


@torch.no_grad()
def _update_average(average: PreTrainedModel, model: PreTrainedModel, decay: float) -> None:
    for averaged, current in zip(average.parameters(), model.parameters(), strict=True):
        averaged.lerp_(current, 1.0 - decay)


def fit(
    recipe: Recipe, tokenizer: PreTrainedTokenizerFast, training: Split, held_out: Split
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
    average: PreTrainedModel = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(
        _parameter_groups(model, recipe.weight_decay), lr=recipe.learning_rate, betas=(0.9, 0.98)
    )
    total_steps = len(recipe.epoch_lengths) * math.ceil(len(examples) / recipe.batch_size)
    warmup_steps = recipe.warmup_share * total_steps

    def rate(step: int) -> float:
        """Linear warm-up, then half a cosine down to zero."""
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        done = (step - warmup_steps) / (total_steps - warmup_steps)
        return 0.5 * (1.0 + math.cos(math.pi * min(done, 1.0)))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    started, step = time.monotonic(), 0
    for epoch, longest in enumerate(recipe.epoch_lengths, start=1):
        model.train()
        for input_ids, mask, labels in epoch_batches(examples, recipe, framing, longest, random):
            loss = batch_loss(model, recipe, input_ids, mask, labels)
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            step += 1
            # A short memory at first, so that the average soon forgets the initial weights.
            decay = min(recipe.ema_decay, step / (step + 10.0))
            _update_average(average, model, decay)
            if step % LOG_EVERY_STEPS == 0:
                logger.info("step %d of %d, loss %.3f", step, total_steps, loss.item())
        scores = evaluate(average, tokenizer, held_out)
        logger.info(
            "epoch %d (up to %d tokens): held-out accuracy %.4f, log loss %.3f, after %.0f s",
            epoch, longest, scores.accuracy, scores.log_loss, time.monotonic() - started,
        )  # fmt: skip
    return average


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
    labels = torch.tensor(split.labels)
    return Scores(
        accuracy=(logits.argmax(dim=1) == labels).double().mean().item(),
        log_loss=functional.cross_entropy(logits, labels).item(),
        largest_margin=(logits[:, 1] - logits[:, 0]).abs().max().item(),
        reviews=len(labels),
    )


def evaluate_folder(folder: Path, data: Path) -> Scores:
    """Evaluate a saved model on the official test split."""
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    return evaluate(model, tokenizer, read_split(data, "test"))
