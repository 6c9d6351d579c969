"""The folder of a run: a manifest says what the run is, and one process at a time writes to it.

A run of the same settings is continued where it stopped. Everything else in the folder is left
alone: another run is refused with what differs, and so are files that are no run's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from piste.data.files import make_folder, write_text
from piste.errors import READING_ERRORS, PisteError, one_line, shorten
from piste.validation import as_path, check_size

_MOST_BYTES = 50_000_000
"""Of a manifest."""


@dataclass(frozen=True)
class RunKind:
    """What the folders of one command have in common."""

    name: str
    """As a sentence calls it: "corpus run"."""
    manifest: str
    """The name of the file with the manifest."""
    key: str
    """The entry of the manifest that holds the number of its format."""
    format: int

    def read(self, folder: str | Path) -> dict[str, Any]:
        """The manifest in a folder, refused if there is none that can be read."""
        file = as_path("folder", folder) / self.manifest
        if not file.is_file():
            raise PisteError(f"{str(folder)!r} holds no {self.name}: {self.manifest} is missing.")
        try:
            size = file.stat().st_size
            check_size(repr(str(file)), size, _MOST_BYTES, "bytes", "it is no manifest of a run")
            found = json.loads(file.read_bytes())
        except PisteError:
            raise
        except READING_ERRORS as problem:
            raise PisteError(f"{str(file)!r} can't be read: {one_line(problem)}.") from problem
        if not isinstance(found, dict) or self.key not in found:
            raise self.broken(folder, f"{self.key!r} is missing")
        if found[self.key] != self.format:
            raise PisteError(
                f"{str(file)!r} has the format {shorten(found[self.key])}, this version of Piste "
                f"reads {self.format}: update Piste, or choose another folder."
            )
        return found

    def broken(self, folder: str | Path, problem: object) -> PisteError:
        """What is said of a manifest that lacks something."""
        return PisteError(
            f"{str(Path(folder) / self.manifest)!r} is not the manifest of a {self.name}, or not "
            f"a whole one ({problem}): choose another folder."
        )

    def write(self, folder: Path, content: Mapping[str, Any]) -> None:
        """Write the manifest, whole or not at all."""
        whole = {self.key: self.format, **content}
        text = json.dumps(whole, ensure_ascii=False, indent=1, default=str)
        write_text(folder / self.manifest, text + "\n")


@contextmanager
def open_run(path: str | Path, kind: RunKind) -> Iterator[dict[str, Any] | None]:
    """Make the folder this process's own, and give the manifest of the run that is there, if any.

    >>> import tempfile
    >>> folder, kind = Path(tempfile.mkdtemp()), RunKind("test run", "test.json", "piste_test", 1)
    >>> with open_run(folder, kind) as before:
    ...     kind.write(folder, {"settings": {"seed": 0}})
    >>> with open_run(folder, kind) as before:
    ...     check_same(folder, before["settings"], {"seed": 0})
    """
    folder = as_path("folder", path)
    if folder.is_dir() and not (folder / kind.manifest).exists() and _holds_something(folder):
        raise PisteError(
            f"{str(path)!r} is not empty and holds no {kind.name}: choose an empty or a new folder."
        )
    with _locked(make_folder(folder)):
        remove_unfinished(folder, kind.manifest)
        yield kind.read(folder) if (folder / kind.manifest).exists() else None


def check_same(folder: str | Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to mix two runs, in a sentence that says what differs."""
    words = list(_differences(before, json.loads(json.dumps(now, default=str))))
    if words:
        more = f"; and {len(words) - 3} more" if len(words) > 3 else ""
        raise PisteError(
            f"The folder {str(folder)!r} holds a run with other settings "
            f"({'; '.join(words[:3])}{more}): use the same settings to continue it, or choose "
            "another folder."
        )


def remove_unfinished(folder: Path, name: str) -> None:
    """Remove what a killed process left of files that it was writing; the name may have a ``*``."""
    for file in folder.glob(f".{name}.*"):
        file.unlink()


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*before, *now]):
        old, new = before.get(name), now.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from (f"{name} {words}" for words in _differences(old, new))
        elif old != new:
            yield f"{name} {shorten(old)}, now {shorten(new)}"


def _holds_something(folder: Path) -> bool:
    """Whether there is more than hidden files and empty folders, which a killed run may leave."""
    return any(
        not (file.name.startswith(".") or (file.is_dir() and not any(file.iterdir())))
        for file in folder.iterdir()
    )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Refuse a second run in the same folder; the system frees the lock of one that was killed."""
    try:
        file = (folder / ".lock").open("a")
    except OSError as problem:
        raise PisteError(f"{str(folder)!r} can't be written to: {problem.strerror}.") from problem
    with file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as problem:
            raise PisteError(
                f"Another run is writing to {str(folder)!r}: wait for it, or choose another folder."
            ) from problem
        except (ImportError, OSError):
            pass  # this system, or this disk, has no such locks
        yield
