"""The cache of answers among several processes, killed ones and full disks."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from piste.engine import cache as cache_module
from piste.engine.cache import FILE, AnswerCache

PRELUDE = """
import os, random, resource, signal, sqlite3, sys, time, types, warnings
from hashlib import blake2b
from pathlib import Path
import numpy as np
# The cache alone: the package around it would load torch, seconds for every process.
for name, place in (("piste", "."), ("piste.engine", "engine")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [os.path.join(sys.argv[1], place)]
from piste.engine.cache import FILE, AnswerCache

folder = Path(sys.argv[2])

def row_of(number):
    digest = blake2b(b"%d" % number, digest_size=64).digest()
    return np.frombuffer(digest, dtype=np.uint64) / 7

ROWS = [row_of(number) for number in range(9000)]  # before forks: they shall spend time writing

def check(count):
    with AnswerCache(folder, megabytes=SIZE) as cache:
        found = cache.read("m", [str(k) for k in range(count)])
        assert len(found) == len(cache), (len(found), len(cache))
        (verdict,) = cache._database.execute("PRAGMA integrity_check").fetchone()
        assert verdict == b"ok", verdict
    for key, row in found.items():
        assert row.tobytes() == ROWS[int(key)].tobytes(), key
    return len(found)

def write_many(seed, count, times, told):
    rng = random.Random(seed)
    with AnswerCache(folder, megabytes=SIZE) as cache:
        for _ in range(times):
            chosen = rng.sample(range(count), 200)
            found = cache.read("m", [str(k) for k in chosen[:50]])
            for key, row in found.items():
                assert row.tobytes() == ROWS[int(key)].tobytes(), key
            cache.write("m", {str(k): ROWS[k] for k in chosen})
            os.write(told, b".")

def start(*arguments):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            warnings.simplefilter("error")
            write_many(*arguments)
            status = 0
        except BaseException as problem:
            print(repr(problem), file=sys.stderr)
        finally:
            os._exit(status)
    return child
"""


def run(script: str, folder: Path, **options: Any) -> str:
    source = str(Path(cache_module.__file__).parent.parent)
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(script), source, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_processes_share_one_cache(tmp_path: Path) -> None:
    script = """
        SIZE = 0.5  # small enough that they evict each other's rows
        for round in range(3):  # every round begins with a race for making the file
            for file in folder.glob("*"):
                file.unlink()
            hears, tells = os.pipe()
            children = [start(seed, 9000, 30, tells) for seed in range(5)]
            assert [os.waitpid(child, 0)[1] for child in children] == [0] * 5
            print(check(9000))
    """
    kept = [int(line) for line in run(script, tmp_path).split()]
    assert len(kept) == 3
    assert min(kept) > 2000


@pytest.mark.parametrize("rounds", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_processes_killed_at_any_moment_leave_right_rows(tmp_path: Path, rounds: int) -> None:
    script = f"""
        SIZE = 0.2
        rng = random.Random(5)
        for round in range({rounds}):
            if round % 8 == 0:  # also while the file is being made
                for file in folder.glob("*"):
                    file.unlink()
            hears, tells = os.pipe()
            children = [start(rng.random(), 3000, 10_000, tells) for _ in range(2)]
            for _ in range(rng.randrange(6)):  # writes, however long they take
                os.read(hears, 1)
            time.sleep(rng.uniform(0.0, 0.01))  # and then at any moment
            for child in children:
                os.kill(child, signal.SIGKILL)
            os.close(hears)
            os.close(tells)
            statuses = [os.waitpid(child, 0)[1] for child in children]
            assert statuses == [signal.SIGKILL] * 2, statuses
            print(check(3000))
    """
    kept = [int(line) for line in run(script, tmp_path).split()]
    assert len(kept) == rounds
    assert max(kept) > 1000


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit on the size of files")
def test_a_disk_that_is_really_full_loses_nothing(tmp_path: Path) -> None:
    script = """
        SIZE = 100
        cache = AnswerCache(folder, megabytes=SIZE)
        cache.write("m", {str(k): row_of(k) for k in range(1000)})
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, unlimited[1]))
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            for start in range(0, 9000, 1000):
                cache.write("m", {str(k): row_of(k) for k in range(start, start + 1000)})
        print(len(heard), heard[0].message)
        before = len(cache)
        cache.close()
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        assert check(9000) == before >= 1000
    """
    said = run(script, tmp_path)
    assert said.startswith("1 The cache")
    assert "goes on without storing" in said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes can be forked")
def test_a_fork_opens_its_own_connection(tmp_path: Path) -> None:
    script = """
        SIZE = 1
        cache = AnswerCache(folder)
        cache.write("m", {"1": row_of(1)})
        mine = cache._database
        child = os.fork()
        if child == 0:
            status = 1
            try:
                cache.write("m", {"2": row_of(2)})
                assert cache._database is not mine
                assert len(cache.read("m", ["1", "2"])) == 2
                cache.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert cache._database is mine
        cache.write("m", {"3": row_of(3)})
        cache.close()
        print(check(9))
    """
    assert run(script, tmp_path).strip() == "3"


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="only where users have numbers")
@pytest.mark.parametrize("exists", [False, True])
def test_a_place_that_is_not_writable_is_refused(tmp_path: Path, exists: bool) -> None:
    if exists:
        with AnswerCache(tmp_path) as cache:
            cache.write("m", {"1": np.ones(2)})
        (tmp_path / FILE).chmod(0o444)
    script = """
        from piste.errors import PisteError
        os.chdir(folder)  # the folders above it may be closed to others
        folder.chmod(0o555)
        if os.getuid() == 0:
            os.setuid(65534)  # the administrator may write anywhere
        for place in (".", "new"):
            try:
                AnswerCache(place)
            except PisteError as problem:
                print(problem)
    """
    try:
        lines = run(script, tmp_path).splitlines()
    finally:
        tmp_path.chmod(0o755)
    assert len(lines) == 2
    assert "can't be opened for writing" in lines[0]
    assert "could not be made" in lines[1]
    assert sorted(file.name for file in tmp_path.iterdir()) == ([FILE] if exists else [])
