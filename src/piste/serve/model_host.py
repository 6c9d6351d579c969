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
from os.path import abspath
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from piste.classifiers import Classifier, load
from piste.classifiers.base import check_text
from piste.comparison import Comparison, compare_steps
from piste.errors import PisteError
from piste.image import ImageInput
from piste.serve import schemas
from piste.serve.available_methods import methods_for
from piste.serve.http_errors import MissingError, TooLargeError
from piste.serve.jobs import Job, Jobs
from piste.serve.priority_lock import PriorityLock
from piste.serve.request_limits import Limits
from piste.subject import TextInput
from piste.target import resolve
from piste.verification import Check, check

TEXT_UNITS = ("words", "tokens", "sentences")
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
        self._decoding = threading.Lock()

    @staticmethod
    def load(models: Sequence[Any], limits: Limits, runtime: Any = "torch") -> ModelHost:
        """Load models by name, folder or hub id; clients see no more of a folder than its name."""
        found: dict[str, Classifier] = {}
        for model in models:
            if isinstance(model, Classifier):
                classifier = copy(model)  # the user's own keeps its name
                classifier.name = shown = _public_name(model.name)
            else:
                shown = _public_name(str(model))
                classifier = load(model, name=shown, runtime=runtime)
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
                units=list(IMAGE_UNITS if one.reads == "images" else TEXT_UNITS),
                methods=methods_for(one),
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
        classifier = self.classifiers[asked.model]
        with self._lock.foreground():
            [one] = check(
                classifier, list(comparison.explanations.values()), [removed], progress=False
            )
        with asked.lock:  # what was asked is known to a saved page, too
            known = () if asked.result is None else asked.result.checks
            if one not in known and len(known) < self.limits.checks:
                asked.result = replace(comparison, checks=(*known, one))
        return one

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
        for text in (request.text, request.pair):
            if text is not None and len(text) > limits.characters:
                raise TooLargeError(
                    f"Expected at most {limits.characters:,} characters of text, got "
                    f"{len(text):,}: shorten it."
                )
        if request.units is not None:
            images = classifier.reads == "images"
            fine = _GRID.fullmatch(request.units) if images else request.units in TEXT_UNITS
            if not fine:
                choices = "patches, grid:K, superpixels:K" if images else ", ".join(TEXT_UNITS)
                raise PisteError(f"units: expected one of {choices}, got {request.units!r}.")
        if request.target is not None and classifier.labels:
            resolve(
                request.target, np.zeros(len(classifier.labels)), classifier.labels, classifier.kind
            )

    def _input(
        self, request: schemas.ExplanationRequest, classifier: Classifier
    ) -> TextInput | bytes:
        if classifier.reads == "images":
            if request.image is None or request.text is not None or request.pair is not None:
                raise PisteError(f"{classifier.name!r} sees images: send an image, and no text.")
            return self._checked(request.image)
        if request.text is None or request.image is not None:
            raise PisteError(f"{classifier.name!r} reads texts: send a text, and no image.")
        given = request.text if request.pair is None else (request.text, request.pair)
        check_text(given)
        return given

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
        classifier: Classifier,
        sent: TextInput | bytes,
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
                size = len(classifier.subject(given, **how))
                if size > self.limits.units:
                    raise TooLargeError(
                        f"The input has {size:,} {request.units or 'units'}, and at most "
                        f"{self.limits.units:,} are explained here: shorten it, or cut it into "
                        "larger ones."
                    )
                return compare_steps(
                    classifier, given, request.methods, skips=lambda method: True,
                    judged=len(request.methods) > 1, on_step=job.begin, progress=progress,
                    target=request.target, samples=request.samples, seed=request.seed, **how,
                )  # fmt: skip

        return work


def _public_name(name: str) -> str:
    """What clients see of a model's name: of a folder its last part, also if it ends in a dot.

    >>> _public_name("piste:reviews"), _public_name("/secret/place/model/")
    ('piste:reviews', 'model')
    """
    path = Path(name).expanduser()
    return Path(abspath(path)).name if path.is_absolute() or path.exists() else name
