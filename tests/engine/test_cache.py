"""The cache of answers: right bit by bit, bounded, and hard to break."""

from __future__ import annotations

import sqlite3
import threading
import warnings
import zlib
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from piste import PisteError
from piste.engine import cache as cache_module
from piste.engine.cache import FILE, AnswerCache

MODEL = "a" * 64


def row_of(key: bytes | str, outputs: int = 2) -> Any:
    """Numbers that only this key has."""
    content = key.encode() if isinstance(key, str) else key
    digest = blake2b(content, digest_size=8 * outputs).digest()
    return np.frombuffer(digest, dtype=np.uint64).astype(np.float64) / 7


def answers(numbers: Iterable[int]) -> dict[bytes | str, Any]:
    return {f"question {k}": row_of(f"question {k}") for k in numbers}


def stored(cache: AnswerCache, numbers: Iterable[int]) -> set[int]:
    """Which are there; every one of them must be right."""
    keys = {f"question {k}": k for k in numbers}
    found = cache.read(MODEL, list(keys))
    for key, row in found.items():
        assert row.tobytes() == row_of(key).tobytes()
    return {keys[key] for key in found}


# -- contents ------------------------------------------------------------------------------------


def test_answers_come_back_bit_for_bit_after_reopening(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows: dict[bytes | str, Any] = {
        str(k): row for k, row in enumerate(rng.normal(size=(500, 3)) * 1e9)
    }
    rows["odd"] = np.array([-0.0, 5e-324, np.nextafter(1, 2)])
    rows[b"\0odd\xff"] = np.frombuffer(b"\1\2\3\4\5\6\xf8\x7f" * 3, dtype=np.float64)  # a NaN
    rows["strided"] = np.arange(12.0).reshape(3, 4)[:, 1]
    with AnswerCache(tmp_path / "new" / "folder") as cache:
        cache.write(MODEL, rows)
    with AnswerCache(tmp_path / "new" / "folder") as cache:
        found = cache.read(MODEL, list(rows))
        assert list(map(repr, sorted(found, key=repr))) == sorted(map(repr, rows))
        for key, row in rows.items():
            assert found[key].dtype == np.float64
            assert found[key].tobytes() == np.ascontiguousarray(row).tobytes()
        found["odd"][0] = 3.0  # an array of the caller's own
        assert len(cache) == len(rows)


def test_models_and_kinds_of_keys_do_not_mix(tmp_path: Path) -> None:
    with AnswerCache(tmp_path) as cache:
        cache.write("ab", {"sc": np.array([1.0])})
        cache.write("ab", {b"sc": np.array([2.0])})
        for model, key in (
            ("ax", "sc"),
            ("a", "bsc"),
            ("absc", ""),
            ("abs", "c"),
            ("ab", "c"),
            ("abb", "sc"),
        ):
            assert cache.read(model, [key, key.encode()]) == {}
        assert cache.read("ab", ["sc", b"sc"]) == {"sc": 1.0, b"sc": 2.0}


def test_hits_and_misses_are_counted_over_many_keys(tmp_path: Path) -> None:
    with AnswerCache(tmp_path) as cache:
        assert cache.read(MODEL, []) == {}
        cache.write(MODEL, {})
        cache.write(MODEL, answers(range(0, 3000, 2)))
        assert stored(cache, range(3000)) == set(range(0, 3000, 2))
        assert (cache.hits, cache.misses) == (1500, 1500)
        cache.read(MODEL, ["question 2", "question 2", "question 1"])
        assert (cache.hits, cache.misses) == (1501, 1501)
        assert cache, "even an empty cache is one: `if cache` must not ask for its length"


def test_a_later_answer_replaces_an_earlier_one(tmp_path: Path) -> None:
    with AnswerCache(tmp_path) as cache:
        cache.write(MODEL, {"x": np.array([1.0])})
        cache.write(MODEL, {"x": np.array([2.0, 3.0])})
        assert cache.read(MODEL, ["x"])["x"].tolist() == [2.0, 3.0]
        assert len(cache) == 1


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE answers SET answer = substr(answer, 1, 12)",
        "UPDATE answers SET answer = x''",
        "UPDATE answers SET answer = 'some text'",
        "UPDATE answers SET answer = substr(answer, 1, 8)",
        "UPDATE answers SET answer = zeroblob(16)",
    ],
)
def test_a_row_that_is_not_whole_counts_as_missing(tmp_path: Path, change: str) -> None:
    with AnswerCache(tmp_path) as cache:
        cache.write(MODEL, answers(range(3)))
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute(f"{change} WHERE id = 2")
    database.close()
    with AnswerCache(tmp_path) as cache:
        assert len(stored(cache, range(3))) == 2
        cache.write(MODEL, answers(range(3)))
        assert stored(cache, range(3)) == {0, 1, 2}


