"""Models that answer about words of a text: tags of words, and answers marked in a text.

What is explained is an answer about one place, so that place is chosen first (``at``). Its words
stay in every question, and the others are its units. The tokens of the place are found again in a
question by a mark on their token type, which is taken off before the model reads it.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from piste.classifiers.base import check_text
from piste.classifiers.text.batching import RIGHT, Batch, pad_rows
from piste.classifiers.text.classifier import TextClassifier
from piste.classifiers.text.tokenization import read_tokens
from piste.classifiers.text.units import Token
from piste.errors import PisteError, one_line, shorten
from piste.explanation import Explanation
from piste.subject import Question, Subject
from piste.target import Target, TargetChoice
from piste.types import Flags, Floats, Ints

_FIRST, _LAST = 32, 64
"""Marks on the token types of the first and the last token of the place."""
_LONGEST = 30
"""Tokens of an answer that is looked for."""
_NTH = re.compile(r"(.+)#([1-9]\d{0,3})")


class WordModel(TextClassifier):
    """A model that answers about every token. :meth:`at` makes a classifier of one place."""

    segment = 0
    """The text of a pair that the place is in."""
    place: tuple[int, int] | None = None
    """The first and the last character of the words that are asked about, and one more."""

    def __init__(self, model: Any, tokenizer: Any, **how: Any) -> None:
        if how.get("runtime", "torch") != "torch":
            raise PisteError(
                f"runtime: expected 'torch' for {type(model).__name__}, got {how['runtime']!r}: "
                "leave the runtime out."
            )
        super().__init__(model, tokenizer, pruned=False, **how)

    @abstractmethod
    def at(self, input: Any, target: TargetChoice) -> tuple[WordModel, TargetChoice]:
        """A classifier of one place in this input, and what is explained of its outputs."""

    @abstractmethod
    def _outputs(self, found: Any, batch: Batch) -> torch.Tensor:
        """Rows × outputs from what the model returns, at the place that is marked in each row."""

    def read(self, texts: Sequence[str], limit: int | None = None) -> list[Token]:
        """The tokens, with those of the place fixed and marked."""
        if self.place is None:
            raise PisteError(
                f"{self.name!r} answers about words: explain one text at a time, with the word "
                "named by target, as target='Paris: LOC' (piste.explain, piste.compare)."
            )
        tokens = super().read(texts, limit)
        own = self._inside(tokens)
        if not own:
            raise PisteError(
                f"{texts[self.segment][slice(*self.place)]!r} is not in the part of the text that "
                "the model reads: give a shorter text."
            )
        marks = {own[0]: _FIRST}
        marks[own[-1]] = marks.get(own[-1], 0) + _LAST
        return [
            replace(
                token, fixed=token.fixed or number in own, type=token.type + marks.get(number, 0)
            )
            for number, token in enumerate(tokens)
        ]

    def _inside(self, tokens: Sequence[Token]) -> list[int]:
        assert self.place is not None
        start, end = self.place
        return [
            number
            for number, token in enumerate(tokens)
            if not token.fixed
            and token.segment == self.segment
            and token.start < end
            and start < token.end
        ]

    def _placed(self, start: int, end: int) -> Any:
        found = copy(self)
        found.place = start, end
        return found

    def _inputs(self, batch: Batch) -> dict[str, Ints]:
        return super()._inputs(replace(batch, types=batch.types % _FIRST))

    def _forward(self, batch: Batch) -> torch.Tensor:
        pad = batch.pad if self._runner.pad is None and len(batch.ids) > 1 else None
        tensors = {
            name: torch.from_numpy(array).to(self.device)
            for name, array in self._inputs(batch).items()
        }
        return self._outputs(self._backend.plain(pad)(**tensors), batch)

    def _whole(self, texts: Sequence[str]) -> tuple[list[Token], Any]:
        """The tokens of the whole input, as many as the model reads, and what it returns."""
        tokens = read_tokens(self.tokenizer, texts, self.limit)
        row = np.array([token.id for token in tokens]), np.array([token.type for token in tokens])
        question = Question(b"", len(tokens), row)
        batch = pad_rows([question], RIGHT, self._runner.pad)
        with self.session():
            tensors = {name: torch.from_numpy(one) for name, one in self._inputs(batch).items()}
            try:
                found = self.model(**{name: one.to(self.device) for name, one in tensors.items()})
            except (RuntimeError, ValueError, IndexError) as problem:
                raise PisteError(
                    f"The model fails on {len(tokens)} tokens ({one_line(problem)}): expected the "
                    "tokenizer that belongs to the model, and a model of its task."
                ) from problem
        return tokens, found

    def share(self, questions: Sequence[Question], budget: int) -> Iterator[Any] | None:
        return None

    def tensors(self, subject: Subject) -> dict[str, torch.Tensor]:
        raise self._black_box()

    def gradient_access(self, subject: Subject, target: Target) -> Any:
        raise self._black_box()

    def _black_box(self) -> PisteError:
        return PisteError(
            f"Methods that look inside explain answers about whole texts, and {self.name!r} "
            "answers about words: choose a method that asks, such as slalom, lime or occlusion."
        )

    def explained(self, explanation: Explanation) -> WordModel:
        """The classifier of the place that an explanation is about."""
        place = explanation.classifier.get("place")
        if self.place is not None or not place:
            return self
        found: WordModel = self._placed(*place)
        found.labels = explanation.output.labels
        return found

    def describe(self) -> dict[str, object]:
        return super().describe() | ({"place": list(self.place)} if self.place else {})


class TagClassifier(WordModel):
    """Token classification: the tags of one word, read at its first token.

    The word is named by the target, "Paris: LOC", ("Paris", "LOC") or "Paris" for the predicted
    tag; "Paris#2" is the second Paris.
    """

    def at(self, input: Any, target: TargetChoice) -> tuple[WordModel, TargetChoice]:
        texts = check_text(input)
        if len(texts) != 1:
            raise PisteError("Expected one text for a model that tags words, got a pair.")
        word, tag = self._named(target, texts[0])
        return self._placed(*_find(word, texts[0])), tag

    def _named(self, target: TargetChoice, text: str) -> tuple[str, TargetChoice]:
        if isinstance(target, str) and target not in self.labels and target.strip():
            word, sign, tag = target.rpartition(":")
            if sign and tag.strip() and (tag.strip() in self.labels or not _places(target, text)):
                return word.strip(), tag.strip()
            return target.strip(), None
        if isinstance(target, (tuple, list)) and len(target) == 2 and isinstance(target[0], str):
            return target[0], target[1]
        raise PisteError(
            "target: expected a word of the text and its tag, as 'Paris: LOC', got "
            f"{shorten(target)}. The model tags {self._tagged(text)}."
        )

    def _tagged(self, text: str) -> str:
        """The words that have a tag of their own, for those who have to choose."""
        tokens, found = self._whole([text])
        tags = found.logits[0].argmax(dim=-1).tolist()
        usual = self.labels.index("O") if "O" in self.labels else None
        words = [
            f"{text[token.start : token.end].strip()} {self.labels[tag]}"
            for token, tag in zip(tokens, tags, strict=True)
            if not token.fixed and tag != usual
        ]
        more = " …" if len(words) > 8 else ""
        return (", ".join(words[:8]) + more) if words else "no word of it"

    def _outputs(self, found: Any, batch: Batch) -> torch.Tensor:
        first = (batch.types // _FIRST) % 2 == 1
        logits: torch.Tensor = found.logits
        return logits[torch.arange(len(logits)), _positions(first, logits)]


class AnswerClassifier(WordModel):
    """Extractive question answering: the log-odds that the model marks this answer.

    The probability of an answer is that of its first token times that of its last one. The answer
    is named by the target; without one it is the model's own.
    """

    segment = 1

    def __init__(self, model: Any, tokenizer: Any, **how: Any) -> None:
        super().__init__(model, tokenizer, **how)
        self.labels, self.kind = ("answer",), "labels"

    def at(self, input: Any, target: TargetChoice) -> tuple[WordModel, TargetChoice]:
        texts = check_text(input)
        if len(texts) != 2:
            raise PisteError(
                "Expected a question and the text that answers it, as (question, text) or --pair, "
                "got one text."
            )
        if target is not None and not isinstance(target, str):
            raise PisteError(f"target: expected an answer in the text, got {shorten(target)}.")
        start, end = self._best(texts) if target is None else _find(target, texts[1])
        found = self._placed(start, end)
        found.labels = (texts[1][start:end],)
        return found, 0

    def _best(self, texts: Sequence[str]) -> tuple[int, int]:
        """Where the model's own answer stands."""
        tokens, found = self._whole(texts)
        own = [n for n, token in enumerate(tokens) if not token.fixed and token.segment == 1]
        if not own:
            raise PisteError("The text has no word that could be an answer: give a longer one.")
        starts = found.start_logits[0, own].double().cpu().numpy()
        ends = found.end_logits[0, own].double().cpu().numpy()
        both: Floats = starts[:, None] + ends[None, :]
        lengths = np.arange(len(own))[None, :] - np.arange(len(own))[:, None]
        both[(lengths < 0) | (lengths >= _LONGEST)] = -np.inf
        first, last = np.unravel_index(int(both.argmax()), both.shape)
        return tokens[own[first]].start, tokens[own[last]].end

    def _outputs(self, found: Any, batch: Batch) -> torch.Tensor:
        seen = torch.from_numpy(batch.mask != 0).to(self.device)
        logs = torch.zeros(len(batch.ids), dtype=torch.float64, device=self.device)
        for logits, mark in ((found.start_logits, _FIRST), (found.end_logits, _LAST)):
            logits = logits.double().masked_fill(~seen, -torch.inf)
            marked = (batch.types // mark) % 2 == 1
            places = _positions(marked, logits)
            logs = logs + logits.log_softmax(dim=-1)[torch.arange(len(logits)), places]
        logs = logs.clamp(max=-1e-12)  # a probability of one has no odds
        return (logs - torch.log(-torch.expm1(logs)))[:, None]


def _positions(marked: Flags, logits: torch.Tensor) -> torch.Tensor:
    assert (marked.sum(axis=1) == 1).all(), "every question has its place"
    return torch.from_numpy(marked.argmax(axis=1)).to(logits.device)


def _places(word: str, text: str) -> list[re.Match[str]]:
    pattern = r"\s+".join(map(re.escape, word.split()))
    return list(re.finditer(rf"(?<!\w){pattern}(?!\w)", text)) if pattern else []


def _find(word: str, text: str) -> tuple[int, int]:
    """Where a word, or the second one by ``word#2``, stands in a text."""
    found, number = _places(word, text), 1
    if not found and (nth := _NTH.fullmatch(word)):
        word, number = nth[1], int(nth[2])
        found = _places(word, text)
    if len(found) < number:
        raise PisteError(
            f"target: {shorten(word)} stands {len(found)} times in the text, as whole words: name "
            "words of the text" + (f", at most #{len(found)}." if found else ".")
        )
    return found[number - 1].span()
