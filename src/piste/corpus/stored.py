"""The explanations of a run, read again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from piste.corpus.blocks import part_name, read_part
from piste.corpus.part_store import read_manifest
from piste.errors import PisteError
from piste.explanation import Explanation


def explanations(folder: str | Path) -> Iterator[Explanation]:
    """All explanations of a corpus run, in the order of its rows, one part in memory at a time."""
    manifest = read_manifest(folder)
    path = Path(folder)
    for file in sorted((path / "documents").glob("part-*.parquet")):
        yield from read_part(path, int(file.stem.removeprefix("part-")), manifest)


def explanation(folder: str | Path, document: int) -> Explanation:
    """One explanation of a corpus run, by its document's number; only its part is read."""
    manifest = read_manifest(folder)
    number = document // int(manifest["settings"]["block"])
    found: list[Explanation] = []
    if document >= 0 and (Path(folder) / "documents" / part_name(number)).is_file():
        found = read_part(Path(folder), number, manifest, only=document)
    if not found:
        raise PisteError(f"{str(folder)!r} has no document {document} that was explained.")
    return found[0]
