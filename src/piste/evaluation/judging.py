"""Judging explanations: all metrics of all of them ask one model together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from piste.classifiers import Classifier, load
from piste.engine import CacheOption, Engine, Progress, ProgressOption, opened
from piste.errors import PisteError, shorten
from piste.evaluation.metrics import Answers, Case, Metric, make, model_metrics
from piste.evaluation.results import Row
from piste.explanation import Explanation, listed_explanations
from piste.subject import UNIT_KINDS, Sequence1D, Subject, Unit
from piste.types import Flags, Floats
from piste.validation import check_count

ScoreChoice: TypeAlias = str | Sequence[str] | Mapping[str, str | Sequence[str]] | None
"""Which scores rank the units: one, several, or some by method; None is the method's own."""

# Units asked about in one wave of inputs, so that memory does not grow with their number.
_WAVE = 1_000_000


@dataclass
class _Judgement:
    """One explanation judged by one score: the row to be."""

    example: str
    method: str
    case: Case
    plans: list[list[Sequence1D]] = field(default_factory=list)


def judge(
    classifier: Any,
    explanations: Explanation | Iterable[Explanation],
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    *,
    score: ScoreChoice = None,
    rationales: Sequence[ArrayLike | None] | None = None,
    examples: Sequence[str] | None = None,
    seed: int = 0,
    progress: ProgressOption = None,
    cache: CacheOption = None,
) -> list[Row]:
    """Ask the classifier how faithful explanations of it are: a row for each, in their order.

    Every input is bound to the classifier anew, cut as it was explained, and the questions of
    all metrics and explanations are asked together, none twice. Without ``metrics``, all that
    need nothing but the model are taken. ``score`` names what ranks the units if it isn't the
    explanation's own ranking; several scores give several rows, and
    ``{"slalom": ["value", "contribution"]}`` chooses them by method. ``rationales`` holds a mask of
    marked units (see :func:`~piste.evaluation.rationale_units`) or None per explanation,
    ``examples`` their names; without it, different inputs are numbered. Every row also has the
    explanation's own ``seconds`` and ``calls``.

    >>> import piste
    >>> loud = piste.load(lambda texts: [text.count("!") for text in texts])
    >>> e = piste.explain(loud, "Stop it now !", method="occlusion")
    >>> row = judge(loud, [e], ["single", "fidelity"])[0]
    >>> row.method, row.figures["spearman_single"], row.figures["r2_all"]
    ('occlusion', 1.0, 1.0)
    """
    loaded, chosen = load(classifier), _asking(metrics)
    check_count("seed", seed, least=0)
    given = listed_explanations(explanations)
    judgements = _judgements(loaded, given, score, _masks(given, rationales), examples, seed)
    rows: dict[int, Row] = {}
    with Progress(progress) as shown, opened(cache) as kept:
        for group in _by_classifier(judgements):
            engine = Engine(group[0].case.subject.classifier, shown, kept)
            for wave in _waves(group, chosen):
                asked = [
                    (judgement.case.subject, [one for plan in judgement.plans for one in plan])
                    for judgement in wave
                ]
                for judgement, logits in zip(wave, engine.ask(asked), strict=True):
                    rows[id(judgement)] = _measure(judgement, chosen, logits)
                done = {id(one.case.subject): one.case.subject for one in wave}
                engine.forget(list(done.values()))
    return [rows[id(judgement)] for judgement in judgements]


def _by_classifier(judgements: Sequence[_Judgement]) -> list[list[_Judgement]]:
    """A language model is another classifier for every answer; others are always one."""
    groups: dict[int, list[_Judgement]] = {}
    for judgement in judgements:
        groups.setdefault(id(judgement.case.subject.classifier), []).append(judgement)
    return list(groups.values())


def _asking(metrics: str | Metric | Iterable[str | Metric] | None) -> list[Metric]:
    """Metrics that ask; one that explains again is refused."""
    chosen: list[Metric] = []
    for metric in make(model_metrics() if metrics is None else metrics):
        if not isinstance(metric, Metric):
            raise PisteError(
                f"The metric {metric.name!r} explains again, which judge can't: use "
                "piste.evaluation.evaluate."
            )
        chosen.append(metric)
    return chosen


def bind(classifier: Classifier, explanation: Explanation) -> Subject:
    """The explained input bound to a classifier anew, cut into the same units."""
    notes = explanation.settings.get("input", {})
    long: Any = notes.get("long", "fits")
    removal: Any = notes.get("removal", "delete")
    refusal: PisteError | None = None
    # Results of earlier versions don't say what the input was cut into.
    kinds = (notes["units"],) if "units" in notes else UNIT_KINDS
    # An image may have been cut for a removal that was not possible.
    removals = ("delete", removal) if "instead" in notes else (removal,)
    for kind, asked in product(kinds, removals):
        try:
            subject = classifier.subject(
                explanation.input,
                units=kind,
                long="error" if long == "fits" else long,
                removal=asked,
            )
        except PisteError as problem:
            refusal = refusal or problem
            continue
        if _spans(subject.units) == _spans(explanation.units):
            classifier.calibrate(subject)  # whether nothing can be read counts in planning
            return subject
    reason = f" ({refusal})" if refusal else ""
    raise PisteError(
        f"{classifier.name!r} does not cut {shorten(explanation.input)} into the units that were "
        f"explained{reason}: explain it again with this classifier."
    )


