"""From one text to a million: corpus runs, what they say together, and questions to them."""

from piste.corpus.documents import Columns
from piste.corpus.folder import Counts, errors, read_manifest
from piste.corpus.querying import Answer, query
from piste.corpus.reading import explanations
from piste.corpus.running import Estimate, estimate, run
from piste.corpus.sampled import vocabulary

__all__ = [
    "Answer",
    "Columns",
    "Counts",
    "Estimate",
    "errors",
    "estimate",
    "explanations",
    "query",
    "read_manifest",
    "run",
    "vocabulary",
]
