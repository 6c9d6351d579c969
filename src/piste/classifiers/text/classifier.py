"""Any Hugging Face sequence classifier, encoder or decoder, as a Piste classifier."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from piste.classifiers.backends.backend import Backend
from piste.classifiers.base import (
    check_logits,
    counting_calibration,
    evaluation_mode,
    input_embeddings,
    read_head,
    twin_of,
)
from piste.classifiers.fingerprint import fingerprint_model
from piste.classifiers.introspection.gradients import GradientAccess, TextGradients
from piste.classifiers.text.batching import (
    RIGHT,
    Batch,
    PaddedRunner,
    hides,
    pad_rows,
    unused_id,
)
from piste.classifiers.text.masking import MaskedSubject
from piste.classifiers.text.prefix_plan import Group, share
from piste.classifiers.text.prefix_sharing import PrefixRunner
from piste.classifiers.text.subject import TokenClassifier, TokenSubject
from piste.classifiers.text.tokenization import longest_sequence
from piste.errors import PisteError, is_out_of_memory
from piste.subject import Question, Sequence1D, Subject
from piste.types import Floats, Ints

if TYPE_CHECKING:
    from piste.target import Target


_STAND_INS = ("pad", "mask")


class TextClassifier(TokenClassifier):
    """A sequence classification model and its tokenizer. The model is never changed.

    >>> import piste
    >>> piste.load("piste:reviews").labels
    ('negative', 'positive')
    """

    tail: int = 0
    """How many tokens at the end of every question are no part of the text."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str | None = None,
        budget: int | None = None,
        runtime: str = "torch",
        tolerance: float | None = None,
        pruned: bool = True,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.config = model.config
        self.name = name or getattr(model, "name_or_path", "") or type(model).__name__
        self.budget = budget or (8192 if self.device.type == "cpu" else 65536)
        self.limit = longest_sequence(model, tokenizer)
        self.labels, self.kind = read_head(self.config)
        self._accepted = _accepted_inputs(model)
        self.reads_mask = "attention_mask" in self._accepted
        self._backend = Backend(model, runtime, tolerance, pruned)
        self._prefixes: PrefixRunner | None = None
        self._bare_frame: bool | None = None
        # The model's own pad id counts, not the tokenizer's: decoders look for it when they pool.
        pad = getattr(self.config.get_text_config(), "pad_token_id", None)
        self._runner = PaddedRunner(
            self._forward,
            pad=pad if isinstance(pad, int) and pad >= 0 else None,
            side=getattr(tokenizer, "padding_side", "right"),
            positions="position_ids" in self._accepted,
            vocabulary=_vocabulary(model),
            counting=lambda: counting_calibration(self),
        )

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @contextmanager
    def session(self) -> Iterator[None]:
        if self._backend.is_replaced and not self._backend.is_current():
            self._backend.reset()  # the model was changed since
        with evaluation_mode(self.model):
            yield

    def calibrate(self, subject: Subject) -> None:
        """Find out once, on the first input, which padding this model supports."""
        if isinstance(subject, MaskedSubject):
            subject = subject.plain
        assert isinstance(subject, TokenSubject)
        if self._runner.layout is None:
            probes = probe_questions(subject)
            if len({probe.length for probe in probes}) > 1:
                with self.session(), counting_calibration(self):
                    self._runner.settle(probes)
        if not self._backend.is_current():
            self._start_backend(subject)
        if subject.can_be_empty:
            subject.can_be_empty = self._reads_nothing(subject)

    def _reads_nothing(self, subject: TokenSubject) -> bool:
        """Whether the bare frame can be asked: some models fail on very short sequences."""
        if subject.is_pinned:  # then it is a text
            return True
        if self._bare_frame is None:
            (question, _) = subject.encode([])[0]
            try:
                with self.session(), counting_calibration(self):
                    self.answer([question])
                self._bare_frame = True
            except (RuntimeError, IndexError, ValueError):
                self._bare_frame = False
        return self._bare_frame

    def answer(self, questions: Sequence[Question]) -> Floats:
        self._check(questions)
        return self._runner.answer(questions).to(torch.float64).cpu().numpy()

    def _check(self, questions: Sequence[Question]) -> None:
        if self._backend.is_unchecked(questions):
            with counting_calibration(self):
                self._backend.check(questions, self._runner.answer)

    def share(
        self, questions: Sequence[Question], budget: int
    ) -> Iterator[tuple[list[Question], Floats]] | None:
        """Causal decoders compute beginnings that questions have in common only once."""
        self._check(questions)
        if "past_key_values" not in self._accepted:
            return None  # it takes no keys and values of earlier tokens
        module = self._backend.module
        if self._prefixes is None or self._prefixes.model is not module:
            typed = "token_type_ids" in getattr(self.tokenizer, "model_input_names", ())
            self._prefixes = (
                None if module is None else PrefixRunner(module, types=typed, tail=self.tail)
            )
        runner = self._prefixes
        if runner is None or runner.reason or any(map(_is_special, questions)):
            return None
        rows = [question.payload[0] for question in questions]
        if self._backend.is_replaced and any(row[-1] == runner.pad for row in rows):
            return None  # a pruned copy reads the last token, the model the last that is no padding
        groups = share(rows, budget, pad=runner.pad, tail=self.tail)
        if not any(group.paths.size for group in groups):
            return None
        with counting_calibration(self) if runner.is_untried(rows) else nullcontext():
            usable = runner.usable(rows)
        if not usable:
            return None
        return _continued(runner, groups, questions, rows)

    def _start_backend(self, subject: TokenSubject) -> None:
        """Let something quicker than the model itself answer, if the answers stay the same."""
        probes = probe_questions(subject)
        if self._runner.layout is None or not probes:
            return
        example = self._inputs(pad_rows(probes, self._runner.layout, self._runner.pad))
        with self.session(), counting_calibration(self):
            self._backend.begin(mixed_questions(subject), self._runner.answer, example)
            if not self._backend.receives_padding and self._runner.pad is None:
                self._runner.layout = None  # it can't be told what padding is: try anew
                self._runner.settle(probes)
            self._backend.check(probes, self._runner.answer)

    def gradient_access(self, subject: Subject, target: Target) -> GradientAccess:
        if not subject.fits:
            raise PisteError(
                f"A method that looks inside needs the text in one piece, and this one is longer "
                f"than the {self.limit} tokens the model reads: choose long='truncate'."
            )
        assert isinstance(subject, (TokenSubject, MaskedSubject))
        twin: Any = twin_of(self.model, own_config=True)
        inputs = self.tensors(subject)
        if self._runner.pad is None:  # or a decoder would refuse a batch
            ids = inputs["input_ids"].cpu().numpy()
            twin.config.get_text_config().pad_token_id = unused_id(list(ids))
        options = {"use_cache": False} if "use_cache" in self._accepted else {}
        tokens = {kind: getattr(self.tokenizer, f"{kind}_token_id", None) for kind in _STAND_INS}
        replacements = {kind: int(token) for kind, token in tokens.items() if token is not None}
        return TextGradients(
            twin, inputs, options, subject.token_units, len(subject), target, replacements
        )

    def tensors(self, subject: Subject) -> dict[str, torch.Tensor]:
        ((question, _),) = subject.encode(subject.whole)
        arrays = self._inputs(pad_rows([question], RIGHT, self._runner.pad))  # no row is padded
        return {name: torch.from_numpy(array).to(self.device) for name, array in arrays.items()}

    def fingerprint(self) -> str:
        versions = {name: version(name) for name in ("torch", "transformers")}
        how = {"runtime": self._backend.name, "device": self.device.type, **versions}
        return fingerprint_model(self.model, how)

    def describe(self) -> dict[str, object]:
        layout = self._runner.layout
        return {
            "name": self.name,
            "architecture": type(self.model).__name__,
            "dtype": str(next(self.model.parameters()).dtype).removeprefix("torch."),
            "device": str(self.device),
            "batching": layout.name if layout else "unknown",
            "runtime": self._backend.name,
            **self._backend.found(),
        }

    def _inputs(self, batch: Batch) -> dict[str, Ints]:
        """What the model's forward takes of a batch, by its own names."""
        inputs = {"input_ids": batch.ids, "attention_mask": batch.mask}
        if "token_type_ids" in getattr(self.tokenizer, "model_input_names", ()):
            inputs["token_type_ids"] = batch.types
        if batch.positions is not None:
            inputs["position_ids"] = batch.positions
        return {name: array for name, array in inputs.items() if name in self._accepted}

    def _forward(self, batch: Batch) -> torch.Tensor:
        # A model with a pad token of its own, or a single row, needs to be told nothing.
        pad = batch.pad if self._runner.pad is None and len(batch.ids) > 1 else None
        try:
            logits = self._backend.run(self._inputs(batch), pad, own=batch.hiding)
        except IndexError as problem:
            raise PisteError(
                f"The model failed on a sequence of {batch.ids.shape[1]} tokens ({problem}): is "
                "it longer than the model reads, or does the tokenizer belong to another model?"
            ) from problem
        return check_logits(logits, len(batch.ids), self.model)


