"""Any Python function as a classifier: texts → scores, or token ids + mask → scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from piste.classifier import Classifier
from piste.classifiers.base import EngineSubject, check_text
from piste.classifiers.outputs import OutputReader, as_matrix, call
from piste.classifiers.text.batching import Batch, PaddedRunner
from piste.classifiers.text.classifier import probe_questions
from piste.classifiers.text.spans import as_given, place_spans
from piste.classifiers.text.subject import TokenClassifier, TokenSubject
from piste.classifiers.text.tokenization import longest_sequence
from piste.classifiers.text.units import PLAIN_SPANS, Span
from piste.errors import PisteError
from piste.subject import (
    Binding,
    Parts,
    Question,
    Sequence1D,
    SpanFunction,
    Spans,
    Subject,
    Unit,
    text_units,
)
from piste.target import OutputKind, Target, TargetChoice
from piste.types import Floats, Ints


class FunctionOutputs(Classifier):
    """What functions of texts, of tokens and of pixels share: reading the numbers."""

    _reader: OutputReader
    version: str | None = None
    """The user's own name for the function's present state, by which a cache may know it."""

    @property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]  # known after the first answer
        return self._reader.labels

    @property
    def kind(self) -> OutputKind:  # type: ignore[override]  # known after the first answer
        return self._reader.kind

    def resolve(self, choice: TargetChoice, logits: Floats) -> Target:
        if choice is None and self._reader.reading == "hard labels":
            choice = int(np.argmax(logits))
        return super().resolve(choice, logits)

    def describe(self) -> dict[str, object]:
        said: dict[str, object] = {"name": self.name, "outputs": self._reader.reading or "unknown"}
        return said | ({"note": self._reader.note} if self._reader.note else {})

    def fingerprint(self) -> str | None:
        if self.version is None:
            return None
        reading = "logits" if self._reader.reading == "hard labels" else self._reader.reading
        return f"{self.name} {self.version} {reading} {self._reader.exclusive}"

    def calibrate(self, subject: Subject, limit: int = 31) -> None:
        """Ask about the input and its first units alone, if the kind of the numbers is unclear."""
        if self._reader.is_settled:
            return
        sequences: list[Sequence1D] = [subject.whole] if subject.fits else [[0]]
        first = self._raw([subject.encode(sequences[0])[0][0]])
        if not self._reader.is_clear(first):
            singles = [subject.encode([n])[0][0] for n in range(min(len(subject), limit))]
            alone = self._raw(singles)
            self._reader.check_same(first, alone)
            first = np.concatenate([first, alone])
        self._reader.settle(first)
        self.calibration.batches += 1 + (len(first) > 1)

    def answer(self, questions: Sequence[Question]) -> Floats:
        return self._reader.logits(self._raw(questions))

    def _raw(self, questions: Sequence[Question]) -> Floats:
        raise NotImplementedError


class TextFunction(FunctionOutputs):
    """A function from a list of texts to scores.

    >>> import piste
    >>> shout = piste.load(lambda texts: [text.count("!") for text in texts])
    >>> shout.subject("Stop! Now!").ask([[0, 1, 2, 3], [0, 2]]).ravel().tolist()
    [2.0, 0.0]
    """

    budget = 256  # a question counts as one, so this is the number of texts in a call
    paced = False

    def __init__(
        self, function: Callable[[list[str]], Any], reader: OutputReader, *, name: str | None = None
    ) -> None:
        self.function = function
        self._reader = reader
        self.name = name or str(getattr(function, "__name__", type(function).__name__))

    def bind(self, input: Any, how: Binding) -> TextSubject:
        texts = check_text(input)
        kind = text_units(how.units)
        if how.removal != "delete":
            raise PisteError(
                f"removal={how.removal!r} needs a tokenizer, and a function of texts has none: "
                "choose removal='delete'."
            )
        if len(texts) > 1:
            raise PisteError(
                "Expected a single text for a function of texts, got a pair: join the two "
                "yourself, or load a model that reads pairs."
            )
        if kind == "tokens":
            raise PisteError(
                "units='tokens' needs a tokenizer, and a function of texts has none: choose "
                "units='words', 'sentences' or 'paragraphs'."
            )
        return TextSubject(self, texts[0], kind)

    def _raw(self, questions: Sequence[Question]) -> Floats:
        texts = [question.payload for question in questions]
        return as_matrix(call(self.function, self.name, texts), len(texts))


class TextSubject(EngineSubject):
    """A plain text whose units are cut out of the string and joined again as they stood.

    Where units are spans, the text between them is pinned: it stays in its place, and units stay
    between the pinned pieces they stood between.
    """

    def __init__(
        self, classifier: Classifier, text: str, units: str | Spans | SpanFunction
    ) -> None:
        self.classifier = classifier
        self.input = text
        self._text = text
        if isinstance(units, str):
            self.cut, spans = units, PLAIN_SPANS[units](text)
        else:
            placed = place_spans(units, [text])
            self.cut = as_given(placed, [text])
            spans = [_solid(text, start, end) for _, start, end in placed]
        self.units = tuple(Unit(text[start:end], start, end) for start, end in spans)
        if not self.units:
            raise PisteError("The text has no words: there is nothing to explain.")
        self._read_pieces(spans)
        # What stands before the first piece when it is asked behind another one.
        gaps = any(a[1] < b[0] for a, b in pairwise(self._pieces))
        self._blank = " " if gaps else ""
        contents = list(zip((unit.text for unit in self.units), self._slots, strict=True))
        numbers = {word: number for number, word in enumerate(dict.fromkeys(contents))}
        self.types = np.array([numbers[word] for word in contents], dtype=np.int64)
        self.can_be_empty = bool(self._pinned)  # many functions fail on an empty text
        self.limit = None
        self.notes = {"long": "fits"}
        if self._pinned:
            self.notes["pinned_characters"] = sum(
                self._pieces[piece][1] - self._pieces[piece][0] for piece in self._pinned
            )

    def _read_pieces(self, spans: Sequence[Span]) -> None:
        """Units and pinned text in order, and the slot of each unit: pinned text parts them."""
        self._pieces: list[Span] = []
        self._pinned: list[int] = []
        self._unit_pieces: list[int] = []
        self._slots: list[int] = []
        last = 0
        for start, end in [*spans, (len(self._text), len(self._text))]:
            if self._text[last:start].strip():
                self._pinned.append(len(self._pieces))
                self._pieces.append(_solid(self._text, last, start))
            if start < end:
                self._unit_pieces.append(len(self._pieces))
                self._slots.append(len(self._pinned))
                self._pieces.append((start, end))
            last = end

    def encode(self, sequence: Sequence1D) -> Parts:
        text = self.join(self.check(sequence).tolist())
        return [(Question(text, 1, text), 1.0)]

    def join(self, units: Sequence[int]) -> str:
        """The text of some units, with what is pinned around them."""
        pieces = self._in_place(units)
        return self._join(pieces) if pieces else ""

    def _in_place(self, units: Sequence[int]) -> list[int]:
        """The pieces of a question: its units in their slots, pinned text between them."""
        if not self._pinned:
            return [self._unit_pieces[unit] for unit in units]
        slots: list[list[int]] = [[] for _ in range(len(self._pinned) + 1)]
        for unit in units:
            slots[self._slots[unit]].append(self._unit_pieces[unit])
        pieces = slots[0]
        for pinned, slot in zip(self._pinned, slots[1:], strict=True):
            pieces += [pinned, *slot]
        return pieces

    def _join(self, pieces: Sequence[int]) -> str:
        """The text of some pieces; white space as in the original, all give it unchanged."""
        parts = [self._text[: self._pieces[0][0]]] if pieces[0] == 0 else []
        for place, piece in enumerate(pieces):
            start, end = self._pieces[piece]
            if place:
                gap = self._text[self._pieces[piece - 1][1] : start] if piece else self._blank
                last = self._text[self._pieces[pieces[place - 1]][1] - 1]
                glued = not gap and pieces[place - 1] != piece - 1
                if glued and last.isalnum() and self._text[start].isalnum():
                    gap = " "
                parts.append(gap)
            parts.append(self._text[start:end])
        if pieces[-1] == len(self._pieces) - 1:
            parts.append(self._text[self._pieces[-1][1] :])
        return "".join(parts)


def _solid(text: str, start: int, end: int) -> Span:
    """A span without the blanks at its ends."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


