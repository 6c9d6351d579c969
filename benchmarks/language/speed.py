"""A language model asked by Piste, by captum, and as ContextCite asks; the same questions each.

    python -m benchmarks.language.speed --model FOLDER [--out FILE]

Two tasks: a review classified behind an instruction with four examples (labels of one token), and
the answer to a question behind notes. The questions are fixed random removals. captum scores each
by its own forward function, token by token with its cache, and by whole sequences; ContextCite's
way is one pass over the whole prompt and answer for each question, batch of one, as its code does
by default. ``changing part`` is the limit: bare passes over what differs between the questions,
behind a cache of what does not, in batches of equal length. Seconds are of the processor, so that
they mean something on a busy machine: set OMP_NUM_THREADS=1. Tokens are those that went through the
model; ``each beginning once`` is how few they could be, were nothing computed twice.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from transformers import DynamicCache

import piste
from piste.engine import Engine

REVIEW = (
    "The plot was thin and the acting wooden, yet the music is superb, the pictures are lovely, "
    "and I left the cinema with a smile. Not every film must be deep."
)
EXAMPLES = [
    ("A dull and endless film without a single idea, I nearly fell asleep twice.", "negative"),
    ("Great fun from the first minute to the last, with a cast that enjoys itself.", "positive"),
    ("The director had money and no story. A waste of two hours.", "negative"),
    ("Warm, witty and beautifully shot; my favourite of the year so far.", "positive"),
]
CLASSIFY = (
    "You are given reviews of films. Decide for each of them whether its writer liked the film. "
    "Answer with one word, positive or negative.\n\nReview: {text}\nSentiment:"
)
NOTES = (
    "Mira Holm lives in Tarvik.", "Tobias Renn drives a green car.", "Ada Quist was born in 1947.",
    "Trains run every hour until midnight.", "Ivo Sand earns a living as a baker.",
    "Lena Park lives in Norrby.", "The river freezes in very cold winters.",
    "Omar Fell was born in 1964.",
)  # fmt: skip
ASK = "Answer the question from the notes.\n\n{notes}\n\nQuestion: {question}\nAnswer:"


def questions(subject: Any, count: int, seed: int = 0) -> list[Any]:
    """Random removals, each unit kept with probability ½."""
    rng = np.random.default_rng(seed)
    keep = rng.random((count, len(subject))) < 0.5
    keep[~keep.any(axis=1), 0] = True
    return [np.flatnonzero(row) for row in keep]


@dataclass(frozen=True)
class Spent:
    """What a way of asking took: seconds of the processor, and tokens through the model."""

    seconds: float
    tokens: int

    def times(self, scale: float) -> Spent:
        """So many times as much."""
        return Spent(self.seconds * scale, round(self.tokens * scale))


def spent(work: Callable[[], Any]) -> Spent:
    """What some work takes."""
    tokens = 0
    embed = torch.nn.Embedding.forward

    def counted(self: torch.nn.Embedding, ids: torch.Tensor) -> torch.Tensor:
        nonlocal tokens
        tokens += ids.numel()
        return embed(self, ids)

    begun = time.process_time()
    with patch.object(torch.nn.Embedding, "forward", counted):
        work()
    return Spent(time.process_time() - begun, tokens)


def fewest_tokens(rows: list[list[int]]) -> int:
    """Tokens of all distinct beginnings: what has to be computed if nothing is computed twice."""
    return len({tuple(row[: k + 1]) for row in rows for k in range(len(row))})


def rows_of(subject: Any, asked: list[Any]) -> list[list[int]]:
    """The token ids of every question, with the tail."""
    return [parts[0][0].payload[0].tolist() for parts in subject.encode_all(asked)]


def ask_piste(classifier: Any, subject: Any, asked: list[Any]) -> Any:
    """Through the engine, calibrated before."""
    return Engine(classifier).ask([(subject, asked)])[0]


def one_by_one(model: Any, rows: list[list[int]]) -> None:
    """ContextCite's way: whole prompt and answer, all logits."""
    with torch.no_grad():
        for row in rows:
            torch.log_softmax(model(torch.tensor([row])).logits, dim=-1)


