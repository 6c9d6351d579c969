"""Concepts: which ideas, defined by examples, a class reacts to, and where in an input.

>>> import piste
>>> report = piste.concepts.score(
...     "piste:reviews", piste.concepts.sentences("acting"), ["praise", "blame", "price"],
...     target="positive", layers=[1], repeats=5,
... )
>>> report.of("praise", layer=1).verdict
'raises'
"""

from typing import TYPE_CHECKING

from piste.registry import lazy_names

if TYPE_CHECKING:
    from piste.concepts.examples import draw
    from piste.concepts.localization import ConceptMap, locate
    from piste.concepts.report import VERDICTS, ConceptReport, ConceptScore, read
    from piste.concepts.scoring import score
    from piste.concepts.sensitivity import ABOUT, KINDS
    from piste.concepts.shipped_concepts import sentences, shipped
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "piste.concepts.examples": ["draw"],
            "piste.concepts.localization": ["ConceptMap", "locate"],
            "piste.concepts.report": ["VERDICTS", "ConceptReport", "ConceptScore", "read"],
            "piste.concepts.scoring": ["score"],
            "piste.concepts.sensitivity": ["ABOUT", "KINDS"],
            "piste.concepts.shipped_concepts": ["sentences", "shipped"],
        },
    )

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
