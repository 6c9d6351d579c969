"""Judging explanations that were made before, from files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from piste.classifiers import Classifier, load
from piste.data.examples import Example
from piste.data.unit_tables import read
from piste.engine import CacheOption, ProgressOption, opened
from piste.errors import PisteError, shorten
from piste.evaluation.benchmark.evaluation_run import DEFAULT_METRICS, make_plan, run
from piste.evaluation.benchmark.example_run import RunContext
from piste.evaluation.benchmark.explainers import Entry, SavedExplainer, check_once
from piste.evaluation.benchmark.metric_set import make_metric_set
from piste.evaluation.judging import bind
from piste.evaluation.metrics import MetricOption
from piste.evaluation.results import Results
from piste.explanation import Explanation
from piste.image import ImageInput
from piste.options import split_names
from piste.subject import Input

_ENDINGS = (".json", ".csv", ".parquet")


@dataclass(frozen=True)
class SavedExplanations:
    """Explanations from files: which method, of which example."""

    labels: tuple[str, ...]
    examples: tuple[Example, ...]
    explanations: Mapping[tuple[str, str], Explanation]
    """By label and example."""

    @property
    def digest(self) -> str:
        """The same for equal explanations only."""
        parts = [(key, one.to_json()) for key, one in self.explanations.items()]
        return sha256(repr(sorted(parts)).encode()).hexdigest()[:16]


def evaluate_saved(
    classifier: Any,
    explanations: str | Path,
    *,
    methods: str | Iterable[str] | None = None,
    metrics: MetricOption | Iterable[MetricOption] = DEFAULT_METRICS,
    seed: int = 0,
    folder: str | Path | None = None,
    progress: ProgressOption = None,
    cache: CacheOption = None,
    reference: str | None = None,
    data: Sequence[Example] = (),
    about: Mapping[str, Any] | None = None,
) -> Results:
    """Ask the classifier how faithful saved explanations are: all files in a folder and below.

    Explanations of the same text belong to the same example. A method is called by its name, or,
    where several files have the same text and method, by the folder they lie in. ``methods``
    chooses among them, also by score (``slalom:value``). ``data`` lends its labels and rationales
    to examples with the same text. Metrics that explain again are not possible here.
    """
    loaded = load(classifier)
    found = read_explanations(explanations)
    entries = _entries(found.labels, methods)
    known = {example.input: example for example in data}
    examples = [
        replace(known[example.input], id=example.id) if example.input in known else example
        for example in found.examples
    ]
    _check_model(loaded, found)  # first: a function's classes are known after its first answer
    measured = make_metric_set(metrics, loaded, lambda: list(data))
    if measured.reexplaining:
        raise PisteError(
            f"The metric {measured.reexplaining[0].name!r} explains again, which saved "
            "explanations can't: leave it out, or evaluate without saved ones."
        )
    settings = {"explanations": found.digest, "seed": seed}
    with opened(cache) as kept:
        explainer = SavedExplainer(found.explanations)
        context = RunContext(loaded, entries, measured, explainer, seed, kept)
        more = {"data": str(explanations), **(about or {})}
        plan = make_plan(context, examples, settings, reference, more)
        return run(context, examples, plan, folder, progress)


def read_explanations(folder: str | Path) -> SavedExplanations:
    """All explanations in a folder and the folders below it."""
    root = Path(folder)
    if not root.is_dir():
        raise PisteError(f"There is no folder {str(folder)!r} with explanations.")
    files = sorted(file for file in root.rglob("*") if file.suffix.lower() in _ENDINGS)
    if not files:
        raise PisteError(
            f"The folder {str(folder)!r} has no explanations: files that end in "
            f"{', '.join(_ENDINGS)} were expected."
        )
    made = {file: read(file) for file in files}
    ids = _ids(root, made)
    labels = _labels(root, made)
    found: dict[tuple[str, str], Explanation] = {}
    for file, explanation in made.items():
        key = labels[file], ids[explanation.input]
        if key in found:
            raise PisteError(
                f"There are two explanations of {shorten(explanation.input)} by {key[0]!r} in "
                f"{str(folder)!r}: put different methods into folders of their own."
            )
        found[key] = explanation
    examples = tuple(_example(given, name) for given, name in ids.items())
    return SavedExplanations(tuple(dict.fromkeys(labels.values())), examples, found)


def _example(given: Input, name: str) -> Example:
    if isinstance(given, ImageInput):
        return Example(name, image=given)
    return Example(name, given) if isinstance(given, str) else Example(name, *given)


def _ids(root: Path, made: Mapping[Path, Explanation]) -> dict[Input, str]:
    """A name for every text: that of its first file, with its folders if others are called so."""
    first: dict[Input, Path] = {}
    for file, explanation in made.items():
        first.setdefault(explanation.input, file)
    stems = [file.stem for file in first.values()]
    return {
        given: file.stem
        if stems.count(file.stem) == 1
        else file.relative_to(root).with_suffix("").as_posix()
        for given, file in first.items()
    }


def _labels(root: Path, made: Mapping[Path, Explanation]) -> dict[Path, str]:
    """What the methods are called: by folder where the name alone would not tell them apart."""
    seen: set[tuple[str, Input]] = set()
    doubled: set[str] = set()
    for explanation in made.values():
        key = explanation.method, explanation.input
        if key in seen:
            doubled.add(explanation.method)
        seen.add(key)
    labels = {}
    for file, explanation in made.items():
        place = file.parent.relative_to(root).as_posix()
        own = place if explanation.method in doubled and place != "." else explanation.method
        labels[file] = own
    return labels


def _entries(labels: Sequence[str], methods: str | Iterable[str] | None) -> tuple[Entry, ...]:
    if methods is None:
        return tuple(Entry(label, label, label) for label in labels)
    entries = []
    for name in split_names(methods) if isinstance(methods, str) else methods:
        label, _, score = (name, "", "") if name in labels else name.rpartition(":")
        if label not in labels:
            raise PisteError(
                f"No explanation by {name!r} was saved: there are {', '.join(labels)}."
            )
        entries.append(Entry(name, label, label, score or None))
    check_once(entries)
    return tuple(entries)


def _check_model(classifier: Classifier, found: SavedExplanations) -> None:
    """Refuse another model than the one that was explained, by its answer to a first text."""
    explanation = next(iter(found.explanations.values()))
    subject = bind(classifier, explanation)
    logits, before = subject.ask([subject.whole])[0], explanation.output.logits
    far = len(logits) != len(before) or any(
        abs(now - then) > 0.05 * max(1.0, abs(then))
        for now, then in zip(logits, before, strict=True)
    )
    if far:
        raise PisteError(
            f"{classifier.name!r} answers {shorten(explanation.input)} otherwise than the model "
            f"that was explained, {explanation.classifier.get('name')!r}: judge with that one."
        )
