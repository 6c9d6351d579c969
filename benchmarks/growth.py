"""How seconds, memory and fidelity of an explanation grow, and what a large model would cost.

    python -m benchmarks.growth [--data imdb.parquet] [--only words layers …] [--threads 1]
        [--out docs/results]

One thing changes per table; everything else stays. ``reviews`` are texts for the bundled encoder
(up to the 512 tokens it reads), ``words`` are for a random BERT with room for long texts; layers,
width and classes are of random BERTs. Each line is measured in a process of its own, after an
explanation of a few words. The law is a power of what changes, or two powers that meet where the
growth bends, if that describes the points better by the Bayesian information criterion. Without
``--data`` the reviews in benchmarks/reviews.txt are used, again and again.
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from threadpoolctl import threadpool_limits
from transformers import BertConfig, BertForSequenceClassification

import piste
from benchmarks.frontier.curves import seconds
from benchmarks.parts import parts
from benchmarks.texts import reviews
from piste.classifiers.text.classifier import TextClassifier
from piste.types import Floats
from studies.cases import VOCABULARY, drawn, made_up_text, word_tokenizer
from studies.timing import peak_memory, recorded

AXES: dict[str, tuple[int, ...]] = {
    "reviews": (10, 20, 40, 80, 160, 320),
    "words": (10, 30, 100, 300, 1000, 2000, 5000),
    "layers": (2, 4, 8, 12, 18, 24),
    "width": (64, 128, 256, 512, 768, 1024),
    "classes": (2, 8, 32, 128, 512),
    "documents": (1, 3, 10, 30, 100),
}
ABOUT = {
    "reviews": "words of a review, bundled encoder",
    "words": "words of a made-up text, random BERT, 2 layers, 128 wide",
    "layers": "layers of a random BERT, 256 wide, 60 words",
    "width": "width of a random BERT, 4 layers, 60 words",
    "classes": "classes of a random BERT, 4 layers, 256 wide, 60 words",
    "documents": "reviews of about 120 words at once, bundled encoder",
}
HEAD = (
    "| {} | seconds | of them planning and fitting | questions | tokens asked | GFLOP/s "
    "| peak MB | R² |\n|---|---|---|---|---|---|---|---|"
)
LARGE = 7e9
"""Parameters of the model whose cost is worked out."""
PEAK, UTILISATION = 312e12, 0.4
"""FLOP per second of one A100 in bfloat16, and the part of it that passes are taken to reach."""


@dataclass(frozen=True)
class Line:
    """What one explanation, or one run over several documents, took."""

    size: int
    seconds: float
    fitting: float
    questions: int
    tokens: int
    parameters: int
    megabytes: float
    r2: float

    def __str__(self) -> str:
        speed = 2e-9 * self.parameters * self.tokens / max(self.seconds - self.fitting, 1e-9)
        cells = (
            f"{self.size:,}", f"{self.seconds:.2f}", f"{self.fitting:.2f}", f"{self.questions:,}",
            f"{self.tokens:,}", f"{speed:.0f}", f"{self.megabytes:.0f}", f"{self.r2:.2f}",
        )  # fmt: skip
        return f"| {' | '.join(cells)} |".replace("-", "−")


@dataclass(frozen=True)
class PowerLaw:
    """factor · size^exponent; from ``knee`` on with the exponent ``after``."""

    factor: float
    exponent: float
    knee: float = math.inf
    after: float = math.nan

    def __call__(self, size: float) -> float:
        if size <= self.knee:
            return self.factor * size**self.exponent
        return self.factor * self.knee**self.exponent * (size / self.knee) ** self.after

    def __str__(self) -> str:
        first = f"{self.factor:.2g} · size^{self.exponent:.2f}"
        if math.isinf(self.knee):
            return first
        return f"{first} up to about {self.knee:,.0f}, then size^{self.after:.2f}"


def power_law(sizes: Sequence[float], costs: Sequence[float]) -> PowerLaw:
    """One power or two, whichever the Bayesian information criterion prefers.

    >>> str(power_law([1, 2, 4, 8, 16], [3, 6, 12, 24, 48]))
    '3 · size^1.00'
    """
    x, y = np.log(np.asarray(sizes, dtype=float)), np.log(np.asarray(costs, dtype=float))

    def fitted(columns: list[Floats], free: int) -> tuple[float, Floats]:
        rows = np.stack(columns, axis=1)
        found = np.linalg.lstsq(rows, y, rcond=None)[0]
        left = float(((rows @ found - y) ** 2).mean())
        return len(x) * math.log(left + 1e-4) + free * math.log(len(x)), found

    best, line = fitted([np.ones_like(x), x], 2)
    law = PowerLaw(math.exp(line[0]), float(line[1]))
    for knee in x[1:-1] if len(x) >= 6 else []:
        criterion, bent = fitted([np.ones_like(x), x, np.maximum(x - knee, 0.0)], 4)
        if criterion < best:
            best = criterion
            law = PowerLaw(
                math.exp(bent[0]), float(bent[1]), math.exp(knee), float(bent[1] + bent[2])
            )
    return law


def measured(size: int, classifier: TextClassifier, texts: list[str]) -> Line:
    """Explain once and count, after a warm-up."""
    few = " ".join(texts[0].split()[:8])
    piste.explain(classifier, few)
    with recorded() as asked, parts(classifier) as spent, peak_memory() as peak:
        begun, processor = time.perf_counter(), time.process_time()
        found = piste.explain(classifier, texts, long="truncate")
        row = {
            "clock": time.perf_counter() - begun,
            "processor": time.process_time() - processor,
        }
    model: Any = classifier.model
    everything = sum(one.numel() for one in model.parameters())
    looked_up = sum(
        part.weight.numel() for part in model.modules() if isinstance(part, torch.nn.Embedding)
    )
    return Line(
        size,
        seconds(row),
        spent.solving,
        len(asked),
        sum(question.length for question in asked),
        everything - looked_up,
        peak[0],
        float(np.median([one.fidelity.r2 for one in found])),
    )


def random_model(layers: int, width: int, classes: int = 2, positions: int = 512) -> TextClassifier:
    """A BERT with random weights and words as tokens."""
    config = BertConfig(
        vocab_size=VOCABULARY,
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=max(width // 64, 1),
        intermediate_size=4 * width,
        num_labels=classes,
        max_position_embeddings=positions,
    )
    model = drawn(BertForSequenceClassification, config)
    made: Any = piste.load(model, word_tokenizer(framed=True))
    return made


def case(axis: str, size: int, data: Path | None) -> Line:
    """One line of a table."""
    if axis == "words":
        return measured(size, random_model(2, 128, positions=8192), [made_up_text(size)])
    if axis in ("reviews", "documents"):
        own = reviews(data, 100)
        bundled: Any = piste.load("piste:reviews")
        if axis == "documents":
            rng = np.random.default_rng(0)  # the same again in another order is another text
            while len(own) < size:
                own.append(" ".join(rng.permutation(own[int(rng.integers(len(own)))].split())))
            return measured(size, bundled, own[:size])
        words = itertools.chain.from_iterable(text.split() for text in itertools.cycle(own))
        return measured(size, bundled, [" ".join(itertools.islice(words, size))])
    shape = {"layers": 4, "width": 256, "classes": 2} | {axis: size}
    if axis == "layers":
        shape["layers"] = size
    return measured(size, random_model(**shape), [made_up_text(60)])


def apart(function: Callable[..., Line], *given: Any) -> Line:
    """In a process of its own, so that memory freed before is not used again unseen."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(function, given)


