"""The command that fine-tunes: which split it measures on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.finetune import choose_test_split
from piste import PisteError

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


def data_of(path: Path, *splits: str) -> Path:
    rows = [
        {"text": f"text {number} of {split}", "label": number % 2, "split": split}
        for split in splits
        for number in range(4)
    ]
    pandas.DataFrame(rows).to_parquet(path)
    return path


@pytest.mark.parametrize(
    ("splits", "found"),
    [
        (("train", "test", "validation"), "test"),
        (("train", "validation", "dev"), "validation"),
        (("train", "dev"), "dev"),
    ],
)
def test_the_split_that_is_there_is_taken(
    splits: tuple[str, ...], found: str, tmp_path: Path
) -> None:
    assert choose_test_split(data_of(tmp_path / "x.parquet", *splits)) == found


def test_a_split_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    data = data_of(tmp_path / "x.parquet", "train", "dev", "held_out")
    with pytest.raises(PisteError, match="splits dev, held_out, train, expected test or valid"):
        choose_test_split(data)
    with pytest.raises(PisteError, match="expected 'tset'"):
        choose_test_split(data, "tset")
    assert choose_test_split(data, "held_out") == "held_out"


@pytest.mark.slow
def test_the_command_ends_with_one_sentence(tmp_path: Path) -> None:
    data = data_of(tmp_path / "x.parquet", "train")
    command = [sys.executable, "-m", "benchmarks.finetune", "--weights", "none", "--data", data]
    ended = subprocess.run(
        [*command, "--labels", "a,b", "--out", tmp_path / "out"], capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert ended.stderr.strip().splitlines()[-1].startswith("x.parquet has the splits train")
    assert "Traceback" not in ended.stderr
