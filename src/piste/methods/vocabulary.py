"""SLALOM from a vocabulary: what the words of a corpus say, applied to one text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from piste.errors import PisteError
from piste.explanation import Fidelity
from piste.methods.base import Method, Solution, Task, WithSlopes, check_count, measure_fidelity
from piste.slalom import sampling
from piste.slalom.link import Saturation
from piste.slalom.scores import text_scores
from piste.slalom.surrogate import Slalom
from piste.slalom.wide import Asked, fit_wide
from piste.subject import Sequence1D
from piste.surrogates import SlalomSurrogate
from piste.vocabulary.table import Vocabulary

_PULL = (0.03, 0.001)
"""How strongly a text's own answers must speak to leave what the corpus says."""


@dataclass(frozen=True)
class VocabularyMethod(Method):
    """Values and importances of a text's words as a ``table`` has them, almost without asking.

    ``table`` is a file that ``piste vocabulary`` wrote. ``held_out`` removals are asked to say how
    well it foretells the model on this text, and ``refine`` more, with slopes where there are
    any, move the text's own values and importances away from the corpus's.
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
        for name in ("refine", "held_out"):
            if getattr(self, name) != 0:
                check_count(name, getattr(self, name))

    def plan(self, task: Task) -> list[Sequence1D]:
        memory = task.memory
        if "plain" not in memory:
            seen: sampling.Seen = set()
            n, types = len(task.subject), task.subject.types
            memory["plain"] = sampling.draw("subsets", n, self.held_out, task.rng, seen, types)
            more = sampling.draw("subsets", n, self.refine, task.rng, seen, types)
            memory["more"] = [task.subject.whole, *more][: self.refine] if self.refine else []
            if memory["plain"]:
                return list(memory["plain"])
        more, memory["more"] = memory["more"], []
        if not more or task.subject.classifier.why_no_slopes(task.subject) is not None:
            return list(more)
        return WithSlopes(more)

    def solve(self, task: Task) -> Solution:
        vocabulary = _read(str(self.table), Path(str(self.table)).stat().st_mtime_ns)
        sign = _sign(vocabulary, task)
        slalom = _turned(vocabulary.local(task.subject), sign)
        held = len(task.memory["plain"])
        asked = _asked(task, held)
        if asked is not None:
            slalom = _by_type(fit_wide(asked, _PULL, prior=_types_of(slalom, task)), task)
        scores, errors = text_scores(slalom, np.arange(len(task.subject)))
        places = vocabulary.numbers(task.subject)
        for name in ("value", "importance"):
            known = vocabulary.errors[name][places]
            errors[name] = np.where(places >= 0, known, np.inf)
        fidelity = Fidelity(float("nan"), float("nan"), 0)
        if held:
            counts = task.counts(np.arange(len(task.subject)))[:held]
            fidelity = measure_fidelity(slalom.predict(counts), task.numbers()[:held])
        return Solution(
            scores=scores,
            errors=errors,
            surrogate=SlalomSurrogate(float(slalom.weight), float(slalom.base), slalom.link),
            fidelity=fidelity,
            settings={
                "table": Path(str(self.table)).name,
                "refine": self.refine,
                "held_out": held,
                "unknown": int((places < 0).sum()),
            },
            ranking="linear",
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


def _turned(slalom: Slalom, sign: float) -> Slalom:
    if sign > 0:
        return slalom
    link = slalom.link and Saturation(-slalom.link.middle, slalom.link.reach)
    return replace(slalom, values=-slalom.values, base=-slalom.base, link=link)


def _asked(task: Task, held: int) -> Asked | None:
    """What was asked to refine, about types of units."""
    sequences = [np.asarray(one, dtype=np.int64) for one in task.sequences[held:]]
    if not sequences:
        return None
    units = np.concatenate(sequences)
    question = np.repeat(np.arange(len(sequences)), [len(one) for one in sequences])
    slopes = np.full(len(units), np.nan)
    if task.slopes is not None:
        slopes = task.slopes[held:][question, units]
    types = task.subject.types
    return Asked(question, types[units], slopes, task.numbers()[held:], int(types.max()) + 1)


def _types_of(slalom: Slalom, task: Task) -> Slalom:
    """One value and importance per type instead of per unit."""
    first = np.unique(task.subject.types, return_index=True)[1]
    return replace(slalom, values=slalom.values[first], importances=slalom.importances[first])


def _by_type(slalom: Slalom, task: Task) -> Slalom:
    types: NDArray[np.int64] = task.subject.types
    return replace(slalom, values=slalom.values[types], importances=slalom.importances[types])
