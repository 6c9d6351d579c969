"""The loader of Python functions: of texts, of token ids, or of pixels."""

from __future__ import annotations

import inspect
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


def _takes_two(function: Any) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # built-in without a signature: trust the user
        return True
    return True
