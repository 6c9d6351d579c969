"""The models that a server holds, and how they are asked: within limits, one at a time."""

from __future__ import annotations

import base64
import binascii
import io
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from hashlib import sha256
from importlib.util import find_spec
from os.path import abspath
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from PIL import Image

from piste.classifiers import Classifier, load
from piste.classifiers.base import check_text
from piste.classifiers.prompted.generating import LanguageModel
from piste.classifiers.prompted.prompt import Prompt
from piste.classifiers.served.classifier import ServedClassifier
from piste.classifiers.text.word_models import WordModel
from piste.comparison import Comparison, compare_steps
from piste.errors import PisteError, shorten
from piste.explanation import Explanation
from piste.image import ImageInput
from piste.methods import METHODS
from piste.phrases import check_phrases
from piste.serve import schemas
from piste.serve.jobs import Job, Jobs
from piste.serve.priority_lock import PriorityLock
from piste.serve.request_limits import Limits, MissingError, TooLargeError
from piste.subject import PROMPT_UNITS, UNIT_KINDS, check_levels, levels_of
from piste.target import resolve
from piste.verification import Check, check
from piste.zoo import examples

PAPER = "slalom[form=paper]"


def _all() -> Mapping[str, str]:
    found = {}
    for name, method in METHODS.items():
        found[name] = method.about
        if name == "slalom":
            found[PAPER] = "SLALOM as published: value and importance of units that compete"
    return found


METHOD_DESCRIPTIONS: Mapping[str, str] = _all()
"""All methods with what they are; SLALOM also in the form of the paper."""


def methods_for(classifier: Classifier) -> list[str]:
    """Methods that may be asked for: none that reads files, none whose library is missing."""
    known = {name: METHODS[name.partition("[")[0]] for name in METHOD_DESCRIPTIONS}
    return [
        name
        for name, method in known.items()
        if method.needs != "a table"
        and (name != "centre" or classifier.reads == "images")
        and (method.needs == "answers" or not isinstance(classifier, LanguageModel))
        and (not method.library or find_spec(method.library) is not None)
    ]


IMAGE_UNITS = ("patches", "grid:4", "grid:7", "grid:10", "superpixels:50")
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""No others: some of Pillow's readers start programs."""
_GRID = re.compile(r"patches|(grid|superpixels):[1-9][0-9]{0,2}")