def test_half_a_number_is_missing_even_if_its_checksum_fits(tmp_path: Path) -> None:
    with AnswerCache(tmp_path) as cache:
        cache.write(MODEL, answers(range(1)))
        key = cache_module._digest(MODEL, "question 0")
        for length in (0, 12):
            change = (bytes(length), zlib.crc32(bytes(length), zlib.crc32(key)))
            assert cache._database is not None
            cache._database.execute("UPDATE answers SET answer = ?, checksum = ?", change)
            assert stored(cache, range(1)) == set()


@pytest.mark.parametrize("row", [np.float64(1.0), np.zeros((1, 2)), np.zeros(0)])
def test_only_rows_are_taken(tmp_path: Path, row: Any) -> None:
    with AnswerCache(tmp_path) as cache, pytest.raises(PisteError, match="one row of numbers"):
        cache.write(MODEL, {"x": row})


# -- size ----------------------------------------------------------------------------------------


def test_the_file_stays_within_its_bound_and_keeps_the_newest(tmp_path: Path) -> None:
    largest = 0
    with AnswerCache(tmp_path, megabytes=1) as cache:
        for start in range(0, 60_000, 1000):
            cache.write(MODEL, answers(range(start, start + 1000)))
            largest = max(largest, cache.size)
        kept = stored(cache, range(60_000))
    assert largest < 1.5e6, "with the log, while it is open"
    assert 0.8e6 < cache.size < 1.1e6
    assert set(range(55_000, 60_000)) <= kept
    lost = set(range(60_000)) - kept
    assert max(lost) // 1000 <= min(kept) // 1000, "the oldest batches go first"


def test_what_is_read_again_and_again_stays(tmp_path: Path) -> None:
    loved = range(0, 1000, 10)
    for start in range(0, 40_000, 1000):
        with AnswerCache(tmp_path, megabytes=1) as cache:
            cache.write(MODEL, answers(range(start, start + 1000)))
            assert stored(cache, loved) == set(loved)
    with AnswerCache(tmp_path, megabytes=1) as cache:
        assert stored(cache, range(1, 1000, 10)) == set(), "of the same age, but never read"


def test_reading_alone_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_MOST_PENDING", 50)
    with AnswerCache(tmp_path) as cache:
        cache.write(MODEL, answers(range(1000)))

        def oldest() -> int:
            with sqlite3.connect(tmp_path / FILE) as database:
                (number,) = database.execute("SELECT MIN(id) FROM answers").fetchone()
            database.close()
            return int(number)

        by_age = sorted(range(1000), key=lambda k: cache_module._digest(MODEL, f"question {k}"))
        stored(cache, by_age[:40])
        assert oldest() == 1, "few uses wait for the next write"
        stored(cache, by_age[:60])
        assert oldest() == 61
        stored(cache, by_age[60:70])
    assert oldest() == 71, "closing writes down the rest"


@pytest.mark.parametrize("megabytes", [1e-6, 0.01, 0.05])
def test_a_bound_smaller_than_one_batch_works(tmp_path: Path, megabytes: float) -> None:
    with AnswerCache(tmp_path, megabytes=megabytes) as cache:
        for start in (0, 5000):
            cache.write(MODEL, answers(range(start, start + 5000)))
            assert len(stored(cache, range(10_000))) == len(cache)
        kept = len(cache)
    assert cache.size < megabytes * 1e6 + 40_000
    assert kept > 100 or megabytes < 0.02


