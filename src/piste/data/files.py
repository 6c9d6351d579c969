"""Files and folders: written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from piste.errors import PisteError
from piste.validation import as_path


def write_text(path: str | Path, text: str) -> None:
    """Write a whole file or none: a full disk or a kill leaves what was there before."""
    write_bytes(path, text.encode("utf-8", "replace"))


def write_bytes(path: str | Path, content: bytes) -> None:
    """Like :func:`write_text`, for figures and tables."""
    path = as_path("path", path).resolve()  # a link stays a link
    try:
        if path.exists() and not path.is_file():  # a device or a pipe can't be replaced
            path.write_bytes(content)
            return
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(name, 0o666 & ~mask)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise PisteError(f"{str(path)!r} could not be written: {reason}.") from problem


def make_folder(folder: str | Path) -> Path:
    """The folder, made if it isn't there, or a clear refusal."""
    try:
        as_path("folder", folder).mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise PisteError(
            f"The folder {str(folder)!r} can't be made: {problem.strerror}."
        ) from problem
    return Path(folder)