def changing_part(model: Any, rows: list[list[int]]) -> None:
    """Bare passes behind a cache of the common beginning, in batches of equal length."""
    common = 0
    while len({row[common] for row in rows}) == 1:
        common += 1
    base = model.base_model
    with torch.no_grad():
        cache = base(torch.tensor([rows[0][:common]]), use_cache=True).past_key_values
        by_length: dict[int, list[list[int]]] = {}
        for row in rows:
            by_length.setdefault(len(row), []).append(row)
        for same in by_length.values():
            for start in range(0, len(same), 32):
                batch = same[start : start + 32]
                past = DynamicCache()
                for layer, part in enumerate(cache.layers):
                    times = (len(batch), 1, 1, 1)
                    past.update(part.keys.repeat(times), part.values.repeat(times), layer)
                base(torch.tensor([row[common:] for row in batch]), past_key_values=past)


def captum_way(
    model: Any, tokenizer: Any, subject: Any, asked: list[Any], answer: str, by_tokens: bool
) -> None:
    """Score a target string as captum does for each question, with its cache where it has one."""
    from captum.attr import FeatureAblation, LLMAttribution, TextTokenInput

    scorer = LLMAttribution(FeatureAblation(model), tokenizer)
    tail = subject.classifier.tail
    for row in rows_of(subject, asked):
        text = tokenizer.decode(row[: len(row) - tail])
        given = TextTokenInput(text, tokenizer)
        target = torch.tensor(tokenizer(answer, add_special_tokens=False)["input_ids"])
        with torch.no_grad():
            scorer._forward_func(
                given.to_tensor(), given, target, use_cached_outputs=True,
                forward_in_tokens=by_tokens,
            )  # fmt: skip


def measure(
    name: str, classifier: Any, subject: Any, answers: list[str], count: int
) -> list[tuple[str, str, Spent]]:
    """What each way takes for one task."""
    model, tokenizer = classifier.language_model, classifier.tokenizer
    asked = questions(subject, count)
    ask_piste(classifier, subject, asked[:4])  # calibrates
    rows = rows_of(subject, asked)
    few = asked[: max(count // 8, 4)]
    scale = len(asked) / len(few)
    found = []
    for _ in range(2):  # the second time counts: memory is warm
        found = [
            ("Piste", spent(lambda: ask_piste(classifier, subject, asked))),
            ("changing part", spent(lambda: changing_part(model, rows))),
        ]
    found.append(("as ContextCite asks", spent(lambda: one_by_one(model, rows))))
    for label, by_tokens in (("captum, token by token", True), ("captum, by sequence", False)):

        def ask_captum(by_tokens: bool = by_tokens) -> None:
            for answer in answers:
                captum_way(model, tokenizer, subject, few, answer, by_tokens)

        found.append((label, spent(ask_captum).times(scale)))
    found.append(("each beginning once", Spent(math.nan, fewest_tokens(rows))))
    for label, one in found:
        print(f"{name}: {label} {one.seconds:.1f} s, {one.tokens} tokens", flush=True)
    return [(name, label, one) for label, one in found]


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="folder or GGUF file of a language model")
    parser.add_argument("--count", type=int, default=64)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    labels = ["positive", "negative"]
    judge = piste.load(given.model, prompt=CLASSIFY, labels=labels, examples=EXAMPLES)
    rows = measure(
        "label behind an instruction", judge, judge.subject(REVIEW), [f" {one}" for one in labels],
        given.count,
    )  # fmt: skip
    model: Any = piste.load(given.model, prompt=ASK, pinned=["question"])
    values = {"notes": list(NOTES), "question": "Where does Mira Holm live?"}
    answer = "Mira Holm lives in Tarvik, a small town."
    classifier, prompt = model.answering(values, answer=answer)
    rows += measure(
        "answer behind notes", classifier, classifier.subject(prompt, units="parts"),
        [f" {answer}"], given.count,
    )  # fmt: skip
    lines = ["| task | way | tokens | seconds | times Piste |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(row[0] for row in rows):
        own = next(one.seconds for task, way, one in rows if task == name and way == "Piste")
        lines += [
            f"| {task} | {way} | {one.tokens:,} | {one.seconds:.1f} | {one.seconds / own:.2f} |"
            for task, way, one in rows
            if task == name
        ]
    text = f"{given.count} questions each.\n\n" + "\n".join(lines).replace("nan", "–") + "\n"
    print(text)
    if given.out is not None:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