def _judgements(
    classifier: Classifier,
    explanations: Sequence[Explanation],
    score: ScoreChoice,
    masks: Sequence[Flags | None],
    examples: Sequence[str] | None,
    seed: int,
) -> list[_Judgement]:
    if examples is not None and len(examples) != len(explanations):
        raise PisteError(
            f"examples: expected {len(explanations)} names, one per explanation, got "
            f"{len(examples)}."
        )
    numbers: dict[Any, str] = {}
    bound: dict[Any, Subject] = {}
    judgements: list[_Judgement] = []
    for place, (explanation, mask) in enumerate(zip(explanations, masks, strict=True)):
        name = numbers.setdefault(explanation.input, str(len(numbers)))
        notes = explanation.settings.get("input", {})
        how = (notes.get("long"), notes.get("removal"), _spans(explanation.units))
        answer = explanation.answer
        key = explanation.input, how, answer and (answer.text, answer.against)
        if key not in bound:
            bound[key] = bind(classifier.explained(explanation), explanation)
        _check_outputs(bound[key].classifier, explanation)
        for one in _scores(explanation, score):
            case = Case(explanation, bound[key], one, mask, seed)
            other = one is not None and one != explanation.ranking
            method = f"{explanation.method}:{one}" if other else explanation.method
            judgements.append(_Judgement(str(examples[place]) if examples else name, method, case))
    return judgements


def _scores(explanation: Explanation, score: ScoreChoice) -> list[str | None]:
    """The scores to judge an explanation by, which it must have."""
    chosen = score.get(explanation.method) if isinstance(score, Mapping) else score
    if chosen is None:
        return [None]
    names: list[str | None] = [chosen] if isinstance(chosen, str) else list(chosen)
    for name in names:
        explanation.score(name)
    return names


def _masks(
    explanations: Sequence[Explanation], rationales: Sequence[ArrayLike | None] | None
) -> list[Flags | None]:
    """Marked units of every explanation, checked against its units."""
    if rationales is None:
        return [None] * len(explanations)
    if len(rationales) != len(explanations):
        raise PisteError(
            f"Expected a rationale, or None, for each of {len(explanations)} explanations, got "
            f"{len(rationales)}."
        )
    masks: list[Flags | None] = []
    for explanation, rationale in zip(explanations, rationales, strict=True):
        mask = None if rationale is None else np.asarray(rationale)
        if mask is not None and (
            mask.shape != (len(explanation),) or not np.isin(mask, (0, 1)).all()
        ):
            raise PisteError(
                f"Expected a rationale with a 0 or 1 for each of the {len(explanation)} units, got "
                f"the shape {mask.shape}: make it with piste.evaluation.rationale_units."
            )
        masks.append(None if mask is None else mask.astype(bool))
    return masks


def _check_outputs(classifier: Classifier, explanation: Explanation) -> None:
    if len(classifier.labels) != len(explanation.output.logits):
        raise PisteError(
            f"{classifier.name!r} has {len(classifier.labels)} outputs, but the explained model "
            f"had {len(explanation.output.logits)}: judge with the classifier that was explained."
        )


def _spans(units: Sequence[Unit]) -> tuple[tuple[Any, ...], ...]:
    return tuple((unit.segment, unit.start, unit.end, unit.box) for unit in units)


def _waves(
    judgements: Sequence[_Judgement], metrics: Sequence[Metric]
) -> Iterator[list[_Judgement]]:
    """Judgements with their plans; those of one subject go together, so that they share answers."""
    groups: dict[int, list[_Judgement]] = {}
    for judgement in judgements:
        groups.setdefault(id(judgement.case.subject), []).append(judgement)
    wave: list[_Judgement] = []
    size = 0
    for group in groups.values():
        for judgement in group:
            judgement.plans = [metric.plan(judgement.case) for metric in metrics]
            size += sum(len(one) for plan in judgement.plans for one in plan)
        wave += group
        if size >= _WAVE:
            yield wave
            wave, size = [], 0
    if wave:
        yield wave


def _measure(judgement: _Judgement, metrics: Sequence[Metric], logits: Floats) -> Row:
    figures: dict[str, float] = {}
    curves: dict[str, Sequence[float]] = {}
    ends = np.cumsum([len(plan) for plan in judgement.plans])
    for metric, plan, end in zip(metrics, judgement.plans, ends, strict=True):
        part = logits[end - len(plan) : end]
        # A target function of the user's is not called for nothing.
        nothing = np.empty(0)
        answers = judgement.case.answers(part) if len(part) else Answers(part, nothing, nothing)
        measured = metric.measure(judgement.case, answers)
        figures |= measured.figures
        curves |= measured.curves
    judgement.plans = []
    explanation = judgement.case.explanation
    figures |= {"seconds": float(explanation.seconds), "calls": float(explanation.calls)}
    return Row(judgement.example, judgement.method, figures, curves)
