"""Any Hugging Face image classifier as a Piste classifier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from piste.classifiers.base import (
    check_logits,
    counting_calibration,
    evaluation_mode,
    read_head,
    state_of,
    twin_of,
)
from piste.classifiers.fingerprint import fingerprint_model
from piste.classifiers.image.batching import Row, TokenRunner
from piste.classifiers.image.preprocessing import Preparation, fill
from piste.classifiers.image.subject import (
    BaseImageClassifier,
    ImageSubject,
    read_image,
    token_cost,
)
from piste.classifiers.image.token_dropping import TokenLayout, find_patches, find_place, first_line
from piste.classifiers.image.units import Patches, cut_image
from piste.classifiers.introspection.gradients import GradientAccess, PatchGradients, PixelGradients
from piste.errors import PisteError
from piste.image import ImageInput
from piste.subject import Binding, Question, Subject
from piste.types import Flags, Floats, Ints

if TYPE_CHECKING:
    from piste.target import Target


@dataclass
class PatchAccess:
    """What was found out about a model that looks at images of one size."""

    place: TokenLayout | None
    """Where all of an image stands in tokens; None if nowhere."""
    obstacle: str = ""
    """Why tokens can't be left out there; nothing if they can."""
    runner: TokenRunner | None = None
    """What answers without some tokens; None if they can't be left out."""
    reads_nothing: bool = True
    unhidden: str = ""
    """Why a patch that is hidden from attention still matters; empty if it doesn't."""


