"""A run is continued by itself, and nothing else in a folder is touched."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from piste import PisteError
from piste.data.run_folder import RunKind, check_same, open_run

KIND = RunKind("test run", "run.json", key="piste_test", format=2)


def test_a_folder_is_begun_and_continued(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    with open_run(folder, KIND) as before:
        assert before is None
        KIND.write(folder, {"seed": 3})
    (folder / ".run.json.x1").write_text("{")  # from a kill
    with open_run(folder, KIND) as before:
        assert before == {"piste_test": 2, "seed": 3}
    assert not (folder / ".run.json.x1").exists()
    assert KIND.read(folder) == before


def test_what_a_killed_run_leaves_before_its_manifest_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / ".lock").touch()
    with open_run(tmp_path, KIND) as before:
        assert before is None


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with (
        pytest.raises(PisteError, match="not empty and holds no test run"),
        open_run(tmp_path, KIND),
    ):
        pass
    assert os.listdir(tmp_path) == ["thesis.txt"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "can't be read"),
        ("[]", "is not the manifest of a test run"),
        ('{"seed": 3}', "'piste_test' is missing"),
        ('{"piste_test": 9}', "has the format 9, this version of Piste reads 2"),
    ],
)
def test_a_manifest_that_can_not_be_used_is_told(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(PisteError) as refused, open_run(tmp_path, KIND):
        pass
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert (tmp_path / "run.json").read_text() == content


def test_two_runs_can_not_write_to_one_folder(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with (
        open_run(tmp_path, KIND),
        pytest.raises(PisteError, match="Another run is writing to"),
        open_run(tmp_path, KIND),
    ):
        pass
    with open_run(tmp_path, KIND):
        pass  # free again


def test_differences_are_named() -> None:
    before = json.loads('{"seed": 0, "columns": {"text": "text", "keep": []}, "model": "a"}')
    now = {"seed": 0, "columns": {"text": "text", "keep": ()}, "model": "a"}
    check_same("out", before, now)
    now = {"seed": 1, "columns": {"text": "body", "keep": ()}, "model": "b", "samples": 9}
    with pytest.raises(PisteError) as refused:
        check_same("out", before, now)
    assert str(refused.value) == (
        "The folder 'out' holds a run with other settings (seed 0, now 1; columns text 'text', now "
        "'body'; model 'a', now 'b'; and 1 more): use the same settings to continue it, or choose "
        "another folder."
    )
