"""Loaders of Hugging Face models: by name, in memory, in a pipeline."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from piste import zoo
from piste.classifier import Classifier
from piste.classifiers.base import check_head, check_task
from piste.classifiers.image.classifier import ImageClassifier
from piste.classifiers.loading import Loading
from piste.classifiers.text.classifier import TextClassifier
from piste.classifiers.text.tokenization import check_vocabulary
from piste.classifiers.text.word_models import AnswerClassifier, TagClassifier, WordModel
from piste.classifiers.text.zero_shot import HYPOTHESIS, ZeroShotClassifier
from piste.errors import PisteError, shorten

_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".h5", ".msgpack")


_WORD_MODELS: Mapping[str, type[WordModel]] = {
    "ForTokenClassification": TagClassifier,
    "ForQuestionAnswering": AnswerClassifier,
}
"""Models that answer about words, by how the names of their classes end."""


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
        task = str(getattr(source, "task", ""))
        check_task(task)
        reader = how.reader or source.tokenizer or getattr(source, "image_processor", None)
        made = _from_memory(source.model, reader, how.device, _options(how))
        if task != "zero-shot-classification":
            return _relabelled(made, how)
        parts = ("_preprocess_params", "_postprocess_params")
        own = {name: one for part in parts for name, one in getattr(source, part, {}).items()}
        return _zero_shot(made, how, own)


class ModelInMemory:
    """A model that is loaded already."""

    def accepts(self, source: Any, how: Loading) -> bool:
        return isinstance(source, torch.nn.Module) and hasattr(source, "config")

    def load(self, source: Any, how: Loading) -> Classifier:
        return _relabelled(_from_memory(source, how.reader, how.device, _options(how)), how)


def _options(how: Loading) -> dict[str, Any]:
    return {"name": how.name, "runtime": how.runtime, "tolerance": how.tolerance}


def _zero_shot(made: Classifier, how: Loading, own: Mapping[str, Any]) -> Classifier:
    """A model of entailment with its candidate labels; ``own`` are the settings of a pipeline."""
    labels = how.label_names() or own.get("candidate_labels")
    if labels is None:
        raise PisteError(
            "Expected the candidate labels of zero-shot classification, got none: call "
            "piste.load(…, labels=['sports', 'politics'])."
        )
    if isinstance(labels, str):  # as transformers takes them
        labels = [label.strip() for label in labels.split(",")]
    if not isinstance(made, TextClassifier):
        raise PisteError(
            f"Expected a model of texts for zero-shot classification, got {made.name!r}, which "
            "reads images."
        )
    hypothesis = how.hypothesis or own.get("hypothesis_template") or HYPOTHESIS
    several = own.get("multi_label", False) if how.kind is None else how.kind == "labels"
    return ZeroShotClassifier(made, labels, hypothesis, multi_label=several)


def _relabelled(classifier: TextClassifier | ImageClassifier, how: Loading) -> Classifier:
    """With the kind and labels that were given."""
    if how.hypothesis is not None:
        return _zero_shot(classifier, how, {})
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
    if folder.exists():
        _check_folder(folder)
    elif source.startswith((".", "/", "~")) or source.count("/") > 1:
        raise PisteError(f"The folder {source!r} does not exist: check the path.")
    place = str(folder) if folder.exists() else source
    chosen = device_of(device)
    # Half precision is slow and coarse on a CPU; elsewhere the checkpoint's own type is right.
    dtype: Any = torch.float32 if chosen.type == "cpu" else "auto"
    try:
        auto, reads_images = _auto_class(place, source)
        with torch.random.fork_rng(devices=[]):  # a head that is missing is drawn at random
            model, report = auto.from_pretrained(
                place,
                use_safetensors=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are in the report, and refused there
                dtype=dtype,
            )
        _check_loaded(report, source)
        reader = reader or _reader(place, reads_images)
    except PisteError:
        raise
    except (OSError, ValueError, ImportError, KeyError, RuntimeError, SafetensorError) as problem:
        first = _first_line(problem)
        if folder.exists():
            raise PisteError(
                f"The model in {source!r} could not be loaded ({first}): expected config.json, "
                "model.safetensors and the files of a tokenizer or image processor, as "
                "save_pretrained writes them."
            ) from problem
        raise PisteError(
            f"No classifier could be loaded from {source!r}: it is neither a bundled model "
            f"({', '.join(zoo.names())}), nor a folder, nor a hub id that can be reached ({first})."
        ) from problem
    options["name"] = options["name"] or source
    return _classifier(model.to(chosen).eval(), reader, options, reads_images)


def _auto_class(place: str, source: str) -> tuple[Any, bool]:
    """The class that loads a model, and whether it reads images; its config tells."""
    import transformers

    config = transformers.AutoConfig.from_pretrained(place)
    classes = [str(name) for name in getattr(config, "architectures", None) or ()]
    if len(classes) == 1:
        check_head(classes[0], repr(source))
    named = " ".join(classes)
    images = type(config) in transformers.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING
    texts = type(config) in transformers.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING
    for ending in _WORD_MODELS:
        if len(classes) == 1 and named.endswith(ending):
            return getattr(transformers, f"AutoModel{ending}"), False
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
    check_head(type(model).__name__, "a model")
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
        check_vocabulary(reader, options["name"] or type(model).__name__)
        for ending, words in _WORD_MODELS.items():
            if type(model).__name__.endswith(ending):
                return words(model, reader, **options)
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


# -- what the files hold -----------------------------------------------------------------------


def _check_folder(folder: Path) -> None:
    """Refuse a model folder whose files are missing, damaged or pickled, naming the file."""
    read_config(folder)
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        pickled = [file.name for file in sorted(folder.iterdir()) if file.suffix in _PICKLES]
        if pickled:
            raise PisteError(
                f"The folder {str(folder)!r} holds its weights only as {pickled[0]}, which Piste "
                "does not open, because opening it may run code: expected model.safetensors, so "
                "load the model with transformers and save it with save_pretrained."
            )
        raise PisteError(
            f"The folder {str(folder)!r} holds no weights: expected model.safetensors beside "
            "config.json, as save_pretrained writes it."
        )
    for file in files:
        try:
            with safe_open(file, framework="numpy"):
                pass
        except (SafetensorError, OSError) as problem:
            raise PisteError(
                f"The weights {str(file)!r} can't be read ({_first_line(problem)}): the file is "
                "cut short or damaged, so copy or download it again."
            ) from problem


def read_config(folder: Path) -> dict[str, Any]:
    """The folder's config.json, or a refusal that names what is wrong with it."""
    path = folder / "config.json"
    if not path.is_file():
        raise PisteError(
            f"The folder {str(folder)!r} holds no config.json: expected a model saved with "
            "save_pretrained."
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise PisteError(
            f"{str(path)!r} is not valid JSON ({_first_line(problem)}): save the model again, or "
            "copy the file again."
        ) from problem
    if not isinstance(config, dict) or "model_type" not in config:
        raise PisteError(
            f"{str(path)!r} names no model_type: expected the config of a transformers model, got "
            f"{shorten(config)}."
        )
    return config


def _check_loaded(report: dict[str, Any], source: str) -> None:
    """Refuse a model some of whose weights are not in its files: they are drawn at random."""
    missing = sorted(report.get("missing_keys", ()))
    mismatched = sorted(str(one[0]) for one in report.get("mismatched_keys", ()))
    for names, problem in (
        (missing, "no trained weights"),
        (mismatched, "weights of another size"),
    ):
        if names:
            more = " …" if len(names) > 4 else ""
            raise PisteError(
                f"Expected a trained classifier, got {source!r}, which has {problem} for "
                f"{', '.join(names[:4])}{more}: they would be random, and so the answers. Train "
                "it for classification, or load the model of that training."
            )


def _first_line(problem: Exception) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0].rstrip(".")
