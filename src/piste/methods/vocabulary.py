"""SLALOM from a vocabulary: what the words of a corpus say, applied to one text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from piste.errors import PisteError
from piste.explanation import Fidelity
from piste.methods.base import Method, Solution, Task, measure_fidelity
from piste.slalom import sampling
from piste.slalom.family import Form, Layout
from piste.slalom.fitting import Fit, fit_with_prior
from piste.slalom.scores import text_scores
from piste.slalom.surrogate import Saturation, Slalom
from piste.subject import Sequence1D
from piste.surrogates import SlalomSurrogate
from piste.types import Floats
from piste.validation import check_count
from piste.vocabulary.table import Vocabulary

_OWN_EVIDENCE = 0.25
"""How far a word's evidence may differ in one text, in spreads of the evidence of all words."""
_OWN_IMPORTANCE = 0.5
_OWN_BASE = 0.5
"""The same for what all units share, in the same spreads."""
_OWN_REACH = 0.1
"""The same for the logarithm of the link's reach."""


@dataclass(frozen=True)
class VocabularyMethod(Method):
    """Scores of a text's words as a ``table`` has them, almost without asking.

    ``table`` is a file that ``piste vocabulary`` wrote. ``held_out`` removals are asked to measure
    how well it predicts the model on this text. ``refine`` more (the whole text, and parts of it)
    move the text's own evidence and importances away from the corpus's. Half of the parts have
    sizes that are even on a log scale, half on a plain one.
    """

    table: str | None = None
    refine: int = 0
    held_out: int = 10

    name: ClassVar[str] = "vocabulary"
    needs: ClassVar[str] = "a table"
    about: ClassVar[str] = "SLALOM fitted once to a corpus's words, and refined on request"
    paper: ClassVar[str] = "Leemann et al., TMLR 2025, for a whole corpus"

    def __post_init__(self) -> None:
        if self.table is None:
            raise PisteError(
                "The method 'vocabulary' needs a table: make one by `piste vocabulary` and give "
                "its file as the option table."
            )
        if not Path(self.table).is_file():
            raise PisteError(
                f"There is no vocabulary {self.table!r}: make one by `piste vocabulary`."
            )
        self._words()  # refused here, not on the first text
        for name in ("refine", "held_out"):
            if getattr(self, name) != 0:
                check_count(name, getattr(self, name))

    def _words(self) -> Vocabulary:
        return _read(str(self.table), Path(str(self.table)).stat().st_mtime_ns)

    def plan(self, task: Task) -> list[Sequence1D]:
        if task.held_out is not None:
            return []
        n, types = len(task.subject), task.subject.types
        seen: sampling.SeenKeys = {sampling.key_of(types)}

        def parts(count: int) -> list[Sequence1D]:
            return list(sampling.draw("mix", n, count, task.rng, seen, types))

        held_out = parts(self.held_out)
        task.held_out = len(held_out)
        if not self.refine:
            return held_out
        return [*held_out, task.subject.whole, *parts(self.refine - 1)]

    def solve(self, task: Task) -> Solution:
        vocabulary = self._words()
        slalom = _turned(vocabulary.local(task.subject), _sign(vocabulary, task))
        types, held = task.subject.types, task.held_out or 0
        places = vocabulary.numbers(task.subject)
        refined: Fit | None = None
        if len(task.sequences) > held:
            refined = _refined(slalom, vocabulary, task, held)
            slalom = refined.slalom
        scores, errors = text_scores(slalom, types, refined)
        surrogate = SlalomSurrogate.of(slalom, types, vocabulary.mixing_error)
        if refined is None:
            errors |= _errors(vocabulary, task)
        fidelity = Fidelity(float("nan"), float("nan"), 0)
        if held:
            counts = task.counts(types)[:held]
            fidelity = measure_fidelity(slalom.predict(counts), task.numbers()[:held])
        return Solution(
            scores=scores,
            errors=errors,
            surrogate=surrogate,
            fidelity=fidelity,
            settings={
                "table": Path(str(self.table)).name,
                "refine": self.refine,
                "held_out": held,
                "unknown": int((places < 0).sum()),
            },
            ranking="contribution",
        )


