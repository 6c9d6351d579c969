"""What a language model said of an answer, asked again without the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from piste.answer import Answer
from piste.classifier import Classifier
from piste.classifiers.base import EngineSubject
from piste.classifiers.prompted.generating import answer_output
from piste.errors import PisteError
from piste.explanation import Explanation, Output
from piste.subject import Binding, Parts, Question, Sequence1D, Subject
from piste.target import Target, TargetChoice
from piste.types import Floats


class RecordedAnswers(Classifier):
    """Answers questions that were asked for an explanation, from its record."""

    kind = "regression"
    budget = 1 << 20
    paced = False

    def __init__(self, explanation: Explanation, answer: Answer) -> None:
        self.explanation, self.known = explanation, answer
        self.name = str(explanation.classifier.get("name", "recorded"))
        self.labels = (answer.text,)
        self._rows = dict(zip(answer.sequences, answer.log_probabilities, strict=True))

    def bind(self, input: Any, how: Binding) -> Subject:
        return _RecordedSubject(self)

    def answer(self, questions: Sequence[Question]) -> Floats:
        missing = [one.payload for one in questions if one.payload not in self._rows]
        if missing:
            raise PisteError(
                "This method would ask other questions for a span than it asked for the answer: "
                "explain again with a fixed number of samples."
            )
        return np.array([self._rows[question.payload] for question in questions])

    def resolve(self, choice: TargetChoice, logits: Floats) -> Target:
        return self.known.target(choice, len(logits))  # type: ignore[arg-type]  # checked there

    def output(self, logits: Floats, value: Any) -> Output:
        return answer_output(self.known.text, value)

    def record(
        self, subject: Subject, sequences: Sequence[Sequence1D], logits: Floats
    ) -> Answer | None:
        return self.known

    def describe(self) -> dict[str, object]:
        return dict(self.explanation.classifier)


class _RecordedSubject(EngineSubject):
    """The units of an explanation, with its record for answers."""

    def __init__(self, classifier: RecordedAnswers) -> None:
        e, answer = classifier.explanation, classifier.known
        notes = dict(e.settings.get("input", {}))
        self.classifier: RecordedAnswers = classifier
        self.input, self.units, self.types = e.input, e.units, answer.types
        self.can_be_empty, self.limit = answer.can_be_empty, None
        self.removal, self.cut = notes.pop("removal", "delete"), notes.pop("units", "words")
        self.only_drops = self.removal != "delete"
        self.notes = notes

    def encode(self, sequence: Sequence1D) -> Parts:
        kept = tuple(int(unit) for unit in self.check(sequence))
        return [(Question(np.array(kept, dtype=np.int32).tobytes(), len(kept) + 1, kept), 1.0)]
