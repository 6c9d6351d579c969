"""From whatever the user has to a classifier: one loader for each kind of source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol

from piste.classifier import Classifier
from piste.classifiers.backends.backend import RUNTIMES
from piste.classifiers.outputs import READINGS
from piste.classifiers.prompted.labels import LabelChoice
from piste.classifiers.prompted.prompt import Prompt, Template, Values
from piste.errors import PisteError, shorten
from piste.registry import Registry
from piste.target import OUTPUT_KINDS, OutputKind
from piste.validation import check_count, choose

_Given = ParamSpec("_Given")
_INPUTS = ("texts", "pixels")


@dataclass(frozen=True)
class Loading:
    """What was given to :func:`load` beside the source, checked; ``load`` says what it means."""

    tokenizer: Any = None
    device: str = "auto"
    runtime: str = "torch"
    tolerance: float | None = None
    outputs: str = "auto"
    kind: OutputKind | None = None
    labels: LabelChoice | None = None
    name: str | None = None
    version: str | None = None
    inputs: str = "texts"
    prompt: Template | None = None
    examples: Sequence[tuple[Values, str]] = ()
    pinned: Sequence[str] = ()
    free: Sequence[str] = ()
    content_free: str | None = None
    hypothesis: str | None = None
    model: str | None = None
    max_requests: int | None = None
    max_tokens: int | None = None
    concurrency: int = 8
    timeout: float = 60.0

    def __post_init__(self) -> None:
        choose("inputs", self.inputs, _INPUTS)
        choose("outputs", self.outputs, tuple(READINGS))
        if self.kind is not None:
            choose("kind", self.kind, OUTPUT_KINDS)
        choose("runtime", self.runtime, tuple(RUNTIMES))
        if self.tolerance is not None and not self.tolerance >= 0:
            raise PisteError(f"tolerance: expected a number of at least 0, got {self.tolerance!r}.")
        check_count("concurrency", self.concurrency)
        for name in ("max_requests", "max_tokens"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        if not isinstance(self.timeout, (int, float)) or not self.timeout > 0:
            raise PisteError(f"timeout: expected seconds above 0, got {self.timeout!r}.")

    @property
    def reader(self) -> Any:
        """The tokenizer or image processor, if one was given."""
        return self.tokenizer

    def label_names(self) -> Sequence[str] | None:
        """Labels of a model that has outputs of its own, which have no wordings."""
        if isinstance(self.labels, Mapping):
            raise PisteError(
                "labels: expected a list of names, got names with wordings, which are for a "
                "language model with a prompt."
            )
        return self.labels

    def filled_prompt(self) -> Prompt | None:
        """The prompt with what belongs to it, checked; None if there is none."""
        if self.prompt is None:
            return None
        return Prompt(self.prompt, self.examples, self.pinned, self.free)


class Loader(Protocol):
    """Makes classifiers of one kind of source."""

    def accepts(self, source: Any, how: Loading) -> bool:
        """Whether this is such a source; ``how`` it is to be loaded may tell."""

    def load(self, source: Any, how: Loading) -> Classifier:
        """The classifier."""


CLASSIFIERS: Registry[type[Loader]] = Registry(
    "classifier",
    "piste.classifiers",
    {
        "bundled": "piste.classifiers.hugging_face:BundledModel",
        "served": "piste.classifiers.served.classifier:Server",
        "language_model": "piste.classifiers.prompted.language_models:LanguageModelSource",
        "onnx": "piste.classifiers.onnx_model:OnnxSource",
        "named_model": "piste.classifiers.hugging_face:NamedModel",
        "pipeline": "piste.classifiers.hugging_face:Pipeline",
        "model": "piste.classifiers.hugging_face:ModelInMemory",
        "estimator": "piste.classifiers.functions:Estimator",
        "function": "piste.classifiers.functions:Function",
    },
)
"""Loaders by name; those of installed packages and registered ones are asked first."""


def _typed_by(
    declared: Callable[_Given, Loading],
) -> Callable[[Callable[..., Classifier]], Callable[Concatenate[Any, _Given], Classifier]]:
    """For editors and type checkers: a function of a source and of what a class declares."""
    return lambda function: function


def _check_name(source: Any) -> None:
    """Refuse a text that can be no name of a model, and no folder's either."""
    if not isinstance(source, str):
        return
    try:
        Path(source).exists()
        possible = bool(source.strip()) and "\0" not in source
    except (OSError, ValueError):  # too long, a null character
        possible = False
    if not possible:
        raise PisteError(
            f"Expected a bundled name, a folder or a hub id, got the text {shorten(source)}."
        )


