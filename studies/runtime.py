"""Tables 11 and 12: what an explanation costs, and how few questions are enough.

One text, one BERT with random weights, and everybody who explains it: Kernel SHAP and LIME by their
own packages, gradients, SLALOM as it was published and as Piste does it by default. Everything is
held against the bare forward passes on the same questions, which nobody can undercut. Times are
of the processor; ratios say more than seconds, for the paper's machine had a graphics card.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import torch
from matplotlib.figure import Figure

import piste
from piste.errors import need
from piste.show.figures.canvas import INK, panels, plain_ticks
from studies import budgets
from studies.base import Findings, Study, Table, Work, graded
from studies.budgets import OURS
from studies.cases import AS_PUBLISHED, encoder
from studies.peers import PlainModel
from studies.timing import Bare, processor_seconds, recorded

WHITE = ("gradient", "IG")
"""These ask nothing; like Piste's default they cost the same whatever number others are given."""
_SIZES = (512, 2048)
_ROUNDS = 2
_PAPER: Mapping[tuple[str, int], float] = {
    ("SHAP", 1000): 3.89, ("SHAP", 3000): 13.70, ("SHAP", 10000): 45.54,
    ("LIME", 1000): 1.55, ("LIME", 3000): 4.69, ("LIME", 10000): 15.57,
    ("SLALOM", 1000): 0.24, ("SLALOM", 3000): 0.71, ("SLALOM", 10000): 2.40,
    ("IG", 0): 0.05, ("gradient", 0): 0.01,
}  # fmt: skip
"""Seconds by number of samples, 6-layer BERT, one A100."""

Key = tuple[str, int]
"""Who, and with how many samples; 0 where that is not asked."""


@dataclass(frozen=True)
class Timed:
    """What an explanation took."""

    rounds: Sequence[float]
    calls: int
    tokens: int
    limit: float
    """The bare passes on the same questions; NaN for gradients, which are more than passes."""
    computed: str = ""
    """From which number of samples, if it was not measured."""

    @property
    def seconds(self) -> float:
        return float(np.mean(self.rounds))

    def times(self, factor: float, computed: str) -> Timed:
        """So many times the questions."""
        rounds = [factor * one for one in self.rounds]
        calls, tokens = round(factor * self.calls), round(factor * self.tokens)
        return Timed(rounds, calls, tokens, factor * self.limit, computed)


class Runtime(Study):
    """One explanation, timed."""

    name: ClassVar[str] = "runtime"
    title: ClassVar[str] = "What an explanation costs, and how few questions are enough"

    def run(self, work: Work) -> Findings:
        """Time everybody, then judge SLALOM with growing numbers of samples."""
        for module in ("shap", "lime", "captum"):
            need(module, "peers", "This study")
        numbers = (300, 1000) if work.quick else (1000, 3000, 10000)
        examples = budgets.reviews(work)
        work.plan(len(numbers) + 5 + len(examples))
        timed = _timed(work, numbers)
        areas = budgets.judged(work, examples)
        return Findings(
            self.name,
            self.title,
            work.command(self.name),
            [_time_table(timed, work.quick), budgets.table(areas)],
            [*_time_claims(timed, numbers), budgets.claim(areas)],
            {"runtime": partial(_draw, timed, areas)},
        )


class _Clocked:
    """Everybody, timed on one case; it is made when something is left to measure."""

    def __init__(self, quick: bool) -> None:
        self.quick = quick

    @cached_property
    def case(self) -> Any:
        case = encoder(40, 2, 128) if self.quick else encoder()
        piste.explain(case.classifier, case.texts[0], samples=40)  # warm up
        return case

    @cached_property
    def bare(self) -> Bare:
        return Bare(self.case, _SIZES, time.process_time)

    def by_piste(self, rounds: int, **options: Any) -> dict[str, Any]:
        """Seconds of every round, and what the questions take without Piste."""
        explain = partial(piste.explain, self.case.classifier, self.case.texts[0], **options)
        spent, limits = [], []
        for _ in range(rounds):
            with recorded() as asked:
                spent.append(processor_seconds(explain))
            if asked:
                limits.append(self.bare.seconds(asked))
        tokens = sum(question.length for question in asked)
        return {"seconds": spent, "limits": limits, "calls": len(asked), "tokens": tokens}

    def by_peer(self, name: str, samples: int) -> dict[str, Any]:
        plain = PlainModel(self.case)
        explain = plain.kernel_shap if name == "SHAP" else plain.lime
        seconds = processor_seconds(lambda: explain(samples))
        return {"seconds": [seconds], "calls": len(plain.lengths), "tokens": sum(plain.lengths)}