class ModelHost:
    """Classifiers by the names that clients see, the limits on requests, and the jobs."""

    def __init__(self, classifiers: Mapping[str, Classifier], limits: Limits) -> None:
        if not classifiers:
            raise PisteError("There is no model to serve: give at least one.")
        self.classifiers, self.limits = dict(classifiers), limits
        self.jobs: Jobs[Comparison] = Jobs(limits)
        self._lock = PriorityLock(limits.questions)
        self._spans = PriorityLock(limits.spans)
        self._decoding = threading.Lock()

    @staticmethod
    def load(
        models: Sequence[Any],
        limits: Limits,
        runtime: Any = "torch",
        loading: Mapping[str, Any] = MappingProxyType({}),
        tell: Callable[[str], None] = lambda stage: None,
    ) -> ModelHost:
        """Load models by name, folder or hub id; clients see no more of a folder than its name.

        ``loading`` holds further options of :func:`piste.load`, such as prompt and labels.
        """
        found: dict[str, Classifier] = {}
        for model in models:
            if isinstance(model, Classifier):
                classifier = copy(model)  # the user's own keeps its name
                classifier.name = shown = _public_name(model.name)
            else:
                shown = _public_name(str(model))
                tell(f"loading {shown}")
                classifier = load(model, name=shown, runtime=runtime, **loading)
            if isinstance(classifier, WordModel):
                raise PisteError(
                    f"{shown!r} answers about words of a text, which can't be chosen on the page: "
                    "use piste explain with --target."
                )
            if shown in found:
                raise PisteError(f"Two models are called {shown!r}: rename one of the folders.")
            found[shown] = classifier
        return ModelHost(found, limits)

    def about(self) -> list[schemas.ModelInfo]:
        """What can be asked of each model."""
        return [
            schemas.ModelInfo(
                name=name,
                reads=one.reads,
                labels=list(one.labels),
                units=list(_unit_choices(one)),
                methods=methods_for(one),
                examples=list(examples(name)),
                is_remote=isinstance(one, ServedClassifier),
                **_about_prompt(one),
            )
            for name, one in self.classifiers.items()
        ]

    def explain(self, request: schemas.ExplanationRequest) -> Job[Comparison]:
        """Put a request into the queue, or refuse it at once."""
        name = next(iter(self.classifiers)) if request.model is None else request.model
        if name not in self.classifiers:
            known = ", ".join(self.classifiers)
            raise MissingError(f"There is no model {name[:60]!r} here: choose one of {known}.")
        classifier = self.classifiers[name]
        self._check(request, classifier)
        sent = self._input(request, classifier)
        key = sha256(json.dumps([name, request.model_dump()]).encode("utf-8", "replace"))
        wanted = request.model_copy(update={"image": None})  # it is decoded: once is enough
        return self.jobs.add(key.hexdigest(), name, self._work(classifier, sent, wanted))

    def remove(self, job: str, removed: Sequence[int]) -> Check:
        """Ask the model about the input of a finished explanation without some units."""
        comparison, asked = self.jobs.finished(job), self.jobs.get(job)
        classifier = asked.classifier or self.classifiers[asked.model]
        with self._lock.foreground():
            [one] = check(
                classifier, list(comparison.explanations.values()), [removed], progress=False
            )
        with asked.lock:  # what was asked is known to a saved page, too
            known = () if asked.result is None else asked.result.checks
            if one not in known and len(known) < self.limits.checks:
                asked.result = replace(comparison, checks=(*known, one))
        return one

    def explain_span(self, job: str, start: int, end: int) -> tuple[Explanation, Explanation]:
        """The explanation of an answer, and that of a span of it: no model runs."""
        e = next(iter(self.jobs.finished(job).explanations.values()))
        with self._spans.foreground():
            return e, e.of((start, end))

    def _check(self, request: schemas.ExplanationRequest, classifier: Classifier) -> None:
        limits, known = self.limits, methods_for(classifier)
        for method in request.methods:
            if method not in known:
                raise PisteError(f"There is no method {method!r} here: choose {', '.join(known)}.")
        if len(set(request.methods)) != len(request.methods):
            raise PisteError("A method was named twice: name each once.")
        if len(request.methods) > limits.methods:
            raise TooLargeError(f"At most {limits.methods} methods are compared here at a time.")
        if request.samples is not None and request.samples > limits.samples:
            raise TooLargeError(f"At most {limits.samples:,} questions per method are asked here.")
        values = [*(request.fields or {}).values()]
        documents = [
            one for value in values for one in ([value] if isinstance(value, str) else value)
        ]
        for size in (len(request.text or ""), len(request.pair or ""), sum(map(len, documents))):
            if size > limits.characters:
                raise TooLargeError(
                    f"Expected at most {limits.characters:,} characters of text, got "
                    f"{size:,}: shorten it."
                )
        self._check_answer(request, classifier)
        if request.units is not None:
            if classifier.reads != "images":
                prompted = isinstance(classifier, LanguageModel) or _prompt_of(classifier)
                kinds = PROMPT_UNITS if prompted else UNIT_KINDS
                check_levels(levels_of(request.units), kinds)
            elif not isinstance(request.units, str) or not _GRID.fullmatch(request.units):
                raise PisteError(
                    "units: expected one of patches, grid:K, superpixels:K, got "
                    f"{shorten(request.units)}."
                )
        check_phrases(request.phrases, request.units, classifier.reads)
        if not isinstance(classifier, LanguageModel):
            classifier.check_choices(None, request.long, request.removal)
        if request.target is not None and classifier.labels:
            resolve(
                request.target, np.zeros(len(classifier.labels)), classifier.labels, classifier.kind
            )

    def _check_answer(self, request: schemas.ExplanationRequest, classifier: Classifier) -> None:
        """What is for language models alone."""
        free = isinstance(classifier, LanguageModel)
        for name in ("answer", "against"):
            text = getattr(request, name)
            if text is None:
                continue
            if not free:
                raise PisteError(
                    f"{name}: {classifier.name!r} is no language model that answers freely: choose "
                    "a class by target."
                )
            if len(text) > self.limits.answer_characters:
                raise TooLargeError(
                    f"{name}: expected at most {self.limits.answer_characters:,} characters, got "
                    f"{len(text):,}: shorten it."
                )
            check_text(text)
        if free and request.target is not None:
            raise PisteError(
                f"target: {classifier.name!r} has no classes: explain its answer, then spans of it."
            )
        if request.chat and not _about_prompt(classifier).get("chat"):
            raise PisteError(f"chat: {classifier.name!r} takes no messages: send the text alone.")

    def _input(self, request: schemas.ExplanationRequest, classifier: Classifier) -> Any:
        if request.fields is not None:
            return self._field_values(request, classifier)
        if classifier.reads == "images":
            if request.image is None or request.text is not None or request.pair is not None:
                raise PisteError(f"{classifier.name!r} sees images: send an image, and no text.")
            return self._checked(request.image)
        if request.text is None or request.image is not None:
            raise PisteError(f"{classifier.name!r} reads texts: send a text, and no image.")
        given = request.text if request.pair is None else (request.text, request.pair)
        check_text(given)
        if isinstance(given, str):
            return [{"role": "user", "content": given}] if request.chat else given
        if _prompt_of(classifier) is not None or isinstance(classifier, LanguageModel):
            raise PisteError(f"pair: {classifier.name!r} reads a prompt: send one text, or fields.")
        return given

    def _field_values(self, request: schemas.ExplanationRequest, classifier: Classifier) -> Any:
        prompt, fields = _prompt_of(classifier), request.fields or {}
        if prompt is None:
            raise PisteError(f"fields: {classifier.name!r} has no prompt with fields: send a text.")
        if request.text is not None or request.pair is not None or request.image is not None:
            raise PisteError("fields: they come instead of a text or an image: send one of them.")
        for value in fields.values():
            for text in [value] if isinstance(value, str) else value:
                check_text(text)
        prompt.turns(fields)  # refuses other fields than it has
        return fields

    def _checked(self, encoded: str) -> bytes:
        """The file of an image that can be decoded; pixels would fill memory while it waits."""
        try:
            content = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError) as problem:
            raise PisteError(
                "The image is no base64: send the bytes of its file in it."
            ) from problem
        if len(content) > self.limits.image_bytes:
            raise TooLargeError(f"An image may have {self.limits.image_bytes:,} bytes: shrink it.")
        try:
            width, height = Image.open(io.BytesIO(content), formats=_FORMATS).size  # no pixels yet
        except Image.DecompressionBombError as problem:
            raise TooLargeError("The image has too many pixels: shrink it.") from problem
        except Exception as problem:  # decoders fail in many ways, and all mean the same
            raise PisteError(
                f"The image can't be read: send a file of {', '.join(_FORMATS)}."
            ) from problem
        if width * height > self.limits.image_pixels:
            raise TooLargeError(f"An image of {width} × {height} pixels is too large: shrink it.")
        with self._decoding:  # one after the other, again for memory's sake
            ImageInput.of(content)
        return content

    def _work(
        self,
        model: Classifier,
        sent: Any,
        request: schemas.ExplanationRequest,
    ) -> Callable[[Job[Comparison]], Comparison]:
        how: dict[str, Any] = {
            "units": request.units, "long": request.long, "removal": request.removal
        }  # fmt: skip

        def work(job: Job[Comparison]) -> Comparison:
            def progress(done: int, total: int) -> None:
                job.progress(done, total)
                self._lock.yield_lock()

            with self._lock.background():
                job.begin("reading the input")
                given = ImageInput.of(sent) if isinstance(sent, bytes) else sent
                classifier = model
                if isinstance(model, LanguageModel):
                    job.begin("the answer")
                    classifier, given = model.answering(given, request.answer, request.against)
                    job.classifier = classifier
                    job.begin("reading the prompt")
                coarsest = levels_of(request.units)[0]
                size = len(classifier.subject(given, **how | {"units": coarsest}))
                if size > self.limits.units:
                    named = coarsest if isinstance(coarsest, str) else "units"
                    raise TooLargeError(
                        f"The input has {size:,} {named}, and at most "
                        f"{self.limits.units:,} are explained here: shorten it, or cut it into "
                        "larger ones."
                    )
                return compare_steps(
                    classifier, given, request.methods, skips=lambda method: True,
                    judged=len(request.methods) > 1, on_step=job.begin, progress=progress,
                    target=request.target, samples=request.samples, seed=request.seed,
                    phrases=request.phrases, **how,
                )  # fmt: skip

        return work