@lru_cache(maxsize=4)
def _read(path: str, changed: int) -> Vocabulary:
    return Vocabulary.read(path)


def _sign(vocabulary: Vocabulary, task: Task) -> float:
    """1, or −1 where the table speaks of the other of two classes."""
    target, own = task.target, vocabulary.about
    labels = list(task.subject.classifier.labels)
    if labels != list(own["labels"]):
        raise PisteError(
            f"The vocabulary is of a model with the classes {', '.join(own['labels'])}, this one "
            f"has {', '.join(labels)}."
        )
    if target.kind in ("class", "output") and target.indices[0] == own["class"]:
        return 1.0
    if target.kind == "class" and len(labels) == 2:
        return -1.0
    raise PisteError(
        f"The vocabulary explains the {own['target']}, not the {target.name}: choose that target, "
        "or fit another vocabulary."
    )


def _errors(vocabulary: Vocabulary, task: Task) -> dict[str, Floats]:
    """Standard errors as the table has them; of unknown words nothing is known."""
    places = vocabulary.numbers(task.subject)
    ratio = vocabulary.about["usual_weight"] / vocabulary.weight(task.subject)
    own = {
        "value": vocabulary.errors["value"],
        "importance": vocabulary.errors["importance"],
        # An effect is the contribution to a text of usual length.
        "contribution": vocabulary.errors["effect"] * ratio**vocabulary.slalom.mixing,
    }
    return {name: np.where(places >= 0, one[places], np.inf) for name, one in own.items()}


def _turned(slalom: Slalom, sign: float) -> Slalom:
    """The same for the other of two classes."""
    if sign > 0:
        return slalom
    background = slalom.background
    if background is not None:
        background = replace(background, evidence=-background.evidence)
    return replace(
        slalom,
        evidence=-slalom.evidence,
        base=-slalom.base,
        background=background,
        link=slalom.link and Saturation(-slalom.link.middle, slalom.link.reach),
    )


def _refined(slalom: Slalom, vocabulary: Vocabulary, task: Task, held: int) -> Fit:
    """The text's own parameters, which begin at those of the corpus."""
    form = Form(float(slalom.mixing), slalom.link is not None, slalom.background is not None)
    layout = Layout(len(slalom.importances), 1, form)
    counts, numbers = task.counts(task.subject.types)[held:], task.numbers()[held:]
    prior = _prior(slalom, layout, float(vocabulary.slalom.evidence.std()))
    return fit_with_prior(counts, numbers, form, prior)


def _prior(slalom: Slalom, layout: Layout, spread: float) -> tuple[Floats, Floats]:
    """Means and standard deviations of all parameters, in the order of the layout."""
    mean, deviation = np.zeros(layout.size), np.ones(layout.size)
    if layout.weighted:
        mean[layout.importances] = slalom.importances
        deviation[layout.importances] = _OWN_IMPORTANCE
    mean[layout.evidence], deviation[layout.evidence] = slalom.evidence, _OWN_EVIDENCE * spread
    mean[layout.base], deviation[layout.base] = slalom.base, _OWN_BASE * spread
    if layout.background is not None and slalom.background is not None:
        at = slice(layout.background, layout.background + 2)
        mean[at] = slalom.background.importance, slalom.background.evidence
        deviation[at] = _OWN_IMPORTANCE, _OWN_BASE * spread
    if layout.link is not None and slalom.link is not None:
        at = slice(layout.link, layout.link + 2)
        mean[at] = slalom.link.middle, np.log(slalom.link.reach)
        deviation[at] = _OWN_REACH * slalom.link.reach, _OWN_REACH
    return mean, np.maximum(deviation, 1e-9)
