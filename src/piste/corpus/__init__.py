"""From one text to a million: corpus runs, what they say together, and questions to them."""

from piste.corpus.documents import Columns
from piste.corpus.folder import Counts, errors, read_manifest
from piste.corpus.reading import explanations
from piste.corpus.running import Estimate, estimate, run

__all__ = [
    "Columns",
    "Counts",
    "Estimate",
    "errors",
    "estimate",
    "explanations",
    "read_manifest",
    "run",
]
