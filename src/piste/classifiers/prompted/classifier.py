"""A causal language model with a prompt: a classifier of labels, or of what it would answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from piste.classifiers.base import check_text, counting_calibration
from piste.classifiers.fingerprint import fingerprint_model
from piste.classifiers.prompted.labels import LabelChoice, LabelTokens, read_labels
from piste.classifiers.prompted.prompt import ChatTemplate, Prompt, continuation
from piste.classifiers.prompted.reader import AnswerReader, log_probabilities
from piste.classifiers.prompted.tail import Tail
from piste.classifiers.text.classifier import TextClassifier
from piste.classifiers.text.masking import MaskedSubject
from piste.classifiers.text.subject import TokenSubject
from piste.classifiers.text.tokenization import read_tokens
from piste.classifiers.text.units import Token
from piste.errors import PisteError, is_out_of_memory, shorten
from piste.prompt_text import PromptText
from piste.subject import PROMPT_UNITS, Binding, Subject, Unit, text_units

_TOLERANCE = 1e-3
"""How far log-probabilities that are read together may be from those read one by one."""


class AnswerClassifier(TextClassifier):
    """Log-probabilities of fixed answers to a prompt, of which units are removed.

    What stands around the units, the rest of the prompt and the tail of the answers, is part of
    every question and never changed; the instruction before the units is computed once and
    shared where the model allows it.
    """

    unit_kinds = PROMPT_UNITS

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        tail: Tail,
        *,
        name: str | None = None,
        combine: Any = None,
    ) -> None:
        reader = AnswerReader(model, tail, combine)
        super().__init__(
            reader,
            tokenizer,
            name=name or getattr(model, "name_or_path", "") or type(model).__name__,
            pruned=False,
        )
        self.language_model = model
        self.tail = len(tail)
        self._tail = tail
        self._tail_is_checked = False

    def calibrate(self, subject: Subject) -> None:
        plain = subject.plain if isinstance(subject, MaskedSubject) else subject
        assert isinstance(plain, TokenSubject)
        if not self._tail_is_checked:
            with self.session(), counting_calibration(self):
                self._check_tail(plain)
            self._tail_is_checked = True
        super().calibrate(subject)

    def _check_tail(self, subject: TokenSubject) -> None:
        """Answers that are read together must be what they are one by one."""
        if self._tail.is_chain:
            return
        unit = min(range(len(subject)), key=lambda one: subject.units[one].tokens)
        ((question, _),) = subject.encode([unit])
        row = question.payload[0]
        prompt = row[: len(row) - self.tail]
        answers = [[token for _, token in answer] for answer in self._tail.reads]
        reader: AnswerReader = self.model
        place = self.device
        ids = torch.from_numpy(row[None]).to(place)
        refusal = PisteError(
            f"{type(self.language_model).__name__} can't read several answers behind one prompt: "
            "choose labels that differ in their first token and are one token each, or explain "
            "one answer without 'against'."
        )
        try:
            together = reader.token_log_probabilities(ids, torch.ones_like(ids))[0]
        except (RuntimeError, ValueError, IndexError, TypeError) as problem:
            if isinstance(problem, RuntimeError) and is_out_of_memory(problem):
                raise
            raise refusal from problem  # Mamba takes no mask of queries and keys
        alone = []
        for answer in answers:
            ids = torch.tensor([[*prompt.tolist(), *answer]]).to(place)
            places = torch.arange(len(prompt) - 1, ids.shape[1] - 1, device=place)
            alone.append(log_probabilities(self._logits(ids), places, ids[0, len(prompt) :])[0])
        if float((together - torch.cat(alone)).abs().max()) > _TOLERANCE:
            raise refusal

    def _logits(self, ids: torch.Tensor) -> torch.Tensor:
        return self.model.twin(input_ids=ids, use_cache=False).logits

    def fingerprint(self) -> str:
        versions = {name: version(name) for name in ("torch", "transformers")}
        how = {"device": self.device.type, "tail": str(self._tail), **self.identity(), **versions}
        return fingerprint_model(self.language_model, how)

    def identity(self) -> dict[str, str]:
        """What else its answers depend on, beside model and tail."""
        return {}

    def describe(self) -> dict[str, object]:
        return super().describe() | {"architecture": type(self.language_model).__name__}

    def bind_prompt(self, prompt: PromptText, how: Binding, own: str | None = None) -> Subject:
        """Bind a prompt; ``own`` is the user's text, if that is its only removable part."""
        tokens = prompt_tokens(self.tokenizer, prompt)
        notes: dict[str, Any] = {"tokens": len(tokens) + self.tail, "long": "fits"}
        if self.limit is not None and notes["tokens"] > self.limit:
            notes["long"], notes["limit"] = how.long, self.limit
            if how.long == "truncate":
                over = notes["tokens"] - self.limit
                tokens = _shortened(tokens, over, self.limit)
                notes["truncated_tokens"], notes["truncated_side"] = over, "right"
        if all(token.fixed for token in tokens):
            raise PisteError(
                "The prompt has no part that may be removed, or none with a word the tokenizer "
                "knows: give a text, or pin fewer parts."
            )
        tokens += [Token(int(token), 0, 0, 0, 0, None, True) for token in self._tail.tokens]
        text: str = prompt
        if own is not None:
            text, first = own, prompt.removable[0].start
            tokens = [_moved(token, first) for token in tokens]
        units = text_units(how.units)
        if units == "parts":
            units = [(part.start, part.end) for part in prompt.removable]
            units = [(0, len(own))] if own is not None else units
        subject = TokenSubject(self, text, (text,), tokens, units, notes)
        if own is None:
            subject.units = tuple(replace(unit, part=_part(prompt, unit)) for unit in subject.units)
        if subject.limit is not None and subject.limit < 1:
            raise PisteError(
                f"The model reads at most {self.limit} tokens, and what is never removed fills "
                "them already: shorten the prompt or the answer."
            )
        if how.removal == "delete":
            return subject
        return MaskedSubject(subject, how.removal, self._replacement(how.removal))


