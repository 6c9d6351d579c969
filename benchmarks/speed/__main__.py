"""One command, one run, one table per case: Piste, its peers, and the bare model.

    python -m benchmarks.speed [--quick] [--full] [--data imdb.parquet] [--cases encoder,decoder]

Without --data the reviews in benchmarks/reviews.txt are used. --quick asks a tenth of the calls
about a short text and leaves out most peers; --full asks every peer at every number of calls
about the large models too, which takes hours.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

import piste
from benchmarks.speed.cases import JudgedCase, bundled, decoder, encoder
from benchmarks.speed.contenders import Peers
from benchmarks.speed.measuring import (
    Answer,
    Row,
    by_explanation,
    clocks,
    judge,
    measure,
)
from benchmarks.texts import reviews
from piste.classifiers.backends import RUNTIMES
from studies.timing import Bare, recorded

HEAD = (
    "| explainer | time ÷ Piste | time ÷ limit | seconds | calls "
    "| forward / plan / solve / rest, % | peak MB | R² all sizes | R² three units | AOPC |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


FORMS = ("paper", "auto")
"""SLALOM as published, and Piste's default."""


class Table:
    """Prints rows as they come; ratios are to the first one."""

    def __init__(self, title: str) -> None:
        print(f"\n### {title}\n\n{HEAD}", flush=True)
        self.reference = float("nan")

    def add(self, row: Row) -> None:
        if math.isnan(self.reference):
            self.reference = row.seconds
        if row.note:
            print(f"| {row.name} | {row.note} |||||||||", flush=True)
            return
        shares = " / ".join(f"{100 * share:.0f}" for share in row.shares.values())
        cells = [
            row.name,
            _number(row.seconds / self.reference, 2),
            _number(row.seconds / row.limit, 2),
            _number(row.seconds, 2),
            "" if row.calls is None else f"{row.calls:,}",
            shares,
            _number(row.megabytes, 0),
            _number(row.r2, 2),
            _number(row.r2_short, 2),
            _number(row.aopc, 3),
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


def _number(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f"{value:,.{digits}f}"


def piste_row(
    case: JudgedCase, bare: Bare, calls: int, form: str, runtime: str, repeats: int
) -> tuple[Row, Row]:
    """Piste and the bare passes on its very questions, in turn; the quickest of each counts."""
    classifier = piste.load(case.model, case.tokenizer, runtime=runtime, tolerance=1.0)
    texts: Any = case.texts if len(case.texts) > 1 else case.texts[0]
    options: dict[str, Any] = {"samples": calls, "form": form}
    piste.explain(classifier, case.texts[0], samples=40)  # warm up
    name = f"Piste, {form}, {runtime}"
    best, limits, answer = Row(name), [], None
    for _ in range(repeats):
        found: list[Answer] = []
        explain = partial(_explained, classifier, texts, options, found)
        with recorded() as questions, clocks() as spent:
            row = measure(name, explain)
        if row.note:
            return row, row
        parts = {**spent, "rest": row.seconds - sum(spent.values())}
        row.shares = {part: seconds / row.seconds for part, seconds in parts.items()}
        best = row if not best.seconds <= row.seconds else best
        limits.append(bare.seconds(questions))
        answer = found[0]
    if answer is not None and len(case.texts) == 1:
        judge(best, answer, case)
    best.limit = min(limits)
    limit = Row(f"limit: the bare passes of {form}", len(questions), best.limit, best.limit)
    return best, limit


def _explained(classifier: Any, texts: Any, options: dict[str, Any], found: list[Answer]) -> Answer:
    """Explain, and leave the answer for judging outside the time that is measured."""
    found.append(_answer(piste.explain(classifier, texts, **options)))
    return found[0]


def _answer(found: Any) -> Answer:
    if isinstance(found, list):
        return Answer(None, None, sum(one.calls for one in found))
    return by_explanation(found)


# Who is asked by default at how many calls of the large encoder: full-length passes take minutes.
LARGE: dict[int, tuple[str, ...]] = {
    500: ("slalom", "shap, Perm", "shap, Part", "interpreto", "captum"),
    1000: ("slalom-explanations, short", "lime", "shap, Kernel"),
}
ALL: tuple[str, ...] = ("",)
FEW: tuple[str, ...] = ("slalom-explanations, short",)


def single_text(
    case: JudgedCase, calls: int, chosen: tuple[str, ...], forms: tuple[str, ...]
) -> None:
    """One text: Piste by every runtime, the limit, and the chosen peers."""
    table = Table(f"{case.name}, {calls:,} calls")
    bare = Bare(case)
    for form in forms:
        for runtime in _runtimes():
            if runtime != "torch" and form != "paper":
                continue  # long questions show the same order; see benchmarks.runtimes
            repeats = 3 if form == "paper" and calls <= 1000 else 1
            row, limit = piste_row(case, bare, calls, form, runtime, repeats)
            table.add(row)
            if runtime == "torch":
                table.add(limit)
    peers = Peers(case)
    for name, explain in {**peers.named(), **peers.gradients()}.items():
        if name.startswith(chosen):
            table.add(_peer_row(case, bare, peers, name, explain, calls))


def _peer_row(
    case: JudgedCase, bare: Bare, peers: Peers, name: str, explain: Callable[[int], Any], calls: int
) -> Row:
    peers.plain.lengths = []
    row = measure(name, lambda: explain(calls), case)
    if peers.plain.lengths:
        row.limit = bare.estimate(peers.plain.lengths)
    elif name.startswith("slalom-explanations, short") and row.calls:
        row.limit = bare.estimate([5] * row.calls)
    return row


def many_texts(case: JudgedCase, calls: int, peers: int = 3) -> None:
    """All texts at once against one after the other, and the peers on a few of them."""
    table = Table(f"{case.name}, {len(case.texts)} reviews, {calls:,} calls each")
    bare = Bare(case)
    for form in FORMS:
        row, limit = piste_row(case, bare, calls, form, "torch", 1)
        table.add(row)
        table.add(limit)
        name = f"Piste, {form}, one after the other"
        table.add(measure(name, partial(_one_by_one, case, samples=calls, form=form)))
    few = [JudgedCase(case.name, case.model, case.tokenizer, [text]) for text in case.texts[:peers]]
    factor = len(case.texts) / len(few)
    for name in ("slalom-explanations, short", "lime", "shap, Kernel"):
        explainers = [Peers(one).named()[name] for one in few]
        rows = [measure(name, partial(explain, calls)) for explain in explainers]
        total = Row(f"{name} (from {len(few)})", int(factor * sum(row.calls or 0 for row in rows)))
        total.seconds = factor * sum(row.seconds for row in rows)
        total.megabytes = max(row.megabytes for row in rows)
        table.add(total)


def _one_by_one(case: JudgedCase, **options: Any) -> Answer:
    return _answer([piste.explain(case.classifier, text, **options) for text in case.texts])


def _runtimes() -> Iterator[str]:
    for name in RUNTIMES:
        if not name.endswith("bf16") or _has_bfloat16():
            yield name


def _has_bfloat16() -> bool:
    """Without instructions for it, bfloat16 is emulated and several times slower."""
    return bool(torch.cpu._is_avx512_bf16_supported()) or bool(torch.cpu._is_amx_tile_supported())


def main() -> None:
    """Run the cases that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--cases", default="encoder,decoder,bundled,many")
    options = parser.parse_args()
    chosen = set(options.cases.split(","))
    Peers.import_all()
    calls = (50, 100) if options.quick else (500, 1000, 3000, 10000)
    if "encoder" in chosen:
        case = encoder(60 if options.quick else 200)
        for number in calls:
            peers = ALL if options.full else LARGE.get(number, FEW)
            forms = FORMS if number <= 1000 or options.full else FORMS[:1]
            single_text(case, number, peers, forms)
    if "decoder" in chosen:
        case = decoder(60 if options.quick else 200)
        single_text(case, calls[0], ALL if options.full else FEW, FORMS)
    texts = reviews(options.data, 10 if options.quick or options.data is None else 100)
    if "bundled" in chosen:
        for name in ("piste:reviews", "piste:reviews-gpt"):
            for number in calls[:2]:
                peers = FEW if options.quick else ALL
                single_text(bundled(name, texts[:1]), number, peers, FORMS)
    if "many" in chosen:
        many_texts(bundled("piste:reviews", texts), calls[0])


if __name__ == "__main__":
    main()