def _continued(
    runner: PrefixRunner,
    groups: Sequence[Group],
    questions: Sequence[Question],
    rows: Sequence[Ints],
) -> Iterator[tuple[list[Question], Floats]]:
    """Run groups in their order; one that does not fit into memory in halves."""
    waiting = list(groups[::-1])
    while waiting:
        group = waiting.pop()
        try:
            logits = runner.answer(group, rows)
        except (MemoryError, RuntimeError) as problem:
            if not is_out_of_memory(problem) or len(group.rows) == 1:
                raise
            waiting += group.halves()[::-1]
            continue
        batch = [questions[number] for number in group.rows.tolist()]
        yield batch, logits.to(torch.float64).cpu().numpy()


def _is_special(question: Question) -> bool:
    """Whether there is more to a question than its ids: token types, hidden tokens."""
    return hides(question) or bool(question.payload[1].any())


def _vocabulary(model: Any) -> int | None:
    """How many token ids the model knows."""
    return getattr(input_embeddings(model), "num_embeddings", None)


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
    return _askable(subject, sequences)


def mixed_questions(subject: TokenSubject) -> list[Question]:
    """Short ones, of units in any order, to see whether two ways to compute are the same."""
    rng = np.random.default_rng(0)
    return _askable(subject, [rng.integers(0, len(subject), size) for size in (2, 3, 4, 5, 7)])


def _askable(subject: TokenSubject, sequences: Sequence[Sequence1D]) -> list[Question]:
    probes = {}
    for sequence in sequences:
        if subject.limit is None or sum(subject.units[k].tokens for k in sequence) <= subject.limit:
            (question, _) = subject.encode(sequence)[0]
            probes[question.key] = question
    return list(probes.values())