class TokenFunction(FunctionOutputs, TokenClassifier):
    """A function from token ids and attention mask (rows × tokens) to scores."""

    budget = 8192

    def __init__(
        self,
        function: Callable[[Any, Any], Any],
        tokenizer: Any,
        reader: OutputReader,
        *,
        name: str | None = None,
    ) -> None:
        self.function = function
        self.tokenizer = tokenizer
        self.limit = longest_sequence(None, tokenizer)
        self._reader = reader
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self._arrays = False
        self._tried = False
        pad = getattr(tokenizer, "pad_token_id", None)
        self._runner = PaddedRunner(
            self._forward,
            pad=pad,
            side=getattr(tokenizer, "padding_side", "right"),
            positions=False,
        )

    def calibrate(self, subject: Subject, limit: int = 31) -> None:
        if self._runner.layout is None and isinstance(subject, TokenSubject):
            probes = probe_questions(subject)
            self._runner.settle(probes)
            self.calibration.batches += len(probes) + 1
        super().calibrate(subject, limit)

    def _raw(self, questions: Sequence[Question]) -> Floats:
        return self._runner.answer(questions).numpy()

    def _forward(self, batch: Batch) -> torch.Tensor:
        answers = call(self._call, self.name, batch.ids, batch.mask)
        return torch.from_numpy(as_matrix(answers, len(batch.ids)))

    def _call(self, ids: Ints, mask: Ints) -> Any:
        """Functions are written for torch or for numpy: find out which at the first call."""
        tensors = torch.from_numpy(ids), torch.from_numpy(mask)
        if self._tried:
            return self.function(ids, mask) if self._arrays else self.function(*tensors)
        try:
            answers = self.function(*tensors)
        except (TypeError, AttributeError, IndexError, ValueError):
            answers, self._arrays = self.function(ids, mask), True
        self._tried = True
        return answers
