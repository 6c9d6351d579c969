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
        self._accepted = _accepted_inputs(model)
        self._bare_frame: bool | None = None
        # The model's own pad id counts, not the tokenizer's: decoders look for it when they pool.
        pad = getattr(self.config.get_text_config(), "pad_token_id", None)
        self._runner = PaddedRunner(
            self._forward,
            pad=pad if isinstance(pad, int) and pad >= 0 else None,
            side=getattr(tokenizer, "padding_side", "right"),
            positions="position_ids" in self._accepted,
            vocabulary=_vocabulary(model),
        )

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @contextmanager
    def session(self) -> Iterator[None]:
        """Evaluation mode without gradients; every module comes back as it was.

        Not only its mode: some models exchange their own parts when they meet a short sequence,
        and draw random weights for that.
        """
        before = [(module, *_state(module)) for module in self.model.modules()]
        try:
            for module, *_ in before:
                module.training = False
            with torch.inference_mode(), torch.random.fork_rng(devices=[]):
                yield
        finally:
            for module, parts, plain in before:
                if dict(module._modules) != parts:
                    module._modules.clear()
                    module._modules.update(parts)
                module.__dict__.update(plain)

    def prepare(self, subject: TokenSubject) -> None:
        """Learn once how this model bears padding, on the first input that comes along."""
        if self._runner.layout is None:
            probes = probe_questions(subject)
            if len({probe.length for probe in probes}) > 1:
                with self.session():
                    self._runner.settle(probes)
        if subject.can_be_empty:
            subject.can_be_empty = self._reads_nothing(subject)

    def _reads_nothing(self, subject: TokenSubject) -> bool:
        """Whether the bare frame can be asked: some models fail on very short sequences."""
        if self._bare_frame is None:
            (question, _) = subject.encode([])[0]
            try:
                with self.session():
                    self.answer([question])
                self._bare_frame = True
            except (RuntimeError, IndexError, ValueError):
                self._bare_frame = False
        return self._bare_frame

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
            output = self._with_pad(batch.pad, len(batch.ids))(**accepted)
        except IndexError as problem:
            raise PisteError(
                f"The model failed on a sequence of {batch.ids.shape[1]} tokens ({problem}): is "
                "it longer than the model reads, or does the tokenizer belong to another model?"
            ) from problem
        return _check_logits(getattr(output, "logits", None), len(batch.ids), self.model)

    def _with_pad(self, pad: int, rows: int) -> Any:
        """The model, told what padding is if it has no pad token of its own.

        A shallow copy shares all weights but has a config of its own, so the user's stays as is.
        """
        if self._runner.pad is not None or rows == 1:
            return self.model
        twin = copy.copy(self.model)
        twin.config = self._own_config
        twin.config.get_text_config().pad_token_id = pad
        return twin


def _vocabulary(model: Any) -> int | None:
    """How many token ids the model knows."""
    embeddings = getattr(model, "get_input_embeddings", lambda: None)()
    return getattr(embeddings, "num_embeddings", None)


def _accepted_inputs(model: Any) -> set[str]:
    """Names the model's forward takes; a wrapper that only passes on takes the usual ones."""
    names = set(inspect.signature(model.forward).parameters)
    if "input_ids" in names:
        return names
    return names | {"input_ids", "attention_mask", "token_type_ids"}


def probe_questions(subject: TokenSubject) -> list[Question]:
    """A few short questions of different length, to try ways of padding on."""
    few = list(range(min(len(subject), 24)))
    shortest = min(few, key=lambda unit: subject.units[unit].tokens)
    sequences = [few, few[: (len(few) + 1) // 2], *([shortest] * times for times in (1, 2, 5))]
    probes = {}
    for sequence in sequences:
        if subject.limit is None or sum(subject.units[k].tokens for k in sequence) <= subject.limit:
            (question, _) = subject.encode(sequence)[0]
            probes[question.key] = question
    return list(probes.values())


def _state(module: torch.nn.Module) -> tuple[dict[str, Any], dict[str, Any]]:
    """A module's parts and its plain attributes (training mode, attention type …)."""
    plain = (bool, int, float, str, type(None))
    attributes = {name: value for name, value in vars(module).items() if isinstance(value, plain)}
    return dict(module._modules), attributes


def _check_logits(logits: Any, rows: int, model: Any) -> torch.Tensor:
    if not isinstance(logits, torch.Tensor) or logits.ndim != 2 or len(logits) != rows:
        shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else shorten(logits)
        raise PisteError(
            f"A sequence classifier with one row of logits per text is wanted, but "
            f"{type(model).__name__} gave {shape} for {rows} texts: load the model with "
            "AutoModelForSequenceClassification."
        )
    return logits
