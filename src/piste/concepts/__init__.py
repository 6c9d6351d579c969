"""Concepts: which ideas, defined by examples, a class reacts to, and where in an input.

>>> import piste
>>> report = piste.concepts.score(
...     "piste:reviews", piste.concepts.sentences("acting"), ["praise", "blame", "price"],
...     target="positive", layers=[1], repeats=5,
... )
>>> report.of("praise", layer=1).verdict
'raises'
"""

from piste.concepts.examples import draw, sentences, shipped
from piste.concepts.localization import ConceptMap, locate
from piste.concepts.report import VERDICTS, ConceptReport, ConceptScore, read
from piste.concepts.scoring import score
from piste.concepts.sensitivity import ABOUT, KINDS

__all__ = [
    "ABOUT",
    "KINDS",
    "VERDICTS",
    "ConceptMap",
    "ConceptReport",
    "ConceptScore",
    "draw",
    "locate",
    "read",
    "score",
    "sentences",
    "shipped",
]