def large_model(words: Sequence[Line]) -> str:
    """Seconds of a large model on one GPU, from the tokens that were asked."""
    lines = [
        "| words | tokens asked | PFLOP | seconds of passes | seconds of fitting (measured here) |",
        "|---|---|---|---|---|",
    ]
    for line in words:
        work = 2 * LARGE * line.tokens
        passes = work / (PEAK * UTILISATION)
        lines.append(
            f"| {line.size:,} | {line.tokens:,} | {work / 1e15:.2f} | {passes:.1f} "
            f"| {line.fitting:.1f} |"
        )
    return "\n".join(lines)


def draw(tables: dict[str, list[Line]]) -> Figure:
    """Seconds and memory against what grows, with the fitted law."""
    columns = min(3, len(tables))
    rows = -(-len(tables) // columns)
    figure = Figure(figsize=(3.5 * columns, 2.9 * rows), layout="constrained")
    cells = list(np.ravel(figure.subplots(rows, columns, squeeze=False)))
    for axes, (axis, lines) in zip(cells, tables.items(), strict=False):
        sizes, costs = [line.size for line in lines], [line.seconds for line in lines]
        law = power_law(sizes, costs)
        fine = np.geomspace(min(sizes), max(sizes), 60)
        axes.plot(fine, [law(size) for size in fine], color="#c9ced4", linewidth=4)
        axes.plot(sizes, costs, "o", color="#1f5fbf", markersize=4, label="seconds")
        fits = [line.fitting for line in lines]
        axes.plot(sizes, fits, "o", color="#d9a21b", markersize=3, label="of them fitting")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.yaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_title(f"{axis}: {law}", fontsize=8)
        axes.tick_params(labelsize=7)
    cells[0].legend(fontsize=7, frameon=False)
    for axes in cells[len(tables) :]:
        axes.set_axis_off()
    figure.supylabel("seconds", fontsize=8)
    return figure


def main() -> None:
    """Print a table for each axis and what a large model would take."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", nargs="+", default=list(AXES), choices=list(AXES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    tables: dict[str, list[Line]] = {}
    with threadpool_limits(options.threads):
        for axis in options.only:
            print(f"\n### {ABOUT[axis]}\n\n{HEAD.format(axis)}", flush=True)
            for size in AXES[axis]:
                line = apart(case, axis, size, options.data)
                tables.setdefault(axis, []).append(line)
                print(line, flush=True)
            lines = tables[axis]
            print(f"\nSeconds: {power_law([x.size for x in lines], [x.seconds for x in lines])}")
    if "words" in tables:
        print(f"\n{LARGE / 1e9:g} billion parameters\n\n{large_model(tables['words'])}")
    if options.out is not None:
        draw(tables).savefig(options.out / "growth.png", dpi=110)


if __name__ == "__main__":
    main()
