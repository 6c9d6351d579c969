"""The explanations of a run, read again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from piste.corpus.folder import read_manifest
from piste.corpus.parts import read_part
from piste.explanation import Explanation


def explanations(folder: str | Path) -> Iterator[Explanation]:
    """All explanations of a corpus run, in the order of its rows, one part in memory at a time."""
    manifest = read_manifest(folder)
    path = Path(folder)
    for file in sorted((path / "documents").glob("part-*.parquet")):
        yield from read_part(path, int(file.stem.removeprefix("part-")), manifest)
