"""Zero-shot classification: a model of entailment asked about one hypothesis per label."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from piste.classifiers.text.classifier import TextClassifier
from piste.classifiers.text.subject import IDS, TokenClassifier
from piste.classifiers.text.tokenization import read_tokens
from piste.classifiers.text.units import Token
from piste.errors import PisteError, shorten
from piste.subject import Binding, Question, Subject
from piste.types import Floats, Ints

HYPOTHESIS = "This example is {}."
"""What transformers asks without a template of the user's."""


@dataclass(frozen=True)
class _Tail:
    """The tokens behind the text: a hypothesis, and what the tokenizer puts around it."""

    ids: Ints
    kinds: Ints


class ZeroShotClassifier(TokenClassifier):
    """The candidate labels as outputs: how far the text entails "This example is LABEL.".

    A question about the text is one question to the model for each label. The hypothesis is never
    removed. As in transformers, labels exclude each other by a softmax of their entailment logits;
    with ``multi_label`` (and for a single label) each has log-odds against contradiction.
    """

    def __init__(
        self,
        entailment: TextClassifier,
        labels: Sequence[str],
        hypothesis: str = HYPOTHESIS,
        *,
        multi_label: bool = False,
    ) -> None:
        _check_labels(labels, hypothesis)
        self.entailment = entailment
        self.hypothesis = hypothesis
        self.labels = tuple(labels)
        self.kind = "labels" if multi_label or len(labels) == 1 else "classes"
        self.name = entailment.name
        self.tokenizer, self.limit = entailment.tokenizer, entailment.limit
        self.reads_mask = entailment.reads_mask
        self.budget = max(entailment.budget // len(labels), 1)
        self._entails, self._contradicts = _outputs(entailment)
        self._tails = [self._tail(label) for label in self.labels]
        # Questions are laid out with the longest one, so that all labels fit where it does.
        self._longest = int(np.argmax([len(tail.ids) for tail in self._tails]))

    def bind(self, input: Any, how: Binding) -> Subject:
        if isinstance(input, tuple) and len(input) == 2:
            raise PisteError(
                "Expected one text for zero-shot classification, got a pair: the second text of "
                "the model's pairs is the hypothesis."
            )
        return super().bind(input, how)

    def read(self, texts: Sequence[str], limit: int | None = None) -> list[Token]:
        """The text's tokens and those of the longest hypothesis, which is pinned."""
        hypothesis = self.hypothesis.replace("{}", self.labels[self._longest])
        tokens = read_tokens(self.tokenizer, (texts[0], hypothesis), limit, first_only=True)
        return [replace(token, fixed=token.fixed or token.segment == 1) for token in tokens]

    def _tail(self, label: str) -> _Tail:
        """What stands behind a text, read off a pair with a short one."""
        tokens = read_tokens(self.tokenizer, ("a", self.hypothesis.replace("{}", label)))
        own = [place for place, token in enumerate(tokens) if not token.fixed and not token.segment]
        if not own or all(token.segment == 0 for token in tokens):
            raise PisteError(
                f"The tokenizer of {self.name!r} joins no pairs of texts, which zero-shot "
                "classification needs: load a model of entailment (NLI) with its own tokenizer."
            )
        rest = tokens[own[-1] + 1 :]
        return _Tail(
            np.array([token.id for token in rest], dtype=IDS),
            np.array([token.type for token in rest], dtype=IDS),
        )

    def session(self) -> AbstractContextManager[object]:
        return self.entailment.session()

    def calibrate(self, subject: Subject) -> None:
        self.entailment.calibrate(subject)
        self.calibration.batches = self.entailment.calibration.batches
        self.calibration.seconds = self.entailment.calibration.seconds

    def answer(self, questions: Sequence[Question]) -> Floats:
        asked = [self._about(question, tail) for question in questions for tail in self._tails]
        logits = self.entailment.answer(asked).reshape(len(questions), len(self.labels), -1)
        entailed: Floats = logits[:, :, self._entails]
        if self.kind == "classes":
            return entailed
        return entailed - logits[:, :, self._contradicts]

    def _about(self, question: Question, tail: _Tail) -> Question:
        """The question with the hypothesis of another label."""
        cut = len(question.payload[0]) - len(self._tails[self._longest].ids)
        ids, kinds, *seen = question.payload
        row = np.concatenate([ids[:cut], tail.ids])
        payload = [row, np.concatenate([kinds[:cut], tail.kinds])]
        payload += [np.concatenate([one[:cut], np.ones(len(tail.ids), bool)]) for one in seen]
        return Question(row.tobytes(), len(row), tuple(payload))

    def fingerprint(self) -> str:
        asked = (self.hypothesis, self.labels, self.kind)
        return f"{self.entailment.fingerprint()} {asked!r}"

    def describe(self) -> dict[str, object]:
        return self.entailment.describe() | {"hypothesis": self.hypothesis}


def _check_labels(labels: Sequence[str], hypothesis: str) -> None:
    if isinstance(labels, str) or not labels or not all(isinstance(one, str) for one in labels):
        raise PisteError(
            "labels: expected the candidate labels of zero-shot classification, as "
            f"['sports', 'politics'], got {shorten(labels)}."
        )
    if len(set(labels)) < len(labels):
        raise PisteError(f"labels: expected different names, got {shorten(list(labels))}.")
    if not isinstance(hypothesis, str) or hypothesis.count("{}") != 1:
        raise PisteError(
            f"hypothesis: expected a text with one {{}} for the label, as {HYPOTHESIS!r}, got "
            f"{shorten(hypothesis)}."
        )


def _outputs(model: TextClassifier) -> tuple[int, int]:
    """The outputs for entailment and contradiction, by their names."""
    names = [label.lower() for label in model.labels]
    entails = [k for k, name in enumerate(names) if name.startswith("entail")]
    if len(entails) != 1 or len(names) < 2:
        raise PisteError(
            "Expected a model of entailment (NLI) for zero-shot classification, one of whose "
            f"outputs is called entailment, got {model.name!r} with {', '.join(model.labels)}: "
            "load such a model, or leave the hypothesis out to explain these outputs."
        )
    others = [k for k in range(len(names)) if k != entails[0]]
    contradicts = [k for k in others if names[k].startswith(("contra", "not"))]
    return entails[0], (contradicts or [others[0] if entails[0] != 0 else others[-1]])[0]