class ImageClassifier(BaseImageClassifier):
    """An image classification model and its image processor. The model is never changed.

    Patches that are not asked about are really absent: their tokens are left out behind the
    embedding. Models that can't do without (they compute on the grid, like Swin) see them painted
    over with the image's mean colour instead, and the result says so.
    """

    def __init__(
        self, model: Any, processor: Any, *, name: str | None = None, budget: int | None = None
    ) -> None:
        self.model = model
        self.processor = processor
        self.config = model.config
        self.name = name or getattr(model, "name_or_path", "") or type(model).__name__
        self.budget = budget or (8192 if self.device.type == "cpu" else 65536)
        self.labels, self.kind = read_head(self.config)
        self.preparation = Preparation(processor, _channels(model))
        self._accesses: dict[tuple[int, int], PatchAccess] = {}
        self._state: object = None
        self._embedded: dict[str, torch.Tensor] = {}

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @contextmanager
    def session(self) -> Iterator[None]:
        if self._state != (state := state_of(self.model)):
            self._state, self._accesses = state, {}  # the model was changed since
        try:
            with evaluation_mode(self.model):
                yield
        finally:
            self._embedded.clear()  # by the next session the weights may be others

    # -- binding -------------------------------------------------------------------------------

    def bind(self, input: Any, how: Binding) -> ImageSubject:
        image, rounded = self.preparation.prepare(read_image(input))
        patches = self._patches(image)
        notes: dict[str, Any] = {"long": "fits", "size": [image.width, image.height]}
        if rounded:
            notes["rounded"] = rounded
        if patches is not None:
            notes["patches"] = [patches.rows, patches.columns]
        by_token = how.removal in ("delete", "attention")
        cut = cut_image(image, how.units, patches, whole_patches=by_token)
        # As if patches had 16 × 16 pixels, until it is known what the model makes of them.
        return ImageSubject(self, image, cut, how.removal, notes, cost=token_cost(image))

    def _patches(self, image: ImageInput) -> Patches | None:
        return find_patches(self.model, image.height, image.width, self.preparation.channels)

    # -- calibrating ---------------------------------------------------------------------------

    def calibrate(self, subject: Subject) -> None:
        """Find out, on the first image of a size, whether patches can be left out or hidden.

        Where they can't be left out, the subject's removal becomes "mean", and its notes say so.
        """
        assert isinstance(subject, ImageSubject)
        if subject.is_settled:
            return
        with self.session():
            access = self._patch_access(subject.image)
        removal, instead = subject.removal, ""
        if removal == "delete" and access.runner is None:
            removal = "mean"
            instead = (
                f"patches can't be taken out of {type(self.model).__name__} ({access.obstacle}): "
                "they are painted over with the image's mean colour"
            )
        if removal == "attention" and (access.runner is None or access.unhidden):
            raise PisteError(
                f"removal='attention' is not possible with {type(self.model).__name__} "
                f"({access.unhidden or access.obstacle}): choose 'delete', 'mean', 'blur' or "
                "'noise'."
            )
        token_units = None
        by_token = removal in ("delete", "attention")
        if by_token and access.place is not None and subject.patch_units is not None:
            token_units = _token_units(access.place, subject.patch_units)
        subject.can_be_empty = removal != "delete" or access.reads_nothing
        tokens = None if access.runner is None else access.runner.place.tokens
        subject.settle(removal, token_units, tokens, instead)

    def _patch_access(self, image: ImageInput) -> PatchAccess:
        """What the model does with images of this size, tried on the first. In a session."""
        size = image.height, image.width
        if size not in self._accesses:
            values = self._values(image.pixels[None])
            with counting_calibration(self):
                self._accesses[size] = self._try(image, values)
        return self._accesses[size]

    def _try(self, image: ImageInput, values: torch.Tensor) -> PatchAccess:
        try:
            own = self.model(pixel_values=values)
        except (RuntimeError, ValueError, TypeError, IndexError) as problem:
            raise PisteError(
                f"{type(self.model).__name__} can't read an image of {image.width} × "
                f"{image.height} pixels ({problem}): is the image processor another model's?"
            ) from problem
        check_logits(getattr(own, "logits", None), 1, self.model, "image")
        return self._inspect(self._patches(image), values)

    def _inspect(self, patches: Patches | None, values: torch.Tensor) -> PatchAccess:
        if patches is None:
            return PatchAccess(None, "it does not cut images into patches")
        try:
            place, obstacle = find_place(self.model, values, patches)
            if place is None or obstacle:
                return PatchAccess(place, obstacle)
            runner = TokenRunner(self.model, place, values)
            tokens = runner.embed(values)
            runner.settle(tokens)
        except Exception as problem:  # a model that can't be copied or hooked is seen from outside
            return PatchAccess(None, f"it can't be looked into: {first_line(problem)}")
        return PatchAccess(
            place,
            runner=runner,
            reads_nothing=runner.reads_nothing(tokens),
            unhidden=runner.why_not_hidden(tokens),
        )

    # -- answering -----------------------------------------------------------------------------

    def answer(self, questions: Sequence[Question]) -> Floats:
        groups: dict[tuple[Any, ...], list[int]] = {}
        for number, question in enumerate(questions):
            subject, kept = question.payload
            tokens = subject.token_units is not None and not kept.all()
            groups.setdefault((tokens, *subject.areas.shape), []).append(number)
        answers: dict[int, Floats] = {}
        for (tokens, *_), numbers in groups.items():
            some = [questions[number] for number in numbers]
            logits = self._by_tokens(some) if tokens else self._by_pixels(some)
            rows = check_logits(logits, len(some), self.model, "image")
            answers |= zip(numbers, rows.to(torch.float64).cpu().numpy(), strict=True)
        return np.array([answers[number] for number in range(len(questions))])

    def _by_pixels(self, questions: Sequence[Question]) -> torch.Tensor:
        """By the model itself, of what is left of the images."""
        pixels = [subject.pixels(kept) for subject, kept in _payloads(questions)]
        return self.model(pixel_values=self._values(np.stack(pixels))).logits

    def _by_tokens(self, questions: Sequence[Question]) -> torch.Tensor:
        runner, rows = self._rows(questions)
        return runner.answer(rows)

    def _rows(self, questions: Sequence[Question]) -> tuple[TokenRunner, list[Row]]:
        """The questions as rows of tokens, all of images of one size."""
        subjects = _payloads(questions)
        runner = self._patch_access(subjects[0][0].image).runner
        assert runner is not None
        rows = []
        for subject, kept in subjects:
            key = subject.image.digest
            if key not in self._embedded:
                self._embedded[key] = runner.embed(self._values(subject.image.pixels[None]))
            hides = subject.removal == "attention"
            rows.append(Row(self._embedded[key], kept[subject.token_units], hides))
        return runner, rows

    def _values(self, pixels: NDArray[np.uint8]) -> torch.Tensor:
        weight = next(self.model.parameters())
        return torch.from_numpy(self.preparation.values(pixels)).to(weight.device, weight.dtype)

    # -- looking inside ------------------------------------------------------------------------

    def gradient_access(self, subject: Subject, target: Target) -> GradientAccess:
        assert isinstance(subject, ImageSubject)
        with self.session():
            place = self._patch_access(subject.image).place
        images = {"own": subject.image.pixels}
        images |= {kind: fill(subject.image, kind) for kind in ("mean", "blur")}
        values = {name: self._values(pixels[None]) for name, pixels in images.items()}
        twin, units = twin_of(self.model, own_config=True), len(subject)
        if place is None or subject.patch_units is None:
            owners = subject.areas.ravel().astype(np.int64)
            return PixelGradients(twin, values, owners, units, target)
        owners = _token_units(place, subject.patch_units)
        return PatchGradients(twin, place.path, values, owners, units, target)

    def tensors(self, subject: Subject) -> dict[str, torch.Tensor]:
        assert isinstance(subject, ImageSubject)
        return {"pixel_values": self._values(subject.image.pixels[None])}

    # -- describing -------------------------------------------------------------------------------

    def fingerprint(self) -> str:
        versions = {name: version(name) for name in ("torch", "transformers")}
        how = {"device": self.device.type, "pixels": self.preparation.describe(), **versions}
        return fingerprint_model(self.model, how)

    def describe(self) -> dict[str, object]:
        return {
            "name": self.name,
            "architecture": type(self.model).__name__,
            "dtype": str(next(self.model.parameters()).dtype).removeprefix("torch."),
            "device": str(self.device),
            "runtime": "torch",
        }


def _token_units(place: TokenLayout, patch_units: Ints) -> Ints:
    """The unit of every token, −1 for those that are no patch."""
    units = np.full(place.tokens, -1)
    units[place.first : place.first + place.patches] = patch_units
    return units


def _payloads(questions: Sequence[Question]) -> list[tuple[ImageSubject, Flags]]:
    return [question.payload for question in questions]


def _channels(model: nn.Module) -> int:
    """How many channels a model reads: those of its first convolution."""
    first = next((m for m in model.modules() if isinstance(m, nn.Conv2d)), None)
    channels = 3 if first is None else int(first.in_channels)
    if channels not in (1, 3):
        raise PisteError(
            f"Expected a model that reads images of 3 or 1 channels, got {type(model).__name__} "
            f"with {channels}: load a function of pixels instead."
        )
    return channels
