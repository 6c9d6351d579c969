"""Fine-tunes a pretrained classifier on labelled texts, and keeps it."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import piste
from piste.classifiers import Classifier
from piste.evaluation import Example

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Training:
    """How a model is fine-tuned; its numbers are part of the name it is kept under."""

    tokens: int = 256
    """Longer texts are cut."""
    epochs: float = 1.0
    rate: float = 1e-4
    size: int = 32
    """Texts in a batch."""
    seed: int = 0

    @property
    def name(self) -> str:
        return "-".join(str(part) for part in asdict(self).values())


def fine_tune(
    weights: Path,
    examples: Sequence[Example],
    labels: Sequence[str],
    folder: Path,
    **settings: Any,
) -> Classifier:
    """A copy of the model in ``weights`` that learned the labels of the examples.

    ``settings`` are those of :class:`Training`. It is kept in ``folder`` and only trained if it is
    not there.
    """
    if not (folder / "model.safetensors").is_file():
        training = Training(**settings)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(training.seed)  # the new head is drawn
            tokenizer: Any = AutoTokenizer.from_pretrained(weights)
            model = AutoModelForSequenceClassification.from_pretrained(
                weights,
                dtype=torch.float32,
                num_labels=len(labels),
                id2label=dict(enumerate(labels)),
                label2id={name: number for number, name in enumerate(labels)},
                ignore_mismatched_sizes=True,
            )
            _train(model, _Texts(tokenizer, examples, training.tokens), training)
        # Training left its own cut in the tokenizer.
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
        tokenizer.save_pretrained(folder)
        model.save_pretrained(folder)
    return piste.load(str(folder), name=folder.name)


def accuracy(classifier: Classifier, examples: Sequence[Example], tokens: int = 256) -> float:
    """The share of texts, cut at ``tokens``, whose label a loaded transformer says."""
    loaded: Any = classifier
    texts = _Texts(loaded.tokenizer, examples, tokens)
    right = 0
    with torch.no_grad():
        for numbers in _batches(texts.lengths, 64, None):
            inputs, labels = texts.batch(numbers)
            right += int((loaded.model(**inputs).logits.argmax(dim=1) == labels).sum())
    return right / len(texts.ids)


class _Texts:
    """Encoded texts with their labels."""

    def __init__(self, tokenizer: Any, examples: Sequence[Example], tokens: int) -> None:
        self.pad = tokenizer.pad
        self.labels = [int(example.label or 0) for example in examples]
        texts = [example.text for example in examples]
        self.ids: list[list[int]] = tokenizer(texts, truncation=True, max_length=tokens)[
            "input_ids"
        ]
        self.lengths = [len(row) for row in self.ids]

    def batch(self, numbers: Sequence[int]) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        rows = {"input_ids": [self.ids[number] for number in numbers]}
        padded = self.pad(rows, return_tensors="pt")
        return dict(padded), torch.tensor([self.labels[number] for number in numbers])


def _batches(lengths: Sequence[int], size: int, rng: np.random.Generator | None) -> list[list[int]]:
    """Numbers of texts of similar length; in random order for training."""
    order = np.arange(len(lengths)) if rng is None else rng.permutation(len(lengths))
    pool = size * 50
    found: list[list[int]] = []
    for start in range(0, len(order), pool):
        part = sorted(order[start : start + pool].tolist(), key=lambda number: lengths[number])
        found += [part[at : at + size] for at in range(0, len(part), size)]
    if rng is not None:
        rng.shuffle(found)
    return found


def _train(model: Any, texts: _Texts, training: Training) -> None:
    """AdamW with a linear warm-up of 6 % and a linear way down."""
    torch.manual_seed(training.seed)
    rng = np.random.default_rng(training.seed)
    steps = math.ceil(training.epochs * len(texts.ids) / training.size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=training.rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / (0.06 * steps + 1), (steps - step) / (0.94 * steps)),
    )
    model.train()
    step = 0
    while step < steps:
        for numbers in _batches(texts.lengths, training.size, rng)[: steps - step]:
            inputs, labels = texts.batch(numbers)
            loss = torch.nn.functional.cross_entropy(model(**inputs).logits, labels)
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            step += 1
            if step % 100 == 0:
                logger.info("step %d of %d, loss %.3f", step, steps, loss.item())
    model.eval()
