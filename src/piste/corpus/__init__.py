"""From one text to a million: corpus runs, what they say together, and questions to them."""

from typing import TYPE_CHECKING

from piste.corpus.words import Change, Word, clear, diff, disagreeing, words
from piste.registry import lazy_names

if TYPE_CHECKING:
    from piste.corpus.corpus_run import Estimate, estimate, run
    from piste.corpus.documents import Columns
    from piste.corpus.frames import frame
    from piste.corpus.part_store import Counts, errors, explanation, explanations, read_manifest
    from piste.corpus.sql import Answer, query
    from piste.corpus.vocabulary_sample import vocabulary
else:  # a question to results needs no model
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "piste.corpus.corpus_run": ["Estimate", "estimate", "run"],
            "piste.corpus.documents": ["Columns"],
            "piste.corpus.frames": ["frame"],
            "piste.corpus.part_store": [
                "Counts",
                "errors",
                "explanation",
                "explanations",
                "read_manifest",
            ],
            "piste.corpus.sql": ["Answer", "query"],
            "piste.corpus.vocabulary_sample": ["vocabulary"],
        },
    )

__all__ = [
    "Answer",
    "Change",
    "Columns",
    "Counts",
    "Estimate",
    "Word",
    "clear",
    "diff",
    "disagreeing",
    "errors",
    "estimate",
    "explanation",
    "explanations",
    "frame",
    "query",
    "read_manifest",
    "run",
    "vocabulary",
    "words",
]