def _prompt_of(classifier: Classifier) -> Prompt | None:
    """The prompt of a language model, if it has one with fields."""
    prompt = getattr(classifier, "prompt", None)
    return prompt if isinstance(prompt, Prompt) and prompt.fields else None


def _unit_choices(classifier: Classifier) -> tuple[str, ...]:
    """What the page offers to cut an input into."""
    if classifier.reads == "images":
        return IMAGE_UNITS
    prompt = _prompt_of(classifier)
    several = prompt is not None and len(prompt.fields) + isinstance(classifier, LanguageModel) > 1
    coarse = "parts" if several else "paragraphs"
    kinds = PROMPT_UNITS if several else UNIT_KINDS
    if not hasattr(classifier, "tokenizer"):
        kinds = tuple(kind for kind in kinds if kind != "tokens")
    return (*kinds, f"{coarse},sentences,words")


def _about_prompt(classifier: Classifier) -> dict[str, Any]:
    """What clients are told of a language model."""
    prompt = _prompt_of(classifier)
    free = isinstance(classifier, LanguageModel)
    return {
        "is_language_model": free,
        "prompt": None if prompt is None else prompt.shown,
        "fields": [] if prompt is None else list(prompt.fields),
        "chat": isinstance(classifier, LanguageModel) and classifier.reads_messages,
    }


def _public_name(name: str) -> str:
    """What clients see of a model's name: of a folder its last part, also if it ends in a dot.

    >>> _public_name("piste:reviews"), _public_name("/secret/place/model/")
    ('piste:reviews', 'model')
    """
    path = Path(name).expanduser()
    return Path(abspath(path)).name if path.is_absolute() or path.exists() else name
