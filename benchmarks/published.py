"""The authors' published package against Piste: fidelity, ranking, calls and seconds.

    python -m benchmarks.published --data imdb.parquet [--reviews 20] [--model piste:reviews ...]

The package explains tokens, so both explain tokens here (units="tokens"), about the log-odds of the
predicted class. It has two samplers, "short" (three random tokens, its default) and "deletion" (the
text without 1 to 5 tokens), and by default fits with Adam. What it calls SLALOM-fidel, "deletion"
by least squares, fails in version 0.1.2 for an argument too many; here it goes without that one.
With Adam it is asked with 500 calls, its default; with as many as Piste's default asks; and with as
many as take as long as Piste's default takes, by the rate of its own 500 calls on the same review.

All are judged by the same removals (piste.evaluation): R² of the log-odds over 200 removals of all
sizes, mean squared error of their change over 100 removals of 1 to 5 tokens, and the mean drop of
the probability as the tokens that score highest are removed (linear scores; contributions of
Piste's default). Seconds are of the processor, so that other programs on the machine hardly count.
Medians over reviews, means of the drop, 95 % bootstrap intervals; differences are paired, to the
first row.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import softmax
from slalom_explanations import SLALOMLocalExplanantions, slalom_explainer

import piste
from benchmarks.speed.contenders import _Framed
from piste.evaluation import Deletion, Fidelity, Interval, Row, interval, judge, read_data
from piste.evaluation.metrics.base import Average
from piste.slalom import Slalom
from piste.surrogates import SlalomSurrogate
from studies.cases import Case
from studies.peers import silent

METRICS = (Deletion(), Fidelity(per_size=20, all_sizes=200))
USUAL = 500  # the package's own default
FIGURES: tuple[tuple[str, Average, int], ...] = (
    ("r2_all", "median", 2),
    ("mse_few", "median", 4),
    ("aopc", "mean", 3),
)
HEAD = (
    "| explainer | calls | seconds | R², all sizes | against the first | error, 1–5 removed "
    "| against the first | deletion AOPC | against the first |\n" + 9 * "|---" + "|"
)


@dataclass(frozen=True)
class Package:
    """One way to call the published package."""

    sampler: str
    least_squares: bool = False

    @property
    def name(self) -> str:
        return f"published, {self.sampler}{', least squares' * self.least_squares}"

    def explain(self, classifier: Any, like: piste.Explanation, calls: int) -> piste.Explanation:
        """Its scores for the tokens and the class of an explanation of Piste's."""
        case = Case(classifier.name, classifier.model, classifier.tokenizer, [])
        case.subject = classifier.subject(like.input, units="tokens", long="truncate")
        subject: Any = case.subject
        framed = _Framed(case, like.target.indices[0])
        tokens = [int(token) + _Framed.SHIFT for piece in subject._ids for token in piece]
        torch.manual_seed(0)
        begun = time.process_time()
        explainer = SLALOMLocalExplanantions(
            framed,
            None,
            n_samples=calls,
            device="cpu",
            modes=["value", "imp", "lin"],
            sampling_strategy=self.sampler,
            fit_sgd=not self.least_squares,
        )
        with silent():
            found = explainer.get_signed_importance_for_tokens(tokens).astype(np.float64)
        seconds = time.process_time() - begun
        scores = dict(zip(("value", "importance", "linear"), found, strict=True))
        slalom = Slalom(scores["value"], scores["importance"])
        return replace(
            like,
            method=self.name,
            scores=scores | {"contribution": softmax(slalom.importances) * slalom.evidence},
            errors={},
            surrogate=SlalomSurrogate.of(slalom, np.arange(len(tokens))),
            calls=framed.rows,
            seconds=seconds,
            ranking="linear",
        )


def without_batch(fit: Any) -> Any:
    """The package's least squares without the argument that they do not take."""

    def fitted(*args: Any, batch_size: int, **options: Any) -> Any:
        return fit(*args, **options)

    return fitted


def explain_all(classifier: Any, text: str) -> dict[str, piste.Explanation]:
    """By everyone, the row's name first."""
    options: dict[str, Any] = {"units": "tokens", "long": "truncate"}
    default = _timed(classifier, text, options)
    more = options | {"samples": USUAL}
    found = {
        "Piste, default": default,
        f"Piste, {USUAL} calls": _timed(classifier, text, more),
        f"Piste, the paper's form, {USUAL} calls": _timed(
            classifier, text, more | {"form": "paper"}
        ),
    }
    for package in (Package("short"), Package("deletion")):
        usual = package.explain(classifier, default, USUAL)
        paced = max(round(USUAL * default.seconds / usual.seconds), 1)
        found[f"{package.name}, {USUAL} calls"] = usual
        for label, calls in (("calls", default.calls), ("seconds", paced)):
            name = f"{package.name}, {label} of the first"
            found[name] = package.explain(classifier, default, calls)
    package = Package("deletion", least_squares=True)
    found[f"{package.name}, {USUAL} calls"] = package.explain(classifier, default, USUAL)
    return found


def _timed(classifier: Any, text: str, options: dict[str, Any]) -> piste.Explanation:
    begun = time.process_time()
    found = piste.explain(classifier, text, **options)
    return replace(found, seconds=time.process_time() - begun)


def show(title: str, reviews: Sequence[dict[str, Row]]) -> None:
    """The table of one model."""
    print(f"\n### {title}, {len(reviews)} reviews\n\n{HEAD}")
    first = next(iter(reviews[0]))
    for name in reviews[0]:
        calls, seconds = (
            float(np.median([review[name].figures[cost] for review in reviews]))
            for cost in ("calls", "seconds")
        )
        cells = [name, f"{calls:.0f}", f"{seconds:.2f}"]
        for figure, average, digits in FIGURES:
            numbers = np.array([review[name].figures[figure] for review in reviews])
            firsts = np.array([review[first].figures[figure] for review in reviews])
            cells.append(_shown(interval(numbers, average=average), digits))
            less = interval(numbers - firsts, average=average)
            cells.append("" if name == first else _shown(less, digits))
        print(f"| {' | '.join(cells)} |", flush=True)


def _shown(found: Interval, digits: int) -> str:
    text = f"{found.centre:.{digits}f} ({found.low:.{digits}f} to {found.high:.{digits}f})"
    return text.replace("-", "−")


def main() -> None:
    """Explain and judge, one model after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", nargs="+", default=["piste:reviews", "piste:reviews-gpt"])
    parser.add_argument("--data", type=Path, required=True, help="a file with texts and splits")
    parser.add_argument("--split", default="test")
    parser.add_argument("--reviews", type=int, default=20)
    parser.add_argument("--max-words", type=int, help="only reviews of at most so many words")
    options = parser.parse_args()
    slalom_explainer.fit_iter_rand = without_batch(slalom_explainer.fit_iter_rand)
    examples = read_data(
        options.data,
        split=options.split,
        examples=options.reviews,
        words=(0, options.max_words),
    )
    for model in options.model:
        classifier, reviews = piste.load(model), list[dict[str, Row]]()
        explain_all(classifier, "A few words, so that everyone is warm before time is taken.")
        for example in examples:
            found = explain_all(classifier, example.text)
            rows = judge(classifier, found.values(), METRICS, progress=False)
            reviews.append(dict(zip(found, rows, strict=True)))
            print(f"{len(reviews)} of {len(examples)}", file=sys.stderr, flush=True)
        show(Path(model).name, reviews)


if __name__ == "__main__":
    main()
