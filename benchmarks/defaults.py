"""Which sampler, ridge and budget SLALOM should have by default: fidelity per second, measured.

    python -m benchmarks.defaults [--model piste:reviews] [--data imdb.parquet] [--reviews 12]

For every review the truth is asked once: removals of every size, removals of 1 to 5 words, and
the model's answers as words are removed in the order each explanation gives. Medians over reviews.
Without --data the reviews in benchmarks/reviews.txt are used.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import piste
from piste.slalom import sampling

Floats = NDArray[np.float64]


@dataclass
class Truth:
    """One review and the model's answers that explanations are held against."""

    text: str
    subject: piste.Subject
    target: piste.Target
    sizes: list[Any]
    sizes_answers: Floats
    few: list[Any]
    few_changes: Floats

    @classmethod
    def ask(cls, classifier: piste.Classifier, text: str) -> Truth:
        subject = classifier.subject(text)
        target = piste.explain(classifier, text, samples=20).target
        rng = np.random.default_rng(12345)
        sizes = sampling.draw("subsets", len(subject), 200, rng)
        few = sampling.draw("deletion", len(subject), 100, rng)
        answers = target(subject.ask([subject.whole, *sizes, *few]))
        split = 1 + len(sizes)
        changes = answers[split:] - answers[0]
        return cls(text, subject, target, sizes, answers[1:split], few, changes)

    def judge(self, e: piste.Explanation) -> tuple[float, float, float]:
        """R² over all sizes, MSE of the change by few removals relative to it, deletion AOPC."""
        n = len(self.subject)
        predicted = np.asarray(e.predict(_masks(self.sizes, n)))
        spread = ((self.sizes_answers - self.sizes_answers.mean()) ** 2).mean()
        r2 = 1 - ((predicted - self.sizes_answers) ** 2).mean() / spread
        few = np.asarray(e.predict(_masks(self.few, n))) - e.predict(range(n))
        mse = ((few - self.few_changes) ** 2).mean() / (self.few_changes**2).mean()
        order = np.argsort(-e.scores["linear"])
        steps = np.unique(np.linspace(0, n - 1, 20).astype(int))
        left = [np.sort(order[step:]) for step in steps]
        chances = expit(self.target(self.subject.ask(left)))
        return float(r2), float(mse), float((chances[0] - chances[1:]).mean())


def _masks(sequences: list[Any], n: int) -> NDArray[np.bool_]:
    masks = np.zeros((len(sequences), n), dtype=bool)
    for row, sequence in enumerate(sequences):
        masks[row, sequence] = True
    return masks


def settings() -> list[dict[str, Any]]:
    """The questions this table answers, one block each."""
    with_slopes = [{"samples": samples, "link": "auto"} for samples in (64, 128, 256)]
    plain = [{"samples": samples, "slopes": False, "link": "auto"} for samples in (250, 500, 1000)]
    return [*with_slopes, *plain, *({"slopes": False, "link": False} | row for row in _plain())]


def _plain() -> list[dict[str, Any]]:
    """Of the SLALOM without slopes and without saturation."""
    rows: list[dict[str, Any]] = []
    for samples in (250, 500, 1000, 2000):
        rows += [{"samples": samples, "sampler": name} for name in sampling.SAMPLERS]
    rows += [{"samples": 250, "ridge": ridge} for ridge in (0.0, 1e-3, (0.1, 3e-3))]
    rows += [{"samples": 500, "ridge": ridge} for ridge in (0.0, 1e-3, (0.1, 3e-3))]
    rows += [{"samples": 500, "share": "occurrence"}]
    rows += [{"samples": 500, "background": False}]
    rows += [{"samples": 500, "sampler": name, "solver": "sgd"} for name in ("short", "subsets")]
    rows += [{"solver": "analytic"}, {"samples": "auto"}]
    return rows


def reviews(data: Path | None, count: int) -> list[str]:
    """Reviews of about 120 words, ours or from a Parquet file with columns text and split."""
    if data is None:
        own = Path(__file__).with_name("reviews.txt").read_text(encoding="utf-8")
        return [block.strip() for block in own.split("\n\n") if block.strip()][:count]
    import pandas

    frame = pandas.read_parquet(data)
    frame = frame[frame["split"] == "test"]
    lengths = frame["text"].map(lambda text: len(text.split()))
    chosen = frame[(lengths > 100) & (lengths < 140)].sample(count, random_state=0)
    return [text.replace("<br />", " ") for text in chosen["text"]]


def main() -> None:
    """Ask the truth once, then judge every setting by it and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="piste:reviews")
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--reviews", type=int, default=6)
    options = parser.parse_args()
    classifier = piste.load(options.model)
    truths = [Truth.ask(classifier, text) for text in reviews(options.data, options.reviews)]
    words = int(np.median([len(truth.subject) for truth in truths]))
    print(f"{options.model}, {len(truths)} reviews of {words} units (median), medians\n")
    print("| setting | calls | seconds | R² all sizes | MSE of changes, 1–5 removed | AOPC |")
    print("|---|---|---|---|---|---|")
    for setting in settings():
        figures, seconds, calls = [], [], []
        for truth in truths:
            start = time.perf_counter()
            explanation = piste.explain(classifier, truth.text, **setting)
            seconds.append(time.perf_counter() - start)
            calls.append(explanation.calls)
            figures.append(truth.judge(explanation))
        r2, mse, aopc = np.median(figures, axis=0)
        off = ("slopes", "link")
        shown = {key: value for key, value in setting.items() if value or key not in off}
        name = ", ".join(f"{key} {value}" for key, value in shown.items())
        print(
            f"| {name} | {int(np.median(calls))} | {np.median(seconds):.2f} | {r2:.2f} "
            f"| {mse:.2f} | {aopc:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
