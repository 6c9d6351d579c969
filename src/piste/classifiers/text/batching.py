"""How rows of different length share a batch without changing each other's answers.

Models differ: some pool the last token that is not padding, some the very last one, some count
positions from the padding, some have no pad token at all. Instead of a list of model classes,
every way of padding is tried once on a few short questions and compared with answers to the same
questions asked one by one; the first that agrees is used from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch

from piste.errors import PisteError, is_out_of_memory, shorten
from piste.subject import Question
from piste.types import Flags, Ints


@dataclass(frozen=True, slots=True)
class Batch:
    """One padded batch; ``positions`` are only given where asked for.

    ``mask`` is 1 on real tokens, unless ``hiding``: then some of those are 0 as well, or a row
    ends in the pad id, so that the mask does not tell where its text ends.
    """

    ids: Ints
    types: Ints
    mask: Ints
    pad: int
    positions: Ints | None = None
    hiding: bool = False


Forward: TypeAlias = Callable[[Batch], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Layout:
    """A way to put rows together. ``side=None`` means rows of equal length only."""

    name: str
    side: str | None = "right"
    positions: bool = False
    alone: bool = False


RIGHT = Layout("right padding")
LEFT = Layout("left padding", "left")
LEFT_WITH_POSITIONS = Layout("left padding with positions", "left", positions=True)
EQUAL = Layout("equal lengths, no padding", None)
ALONE = Layout("one by one", None, alone=True)


def pad_rows(questions: Sequence[Question], layout: Layout, pad: int | None) -> Batch:
    """Stack the rows of token questions. Without a pad id, one that no row uses is taken."""
    rows = [question.payload[0] for question in questions]
    lengths = np.array([len(row) for row in rows])
    width = int(lengths.max())
    if pad is None:
        pad = unused_id(rows)
    shape = (len(rows), width)
    places = np.arange(width)
    if layout.side == "left":
        real = places >= (width - lengths)[:, None]
    else:
        real = places < lengths[:, None]
    ids, types = np.full(shape, pad, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    joined = np.concatenate(rows)
    ids[real] = joined
    types[real] = np.concatenate([question.payload[1] for question in questions])
    mask = real.astype(np.int64)
    positions = np.maximum(mask.cumsum(axis=1) - 1, 0) if layout.positions else None
    hidden = any(map(hides, questions))
    if hidden:
        mask[real] = np.concatenate([_seen(question) for question in questions])
    hiding = hidden or bool((joined[np.cumsum(lengths) - 1] == pad).any())
    return Batch(ids, types, mask, pad, positions, hiding)


def hides(question: Question) -> bool:
    """Whether some tokens of a question are hidden from attention."""
    return len(question.payload) > 2


def _seen(question: Question) -> Flags:
    """Which tokens of a row attention may see: all, or what the question says."""
    ids, _, *seen = question.payload
    return seen[0] if seen else np.ones(len(ids), dtype=bool)


def unused_id(rows: Sequence[Ints]) -> int:
    """The smallest token id that occurs in no row: a stand-in that can't be mistaken for text.

    >>> unused_id([np.array([0, 2]), np.array([1, 4])])
    3
    """
    used = np.unique(np.concatenate(rows))
    gaps = np.nonzero(used != np.arange(len(used)))[0]
    return int(gaps[0]) if len(gaps) else len(used)


class PaddedRunner:
    """Answers token questions through a forward function, padded as the model supports it."""

    def __init__(
        self,
        forward: Forward,
        *,
        pad: int | None,
        side: str,
        positions: bool,
        vocabulary: int | None = None,
        counting: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self.forward = forward
        self._counting = counting
        self.pad = pad
        self.layout: Layout | None = None
        self._vocabulary = vocabulary
        self._tried_length = 0
        left = [LEFT_WITH_POSITIONS, LEFT] if positions else [LEFT]
        # Right padding is the cheapest to get right; the tokenizer's own side decides a tie.
        self._candidates = [*left, RIGHT] if side == "left" else [RIGHT, *left]

    def answer(self, questions: Sequence[Question]) -> torch.Tensor:
        """Answers to one batch, in order."""
        lengths = [question.length for question in questions]
        if len(questions) == 1:
            return self._plain(questions)
        if any(map(hides, questions)):
            # Some models count positions by the mask, and padding would come into that.
            layout = self.layout or ALONE
            return self._answer(questions, lengths, ALONE if layout.alone else EQUAL)
        if max(lengths) > 4 * self._tried_length:
            # What was tried on short rows need not hold for long ones.
            with self._counting():
                self.settle([max(questions, key=_length), min(questions, key=_length)])
        return self._answer(questions, lengths, self.layout or ALONE)

    def _answer(
        self, questions: Sequence[Question], lengths: list[int], layout: Layout
    ) -> torch.Tensor:
        if layout.side is not None:
            unclear = self._unclear(questions)
            if not unclear:
                return self.forward(pad_rows(questions, layout, self.pad))
            if self.pad is not None and len(unclear) < len(questions):
                return self._apart(questions, unclear, layout)
            layout = EQUAL
        answers: dict[int, torch.Tensor] = {}
        for length in sorted(set(lengths)):
            chosen = [n for n, own in enumerate(lengths) if own == length]
            step = 1 if layout.alone else len(chosen)
            for start in range(0, len(chosen), step):
                part = chosen[start : start + step]
                rows = self.forward(pad_rows([questions[n] for n in part], layout, self.pad))
                answers |= dict(zip(part, rows, strict=True))
        return torch.stack([answers[n] for n in range(len(questions))])

    def settle(self, questions: Sequence[Question]) -> Layout:
        """Find the first layout whose answers equal those to the same questions one by one."""
        truth = torch.cat([self._alone(question) for question in questions])
        scale = float(truth.abs().max().clamp_min(1e-6))
        precision = torch.finfo(truth.dtype).eps if truth.is_floating_point() else 1e-7
        tolerance = scale * max(200 * precision if precision < 1e-5 else 8 * precision, 2e-5)
        lengths = [question.length for question in questions]
        self._tried_length = max(lengths)
        for layout in (*([self.layout] if self.layout else self._candidates), EQUAL):
            try:
                difference = float((self._answer(questions, lengths, layout) - truth).abs().max())
            except (ValueError, RuntimeError, IndexError, TypeError):
                continue  # this model does not support that layout: try the next one
            if difference <= tolerance:
                self.layout = layout
                return layout
        self.layout = ALONE
        return ALONE

    def _alone(self, question: Question) -> torch.Tensor:
        try:
            return self._plain([question])
        except (RuntimeError, ValueError, IndexError) as problem:
            if isinstance(problem, PisteError) or is_out_of_memory(problem):
                raise
            raise PisteError(
                f"The model fails on {question.length} tokens ({shorten(problem, 120)}): expected "
                "the tokenizer that belongs to the model, and a model that reads short texts, "
                "because parts of the text are asked about alone."
            ) from problem

    def _unclear(self, questions: Sequence[Question]) -> list[int]:
        """Rows in which padding could not be told from text.

        All of them if no id is free to pad with; those that consist of nothing but the pad id.
        """
        rows = [question.payload[0] for question in questions]
        if self.pad is None:
            free = self._vocabulary is None or unused_id(rows) < self._vocabulary
            return [] if free else list(range(len(rows)))
        edges = np.cumsum([0, *(len(row) for row in rows[:-1])])
        only_pad = np.logical_and.reduceat(np.concatenate(rows) == self.pad, edges)
        return np.nonzero(only_pad)[0].tolist()

    def _apart(
        self, questions: Sequence[Question], unclear: list[int], layout: Layout
    ) -> torch.Tensor:
        """The clear rows together, the others one by one."""
        clear = [number for number in range(len(questions)) if number not in unclear]
        rows = dict(
            zip(
                clear,
                self.forward(pad_rows([questions[n] for n in clear], layout, self.pad)),
                strict=True,
            )
        )
        rows |= {number: self._plain([questions[number]])[0] for number in unclear}
        return torch.stack([rows[number] for number in range(len(questions))])

    def _plain(self, questions: Sequence[Question]) -> torch.Tensor:
        return self.forward(pad_rows(questions, RIGHT, self.pad))


def _length(question: Question) -> int:
    return question.length