def _timed(work: Work, numbers: Sequence[int]) -> dict[Key, Timed]:
    """Everybody's times; SHAP and LIME only grow with their questions, so they are asked once."""
    clocked, few = _Clocked(work.quick), numbers[0]
    slalom = partial(clocked.by_piste, _ROUNDS, seed=work.seed, **AS_PUBLISHED)
    white = partial(clocked.by_piste, _ROUNDS, held_out=0)
    measures: dict[Key, Callable[[], dict[str, Any]]] = {
        **{("SLALOM", samples): partial(slalom, samples=samples) for samples in numbers},
        **{(peer, few): partial(clocked.by_peer, peer, few) for peer in ("LIME", "SHAP")},
        ("gradient", 0): partial(white, method="gradient"),
        ("IG", 0): partial(white, method="integrated_gradients"),
        (OURS, 0): partial(clocked.by_piste, 1, seed=work.seed),
    }
    parts = {key: work.part(f"{key[0]} {key[1]}", run) for key, run in measures.items()}
    found = {
        key: Timed(one["seconds"], one["calls"], one["tokens"], _limit(key[0], one))
        for key, one in parts.items()
    }
    # Plain code asks about texts as long as those of Piste's default: a token has the same price.
    each = found[OURS, 0].limit / found[OURS, 0].tokens
    for peer in ("LIME", "SHAP"):
        one = found[peer, few]
        found[peer, few] = one = replace(one, limit=each * one.tokens)
        found |= {(peer, many): one.times(many / few, f", from {few:,}") for many in numbers[1:]}
    return found


def _limit(who: str, part: dict[str, Any]) -> float:
    return math.nan if who in WHITE else float(np.mean(part.get("limits", math.nan)))


def _time_table(timed: dict[Key, Timed], quick: bool) -> Table:
    rows = []
    fewest = min(samples for _, samples in timed if samples)
    for (who, samples), one in sorted(timed.items(), key=lambda row: row[0][1] or math.inf):
        base = ("SLALOM", samples or fewest)
        paper = None if quick else _PAPER.get((who, samples))
        spread = f" ({min(one.rounds):.2f} to {max(one.rounds):.2f})" * (len(one.rounds) > 1)
        rows.append(
            (
                f"{who}, {samples:,} samples" if samples else who,
                f"{one.calls:,}" if who not in WHITE else "",
                f"{one.seconds / timed[base].seconds:.2f}",
                f"{paper / _PAPER[base]:.2f}" if paper else "",
                "" if math.isnan(one.limit) else f"{one.seconds / one.limit:.2f}",
                f"{one.seconds:.2f}{spread}{one.computed}",
                f"{paper:.2f}" if paper else "",
            )
        )
    model = "2 layers, 128 wide, 40 tokens" if quick else "6 layers, 768 wide, 200 tokens"
    return Table(
        f"Processor time of one explanation (BERT, {model}, {_threads()}); "
        f"SLALOM with as many samples is 1, with {fewest:,} for those without a number",
        ("explainer", "questions", "÷ SLALOM", "paper's", "÷ bare passes", "seconds", "paper's"),
        rows,
    )


def _threads() -> str:
    number = torch.get_num_threads()
    return "one thread" if number == 1 else f"{number} threads"


def _time_claims(timed: dict[Key, Timed], numbers: Sequence[int]) -> list[tuple[str, str, str]]:
    few, many = (timed["SLALOM", samples] for samples in (numbers[0], numbers[-1]))
    most, factor = numbers[-1], numbers[-1] / numbers[0]
    lime, shap = (timed[who, most].seconds / many.seconds for who in ("LIME", "SHAP"))
    once, steps = (timed[who, 0].seconds / few.seconds for who in WHITE)
    short, long = (timed[who, most].tokens / timed[who, most].calls for who in ("SLALOM", "LIME"))
    grown, over = many.seconds / few.seconds, many.seconds / many.limit
    return [
        (
            "SLALOM is 6 to 10 times quicker than LIME and 16 to 20 times quicker than SHAP",
            f"at {most:,} samples {lime:.1f} and {shap:.1f} times",
            graded(lime >= 6 and shap >= 16, lime > 1 and shap > 1),
        ),
        (
            "because it gets by with substantially shorter texts",
            f"{short:.1f} tokens in a question, where LIME's have {long:.1f}",
            graded(long > 3 * short, long > short),
        ),
        (
            "the forward passes decide: 10 times the samples take 10 times as long",
            f"{factor:.1f} times the samples take {grown:.1f} times as long, "
            f"in all {over:.2f} times the bare passes",
            graded(over < 1.25, over < 5),
        ),
        (
            "gradients and integrated gradients are the quickest",
            f"they take {once:.2f} and {steps:.2f} times as long as SLALOM with {numbers[0]:,} "
            "samples",
            graded(max(once, steps) < 1, min(once, steps) < 1),
        ),
    ]


def _draw(timed: dict[Key, Timed], areas: budgets.Areas) -> Figure:
    figure, ((left, right),) = panels((11.0, 4.0), 1, 2)
    numbers = sorted({samples for _, samples in timed if samples})
    for who in dict.fromkeys(who for who, _ in timed):
        own = [timed.get((who, samples), timed.get((who, 0))) for samples in numbers]
        spent = [one.seconds for one in own if one is not None]
        left.plot(numbers, spent, "--" if (who, 0) in timed else "o-", label=who)
    bare = [timed["SLALOM", samples].limit for samples in numbers]
    left.plot(numbers, bare, ":", color=INK, label="SLALOM's bare passes")
    left.set(xscale="log", yscale="log", xlabel="samples", ylabel="processor seconds")
    left.set_xticks(numbers)
    plain_ticks(left.xaxis)
    plain_ticks(left.yaxis)
    left.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    budgets.draw(right, areas)
    return figure


STUDY = Runtime()