def test_a_smaller_bound_shrinks_a_large_file(tmp_path: Path) -> None:
    with AnswerCache(tmp_path, megabytes=10) as cache:
        cache.write(MODEL, answers(range(50_000)))
    assert cache.size > 3e6
    with AnswerCache(tmp_path, megabytes=0.5) as cache:
        cache.write(MODEL, answers(range(50_000, 50_100)))
        assert set(range(50_000, 50_100)) <= stored(cache, range(50_100))
    assert 0.3e6 < cache.size < 0.6e6


def test_wide_and_narrow_rows_share_the_bound(tmp_path: Path) -> None:
    with AnswerCache(tmp_path, megabytes=1) as cache:
        for round in range(30):
            cache.write(MODEL, answers(range(1000 * round, 1000 * round + 500)))
            wide = {f"{round} {k}": np.full(1000, k / 3) for k in range(20)}
            cache.write(MODEL, wide)
            assert set(cache.read(MODEL, list(wide))) == set(wide)
    assert cache.size < 1.2e6


@pytest.mark.parametrize("megabytes", [0, -1, float("nan"), float("inf"), "500"])
def test_a_bound_that_is_none_is_refused(tmp_path: Path, megabytes: Any) -> None:
    with pytest.raises(PisteError, match="megabytes: expected"):
        AnswerCache(tmp_path, megabytes=megabytes)


# -- files that can't be used --------------------------------------------------------------------


def one_sentence(problem: pytest.ExceptionInfo[PisteError]) -> str:
    text = str(problem.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(PisteError, match="Expected a folder for the cache") as problem:
            AnswerCache(path)
        one_sentence(problem)
    assert (tmp_path / "file").read_text() == "mine"


def test_foreign_and_damaged_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other") as database:
        database.execute("CREATE TABLE letters (x)")
    database.close()
    with AnswerCache(tmp_path / "cut") as cache:
        cache.write(MODEL, answers(range(5000)))
    whole = (tmp_path / "cut" / FILE).read_bytes()
    newer = bytearray(whole)
    newer[60:64] = (2).to_bytes(4, "big")  # user_version
    contents = {
        "text": b"these are my notes\n" * 500,
        "sqlite": (tmp_path / "other").read_bytes(),
        "header": b"\0" * 100 + whole[100:],
        "newer": bytes(newer),
        "zeros": bytes(8192),
    }
    for name, content in contents.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / FILE).write_bytes(content)
        with pytest.raises(PisteError, match="is not a cache of answers, or a damaged") as problem:
            AnswerCache(folder)
        one_sentence(problem)
        assert (folder / FILE).read_bytes() == content


def test_damage_inside_is_told_when_it_is_met(tmp_path: Path) -> None:
    with AnswerCache(tmp_path) as cache:
        cache.write(MODEL, answers(range(5000)))
    content = bytearray((tmp_path / FILE).read_bytes())
    rng = np.random.default_rng(1)
    content[4 * 4096 :] = rng.bytes(len(content) - 4 * 4096)
    (tmp_path / FILE).write_bytes(content)
    with AnswerCache(tmp_path) as cache:
        with pytest.raises(PisteError, match="move it away") as problem:
            stored(cache, range(5000))
        one_sentence(problem)
        with pytest.warns(UserWarning, match="goes on without storing"):
            cache.write(MODEL, answers(range(5000)))
    assert len((tmp_path / FILE).read_bytes()) == len(content)


def test_numbers_damaged_on_the_disk_are_never_given_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    with AnswerCache(tmp_path) as cache:
        cache.write(MODEL, answers(range(2000)))
    whole = (tmp_path / FILE).read_bytes()
    hits = set()
    for _ in range(40):
        content = bytearray(whole)
        for place in rng.integers(4096, len(content), 3):
            content[place] ^= 1 << int(rng.integers(8))
        (tmp_path / FILE).write_bytes(content)
        try:
            with AnswerCache(tmp_path) as cache:
                hits.add(len(stored(cache, range(2000))))  # looks at every number
        except PisteError as problem:
            assert "move it away" in str(problem)  # noqa: PT017 - either outcome is right
    assert any(1900 < number < 2000 for number in hits)


