"""Answers kept on disk from one run to the next, in one file of bounded size."""

from __future__ import annotations

import math
import os
import sqlite3
import threading
import time
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from types import TracebackType

import numpy as np

from piste.errors import PisteError, shorten
from piste.types import Floats

FILE = "answers-1.sqlite"
"""The number is that of the layout: a version with another layout uses another file."""
_STAMP = (0x50495354, 1)  # application_id and user_version, which tell our files from foreign ones
_PATIENCE = 20.0  # seconds to wait for another process that writes
_LOOKUP = 500  # keys per query; old SQLite builds allow 999 variables
_ROW_COST = 72  # bytes a row takes in table and index besides its answer
_MOST_PENDING = 10_000  # how many uses are remembered before they are written down


class AnswerCache:
    """Answers of any number of models, found again by fingerprint and question key.

    Lives in one SQLite file in the folder ``path``, which is made if it is missing. Several
    processes may use it at once; a process killed at any moment leaves whole rows only. Answers
    come back bit for bit. The file stays near ``megabytes`` (10⁶ bytes): what was not used for
    the longest time goes first. If writing fails in the middle of a run, it warns once and
    writes no more.

    >>> import tempfile
    >>> with AnswerCache(tempfile.mkdtemp()) as cache:
    ...     cache.write("model 1", {"good film": np.array([0.1, 0.2])})
    ...     found = cache.read("model 1", ["good film", "bad film"])
    ...     other = cache.read("model 2", ["good film"])
    ...     (found["good film"].tolist(), len(found), len(other), cache.hits, cache.misses)
    ([0.1, 0.2], 1, 0, 1, 2)
    """

    def __init__(self, path: str | Path, *, megabytes: float = 500.0) -> None:
        if not isinstance(megabytes, (int, float)) or not 0 < megabytes < math.inf:
            raise PisteError(f"megabytes: expected a size above 0, got {megabytes!r}.")
        self.file = _make_folder(path) / FILE
        self.hits = 0
        self.misses = 0
        self._limit = int(megabytes * 1e6)
        self._reading = self._writing = True
        self._used: set[bytes] = set()
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._database: sqlite3.Connection | None = _connect(self.file, self._limit)
        self._page = _number(self._database, "PRAGMA page_size")

    def read(self, fingerprint: str, keys: Sequence[bytes | str]) -> dict[bytes | str, Floats]:
        """The answers among ``keys`` that are stored for this model."""
        wanted = {_digest(fingerprint, key): key for key in keys}
        found: dict[bytes | str, Floats] = {}
        with self._held() as database:
            try:
                if self._reading:
                    for digest, row in self._look_up(database, list(wanted)):
                        found[wanted[digest]] = row
            except sqlite3.OperationalError as problem:
                self._give_up("read", problem)
                self._reading = False
            except sqlite3.DatabaseError as problem:
                raise _damaged(self.file, problem) from problem
            self.hits += len(found)
            self.misses += len(wanted) - len(found)
            if len(self._used) > _MOST_PENDING:
                self._note_uses(database)
        return found

    def write(self, fingerprint: str, answers: Mapping[bytes | str, Floats]) -> None:
        """Store one row of numbers per key; all of them or, if that fails, none and a warning."""
        rows = list(self._as_rows(fingerprint, answers))
        with self._held() as database:
            if not rows or not self._writing:
                return
            try:
                with _transaction(database):
                    self._touch(database)
                    self._make_room(database, sum(len(row[1]) + _ROW_COST for row in rows))
                    database.executemany(
                        "INSERT OR REPLACE INTO answers (key, answer, checksum) VALUES (?, ?, ?)",
                        sorted(rows),  # in the order of the index: neighbours share its pages
                    )
                    self._shrink(database)
            except sqlite3.Error as problem:
                self._give_up("written", problem)

    def __len__(self) -> int:
        with self._held() as database:
            return _number(database, "SELECT COUNT(*) FROM answers")

    def __bool__(self) -> bool:
        return True  # an empty cache is still a cache

    @property
    def size(self) -> int:
        """Bytes on disk, the write-ahead log included."""
        total = 0
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                total += os.stat(f"{self.file}{suffix}").st_size
        return total

    def close(self) -> None:
        """Write down what was used, and let go of the file. Closing twice does no harm."""
        if self._database is None:
            return
        with self._held() as database:  # in a fork: one of its own, never its parent's
            self._note_uses(database)
            self._database = None
            database.close()

    def __enter__(self) -> AnswerCache:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- rows ------------------------------------------------------------------------------------

    def _as_rows(
        self, fingerprint: str, answers: Mapping[bytes | str, Floats]
    ) -> Iterator[tuple[bytes, bytes, int]]:
        """Key, answer and checksum, as many as the whole file may hold."""
        room = self._limit
        for key, row in answers.items():
            if np.ndim(row) != 1 or len(row) == 0:
                raise PisteError(
                    f"Expected one row of numbers as an answer, got the shape {np.shape(row)}."
                )
            answer = np.asarray(row, dtype="<f8").tobytes()
            room -= len(answer) + _ROW_COST
            if room < 0:
                return
            digest = _digest(fingerprint, key)
            yield digest, answer, zlib.crc32(answer, zlib.crc32(digest))

    def _look_up(
        self, database: sqlite3.Connection, digests: Sequence[bytes]
    ) -> Iterator[tuple[bytes, Floats]]:
        oldest, newest = _ends(database)
        # Rows of the newer half are safe for long: a use of them needs no writing.
        middle = (oldest + newest) // 2
        for start in range(0, len(digests), _LOOKUP):
            part = digests[start : start + _LOOKUP]
            marks = ",".join("?" * len(part))
            query = f"SELECT id, key, answer, checksum FROM answers WHERE key IN ({marks})"
            for number, digest, answer, checksum in database.execute(query, part).fetchall():
                if not isinstance(answer, bytes) or len(answer) == 0 or len(answer) % 8:
                    continue
                if zlib.crc32(answer, zlib.crc32(digest)) != checksum:
                    continue
                if number < middle:
                    self._used.add(digest)
                yield digest, np.frombuffer(answer, dtype="<f8").astype(np.float64)

    # -- what is kept: ids grow with every use, the lowest were not used for the longest time ----

    def _note_uses(self, database: sqlite3.Connection) -> None:
        if self._used and self._writing:
            with suppress(sqlite3.Error), _transaction(database):  # not to know them is no loss
                self._touch(database)
        self._used.clear()

    def _touch(self, database: sqlite3.Connection) -> None:
        """Give rows that were read the newest ids. Needs a transaction."""
        start = _ends(database)[1] + 1
        database.executemany(
            "UPDATE answers SET id = ? WHERE key = ?", enumerate(sorted(self._used), start)
        )
        self._used.clear()

    def _make_room(self, database: sqlite3.Connection, wanted: int) -> None:
        """Delete oldest rows until so many bytes fit; their pages are used again."""
        while True:
            pages = _number(database, "PRAGMA page_count")
            full = (pages - _number(database, "PRAGMA freelist_count")) * self._page
            excess = full + wanted - self._limit
            oldest, newest = _ends(database)
            if excess <= 0 or newest == 0:
                return
            # Ids have gaps where rows were used again, so this deletes rather too few: go on then.
            share = min(excess / full, 1.0)
            end = oldest + max(int((newest - oldest + 1) * share), 100)
            database.execute("DELETE FROM answers WHERE id < ?", (end,))

    def _shrink(self, database: sqlite3.Connection) -> None:
        """Give free pages beyond the bound back to the disk."""
        beyond = _number(database, "PRAGMA page_count") - self._limit // self._page
        free = _number(database, "PRAGMA freelist_count")
        for _ in range(min(beyond, free)):  # one by one: Python runs this statement one step only
            database.execute("PRAGMA incremental_vacuum(1)")

    # -- the connection --------------------------------------------------------------------------

    @contextmanager
    def _held(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time."""
        if os.getpid() != self._process and self._database is not None:
            # A fork must not use its parent's connection, nor close it, nor wait for a lock that
            # a thread of the parent held.
            _INHERITED.append(self._database)
            self._lock = threading.RLock()
            self._process = os.getpid()
            self._database = _connect(self.file, self._limit)
        with self._lock:
            if self._database is None:
                raise PisteError("This cache is closed: open a new one.")
            yield self._database

    def _give_up(self, done: str, problem: sqlite3.Error) -> None:
        if self._writing:
            self._writing = False
            warnings.warn(
                f"The cache {str(self.file)!r} could not be {done} ({problem}): this run goes on "
                "without storing further answers.",
                stacklevel=3,
            )


_INHERITED: list[sqlite3.Connection] = []


def _digest(fingerprint: str, key: bytes | str) -> bytes:
    """16 bytes for one question to one model; the same characters as bytes are another key."""
    kind = b"b" if isinstance(key, bytes) else b"s"
    content = key if isinstance(key, bytes) else key.encode("utf-8", "surrogatepass")
    model = fingerprint.encode("utf-8", "surrogatepass")
    return blake2b(b"%d:%b%b%b" % (len(model), model, kind, content), digest_size=16).digest()


def _number(database: sqlite3.Connection, query: str) -> int:
    return int(database.execute(query).fetchone()[0])


def _ends(database: sqlite3.Connection) -> tuple[int, int]:
    """The lowest and the highest id, 0 if there is none; asked apart, each is one look-up."""
    query = "SELECT (SELECT MIN(id) FROM answers), (SELECT MAX(id) FROM answers)"
    low, high = database.execute(query).fetchone()
    return int(low or 0), int(high or 0)


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; takes the write lock at once, so that it can't fail half-way for a lock."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        raise


def _make_folder(path: str | Path) -> Path:
    folder = Path(path).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as problem:
        raise PisteError(
            f"Expected a folder for the cache, got {shorten(str(path))}, which is a file or lies "
            "in one: name a folder."
        ) from problem
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise PisteError(
            f"The folder {shorten(str(path))} for the cache could not be made ({reason}): name "
            "one that you may write to."
        ) from problem
    return folder


def _connect(file: Path, limit: int) -> sqlite3.Connection:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return _open(file, limit)
        except sqlite3.OperationalError as problem:
            # While others make the same file, SQLite may refuse at once instead of waiting.
            if "locked" in str(problem) and time.monotonic() < deadline:
                time.sleep(0.02)
                continue
            raise PisteError(
                f"The cache {str(file)!r} can't be opened for writing ({problem}): name a folder "
                "that you may write to, or work without a cache."
            ) from problem
        except sqlite3.DatabaseError as problem:
            raise _damaged(file, problem) from problem


def _open(file: Path, limit: int) -> sqlite3.Connection:
    database = sqlite3.connect(
        file, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
    )
    database.text_factory = bytes  # there is no text, unless a damaged row says so
    try:
        if not _is_ours(database):  # before anything changes it
            raise _damaged(file, "it is the database of another program")
        page = _number(database, "PRAGMA page_size")
        log = min(max(limit // page // 8, 16), 1000)  # pages after which the log is emptied
        for setting in (
            "auto_vacuum = INCREMENTAL",  # counts only in a new file, and only before the next
            "journal_mode = WAL",
            "synchronous = NORMAL",
            f"wal_autocheckpoint = {log}",
            f"journal_size_limit = {log * page}",
            "cache_size = -16000",
        ):
            database.execute(f"PRAGMA {setting}").fetchall()
        with _transaction(database):  # also finds out whether the place can be written to
            if not _stamp(database)[0]:
                database.execute(
                    "CREATE TABLE answers (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, "
                    "answer BLOB NOT NULL, checksum INTEGER NOT NULL)"
                )
                database.execute(f"PRAGMA application_id = {_STAMP[0]}")
                database.execute(f"PRAGMA user_version = {_STAMP[1]}")
    except BaseException:
        database.close()
        raise
    return database


def _stamp(database: sqlite3.Connection) -> tuple[int, int]:
    return _number(database, "PRAGMA application_id"), _number(database, "PRAGMA user_version")


def _is_ours(database: sqlite3.Connection) -> bool:
    """Whether the file is a cache, or new."""
    database.execute("BEGIN")  # one moment's view: another process may be making it just now
    tables, stamp = _number(database, "SELECT COUNT(*) FROM sqlite_master"), _stamp(database)
    database.execute("ROLLBACK")
    return stamp == _STAMP or (stamp == (0, 0) and tables == 0)


def _damaged(file: Path, problem: object) -> PisteError:
    return PisteError(
        f"{str(file)!r} is not a cache of answers, or a damaged one ({problem}): move it away, or "
        "name another folder."
    )