@_typed_by(Loading)
def load(source: Any, tokenizer: Any = None, **options: Any) -> Classifier:
    """Make a classifier of a bundled name, a folder, a hub id, a model, or a function.

    A folder's or hub's config tells whether the model reads texts or images. A model comes with
    its tokenizer, or as ``load(model, processor)`` with its image processor.

    An estimator of texts, such as a scikit-learn pipeline or a SetFit model, is asked by its
    ``predict_proba``, ``decision_function`` or, of a regression, ``predict``.

    A function without a tokenizer gets a list of texts; with one it gets token ids and attention
    mask. With ``inputs="pixels"`` it gets images: bytes, rows × height × width × 3, in the size
    they are explained in. It may return numpy, torch or lists, one column or many, logits or
    probabilities (``outputs`` says which if it can't be seen). ``kind`` says how outputs are read
    (exclusive "classes", independent "labels", or "regression"), ``labels`` names them.
    ``version`` names the present state of a function, so that a cache of answers may know it.

    ``runtime`` says what runs a Hugging Face model: "torch", or one of "torch-bf16", "torch-int8",
    "onnx", "openvino", "openvino-bf16", whose answers are held against torch's on the first input
    and refused if they differ by more than ``tolerance`` of the answers' spread (None: 1 % for
    float32, 10 % for less).

    A causal language model (a folder, a hub id, a ``.gguf`` file, or a model with its tokenizer)
    becomes a classifier by a ``prompt`` with a place for the input, "Review: {text} Sentiment:",
    or messages of a chat, and ``labels``: names, or names with one or several wordings each. Its
    answer is the labels' log-probabilities. ``examples`` are pairs of an input and its label, shown
    before it; ``pinned`` names parts that are never removed, ``free`` parts that are removed though
    they usually are not ("system", "examples"); ``content_free`` is a text without content whose
    answer is subtracted. Without labels it is a model that answers freely: see
    :func:`piste.explain`.

    A model of entailment (NLI) with candidate ``labels`` and a ``hypothesis``, "This example is
    {}.", is a zero-shot classifier, and so is a zero-shot pipeline with ``labels``.

    The URL of an OpenAI-compatible server, with a ``prompt`` and ``labels``, is a language model
    that chooses a label; ``model`` is its name there. No more than ``max_requests`` requests and
    ``max_tokens`` tokens are used, ``concurrency`` requests at a time, and each is waited for
    ``timeout`` seconds. A key is read from the environment (``PISTE_API_KEY``).

    >>> import piste
    >>> piste.load("piste:reviews").name
    'piste:reviews'
    >>> bright = piste.load(lambda pixels: pixels.mean(axis=(1, 2, 3)), inputs="pixels")
    >>> bright.reads
    'images'
    """
    if isinstance(source, Classifier):
        return source
    known = [field.name for field in fields(Loading) if field.name != "tokenizer"]
    for option in options:
        if option not in known:
            raise PisteError(f"load has no option {option!r}: it has {', '.join(known)}.")
    how = Loading(tokenizer, **options)
    _check_name(source)
    for name in CLASSIFIERS.added_first():
        loader = CLASSIFIERS[name]()
        if loader.accepts(source, how):
            return loader.load(source, how)
    raise PisteError(
        f"Expected a name, a folder, a model or a function, got {shorten(source)} of type "
        f"{type(source).__name__}."
    )
