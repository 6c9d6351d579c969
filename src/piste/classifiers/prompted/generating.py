"""Language models that answer freely: one answer is kept, and its tokens' probabilities read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from piste.answer import Answer
from piste.classifier import Classifier
from piste.classifiers.base import evaluation_mode
from piste.classifiers.prompted.classifier import (
    AnswerClassifier,
    answer_tokens,
    chat_template,
    prompt_tokens,
)
from piste.classifiers.prompted.prompt import Prompt, conversation, render_turns
from piste.classifiers.prompted.tail import Tail
from piste.classifiers.text.tokenization import longest_sequence
from piste.errors import PisteError, shorten
from piste.explanation import Explanation, Output
from piste.prompt_text import PromptText
from piste.subject import Binding, Question, Sequence1D, Subject
from piste.target import Target, TargetChoice
from piste.types import Floats

LONGEST_ANSWER = 64
"""Tokens of an answer of the model's own, unless it ends before."""


class LanguageModel(Classifier):
    """A causal language model without labels: what is explained is an answer of it.

    ``prompt`` is a template with fields, or None: then an input is the whole prompt, a text or
    messages. :meth:`answering` makes the classifier of one answer to one prompt.
    """

    labels = ()
    kind = "regression"
    budget = 8192

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        prompt: Prompt | None = None,
        *,
        pinned: Sequence[str] = (),
        name: str | None = None,
    ) -> None:
        self.model, self.tokenizer, self.prompt, self.pinned = model, tokenizer, prompt, pinned
        self.name = name or getattr(model, "name_or_path", "") or type(model).__name__
        self._chat = chat_template(tokenizer)

    @property
    def reads_messages(self) -> bool:
        """Whether an input may be messages of a chat."""
        return self.prompt is None and self._chat is not None

    def render(self, input: Any) -> PromptText:
        """The prompt as the model reads it."""
        if isinstance(input, PromptText):
            return input
        if self.prompt is not None:
            return self.prompt.render(input, self._chat)
        if isinstance(input, Mapping):
            raise PisteError(
                "Expected a prompt or messages, got values for fields: load the model with a "
                "prompt that has these fields, prompt='… {context} …'."
            )
        return render_turns(conversation(input, self.pinned), self._chat)

    def prompts(self, input: Any) -> list[Any] | None:
        """The prompts of a list, None if it is one: messages of a chat are one prompt."""
        if not isinstance(input, list) or not input:
            return None
        if self.prompt is None and all(isinstance(one, Mapping) for one in input):
            return None
        return input

    def answering(
        self,
        input: Any,
        answer: str | Sequence[int] | None = None,
        against: str | None = None,
        longest: int = LONGEST_ANSWER,
    ) -> tuple[AnsweringClassifier, PromptText]:
        """A classifier of one answer to a prompt, and the prompt.

        ``answer`` is a text or tokens; without it the model's own is taken, by greedy decoding of
        at most ``longest`` tokens. ``against`` is another answer, from which the first is told
        apart.
        """
        prompt = self.render(input)
        tokens = self._generated(prompt, longest) if answer is None else self._read(prompt, answer)
        other = None if against is None else self._read(prompt, against)
        if other == tokens:
            raise PisteError("against: expected another answer than the one explained, got it.")
        text, spans = _text_and_spans(self.tokenizer, tokens)
        known = Answer(text, spans, None if against is None else against.strip(), tuple(tokens))
        answers = [tokens] if other is None else [tokens, other]
        return AnsweringClassifier(self, prompt, known, Tail.of(answers)), prompt

    def explained(self, explanation: Explanation) -> AnsweringClassifier:
        answer = explanation.answer
        if answer is None:
            raise PisteError(
                f"{self.name!r} has no labels, and the explanation is of "
                f"{explanation.target.name}: give the classifier that was explained."
            )
        asked = self.answering(explanation.input, answer.tokens or answer.text, answer.against)
        return asked[0]

    def _read(self, prompt: PromptText, answer: str | Sequence[int]) -> list[int]:
        if isinstance(answer, tuple) and answer:
            return list(answer)
        if not isinstance(answer, str) or not answer.strip():
            raise PisteError(f"answer: expected a text, got {shorten(answer)}.")
        return answer_tokens(self.tokenizer, prompt, answer)

    def _generated(self, prompt: PromptText, longest: int) -> list[int]:
        """The answer by greedy decoding, without the token that ends it."""
        ids = [token.id for token in prompt_tokens(self.tokenizer, prompt)]
        device = next(self.model.parameters()).device
        stops = _ends(self.model, self.tokenizer)
        answer: list[int] = []
        limit = longest_sequence(self.model, self.tokenizer)
        if limit is not None:  # a prompt that is too long itself is refused later
            longest = max(1, min(longest, limit - len(ids)))
        past, given = None, torch.tensor([ids], device=device)
        with evaluation_mode(self.model):
            while len(answer) < longest:
                output = self.model(input_ids=given, past_key_values=past, use_cache=True)
                token = int(output.logits[0, -1].argmax())
                if token in stops:
                    break
                answer.append(token)
                past = getattr(output, "past_key_values", None)
                next_one = torch.tensor([[token]], device=device)
                # A model that keeps no keys and values (Mamba) reads everything again.
                given = torch.cat([given, next_one], dim=1) if past is None else next_one
        if not answer:
            raise PisteError(
                "The model ends its answer at once: give an answer to explain, answer='…'."
            )
        return answer

    def bind(self, input: Any, how: Binding) -> Subject:
        raise PisteError(
            f"{self.name!r} has no labels, so that one answer is explained at a time: use "
            "piste.explain(model, prompt), model.answering(prompt), or load it with labels."
        )

    def answer(self, questions: Sequence[Question]) -> Floats:
        raise NotImplementedError("an answer is explained through answering()")


