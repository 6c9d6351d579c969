"""Richer surrogates than a saturating SLALOM, fitted to the same answers and slopes.

    python -m benchmarks.surrogates --data imdb.parquet [--reviews 50] [--model piste:reviews ...]

For every review the questions of the default are asked once (removals of all sizes with their
slopes, one for every distinct word, from 100 to 300, but none of those that follow from a first
fit), and others to judge by: 200 removals of all sizes (R²) and 100 of 1 to 5 words (mean squared
error of the change in log-odds). Every surrogate is fitted to the same numbers, so all cost the
same questions.

With M a SLALOM's weighted mean of values, D its total weight and n the number of words present, a
saturation is put on the evidence

    SLALOM              M                    as piste.slalom.fit finds it, and continued here
    exponent            M · (D / D₀)^ρ       from a mean (ρ = 0) to a sum (ρ = 1), D₀ a constant
    two channels        M₁ + M₂              two values and two importances for every word
    values by length    M with v + x log n   values that differ between short texts and long ones

The richer ones begin where the SLALOM ends, with the ridge and the weight of slopes that its fit
found, and go on by the same Levenberg–Marquardt that continues it; so none fits worse, and the
column "objective" says by how much better, against the continued SLALOM. With more parameters the
same ridge may be too weak, so the larger two are also tried with 100 times the ridge on what they
have beyond a SLALOM. Where the default keeps no saturation or no background, neither do they.

Medians over reviews with 95 % bootstrap intervals; differences are paired, to the first row.
Seconds are of the processor, for the fit alone.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import piste
from benchmarks.surrogates.asking import Asked, ask
from benchmarks.surrogates.forms import ByLength, Exponent, Floats, Plain, TwoChannels
from benchmarks.surrogates.search import Search
from piste.evaluation import Interval, interval, read_data
from piste.slalom import fit
from piste.slalom.joint import JointResult

DEFAULT, STRAIGHT, CONTINUED = "SLALOM, saturating (default)", "SLALOM", "the default, continued"
RICHER: dict[str, tuple[type[Plain], float]] = {
    "exponent": (Exponent, 1.0),
    "two channels": (TwoChannels, 1.0),
    "two channels, ridge × 100": (TwoChannels, 100.0),
    "values by length": (ByLength, 1.0),
    "values by length, ridge × 100": (ByLength, 100.0),
}
HEAD = (
    "| surrogate | parameters | seconds | objective | R², all sizes | against the first "
    "| error, 1–5 removed | against the first |\n|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Row:
    """One surrogate of one review."""

    name: str
    parameters: int
    seconds: float
    objective: float
    r2: float
    error: float
    exponent: float = math.nan


def compare(asked: Asked) -> Iterator[Row]:
    """All surrogates of one review."""
    fits = {}
    for name, link in ((DEFAULT, "auto"), (STRAIGHT, False)):
        begun = time.process_time()
        fits[name] = fit(
            asked.counts,
            asked.answers,
            slopes=asked.slopes,
            background="auto",
            ridge="auto",
            link=link,  # type: ignore[arg-type]  # one of the two above
        )
        seconds = time.process_time() - begun
        own = 2 * asked.counts.shape[1] + (4 if link else 2)
        yield Row(name, own, seconds, math.nan, *asked.judge(fits[name].predict))
    found = fits[DEFAULT].found
    assert found is not None
    first = _parameters(found)
    search = Search(asked, Plain(asked.counts, first), found)
    begun = time.process_time()
    base, least = search.run(first)
    seconds = time.process_time() - begun
    predict = _predictor(search, base)
    yield Row(CONTINUED, len(base), seconds, 1.0, *asked.judge(predict))
    for name, (form, stronger) in RICHER.items():
        surrogate = form(asked.counts, base)
        search = Search(asked, surrogate, found, stronger)
        begun = time.process_time()
        theta, objective = search.run(surrogate.start(base))
        seconds = time.process_time() - begun
        better = objective <= least  # else nothing was found beyond the SLALOM
        figures = asked.judge(_predictor(search, theta) if better else predict)
        rho = float(theta[-3]) if form is Exponent else math.nan
        yield Row(name, len(theta), seconds, min(objective / least, 1.0), *figures, rho)


def _parameters(found: JointResult) -> Floats:
    """Of the default's fit: s, v, w, u, m and log k."""
    link = (0.0, 0.0) if found.link is None else (found.link.middle, np.log(found.link.reach))
    return np.concatenate([found.importances, found.values, [found.weight, found.mass], link])


def _predictor(search: Search, theta: Floats) -> Callable[[Floats], Floats]:
    return lambda counts: search.predict(theta, counts)


# -- the table -------------------------------------------------------------------------------------


def show(title: str, reviews: Sequence[Sequence[Row]]) -> None:
    """The table of one model."""
    print(f"\n### {title}, {len(reviews)} reviews\n\n{HEAD}")
    for place, row in enumerate(reviews[0]):
        rows = [review[place] for review in reviews]
        seconds, parameters = _median(rows, "seconds"), _median(rows, "parameters")
        cells = [
            row.name,
            f"{parameters:.0f}",
            f"{seconds:.1f}",
            "" if math.isnan(row.objective) else f"{_median(rows, 'objective'):.2f}",
        ]
        for figure, digits in (("r2", 3), ("error", 4)):
            numbers = np.array([getattr(one, figure) for one in rows])
            firsts = np.array([getattr(review[0], figure) for review in reviews])
            cells.append(_shown(interval(numbers, average="median"), digits))
            less = interval(numbers - firsts, average="median")
            cells.append(_shown(less, digits) if place else "")
        print(f"| {' | '.join(cells)} |")
    found = interval([row.exponent for review in reviews for row in review], average="median")
    print(f"\nρ of the exponent: {_shown(found, 2)}.", flush=True)


def _median(rows: Sequence[Row], name: str) -> float:
    return float(np.median([getattr(row, name) for row in rows]))


def _shown(found: Interval, digits: int) -> str:
    text = f"{found.centre:.{digits}f} ({found.low:.{digits}f} to {found.high:.{digits}f})"
    return text.replace("-", "−")


def asked_about(classifier: piste.Classifier, name: str, text: str, folder: Path | None) -> Asked:
    """Answers from the folder, or asked now and kept there if there is one."""
    if folder is None:
        return ask(classifier, text)
    file = folder / f"{name.replace(':', '-')}.npz"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(file, **asdict(ask(classifier, text)))
    with np.load(file) as arrays:
        return Asked(**dict(arrays))


def main() -> None:
    """Ask, fit and judge, one model after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", nargs="+", default=["piste:reviews", "piste:reviews-gpt"])
    parser.add_argument("--data", type=Path, required=True, help="a file with texts and splits")
    parser.add_argument("--split", default="test")
    parser.add_argument("--reviews", type=int, default=50)
    parser.add_argument("--max-words", type=int, help="only reviews of at most so many words")
    parser.add_argument("--answers", type=Path, help="a folder to keep answers in for another run")
    options = parser.parse_args()
    examples = read_data(
        options.data,
        split=options.split,
        examples=options.reviews,
        words=(0, options.max_words),
    )
    for model in options.model:
        classifier, name, reviews = piste.load(model), Path(model).name, list[list[Row]]()
        for example in examples:
            label = f"{name}-{example.id}"
            asked = asked_about(classifier, label, example.text, options.answers)
            with threadpool_limits(1):
                reviews.append(list(compare(asked)))
            print(f"{label}: {len(reviews)} of {len(examples)}", file=sys.stderr, flush=True)
        show(name, reviews)


if __name__ == "__main__":
    main()