def test_an_empty_file_is_a_new_cache(tmp_path: Path) -> None:
    (tmp_path / FILE).touch()  # what a process killed in its first moment leaves
    with AnswerCache(tmp_path) as cache:
        cache.write(MODEL, answers(range(3)))
        assert stored(cache, range(4)) == {0, 1, 2}


def test_a_closed_cache_says_so(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path)
    cache.close()
    cache.close()
    for use in (lambda: cache.read(MODEL, ["x"]), lambda: cache.write(MODEL, answers([1]))):
        with pytest.raises(PisteError, match="closed"):
            use()


# -- trouble while it runs -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [("max_page_count = 1", "database or disk is full"), ("query_only = ON", "readonly database")],
)
def test_a_run_goes_on_when_writing_fails(tmp_path: Path, trouble: str, reason: str) -> None:
    with AnswerCache(tmp_path) as cache:
        cache.write(MODEL, answers(range(1000)))
        assert cache._database is not None
        cache._database.execute(f"PRAGMA {trouble}").fetchall()
        with pytest.warns(UserWarning, match=reason) as heard:
            cache.write(MODEL, answers(range(1000, 9000)))
        assert len(heard) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cache.write(MODEL, answers(range(9000, 9999)))
            assert stored(cache, range(9999)) == set(range(1000))
    with AnswerCache(tmp_path) as cache:
        assert stored(cache, range(9999)) == set(range(1000)), "all of a batch or nothing"


def test_a_locked_file_is_waited_for_and_then_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "_PATIENCE", 0.2)
    with AnswerCache(tmp_path) as cache:
        cache.write(MODEL, answers(range(10)))
        other = sqlite3.connect(tmp_path / FILE, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.warns(UserWarning, match="locked"):
            cache.write(MODEL, answers(range(10, 20)))
        assert stored(cache, range(20)) == set(range(10)), "reading needs no lock"
        with pytest.raises(PisteError, match="locked"):
            AnswerCache(tmp_path)
        other.close()


def test_trouble_in_reading_means_asking_the_model(tmp_path: Path) -> None:
    with AnswerCache(tmp_path) as cache:
        cache.write(MODEL, answers(range(10)))
        assert cache._database is not None
        cache._database.execute("ALTER TABLE answers RENAME TO gone")
        with pytest.warns(UserWarning, match="could not be read"):
            assert cache.read(MODEL, ["question 1"]) == {}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert cache.read(MODEL, ["question 1"]) == {}
            cache.write(MODEL, answers([1]))
        assert (cache.hits, cache.misses) == (0, 2)


def test_an_interrupted_write_leaves_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with AnswerCache(tmp_path) as cache:
        with monkeypatch.context() as patch:
            patch.setattr(AnswerCache, "_shrink", interrupt)
            with pytest.raises(KeyboardInterrupt):
                cache.write(MODEL, answers(range(10)))
        assert len(cache) == 0
        with AnswerCache(tmp_path) as other:
            other.write(MODEL, answers(range(20)))
        assert stored(cache, range(30)) == set(range(20))


def test_threads_take_turns(tmp_path: Path) -> None:
    made: list[AnswerCache] = []
    opener = threading.Thread(target=lambda: made.append(AnswerCache(tmp_path)))
    opener.start()
    opener.join()
    (cache,) = made
    problems: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for start in range(first, first + 500, 50):
                cache.write(MODEL, answers(range(start, start + 50)))
                assert stored(cache, range(first, start + 50)) == set(range(first, start + 50))
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(250 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(cache) == 1250
    cache.close()


def test_nothing_is_warned_about_in_ordinary_use(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with AnswerCache(str(tmp_path)) as cache:
            cache.write(MODEL, answers(range(10)))
            stored(cache, range(20))