class AnsweringClassifier(AnswerClassifier):
    """One answer to one prompt: log-probabilities of its tokens as units of the prompt go."""

    def __init__(self, owner: LanguageModel, prompt: PromptText, known: Answer, tail: Tail) -> None:
        super().__init__(owner.model, owner.tokenizer, tail, name=owner.name)
        self.prompt, self.known = prompt, known
        self.labels, self.kind = (known.text,), "regression"

    def explained(self, explanation: Explanation) -> AnsweringClassifier:
        answer = explanation.answer
        if answer is None or (answer.text, answer.against) != (self.known.text, self.known.against):
            raise PisteError(
                "This classifier is of one answer, and the explanation is of another: give the "
                "language model, or call its answering() with that answer."
            )
        return self

    def bind(self, input: Any, how: Binding) -> Subject:
        if str(input) != str(self.prompt):
            raise PisteError(
                "This classifier is of one answer to one prompt, and another prompt was given: "
                "call answering() of the language model with it."
            )
        return self.bind_prompt(self.prompt, how)

    def resolve(self, choice: TargetChoice, logits: Floats) -> Target:
        if callable(choice):
            return super().resolve(choice, logits)
        return self.known.target(choice, len(logits))  # type: ignore[arg-type]  # checked there

    def output(self, logits: Floats, value: Any) -> Output:
        return answer_output(self.known.text, value)

    def record(
        self, subject: Subject, sequences: Sequence[Sequence1D], logits: Floats
    ) -> Answer | None:
        asked = (*sequences, subject.whole)
        return replace(
            self.known,
            types=subject.types,
            can_be_empty=subject.can_be_empty,
            sequences=tuple(tuple(int(unit) for unit in sequence) for sequence in asked),
            log_probabilities=np.array(logits),
        )

    def describe(self) -> dict[str, object]:
        return super().describe() | {"answer": self.known.text, "against": self.known.against}


def answer_output(text: str, value: Any) -> Output:
    """The explained number as the model's output, named by the answer."""
    return Output((float(value),), None, (text,), float(value))


def _text_and_spans(
    tokenizer: Any, tokens: Sequence[int]
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """An answer's text without blanks around it, and where its tokens stand in it."""
    ends = [len(tokenizer.decode(tokens[: k + 1])) for k in range(len(tokens))]
    whole = str(tokenizer.decode(tokens))
    text = whole.strip()
    first = len(whole) - len(whole.lstrip())
    places = [min(max(end - first, 0), len(text)) for end in (0, *ends)]
    return text, tuple(pairwise(places))


def _ends(model: Any, tokenizer: Any) -> set[int]:
    """Tokens that end an answer."""
    stated = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    ends = [*(stated if isinstance(stated, list) else [stated])]
    ends.append(getattr(tokenizer, "eos_token_id", None))
    return {int(end) for end in ends if end is not None}
