"""The folder of a corpus run: parts that are there or not, and a manifest that says of what."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from piste.corpus.blocks import Part, part_name
from piste.data.storage import make_folder, write_bytes, write_text
from piste.errors import PisteError, shorten

FORMAT = 1
MANIFEST = "manifest.json"
_MUST_AGREE = ("piste_corpus", "input", "fingerprint", "settings")
"""What a run that goes on must have in common with what is there."""
_KINDS = ("documents", "units", "errors")
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
class RunFolder:
    """Where parts go: each is written whole or not at all, the one of documents last."""

    path: Path
    manifest: dict[str, Any]
    done: set[int] = field(default_factory=set)
    """Numbers of the blocks that are there."""
    counts: Counts = field(default_factory=Counts)

    @staticmethod
    @contextmanager
    def opened(path: str | Path, manifest: Mapping[str, Any], resume: bool) -> Iterator[RunFolder]:
        """Begin a run, or go on with the one that is there."""
        folder = Path(path)
        before = _begun(folder)
        if before is not None and not resume:
            raise PisteError(
                f"{str(path)!r} holds a run already: go on with it by --resume, or name another "
                "folder."
            )
        if before is None and folder.is_dir() and _has_other_things(folder):
            raise PisteError(
                f"{str(path)!r} is not empty and holds no run: name an empty or a new folder."
            )
        with _alone(make_folder(folder)):
            for kind in _KINDS:
                make_folder(folder / kind)
            own = RunFolder(folder, dict(manifest))
            if before is not None:
                _check_same(folder, before, own.manifest)
                own._take_stock()
            own._write("running")
            yield own

    def _take_stock(self) -> None:
        """What is there, and nothing of what was being written when the run stopped."""
        for kind in _KINDS:
            for file in (self.path / kind).glob(".part-*"):
                file.unlink()
        for file in self.path.glob(f".{MANIFEST}*"):
            file.unlink()
        for file in sorted((self.path / "documents").iterdir()):
            match = _PART.fullmatch(file.name)
            if match:
                self.done.add(int(match[1]))
        self.counts = _counted(self.path, self.done)

    def add(self, part: Part) -> None:
        """Store a part; when its table of documents is there, so is everything else of it."""
        name = part_name(part.number)
        if part.refused:
            write_text(self.path / "errors" / name.replace(".parquet", ".jsonl"), part.errors)
        if part.units:
            write_bytes(self.path / "units" / name, part.units)
        write_bytes(self.path / "documents" / name, part.documents)
        self.done.add(part.number)
        self.counts.add(part)

    def finish(self) -> None:
        """Nothing is missing any more."""
        self._write("done")

    def _write(self, state: str) -> None:
        whole = {**self.manifest, "state": state, "counts": vars(self.counts)}
        text = json.dumps(whole, ensure_ascii=False, indent=1, default=str)
        write_text(self.path / MANIFEST, text + "\n")


def read_manifest(path: str | Path) -> dict[str, Any]:
    """What a folder of results says of itself."""
    found = _begun(Path(path))
    if found is None:
        raise PisteError(f"{str(path)!r} holds no corpus run: {MANIFEST} is missing.")
    return found


def errors(path: str | Path) -> Iterator[dict[str, Any]]:
    """The rows that were refused, in order."""
    for file in sorted((Path(path) / "errors").glob("part-*.jsonl")):
        for line in file.read_text(encoding="utf-8").split("\n"):
            if line:
                yield json.loads(line)


def _has_other_things(folder: Path) -> bool:
    """Whether there is more than a run leaves that was killed before it had a manifest."""
    for file in folder.iterdir():
        if file.name in _KINDS and file.is_dir() and not any(file.iterdir()):
            continue
        if not file.name.startswith((".lock", f".{MANIFEST}")):
            return True
    return False


def _begun(folder: Path) -> dict[str, Any] | None:
    file = folder / MANIFEST
    if not file.is_file():
        return None
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise PisteError(f"{str(file)!r} can't be read: {problem}.") from problem
    if not isinstance(found, dict) or "piste_corpus" not in found:
        raise PisteError(f"{str(file)!r} is not the manifest of a corpus run.")
    return found


def _check_same(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    now = json.loads(json.dumps(dict(now), default=str))
    for name in _MUST_AGREE:
        if before.get(name) != now.get(name):
            raise PisteError(
                f"{str(folder)!r} was begun with another {name} ("
                f"{_difference(before.get(name), now.get(name))}): use the same, or another folder."
            )


def _difference(before: Any, now: Any) -> str:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in (*before, *now):
            if before.get(key) != now.get(key):
                return f"{key}: {shorten(before.get(key))}, now {shorten(now.get(key))}"
    return f"{shorten(before)}, now {shorten(now)}"


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


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Refuse a second run in the same folder; the system frees the lock of one that was killed."""
    with (folder / ".lock").open("a") as file:
        try:
            import fcntl
        except ImportError:  # no such locks on this system
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            raise PisteError(
                f"Another run is writing to {str(folder)!r}: wait for it."
            ) from problem
        yield
