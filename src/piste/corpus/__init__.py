"""From one text to a million: corpus runs, what they say together, and questions to them."""

from piste.corpus.corpus_run import Estimate, estimate, run
from piste.corpus.documents import Columns
from piste.corpus.part_store import Counts, errors, explanation, explanations, read_manifest
from piste.corpus.sql import Answer, query
from piste.corpus.vocabulary_sample import vocabulary
from piste.corpus.words import Change, Word, clear, diff, disagreeing, words

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
    "query",
    "read_manifest",
    "run",
    "vocabulary",
    "words",
]
