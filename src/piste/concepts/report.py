"""The result: which concepts a class reacts to, layer by layer, how sure that is; as JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from piste.concepts.sensitivity import KINDS, Kind
from piste.data.files import write_text
from piste.data.storage import read_text
from piste.errors import PisteError
from piste.target import Target
from piste.types import Floats
from piste.views import VIEWS

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from piste.concepts.localization import ConceptMap


SURE = 0.05
"""Corrected p below which a reaction counts as shown."""
Verdict: TypeAlias = Literal["raises", "lowers", "unclear", "not separable"]

VERDICTS: Mapping[Verdict, str] = {
    "raises": "the concept raises the class, more than random sets do",
    "lowers": "the concept lowers the class, more than random sets do",
    "unclear": "no more than random sets do, or mean and share point in different directions",
    "not separable": "its examples can't be told from random ones here, so the score means nothing",
}


@dataclass(frozen=True)
class ConceptScore:
    """One concept, class, layer and kind of summing up.

    ``score`` is the share of the class's examples whose number rises along the concept, mean over
    vectors, with its 95 % interval over vectors and examples. ``random_…`` is the same for random
    sets of examples, with the range that holds 95 % of these sets.
    """

    concept: str
    target: str
    layer: int
    kind: Kind
    score: float
    low: float
    high: float
    sensitivity: float
    """Mean of the derivative or change itself: what p is about, because it has no ceiling."""
    random_score: float
    random_low: float
    random_high: float
    p: float
    """That the sensitivity is one more of those of random sets, two-sided, uncorrected."""
    p_corrected: float
    p_welch: float
    """Welch's t-test of the scores against those of random sets: the mean of the vectors is tested,
    which any fixed set passes with enough of them."""
    p_half: float
    """The t-test of the scores against 0.5."""
    accuracy: float
    """Share of held-out examples that a vector puts on the right side, mean over vectors."""
    accuracy_low: float
    accuracy_high: float
    random_accuracy: float
    separable: bool
    """Whether that is more than random sets reach."""

    @property
    def verdict(self) -> Verdict:
        if not self.separable:
            return "not separable"
        # A few examples with long gradients can turn the mean against what most examples do.
        if not self.p_corrected < SURE or (self.score > 0.5) != (self.sensitivity > 0):
            return "unclear"
        return "raises" if self.sensitivity > 0 else "lowers"


@dataclass(frozen=True, eq=False)
class ConceptReport:
    """All scores of one run, and what is needed to find the concepts in a single input.

    >>> import piste
    >>> from piste.concepts import sentences
    >>> report = piste.concepts.score(
    ...     "piste:reviews", sentences("everyday"), ["praise", "blame"],
    ...     target="positive", layers=[1], repeats=5,
    ... )
    >>> report.of("praise", layer=1).score > 0.9, report.of("blame", layer=1).score < 0.1
    (True, True)
    """

    scores: tuple[ConceptScore, ...]
    vectors: Mapping[str, Mapping[int, Floats]]
    """By concept and layer the mean of all vectors fitted to tokens."""
    depth: int
    """Blocks of the model: the last layer's number."""
    goals: tuple[Target, ...]
    """The numbers whose gradients were taken, one per class."""
    concepts: Mapping[str, int]
    """Examples of every concept."""
    negatives: int | None
    """Examples all concepts were told from; None if from each other."""
    examples: Mapping[str, int]
    """Examples of every class."""
    calls: int
    """Passes through the model."""
    seconds: float
    settings: Mapping[str, Any]
    classifier: Mapping[str, Any]
    versions: Mapping[str, str]
    notes: tuple[str, ...] = field(default=())
    """What was done to inputs, and what could not be measured."""

    def __post_init__(self) -> None:
        for name in ("concepts", "examples", "settings", "classifier", "versions"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        frozen = {
            concept: MappingProxyType({layer: _frozen(one) for layer, one in layers.items()})
            for concept, layers in self.vectors.items()
        }
        object.__setattr__(self, "vectors", MappingProxyType(frozen))

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(one.layer for one in self.scores))

    @property
    def kinds(self) -> tuple[Kind, ...]:
        there = {one.kind for one in self.scores}
        return tuple(kind for kind in KINDS if kind in there)

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(self.examples)

    @property
    def main_kind(self) -> Kind:
        """Moved states, where the model allows it."""
        return self.kinds[0]

    def select(
        self, *, kind: str | None = None, target: str | None = None, concept: str | None = None
    ) -> tuple[ConceptScore, ...]:
        """The scores of one kind (default: the main one), of one class or concept if named.

        They come by class, concept and layer.
        """
        chosen = self.main_kind if kind is None else kind
        for name, value, known in (
            ("kind", chosen, self.kinds),
            ("class", target, self.targets),
            ("concept", concept, tuple(self.concepts)),
        ):
            if value is not None and value not in known:
                raise PisteError(f"This report has no {name} {value!r}: it has {_listed(known)}.")
        names = list(self.concepts)
        found = [
            one
            for one in self.scores
            if one.kind == chosen
            and target in (None, one.target)
            and concept in (None, one.concept)
        ]
        order = self.targets
        return tuple(
            sorted(
                found,
                key=lambda one: (order.index(one.target), names.index(one.concept), one.layer),
            )
        )

    def of(
        self,
        concept: str,
        *,
        layer: int,
        kind: str | None = None,
        target: str | None = None,
    ) -> ConceptScore:
        """One score; the class may be left out if there is only one."""
        if target is None and len(self.targets) > 1:
            raise PisteError(
                f"This report has several classes: name one of {_listed(self.targets)}."
            )
        found = [
            one
            for one in self.select(kind=kind, target=target, concept=concept)
            if one.layer == layer
        ]
        if not found:
            raise PisteError(f"This report has no layer {layer!r}: it has {_listed(self.layers)}.")
        return found[0]

    def locate(self, classifier: Any, input: Any, **options: Any) -> ConceptMap:
        """Where the concepts are in one input: see :func:`piste.concepts.locate`."""
        from piste.concepts.localization import locate

        return locate(classifier, input, self, **options)

    # -- stored and shown --------------------------------------------------------------------

    def to_json(self, path: str | Path | None = None) -> str:
        """The complete report as JSON, also written to ``path`` if given."""
        return to_json(self, path)

    def to_markdown(self, kind: str | None = None) -> str:
        """A table of the scores of one kind."""
        return VIEWS["concepts_markdown"](self, kind)

    def plot(self, path: str | Path | None = None, *, kind: str | None = None) -> Figure:
        """Bars per layer with error bars, and what random sets score behind them."""
        return VIEWS["concepts_plot"](self, path, kind=kind)

    def to_html(self, path: str | Path | None = None, *, maps: Sequence[ConceptMap] = ()) -> str:
        """A standalone page, with the concepts of single inputs if ``maps`` are given."""
        return VIEWS["concepts_html"](self, path, maps=maps)

    def __rich__(self) -> RenderableType:
        return VIEWS["concepts_terminal"](self)

    def __repr__(self) -> str:
        found = [one for one in self.select() if one.verdict in ("raises", "lowers")]
        shown = ", ".join(f"{one.concept} {one.verdict} {one.target}" for one in found[:4])
        return (
            f"<ConceptReport: {len(self.concepts)} concepts, layers {_listed(self.layers)}; "
            f"{shown or 'nothing shown'}>"
        )


