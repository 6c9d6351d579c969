"""Fine-tunes a pretrained encoder on labelled texts, as a model for evaluations.

python -m benchmarks.finetune --weights FOLDER --data sst2.parquet --labels negative,positive
                              --out models/sst2

The data are a Parquet file with the columns text, label and split (train, and test or validation).
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer


def read(data: Path, split: str, limit: int | None, seed: int) -> tuple[list[str], list[int]]:
    """Texts and labels of a split, at most ``limit`` of them, the same number of every class."""
    table = pd.read_parquet(data)
    table = table[table["split"] == split].drop_duplicates("text")
    if limit is not None:
        share = limit // table["label"].nunique()
        parts = [
            group.sample(min(share, len(group)), random_state=seed)
            for _, group in table.groupby("label")
        ]
        table = pd.concat(parts)
    return table["text"].tolist(), [int(label) for label in table["label"]]


def batches(lengths: list[int], size: int, rng: np.random.Generator | None) -> list[list[int]]:
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


class Texts:
    """Encoded texts with their labels."""

    def __init__(self, tokenizer: Any, texts: list[str], labels: list[int], tokens: int) -> None:
        self.tokenizer, self.labels = tokenizer, labels
        self.ids = tokenizer(texts, truncation=True, max_length=tokens)["input_ids"]
        self.lengths = [len(row) for row in self.ids]

    def batch(self, numbers: list[int]) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        rows = {"input_ids": [self.ids[number] for number in numbers]}
        padded = self.tokenizer.pad(rows, return_tensors="pt")
        return dict(padded), torch.tensor([self.labels[number] for number in numbers])


def train(model: Any, texts: Texts, *, epochs: float, rate: float, size: int, seed: int) -> None:
    """AdamW with a linear warm-up of 6 % and a linear way down."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    steps = math.ceil(epochs * len(texts.ids) / size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / (0.06 * steps + 1), (steps - step) / (0.94 * steps)),
    )
    model.train()
    start, step, losses = time.perf_counter(), 0, []
    while step < steps:
        for numbers in batches(texts.lengths, size, rng)[: steps - step]:
            inputs, labels = texts.batch(numbers)
            loss = torch.nn.functional.cross_entropy(model(**inputs).logits, labels)
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            step += 1
            losses.append(loss.item())
            if step % 100 == 0:
                spent = time.perf_counter() - start
                print(f"step {step} of {steps}, loss {np.mean(losses[-100:]):.3f}, {spent:.0f} s")
    model.eval()


@torch.inference_mode()
def accuracy(model: Any, texts: Texts) -> float:
    """The share of texts whose label the model says."""
    right = 0
    for numbers in batches(texts.lengths, 64, None):
        inputs, labels = texts.batch(numbers)
        right += int((model(**inputs).logits.argmax(dim=1) == labels).sum())
    return right / len(texts.ids)


def main() -> None:
    """Fine-tune, say the accuracy, write the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True, help="folder of the encoder")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--labels", required=True, help="names of the classes, with commas")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--test", default="test", help="the split accuracy is measured on")
    parser.add_argument("--limit", type=int, help="texts to train on, balanced; default: all")
    parser.add_argument("--tokens", type=int, default=256, help="longer texts are cut")
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--size", type=int, default=32, help="texts in a batch")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    names = options.labels.split(",")
    torch.manual_seed(options.seed)  # the new head is drawn
    tokenizer: Any = AutoTokenizer.from_pretrained(options.weights)
    model = AutoModelForSequenceClassification.from_pretrained(
        options.weights,
        dtype=torch.float32,
        num_labels=len(names),
        id2label=dict(enumerate(names)),
        label2id={name: number for number, name in enumerate(names)},
        ignore_mismatched_sizes=True,
    )
    training = read(options.data, "train", options.limit, options.seed)
    train(
        model,
        Texts(tokenizer, *training, options.tokens),
        epochs=options.epochs,
        rate=options.rate,
        size=options.size,
        seed=options.seed,
    )
    test = Texts(tokenizer, *read(options.data, options.test, 4000, options.seed), options.tokens)
    model.save_pretrained(options.out)
    tokenizer.save_pretrained(options.out)
    print(f"{options.out}: accuracy {accuracy(model, test):.4f} on {len(test.ids)} texts")


if __name__ == "__main__":
    main()
