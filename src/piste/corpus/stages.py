"""Stages of a corpus run: what the documents so far told is the prior of those of the next stage.

The stages are fixed by the number of rows and blocks alone. Within a stage no document learns from
another, so that neither the order of the blocks nor who does them changes anything. What the
documents told is stored beside their results until the run is done: a run that is continued learns
the same again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from piste.corpus.document_records import read_records
from piste.corpus.part_store import PartStore
from piste.corpus.plan import Plan
from piste.vocabulary.corpus_prior import CorpusPrior, DocumentRecord

RENEWED = (32, 128, 512, 2048)
"""Rows after which the prior is learned again."""
_MOST_IN_FULL = 128
"""Documents of which all answers are kept in memory."""


@dataclass(frozen=True)
class Stage:
    """Blocks that have the same prior."""

    plan: Plan
    blocks: tuple[int, ...]
    """Those that are still to be done."""


def stage_ends(rows: int, block: int) -> list[int]:
    """Blocks before which the prior is learned, and their number.

    >>> stage_ends(100, 8), stage_ends(5000, 128), stage_ends(20, 8)
    ([4, 13], [1, 4, 16, 40], [3])
    """
    count = -(-rows // block)
    return sorted({end for end in (-(-one // block) for one in RENEWED) if end < count} | {count})


def stages(plan: Plan, store: PartStore, rows: int) -> Iterator[Stage]:
    """The stages in which something is left to do, each when all before it are stored."""
    ends = stage_ends(rows, plan.block) if plan.learns else [-(-rows // plan.block)]
    for start, end in pairwise([0, *ends]):
        left = tuple(number for number in range(start, end) if number not in store.done)
        if not left:
            continue
        prior = None
        if start:
            prior = CorpusPrior.learned(_records(store, start))
            store.note_prior(start * plan.block, prior.about())
        yield Stage(replace(plan, prior=prior, learns=end != ends[-1]), left)


def _records(store: PartStore, blocks: int) -> list[DocumentRecord]:
    """What the documents of the first blocks told."""
    found: list[DocumentRecord] = []
    full = 0
    for number in range(blocks):
        for record in read_records(store.told(number)):
            full += record.asked is not None
            found.append(replace(record, asked=None) if full > _MOST_IN_FULL else record)
    return found
