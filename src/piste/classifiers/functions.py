"""The loaders of Python functions and of estimators that have a method for predictions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from piste.classifier import Classifier
from piste.classifiers.image.function import PixelFunction
from piste.classifiers.loading import Loading
from piste.classifiers.outputs import OutputReader
from piste.classifiers.text.function import TextFunction, TokenFunction
from piste.errors import PisteError, shorten


class Function:
    """Anything that can be called."""

    def accepts(self, source: Any, how: Loading) -> bool:
        return callable(source)

    def load(self, source: Any, how: Loading) -> Classifier:
        if isinstance(source, type):
            raise PisteError(
                f"Expected a function or a model, got the class {source.__name__}: make an "
                "object of it first."
            )
        if hasattr(source, "encode") and hasattr(source, "decode"):
            raise PisteError(
                f"Expected a function or a model, got the tokenizer {type(source).__name__} alone: "
                "call piste.load(model, tokenizer)."
            )
        if how.runtime != "torch":
            raise PisteError(
                f"runtime: expected 'torch' for a function, got {how.runtime!r}: only a Hugging "
                "Face model can be run by another runtime."
            )
        outputs: Any = None if how.outputs == "auto" else how.outputs
        function = self._made(source, how, OutputReader(outputs, how.kind, how.label_names()))
        function.version = how.version
        return function

    def _made(
        self, source: Any, how: Loading, outputs: OutputReader
    ) -> PixelFunction | TextFunction | TokenFunction:
        if how.inputs == "pixels":
            if how.reader is not None:
                raise PisteError(
                    "Expected no image processor for a function of pixels, got "
                    f"{shorten(how.reader)}: let the function itself prepare the images."
                )
            return PixelFunction(source, outputs, name=how.name)
        if how.reader is None:
            return TextFunction(source, outputs, name=how.name)
        if not _takes_two(source):
            raise PisteError(
                "Expected a function of two arguments (ids, mask) with a tokenizer, got one of a "
                "single argument: for a function of texts, leave the tokenizer out."
            )
        return TokenFunction(source, how.reader, outputs, name=how.name)


class Estimator:
    """A scikit-learn pipeline of texts, a SetFit model, or what has the same methods."""

    def accepts(self, source: Any, how: Loading) -> bool:
        return not isinstance(source, type) and callable(getattr(source, "predict", None))

    def load(self, source: Any, how: Loading) -> Classifier:
        named = _first_known(source, ("classes_", "labels"))
        given = how.label_names()
        labels = given or (None if named is None else [str(name) for name in named])
        outputs = how.outputs
        if callable(getattr(source, "predict_proba", None)):
            ask, outputs = source.predict_proba, "probabilities" if outputs == "auto" else outputs
        elif callable(getattr(source, "decision_function", None)):
            ask, outputs = source.decision_function, "logits" if outputs == "auto" else outputs
            labels = labels[1:] if labels is not None and len(labels) == 2 else labels
        elif named is None:
            ask, outputs, labels = source.predict, "logits", given
        else:
            raise PisteError(
                f"Expected an estimator with predict_proba or decision_function, got a "
                f"{type(source).__name__}, which predicts labels only: use one with probabilities, "
                "for example by CalibratedClassifierCV."
            )
        name = how.name or type(source).__name__
        how = replace(how, outputs=outputs, labels=labels, name=name)
        return Function().load(_reading_texts(ask, name), how)


def _first_known(source: Any, names: tuple[str, ...]) -> Any:
    found = (getattr(source, name, None) for name in names)
    return next((one for one in found if one is not None), None)


def _reading_texts(ask: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    """The method, with a clear sentence if it reads tables of numbers and not texts."""

    def asked(texts: Any) -> Any:
        try:
            return ask(texts)
        except (ValueError, TypeError, AttributeError) as problem:
            first = (str(problem).strip() or type(problem).__name__).splitlines()[0].rstrip(".:")
            raise PisteError(
                f"{name} could not read a list of texts ({first}): give the whole pipeline, with "
                "its vectorizer, or a function of texts."
            ) from problem

    return asked


def _takes_two(function: Any) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # built-in without a signature: trust the user
        return True
    return True
