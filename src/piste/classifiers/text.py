"""Any Hugging Face sequence classifier, encoder or decoder, as a Piste classifier."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from piste.classifiers.base import OutputKind
from piste.classifiers.limits import longest_sequence
from piste.classifiers.padding import Batch, PaddedRunner
from piste.classifiers.tokenized import TokenClassifier, TokenSubject
from piste.errors import PisteError, shorten
from piste.subject import Question

_KINDS: dict[str | None, OutputKind] = {
    "regression": "regression",
    "multi_label_classification": "labels",
    "single_label_classification": "classes",
}


class TextClassifier(TokenClassifier):
    """A sequence classification model and its tokenizer. The model is never changed.

    >>> import piste
    >>> piste.load("piste:reviews").labels
    ('negative', 'positive')
    """

    def __init__(
        self, model: Any, tokenizer: Any, *, name: str | None = None, budget: int = 8192
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.config = model.config
        self._own_config = copy.deepcopy(model.config)
        self.name = name or getattr(model, "name_or_path", "") or type(model).__name__
        self.budget = budget
        self.limit = longest_sequence(model, tokenizer)
        count = int(self.config.num_labels)
        named = dict(getattr(self.config, "id2label", None) or {})
        self.labels = tuple(str(named.get(k, named.get(str(k), k))) for k in range(count))
        stated = getattr(self.config, "problem_type", None)
        self.kind = _KINDS.get(stated, "regression" if count == 1 else "classes")
        self._accepted = set(inspect.signature(model.forward).parameters)
        # The model's own pad id counts, not the tokenizer's: decoders look for it when they pool.
        pad = getattr(self.config.get_text_config(), "pad_token_id", None)
        self._runner = PaddedRunner(
            self._forward,
            pad=pad if isinstance(pad, int) and pad >= 0 else None,
            side=getattr(tokenizer, "padding_side", "right"),
            positions="position_ids" in self._accepted,
        )

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @contextmanager
    def session(self) -> Iterator[None]:
        """Evaluation mode without gradients; every module's own mode comes back afterwards."""
        training = [module for module in self.model.modules() if module.training]
        try:
            for module in training:
                module.training = False
            with torch.inference_mode():
                yield
        finally:
            for module in training:
                module.training = True

    def prepare(self, subject: TokenSubject) -> None:
        """Learn once how this model bears padding, on the first input that comes along."""
        if self._runner.layout is None:
            with self.session():
                self._runner.settle(probe_questions(subject))

    def answer(self, questions: Sequence[Question]) -> NDArray[np.float64]:
        logits = self._runner.answer(questions)
        return logits.to(torch.float64).cpu().numpy()

    def describe(self) -> dict[str, object]:
        layout = self._runner.layout
        return {
            "name": self.name,
            "architecture": type(self.model).__name__,
            "dtype": str(next(self.model.parameters()).dtype).removeprefix("torch."),
            "device": str(self.device),
            "batching": layout.name if layout else "unknown",
        }

    def _forward(self, batch: Batch) -> torch.Tensor:
        inputs = {"input_ids": batch.ids, "attention_mask": batch.mask}
        if "token_type_ids" in getattr(self.tokenizer, "model_input_names", ()):
            inputs["token_type_ids"] = batch.types
        if batch.positions is not None:
            inputs["position_ids"] = batch.positions
        accepted: dict[str, Any] = {
            name: torch.from_numpy(array).to(self.device)
            for name, array in inputs.items()
            if name in self._accepted
        }
        if "use_cache" in self._accepted:
            accepted["use_cache"] = False
        try:
            output = self._with_pad(batch.pad)(**accepted)
        except IndexError as problem:
            raise PisteError(
                f"The model failed on a sequence of {batch.ids.shape[1]} tokens ({problem}): is "
                "it longer than the model reads, or does the tokenizer belong to another model?"
            ) from problem
        return _check_logits(getattr(output, "logits", None), len(batch.ids), self.model)

    def _with_pad(self, pad: int) -> Any:
        """The model, told what padding is if it has no pad token of its own.

        A shallow copy shares all weights but has a config of its own, so the user's stays as is.
        """
        if self._runner.pad is not None:
            return self.model
        twin = copy.copy(self.model)
        twin.config = self._own_config
        twin.config.get_text_config().pad_token_id = pad
        return twin


def probe_questions(subject: TokenSubject) -> list[Question]:
    """A few short questions of different length, to try ways of padding on."""
    few = list(range(min(len(subject), 24)))
    sequences = [few, few[: (len(few) + 1) // 2], [0], [0, 0], [0, 0, 0, 0, 0]]
    probes = {}
    for sequence in sequences:
        if sum(subject.units[unit].tokens for unit in sequence) <= (subject.limit or 10**9):
            (question, _) = subject.encode(sequence)[0]
            probes[question.key] = question
    return list(probes.values())


def _check_logits(logits: Any, rows: int, model: Any) -> torch.Tensor:
    if not isinstance(logits, torch.Tensor) or logits.ndim != 2 or len(logits) != rows:
        shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else shorten(logits)
        raise PisteError(
            f"A sequence classifier with one row of logits per text is wanted, but "
            f"{type(model).__name__} gave {shape} for {rows} texts: load the model with "
            "AutoModelForSequenceClassification."
        )
    return logits