def _listed(things: Sequence[object]) -> str:
    return ", ".join(map(str, things))


def _frozen(vector: Any) -> Floats:
    """In single precision, which is all that is stored: so what is read again is the same."""
    copy = np.array(vector, dtype=np.float32).astype(np.float64)
    copy.setflags(write=False)
    return copy


FORMAT = 1
"""Version of the stored form; raised when a reader of older files needs to know."""
_MARK = "piste_concepts"


def to_json(report: ConceptReport, path: str | Path | None = None) -> str:
    """The whole report as one JSON object; vectors are float32 in base64."""
    data: dict[str, Any] = {_MARK: FORMAT}
    for one in fields(report):
        data[one.name] = _plain(getattr(report, one.name))
    data["scores"] = [asdict(score) for score in report.scores]
    data["vectors"] = {
        concept: {str(layer): _packed(vector) for layer, vector in layers.items()}
        for concept, layers in report.vectors.items()
    }
    data["goals"] = [
        {"kind": goal.kind, "name": goal.name, "indices": goal.indices, "labels": goal.labels}
        for goal in report.goals
    ]
    text = json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False)
    if path is not None:
        write_text(path, text)
    return text


def from_json(text: str) -> ConceptReport:
    """The report that :func:`to_json` wrote."""
    data = json.loads(text)
    found = data.pop(_MARK, None) if isinstance(data, dict) else None
    if found != FORMAT:
        raise PisteError(
            f"This is no stored concept report of format {FORMAT} (it says {found!r}): update "
            "Piste, or score the concepts again."
        )
    data["scores"] = tuple(ConceptScore(**one) for one in data["scores"])
    data["vectors"] = {
        concept: {int(layer): _unpacked(vector) for layer, vector in layers.items()}
        for concept, layers in data["vectors"].items()
    }
    data["goals"] = tuple(
        Target(one["kind"], one["name"], tuple(one["indices"]), tuple(one["labels"]))
        for one in data["goals"]
    )
    data["notes"] = tuple(data["notes"])
    return ConceptReport(**data)


def read(path: str | Path) -> ConceptReport:
    """A stored report."""
    return read_text(path, from_json, "concept report")


def _plain(thing: Any) -> Any:
    """What JSON can hold."""
    if isinstance(thing, Mapping):
        return {str(key): _plain(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [_plain(item) for item in thing]
    if isinstance(thing, (str, bool, int, float, type(None))):
        return thing
    return thing.item() if isinstance(thing, np.generic) else str(thing)


def _packed(vector: Floats) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")


def _unpacked(text: str) -> Floats:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float64)
