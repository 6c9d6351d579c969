"""Piste explains the decisions of transformer classifiers.

>>> import piste
>>> classifier = piste.load("piste:reviews")
>>> explanation = piste.explain(classifier, "A slow start, but a wonderful ending.")
>>> explanation.output.label
'positive'
"""

from piste import slalom
from piste.classifiers import Classifier, load
from piste.errors import PisteError
from piste.explaining import explain
from piste.explanation import Explanation
from piste.storage import read
from piste.subject import Subject, Unit
from piste.target import Target

__version__ = "0.1.0"

__all__ = [
    "Classifier",
    "Explanation",
    "PisteError",
    "Subject",
    "Target",
    "Unit",
    "__version__",
    "explain",
    "load",
    "read",
    "slalom",
]
