"""The results of a corpus run on disk: parts that are there or not, read again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from piste.corpus.blocks import Part, part_name, read_part
from piste.data.files import make_folder, write_bytes, write_text
from piste.data.run_folder import RunKind, check_same, open_run, remove_unfinished
from piste.errors import PisteError

if TYPE_CHECKING:
    from piste.explanation import Explanation

KIND = RunKind("corpus run", "manifest.json", key="piste_corpus", format=1)
_FOLDERS = ("documents", "units", "errors")
_TOLD = "told"
"""The folder of what documents told, while a run goes on."""
_PART = re.compile(r"part-(\d+)\.parquet")


@dataclass
class Counts:
    """What is in a folder."""

    rows: int = 0
    documents: int = 0
    refused: int = 0
    calls: int = 0

    def add(self, part: Part) -> None:
        self.rows += part.rows
        self.refused += len(part.refused)
        self.documents += part.rows - len(part.refused)
        self.calls += part.calls


@dataclass
class PartStore:
    """Where parts go: each is written whole or not at all, the one of documents last."""

    path: Path
    manifest: dict[str, Any]
    done: set[int] = field(default_factory=set)
    """Numbers of the blocks that are there."""
    counts: Counts = field(default_factory=Counts)

    @staticmethod
    @contextmanager
    def opened(path: str | Path, manifest: Mapping[str, Any]) -> Iterator[PartStore]:
        """Begin a run, or continue the one that is there."""
        with open_run(path, KIND) as before:
            own = PartStore(Path(path), dict(manifest))
            for name in _FOLDERS:
                make_folder(own.path / name)
            if before is not None:
                own._take_stock()
                own._go_on(before)
                if own.done and "priors" in before:
                    own.manifest["priors"] = before["priors"]
            own._write("running")
            yield own

    def _take_stock(self) -> None:
        """What is there, and nothing of what was being written when the run stopped."""
        for name in (*_FOLDERS, _TOLD):
            remove_unfinished(self.path / name, "part-*")
        for file in sorted((self.path / "documents").iterdir()):
            match = _PART.fullmatch(file.name)
            if match:
                self.done.add(int(match[1]))
        self.counts = _counted(self.path, self.done)

    def _go_on(self, before: Mapping[str, Any]) -> None:
        """Refuse to mix two runs; one that explained nothing makes room for another."""
        old, new = _identity(before), _identity(self.manifest, like=before)
        if old.pop("model") != new.pop("model"):
            old["model"], new["model"] = _models(before, self.manifest)
        try:
            check_same(self.path, old, new)
        except PisteError:
            if self.counts.documents:
                raise
            for name in (*_FOLDERS, _TOLD):
                for file in (self.path / name).glob("part-*"):
                    file.unlink()
            self.done, self.counts = set(), Counts()

    def add(self, part: Part) -> None:
        """Store a part; when its table of documents is there, so is everything else of it."""
        name = part_name(part.number)
        if part.refused:
            write_text(self.path / "errors" / name.replace(".parquet", ".jsonl"), part.errors)
        if part.told:
            make_folder(self.path / _TOLD)
            write_bytes(self.path / _TOLD / name.replace(".parquet", ".npz"), part.told)
        if part.units:
            write_bytes(self.path / "units" / name, part.units)
        write_bytes(self.path / "documents" / name, part.documents)
        self.done.add(part.number)
        self.counts.add(part)

    def told(self, number: int) -> bytes:
        """What the documents of a block told; nothing if they told nothing."""
        file = self.path / _TOLD / part_name(number).replace(".parquet", ".npz")
        return file.read_bytes() if file.is_file() else b""

    def note_prior(self, rows: int, about: Mapping[str, Any]) -> None:
        """The manifest says which prior the rows from this one on have."""
        self.manifest["priors"] = {**self.manifest.get("priors", {}), str(rows): dict(about)}
        self._write("running")

    def finish(self) -> None:
        """Nothing is missing any more, and what documents told is of no use."""
        for file in (self.path / _TOLD).glob("part-*.npz"):
            file.unlink()
        if (self.path / _TOLD).is_dir():
            (self.path / _TOLD).rmdir()
        self._write("done")

    def _write(self, state: str) -> None:
        KIND.write(self.path, {**self.manifest, "state": state, "counts": vars(self.counts)})


def read_manifest(path: str | Path) -> dict[str, Any]:
    """What a folder of results says of itself."""
    return KIND.read(path)


def errors(path: str | Path) -> Iterator[dict[str, Any]]:
    """The rows that were refused, in order."""
    for file in sorted((Path(path) / "errors").glob("part-*.jsonl")):
        for line in file.read_text(encoding="utf-8").split("\n"):
            if line:
                yield json.loads(line)


def _identity(manifest: Mapping[str, Any], like: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a run must have in common with the one it continues: model, input and settings."""
    known = {name for one in (like or manifest).get("input", ()) for name in one}
    files = {
        one["file"]: {name: one[name] for name in one if name != "file" and name in known}
        for one in manifest.get("input", ())  # earlier versions kept no digest
    }
    return {
        "model": manifest.get("fingerprint"),
        "input": files,
        **manifest.get("settings", {}),
    }


def _models(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, str]:
    """Two models by their names, or by what they have not in common."""
    names = [str(one.get("classifier", {}).get("name", "?")) for one in (before, now)]
    if names[0] == names[1]:
        return names[0], f"{names[0]} with other weights or settings"
    return names[0], names[1]


def _counted(folder: Path, done: set[int]) -> Counts:
    """Counts of the parts that are there, from the files themselves."""
    import pyarrow.parquet as parquet

    counts = Counts()
    for number in done:
        table = parquet.read_table(folder / "documents" / part_name(number), columns=["calls"])
        counts.documents += table.num_rows
        counts.calls += sum(table["calls"].to_pylist())
        refused = folder / "errors" / part_name(number).replace(".parquet", ".jsonl")
        if refused.is_file():
            counts.refused += refused.read_bytes().count(b"\n")
    counts.rows = counts.documents + counts.refused
    return counts


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
