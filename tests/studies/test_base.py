"""What was measured is kept, and a run that was stopped goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

import studies
from piste import PisteError
from studies.base import Findings, Study, Table, Work


class Counting(Study):
    name: ClassVar[str] = "counting"
    title: ClassVar[str] = "Counting"

    def __init__(self) -> None:
        self.measured: list[str] = []

    def run(self, work: Work) -> Findings:
        work.plan(2)
        for key in ("one", "two"):
            work.part(key, lambda key=key: self.measured.append(key) or len(self.measured))  # type: ignore[misc, func-returns-value]
        rows = [(key, str(value)) for key, value in work.parts.items()]
        table = Table("Numbers", ("part", "number"), rows)
        return Findings(
            "counting", "Counting", "python -m studies counting", [table], [("a", "-1", "c")]
        )


def run(study: Counting, folder: Path, **options: Any) -> Findings:
    options = {"quick": True, "seed": 0, "progress": False} | options
    with Work.on(folder, study, **options) as work:
        return study.run(work)


def test_parts_are_measured_once(tmp_path: Path) -> None:
    study = Counting()
    first = run(study, tmp_path)
    assert run(study, tmp_path).markdown() == first.markdown()
    assert study.measured == ["one", "two"]
    run(study, tmp_path, seed=1)
    assert study.measured == ["one", "two", "one", "two"]
    run(study, tmp_path, quick=False)
    assert len(study.measured) == 6


def test_a_line_that_was_cut_off_is_measured_again(tmp_path: Path) -> None:
    study = Counting()
    run(study, tmp_path)
    path = tmp_path / "counting-quick" / "parts.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text(lines[0] + "\n" + lines[1][:9], encoding="utf-8")
    run(study, tmp_path)
    assert study.measured == ["one", "two", "two"]
    run(study, tmp_path)
    assert len(study.measured) == 3
    path.write_text("broken\n" + lines[1] + "\n", encoding="utf-8")
    with pytest.raises(PisteError, match="damaged in line 1: delete it"):
        run(study, tmp_path)


def test_the_page_has_the_command_and_the_claims(tmp_path: Path) -> None:
    found = run(Counting(), tmp_path)
    found.write(tmp_path)
    page = (tmp_path / "findings.md").read_text(encoding="utf-8")
    assert "    python -m studies counting" in page
    assert "| a | −1 | c |" in page


def test_unknown_studies_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PisteError, match="No study is called 'magic': choose additive"):
        studies.run("magic", tmp_path)
