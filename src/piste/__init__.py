"""Piste explains the decisions of transformer classifiers.

>>> import piste
>>> classifier = piste.load("piste:reviews")
>>> explanation = piste.explain(classifier, "A slow start, but a wonderful ending.")
>>> explanation.output.label
'positive'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from piste.registry import lazy_names

if TYPE_CHECKING:
    from piste import concepts, corpus, evaluation, slalom
    from piste.classifiers import Classifier, load
    from piste.comparison import Comparison, compare
    from piste.engine import AnswerCache
    from piste.errors import PisteError
    from piste.explanation import Explanation
    from piste.pipeline import explain
    from piste.readers import read
    from piste.subject import Subject, Unit
    from piste.target import Target
    from piste.verification import Check, check
else:  # imported when first used, so that `piste --help` need not wait for torch
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "piste.classifiers": ["Classifier", "load"],
            "piste.comparison": ["Comparison", "compare"],
            "piste.engine": ["AnswerCache"],
            "piste.errors": ["PisteError"],
            "piste.explanation": ["Explanation"],
            "piste.pipeline": ["explain"],
            "piste.readers": ["read"],
            "piste.subject": ["Subject", "Unit"],
            "piste.target": ["Target"],
            "piste.verification": ["Check", "check"],
            "piste": ["concepts", "corpus", "evaluation", "slalom"],
        },
    )

__version__ = "0.1.0"

__all__ = [
    "AnswerCache",
    "Check",
    "Classifier",
    "Comparison",
    "Explanation",
    "PisteError",
    "Subject",
    "Target",
    "Unit",
    "__version__",
    "check",
    "compare",
    "concepts",
    "corpus",
    "evaluation",
    "explain",
    "load",
    "read",
    "slalom",
]
