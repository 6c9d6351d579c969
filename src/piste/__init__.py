"""Piste explains the decisions of transformer classifiers.

>>> import piste
>>> classifier = piste.load("piste:reviews")
>>> explanation = piste.explain(classifier, "A slow start, but a wonderful ending.")
>>> explanation.output.label
'positive'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

# Names are imported when first used, so that `piste --help` need not wait for torch.
_HOMES = {
    "AnswerCache": "piste.engine",
    "Check": "piste.verification",
    "Classifier": "piste.classifiers",
    "Comparison": "piste.comparison",
    "Explanation": "piste.explanation",
    "PisteError": "piste.errors",
    "Subject": "piste.subject",
    "Target": "piste.target",
    "Unit": "piste.subject",
    "check": "piste.verification",
    "compare": "piste.comparison",
    "explain": "piste.pipeline",
    "load": "piste.classifiers",
    "read": "piste.readers",
}


def __getattr__(name: str) -> Any:
    if name in ("concepts", "corpus", "evaluation", "slalom"):
        return import_module(f"piste.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'piste' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
