"""A run on disk: what it is, and its rows, added as they are found and never lost by a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from piste.data.storage import make_folder, write_text
from piste.errors import PisteError, shorten
from piste.evaluation.metrics.base import Figure
from piste.evaluation.results import FORMAT, Results, Row

RUN = "run.json"
ROWS = "rows.jsonl"


@dataclass(frozen=True)
class Plan:
    """All that decides what rows a run has, and what a reader should know of it."""

    configuration: Mapping[str, Any]
    """What must be the same for a run to go on."""
    examples: tuple[tuple[str, str], ...]
    """Id and digest of every example, in the order they are worked on."""
    methods: tuple[str, ...]
    figures: Mapping[str, Figure]
    settings: Mapping[str, Any]

    def results(self, rows: Mapping[str, Sequence[Row]]) -> Results:
        """The results of those examples that are done, in the plan's order."""
        ids = [example for example, _ in self.examples]
        ordered = [row for example in ids if example in rows for row in rows[example]]
        found = Results(tuple(ordered), self.figures, self.methods, self.settings)
        noted = {kind: f"{count} examples" for kind, count in found.notes().items()}
        return replace(found, settings={**self.settings, "notes": noted}) if noted else found

    def to_json(self) -> str:
        data = {
            "piste_run": FORMAT,
            "configuration": self.configuration,
            "settings": self.settings,
            "methods": self.methods,
            "figures": [asdict(figure) for figure in self.figures.values()],
            "examples": self.examples,
        }
        return json.dumps(data, ensure_ascii=False, indent=1, default=str)

    @staticmethod
    def from_json(text: str, file: Path) -> Plan:
        try:
            data = json.loads(text)
            if data["piste_run"] != FORMAT:
                raise PisteError(
                    f"{str(file)!r} has the format {data['piste_run']!r}, this version of Piste "
                    f"reads {FORMAT}: update Piste, or choose another folder."
                )
            return Plan(
                configuration=data["configuration"],
                examples=tuple((str(name), str(digest)) for name, digest in data["examples"]),
                methods=tuple(data["methods"]),
                figures={one["name"]: Figure(**one) for one in data["figures"]},
                settings=data["settings"],
            )
        except (KeyError, TypeError, ValueError) as problem:
            if isinstance(problem, PisteError):
                raise
            raise PisteError(
                f"{str(file)!r} is no run of piste evaluate, or not a whole one ({problem}): "
                "choose another folder."
            ) from problem


class RunFolder:
    """The folder of one run. ``done`` holds the rows of examples that are complete.

    Opening a folder that holds the same run goes on with it; one that holds another is refused.
    """

    def __init__(self, folder: str | Path, plan: Plan) -> None:
        self.path = make_folder(folder)
        self.done: dict[str, list[Row]] = {}
        run, rows = self.path / RUN, self.path / ROWS
        if run.exists():
            before = Plan.from_json(_text(run), run)
            _check_same(self.path, before, plan)
            self.done = _complete(rows, plan.methods)
            _repair(rows, self.done)
            if len(before.examples) > len(plan.examples):
                counted = {**plan.settings, "examples": len(before.examples)}
                plan = replace(plan, examples=before.examples, settings=counted)
        elif rows.exists():
            raise PisteError(f"{str(rows)!r} has rows of an unknown run: choose another folder.")
        write_text(run, plan.to_json())

    def add(self, rows: Sequence[Row]) -> None:
        """Append the rows of one example; when this returns they are on the disk."""
        lines = "".join(_line(row) for row in rows).encode()
        try:
            with (self.path / ROWS).open("ab") as file:
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())
        except OSError as problem:
            raise PisteError(
                f"{str(self.path / ROWS)!r} could not be written ({problem.strerror}): make room "
                "and start again, the run goes on where it stopped."
            ) from problem


def read_results(folder: str | Path) -> Results:
    """The results of a run, finished or not, from the folder it was written to.

    >>> import piste, tempfile
    >>> from piste.evaluation.benchmark.runner import evaluate
    >>> loud = piste.load(lambda texts: [text.count("!") for text in texts])
    >>> folder = tempfile.mkdtemp()
    >>> _ = evaluate(loud, ["Stop it !", "Go !"], methods=["occlusion"], folder=folder)
    >>> read_results(folder).examples
    ('0', '1')
    """
    path = Path(folder).parent if Path(folder).name == RUN else Path(folder)
    if not (path / RUN).is_file():
        raise PisteError(f"There is no run in {str(folder)!r}: {RUN} is missing.")
    plan = Plan.from_json(_text(path / RUN), path / RUN)
    return plan.results(_complete(path / ROWS, plan.methods))


def _line(row: Row) -> str:
    return json.dumps(row.to_dict(), ensure_ascii=False, allow_nan=False) + "\n"


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise PisteError(f"{str(file)!r} could not be read: {problem}.") from problem


def _complete(file: Path, methods: Sequence[str]) -> dict[str, list[Row]]:
    """Rows by example, of those examples that have a row of every method."""
    found: dict[str, dict[str, Row]] = {}
    if file.exists():
        lines = _text_so_far(file).split("\n")
        for number, line in enumerate(lines, start=1):
            try:
                row = Row.from_dict(json.loads(line)) if line.strip() else None
            except (ValueError, KeyError, TypeError, AttributeError) as problem:
                if not any(later.strip() for later in lines[number:]):
                    break  # torn by a kill: its example is done again
                raise PisteError(
                    f"Line {number} of {str(file)!r} is broken ({problem}): delete that line and "
                    "start again."
                ) from problem
            if row is not None:
                found.setdefault(row.example, {})[row.method] = row
    return {
        example: [rows[method] for method in methods]
        for example, rows in found.items()
        if all(method in rows for method in methods)
    }


def _text_so_far(file: Path) -> str:
    """The file's text; a kill may have cut its end within a letter."""
    try:
        return file.read_bytes().decode("utf-8", "replace")
    except OSError as problem:
        raise PisteError(f"{str(file)!r} could not be read: {problem.strerror}.") from problem


def _repair(file: Path, done: Mapping[str, Sequence[Row]]) -> None:
    """Leave whole examples only, or else the next row would be added to a torn line."""
    if not file.exists():
        return
    whole = "".join(_line(row) for rows in done.values() for row in rows)
    if file.read_bytes() != whole.encode():
        write_text(file, whole)


def _check_same(folder: Path, before: Plan, now: Plan) -> None:
    """Refuse to mix two runs, in a sentence that says what differs."""
    old = dict(before.configuration)
    new = json.loads(json.dumps(now.configuration, default=str))
    differing = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    words = [f"{name} {shorten(old.get(name))}, now {shorten(new.get(name))}" for name in differing]
    for (name, digest), (other, now_digest) in zip(before.examples, now.examples, strict=False):
        if (name, digest) != (other, now_digest):
            there = f"example {name!r}" + ("" if name == other else f", now {other!r}")
            words.append(f"the data, first in {there}")
            break
    if words:
        raise PisteError(
            f"The folder {str(folder)!r} holds a run with other settings ({'; '.join(words)}): "
            "use the same settings to go on with it, or choose another folder."
        )