class LabelNumbers:
    """Label log-probabilities from those of their tokens, less ``prior`` if there is one."""

    def __init__(self, labels: LabelTokens) -> None:
        self.labels = labels
        self.prior: torch.Tensor | None = None

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        sizes = [len(wording) for _, wording in self.labels.wordings]
        sums = [one.sum(dim=-1) for one in tokens.split(sizes, dim=-1)]  # type: ignore[no-untyped-call]
        numbers = self.labels.combine(torch.stack(sums, dim=-1))
        return numbers if self.prior is None else numbers - self.prior.to(numbers)


class PromptedClassifier(AnswerClassifier):
    """A language model, a prompt, and labels: the answer is the labels' log-probabilities.

    ``content_free`` is a text without content, such as "N/A": what the model says of it is
    subtracted (contextual calibration), so that labels it prefers anyway have no advantage.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        prompt: Prompt,
        labels: LabelChoice | None,
        *,
        content_free: str | None = None,
        name: str | None = None,
    ) -> None:
        if not prompt.fields:
            raise PisteError(
                "prompt: expected a place for the input, such as {text}, got a prompt without one."
            )
        named = read_labels(labels)
        chat = chat_template(tokenizer)
        tokens = _label_tokens(tokenizer, prompt, named, chat)
        wordings = LabelTokens.of(tuple(named), tokens)
        tail = Tail.of([wording for _, wording in wordings.wordings])
        self._numbers = LabelNumbers(wordings)
        super().__init__(model, tokenizer, tail, name=name, combine=self._numbers)
        self.prompt = prompt
        self.labels, self.kind = wordings.names, "classes"
        self.content_free = content_free
        self.wordings = wordings
        self._chat = chat

    def bind(self, input: Any, how: Binding) -> Subject:
        if isinstance(input, PromptText):
            return self.bind_prompt(input, how)
        if isinstance(input, str):
            check_text(input)
        prompt = self.prompt.render(input, self._chat)
        alone = isinstance(input, str) and len(prompt.removable) == 1
        return self.bind_prompt(prompt, how, own=input if alone else None)

    def calibrate(self, subject: Subject) -> None:
        super().calibrate(subject)
        if self.content_free is not None and self._numbers.prior is None:
            values = dict.fromkeys(self.prompt.fields, self.content_free)
            bound = self.bind_prompt(self.prompt.render(values, self._chat), Binding())
            ((question, _),) = bound.encode(bound.whole)
            with self.session(), counting_calibration(self):
                self._numbers.prior = torch.from_numpy(self.answer([question])[0])

    def identity(self) -> dict[str, str]:
        return {"labels": str(self.wordings), "content_free": str(self.content_free)}

    def describe(self) -> dict[str, object]:
        return super().describe() | {"prompt": self.prompt.shown}


def chat_template(tokenizer: Any) -> ChatTemplate | None:
    """The tokenizer's own way to write messages, up to where the answer begins."""
    if not getattr(tokenizer, "chat_template", None):
        return None

    def write(messages: list[dict[str, str]]) -> str:
        try:
            return str(
                tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            )
        except Exception as problem:  # whatever a template of others raises
            raise PisteError(f"The chat template refuses these messages: {problem}.") from problem

    return write


