"""From whatever the user has to a classifier: bundled name, folder, hub id, model, function."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from piste import zoo
from piste.classifier import Classifier
from piste.classifiers.backends.base import check_name
from piste.classifiers.image.classifier import ImageClassifier
from piste.classifiers.image.function import PixelFunction
from piste.classifiers.outputs import READINGS
from piste.classifiers.text.classifier import TextClassifier
from piste.classifiers.text.function import OutputReader, TextFunction, TokenFunction
from piste.errors import PisteError, shorten
from piste.target import OutputKind

_KINDS = ("classes", "labels", "regression")
_INPUTS = ("texts", "pixels")


def load(
    source: Any,
    tokenizer: Any = None,
    *,
    device: str = "auto",
    runtime: str = "torch",
    tolerance: float | None = None,
    outputs: str = "auto",
    kind: OutputKind | None = None,
    labels: Sequence[str] | None = None,
    name: str | None = None,
    version: str | None = None,
    inputs: str = "texts",
) -> Classifier:
    """Make a classifier of a bundled name, a folder, a hub id, a model, or a function.

    A folder's or hub's config tells whether the model reads texts or pictures. A model comes with
    its tokenizer, or as ``load(model, processor)`` with its image processor.

    A function without a tokenizer gets a list of texts; with one it gets token ids and attention
    mask. With ``inputs="pixels"`` it gets pictures: bytes, rows × height × width × 3, in the size
    they are explained in. It may return numpy, torch or lists, one column or many, logits or
    probabilities (``outputs`` says which if it can't be seen). ``kind`` says how outputs are read
    (exclusive "classes", independent "labels", or "regression"), ``labels`` names them.
    ``version`` names the present state of a function, so that a cache of answers may know it.

    ``runtime`` says what runs a Hugging Face model: "torch", or one of "torch-bf16", "torch-int8",
    "onnx", "openvino", "openvino-bf16", whose answers are held against torch's on the first input
    and refused if they differ by more than ``tolerance`` of the answers' spread (None: 1 % for
    float32, 10 % for less).

    >>> import piste
    >>> piste.load("piste:reviews").name
    'piste:reviews'
    >>> bright = piste.load(lambda pixels: pixels.mean(axis=(1, 2, 3)), inputs="pixels")
    >>> bright.reads
    'pictures'
    """
    if inputs not in _INPUTS:
        raise PisteError(f"inputs={inputs!r} is unknown: choose {', '.join(_INPUTS)}.")
    if outputs not in READINGS:
        raise PisteError(f"outputs={outputs!r} is unknown: choose {', '.join(READINGS)}.")
    if kind is not None and kind not in _KINDS:
        raise PisteError(f"kind={kind!r} is unknown: choose {', '.join(_KINDS)}.")
    check_name(runtime)
    if tolerance is not None and not tolerance >= 0:
        raise PisteError(f"tolerance={tolerance!r} is wrong: a number from 0 on is wanted.")
    if isinstance(source, Classifier):
        return source
    options = {"name": name, "runtime": runtime, "tolerance": tolerance}
    if isinstance(source, (str, Path)):
        classifier: TextClassifier | ImageClassifier = _from_name(
            str(source), tokenizer, device, options
        )
    elif _is_pipeline(source):
        own = source.tokenizer or getattr(source, "image_processor", None)
        classifier = _from_memory(source.model, tokenizer or own, device, options)
    elif isinstance(source, torch.nn.Module) and hasattr(source, "config"):
        classifier = _from_memory(source, tokenizer, device, options)
    elif callable(source):
        if runtime != "torch":
            raise PisteError(
                f"runtime={runtime!r} came with a function: only a Hugging Face model can be run "
                "by another runtime."
            )
        reader = OutputReader(None if outputs == "auto" else outputs, kind, labels)  # type: ignore[arg-type]  # checked above
        if inputs == "pixels":
            return _pixel_function(source, tokenizer, reader, name, version)
        if tokenizer is None or _takes_two(source):
            function: TextFunction | TokenFunction = (
                TextFunction(source, reader, name=name)
                if tokenizer is None
                else TokenFunction(source, tokenizer, reader, name=name)
            )
            function.version = version
            return function
        raise PisteError(
            "A tokenizer came with a function of one argument: a function of token ids takes two "
            "(ids, mask); for a function of texts leave the tokenizer out."
        )
    else:
        raise PisteError(
            f"A classifier can be made of a name, a folder, a model or a function, but "
            f"{shorten(source)} of type {type(source).__name__} came."
        )
    if kind is not None:
        classifier.kind = kind
    if labels is not None:
        if len(labels) != len(classifier.labels):
            raise PisteError(
                f"{len(labels)} labels were given, but the model has {len(classifier.labels)} "
                "outputs."
            )
        classifier.labels = tuple(labels)
    return classifier


def _pixel_function(
    source: Any, tokenizer: Any, reader: OutputReader, name: str | None, version: str | None
) -> PixelFunction:
    if tokenizer is not None:
        raise PisteError(
            f"{shorten(tokenizer)} came with a function of pixels, which gets pictures as they "
            "are: let the function itself prepare them."
        )
    function = PixelFunction(source, reader, name=name)
    function.version = version
    return function


def _from_name(
    source: str, reader: Any, device: str, options: dict[str, Any]
) -> TextClassifier | ImageClassifier:
    folder = zoo.folder(source) if source.startswith(zoo.PREFIX) else Path(source)
    if folder.exists() and not (folder / "config.json").is_file():
        raise PisteError(
            f"The folder {source!r} holds no config.json: a model saved with "
            "save_pretrained is wanted."
        )
    if not folder.exists() and (source.startswith((".", "/", "~")) or source.count("/") > 1):
        raise PisteError(f"The folder {source!r} does not exist: check the path.")
    place = str(folder) if folder.exists() else source
    chosen = _device(device)
    # Half precision is slow and coarse on a CPU; elsewhere the checkpoint's own type is right.
    dtype: Any = torch.float32 if chosen.type == "cpu" else "auto"
    try:
        auto, reads_pictures = _auto_class(place)
        with torch.random.fork_rng(devices=[]):  # a head that is missing is drawn at random
            model, report = auto.from_pretrained(
                place, use_safetensors=True, output_loading_info=True, dtype=dtype
            )
        reader = reader or _reader(place, reads_pictures)
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
    return _classifier(model.to(chosen).eval(), reader, options, reads_pictures)


def _auto_class(place: str) -> tuple[Any, bool]:
    """The class that loads a model, and whether it reads pictures; its config tells."""
    import transformers

    config = transformers.AutoConfig.from_pretrained(place)
    named = " ".join(getattr(config, "architectures", None) or ())
    images = type(config) in transformers.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING
    texts = type(config) in transformers.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING
    if images and ("ForImageClassification" in named or not texts):
        return transformers.AutoModelForImageClassification, True
    return transformers.AutoModelForSequenceClassification, False


def _reader(place: str, pictures: bool) -> Any:
    from transformers import AutoImageProcessor, AutoTokenizer

    if pictures:
        return AutoImageProcessor.from_pretrained(place, backend="pil")
    return AutoTokenizer.from_pretrained(place)


def _from_memory(
    model: Any, reader: Any, device: str, options: dict[str, Any]
) -> TextClassifier | ImageClassifier:
    names = inspect.signature(model.forward).parameters
    pictures = "pixel_values" in names and "input_ids" not in names
    wanted = "image processor" if pictures else "tokenizer"
    if reader is None:
        raise PisteError(
            f"A model of type {type(model).__name__} came without its {wanted}: call "
            f"piste.load(model, {wanted.split()[-1]})."
        )
    if isinstance(reader, (str, Path)):
        raise PisteError(
            f"The {wanted} itself is wanted, but {shorten(reader)} came: load it with "
            f"Auto{wanted.title().replace(' ', '')}.from_pretrained."
        )
    place = next(model.parameters()).device
    if device != "auto" and device.split(":")[0] != place.type:
        raise PisteError(
            f"device={device!r} was asked for a model that lives on {place}: Piste does not move "
            f"a model of yours, call model.to({device!r}) first."
        )
    if not hasattr(model.config, "num_labels"):
        raise PisteError(f"{type(model).__name__} has no num_labels: it is not a classifier.")
    return _classifier(model, reader, options, pictures)


def _classifier(
    model: Any, reader: Any, options: dict[str, Any], pictures: bool
) -> TextClassifier | ImageClassifier:
    if pictures:  # of a processor for texts and pictures
        reader = getattr(reader, "image_processor", reader)
    processes = hasattr(reader, "preprocess") and not hasattr(reader, "encode")
    if processes != pictures:
        wanted = "an image processor" if pictures else "a tokenizer"
        raise PisteError(
            f"{type(model).__name__} reads {'pictures' if pictures else 'texts'}, so {wanted} is "
            f"wanted, but a {type(reader).__name__} came."
        )
    if not pictures:
        return TextClassifier(model, reader, **options)
    if options["runtime"] != "torch":
        raise PisteError(
            f"runtime={options['runtime']!r} came with an image model: those are run by torch "
            "itself, leave the runtime out."
        )
    return ImageClassifier(model, reader, name=options["name"])


def _device(device: str) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as problem:
        raise PisteError(
            f"device={device!r} is not available here: use 'auto' or 'cpu'."
        ) from problem


def _is_pipeline(source: Any) -> bool:
    return all(hasattr(source, name) for name in ("model", "tokenizer", "preprocess", "forward"))


def _takes_two(function: Any) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # built-in without a signature: trust the user
        return True
    return True
