"""Loaders of Hugging Face models: by name, in memory, in a pipeline."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from piste import zoo
from piste.classifier import Classifier
from piste.classifiers.image.classifier import ImageClassifier
from piste.classifiers.loading import Loading
from piste.classifiers.text.classifier import TextClassifier
from piste.errors import PisteError, shorten


class NamedModel:
    """A folder or a hub id."""

    def accepts(self, source: Any, how: Loading) -> bool:
        return isinstance(source, (str, Path))

    def load(self, source: Any, how: Loading) -> Classifier:
        return _relabelled(_from_name(str(source), how.reader, how.device, _options(how)), how)


class BundledModel(NamedModel):
    """The name of a bundled model, none of which is a language model."""

    def accepts(self, source: Any, how: Loading) -> bool:
        return (
            super().accepts(source, how)
            and str(source).startswith(zoo.PREFIX)
            and how.prompt is None
        )


class Pipeline:
    """A transformers pipeline of text or image classification."""

    def accepts(self, source: Any, how: Loading) -> bool:
        parts = ("model", "tokenizer", "preprocess", "forward")
        return all(hasattr(source, name) for name in parts)

    def load(self, source: Any, how: Loading) -> Classifier:
        own = source.tokenizer or getattr(source, "image_processor", None)
        made = _from_memory(source.model, how.reader or own, how.device, _options(how))
        return _relabelled(made, how)


class ModelInMemory:
    """A model that is loaded already."""

    def accepts(self, source: Any, how: Loading) -> bool:
        return isinstance(source, torch.nn.Module) and hasattr(source, "config")

    def load(self, source: Any, how: Loading) -> Classifier:
        return _relabelled(_from_memory(source, how.reader, how.device, _options(how)), how)


def _options(how: Loading) -> dict[str, Any]:
    return {"name": how.name, "runtime": how.runtime, "tolerance": how.tolerance}


def _relabelled(classifier: TextClassifier | ImageClassifier, how: Loading) -> Classifier:
    """With the kind and labels that were given."""
    if how.kind is not None:
        classifier.kind = how.kind
    labels = how.label_names()
    if labels is not None:
        if len(labels) != len(classifier.labels):
            raise PisteError(
                f"labels: expected {len(classifier.labels)}, one per output of the model, got "
                f"{len(labels)}."
            )
        classifier.labels = tuple(labels)
    return classifier


def _from_name(
    source: str, reader: Any, device: str, options: dict[str, Any]
) -> TextClassifier | ImageClassifier:
    folder = zoo.folder(source) if source.startswith(zoo.PREFIX) else Path(source)
    if folder.exists() and not (folder / "config.json").is_file():
        raise PisteError(
            f"The folder {source!r} holds no config.json: expected a model saved with "
            "save_pretrained."
        )
    if not folder.exists() and (source.startswith((".", "/", "~")) or source.count("/") > 1):
        raise PisteError(f"The folder {source!r} does not exist: check the path.")
    place = str(folder) if folder.exists() else source
    chosen = device_of(device)
    # Half precision is slow and coarse on a CPU; elsewhere the checkpoint's own type is right.
    dtype: Any = torch.float32 if chosen.type == "cpu" else "auto"
    try:
        auto, reads_images = _auto_class(place)
        with torch.random.fork_rng(devices=[]):  # a head that is missing is drawn at random
            model, report = auto.from_pretrained(
                place, use_safetensors=True, output_loading_info=True, dtype=dtype
            )
        reader = reader or _reader(place, reads_images)
    except (OSError, ValueError, ImportError, KeyError, RuntimeError, SafetensorError) as problem:
        first = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        raise PisteError(
            f"No classifier could be loaded from {source!r}: it is neither a bundled model "
            f"({', '.join(zoo.names())}), nor a folder with config.json, model.safetensors and a "
            f"tokenizer or image processor, nor a hub id that can be reached ({first})."
        ) from problem
    missing = sorted(report.get("missing_keys", ()))
    if missing:
        warnings.warn(
            f"{source!r} has no trained weights for {', '.join(missing[:4])}: they are random, and "
            "so are the answers that depend on them.",
            stacklevel=3,
        )
    options["name"] = options["name"] or source
    return _classifier(model.to(chosen).eval(), reader, options, reads_images)


def _auto_class(place: str) -> tuple[Any, bool]:
    """The class that loads a model, and whether it reads images; its config tells."""
    import transformers

    config = transformers.AutoConfig.from_pretrained(place)
    named = " ".join(getattr(config, "architectures", None) or ())
    images = type(config) in transformers.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING
    texts = type(config) in transformers.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING
    if images and ("ForImageClassification" in named or not texts):
        return transformers.AutoModelForImageClassification, True
    return transformers.AutoModelForSequenceClassification, False


def _reader(place: str, images: bool) -> Any:
    from transformers import AutoImageProcessor, AutoTokenizer

    if images:
        return AutoImageProcessor.from_pretrained(place, backend="pil")
    return AutoTokenizer.from_pretrained(place)


def _from_memory(
    model: Any, reader: Any, device: str, options: dict[str, Any]
) -> TextClassifier | ImageClassifier:
    names = inspect.signature(model.forward).parameters
    images = "pixel_values" in names and "input_ids" not in names
    kind = "image processor" if images else "tokenizer"
    if reader is None:
        raise PisteError(
            f"Expected a {type(model).__name__} and its {kind}, got the model alone: call "
            f"piste.load(model, {kind.split()[-1]})."
        )
    if isinstance(reader, (str, Path)):
        raise PisteError(
            f"Expected the {kind} itself, got {shorten(reader)}: load it with "
            f"Auto{kind.title().replace(' ', '')}.from_pretrained."
        )
    place = next(model.parameters()).device
    if device != "auto" and device.split(":")[0] != place.type:
        raise PisteError(
            f"device: expected {str(place)!r}, where the model is, got {device!r}: Piste does not "
            f"move your model, call model.to({device!r}) first."
        )
    if not hasattr(model.config, "num_labels"):
        raise PisteError(f"{type(model).__name__} has no num_labels: it is not a classifier.")
    return _classifier(model, reader, options, images)


def _classifier(
    model: Any, reader: Any, options: dict[str, Any], images: bool
) -> TextClassifier | ImageClassifier:
    if images:  # of a processor for texts and images
        reader = getattr(reader, "image_processor", reader)
    processes = hasattr(reader, "preprocess") and not hasattr(reader, "encode")
    if processes != images:
        kind = "an image processor" if images else "a tokenizer"
        raise PisteError(
            f"Expected {kind} for {type(model).__name__}, which reads "
            f"{'images' if images else 'texts'}, got a {type(reader).__name__}."
        )
    if not images:
        return TextClassifier(model, reader, **options)
    if options["runtime"] != "torch":
        raise PisteError(
            f"runtime: expected 'torch' for an image model, got {options['runtime']!r}: leave the "
            "runtime out."
        )
    return ImageClassifier(model, reader, name=options["name"])


def device_of(device: str) -> torch.device:
    """The device by its name, or a refusal; "auto" is a card if there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as problem:
        raise PisteError(
            f"device={device!r} is not available here: use 'auto' or 'cpu'."
        ) from problem