def prompt_tokens(tokenizer: Any, prompt: PromptText) -> list[Token]:
    """Tokens of a whole prompt; those that lie in no removable part are fixed."""
    tokens = read_tokens(tokenizer, (str(prompt),), special=not prompt.is_chat)
    end = None if prompt.is_chat else getattr(tokenizer, "eos_token_id", None)
    while tokens and tokens[-1].fixed and tokens[-1].id == end:
        tokens.pop()  # what the tokenizer adds behind a text would end the answer before it begins
    inside = np.zeros(len(prompt) + 1, dtype=bool)
    for part in prompt.removable:
        inside[part.start : part.end] = True
    return [
        token
        if token.fixed or inside[token.start : token.end].any()
        else replace(token, start=0, end=0, fixed=True)
        for token in tokens
    ]


def answer_tokens(tokenizer: Any, prompt: PromptText, answer: str) -> list[int]:
    """Tokens of an answer as it continues a prompt.

    They are read together with the end of the prompt that is never removed, so that they are those
    the model would see; the tokens of that end stay what they are.
    """
    end = prompt[max((part.end for part in prompt.parts), default=0) :]
    written = continuation(prompt, answer)
    options = {"add_special_tokens": False, "verbose": False}
    before = list(tokenizer(end, **options)["input_ids"]) if end else []
    whole = list(tokenizer(end + written, **options)["input_ids"])
    if before and whole[: len(before)] == before and len(whole) > len(before):
        return _known(tokenizer, whole[len(before) :], answer)
    alone = list(tokenizer(written, **options)["input_ids"])
    if not alone:
        raise PisteError(f"Expected a label or answer the tokenizer knows, got {answer!r}.")
    return _known(tokenizer, alone, answer)


def _known(tokenizer: Any, tokens: list[int], answer: str) -> list[int]:
    """Tokens that stand for this answer, not for whatever the tokenizer does not know."""
    unknown = getattr(tokenizer, "unk_token_id", None)
    if unknown is not None and unknown in tokens and unknown != tokenizer.eos_token_id:
        raise PisteError(
            f"Expected a label or answer the tokenizer knows, got {shorten(answer)}, which has "
            "unknown tokens: choose another wording."
        )
    return tokens


def _label_tokens(
    tokenizer: Any,
    prompt: Prompt,
    labels: Mapping[str, Sequence[str]],
    chat: ChatTemplate | None,
) -> list[list[list[int]]]:
    rendered = prompt.render(dict.fromkeys(prompt.fields, "x"), chat)
    return [
        [answer_tokens(tokenizer, rendered, wording) for wording in wordings]
        for wordings in labels.values()
    ]


def _shortened(tokens: list[Token], over: int, limit: int) -> list[Token]:
    """Without the last so many tokens that may be removed."""
    free = [place for place, token in enumerate(tokens) if not token.fixed]
    if over >= len(free):
        raise PisteError(
            f"The model reads at most {limit} tokens, and what is never removed fills them "
            "already: shorten the prompt or the answer."
        )
    dropped = set(free[len(free) - over :])
    return [token for place, token in enumerate(tokens) if place not in dropped]


def _moved(token: Token, first: int) -> Token:
    if token.fixed:
        return token
    return replace(token, start=token.start - first, end=token.end - first)


def _part(prompt: PromptText, unit: Unit) -> str | None:
    inside = [part.name for part in prompt.parts if part.start <= unit.start < part.end]
    return inside[0] if inside else None
