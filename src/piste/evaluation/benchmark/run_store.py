"""A run on disk: what it is, and its rows, added as they are found and never lost by a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from piste.data.files import write_text
from piste.data.run_folder import RunKind, check_same, open_run, remove_unfinished
from piste.errors import PisteError
from piste.evaluation.metrics import Figure, read_figure
from piste.evaluation.results import FORMAT, Results, Row

ROWS = "rows.jsonl"
KIND = RunKind("run of piste evaluate", "run.json", key="piste_run", format=FORMAT)


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

    def write(self, folder: Path) -> None:
        """Store it as the manifest of a folder."""
        figures = [asdict(figure) for figure in self.figures.values()]
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        KIND.write(folder, {**own, "figures": figures})

    @staticmethod
    def of(folder: str | Path, manifest: Mapping[str, Any]) -> Plan:
        """The plan that a folder's manifest holds."""
        try:
            return Plan(
                configuration=dict(manifest["configuration"]),
                examples=tuple((str(name), str(digest)) for name, digest in manifest["examples"]),
                methods=tuple(manifest["methods"]),
                figures={one["name"]: read_figure(one) for one in manifest["figures"]},
                settings=manifest["settings"],
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise KIND.broken(folder, problem) from problem


@dataclass(frozen=True)
class RowStore:
    """Where rows go. ``done`` holds the rows of examples that are complete."""

    path: Path
    done: Mapping[str, list[Row]]

    @staticmethod
    @contextmanager
    def opened(path: str | Path, plan: Plan) -> Iterator[RowStore]:
        """Begin a run, or continue the one that is there, also with more or fewer examples."""
        with open_run(path, KIND) as manifest:
            folder, rows = Path(path), Path(path) / ROWS
            done: dict[str, list[Row]] = {}
            if manifest is not None:
                before = Plan.of(folder, manifest)
                _check_same(folder, before, plan)
                done = _complete(rows, plan.methods)
                _repair(rows, done)
                if len(before.examples) > len(plan.examples):
                    counted = {**plan.settings, "examples": len(before.examples)}
                    plan = replace(plan, examples=before.examples, settings=counted)
            plan.write(folder)
            yield RowStore(folder, done)

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
    >>> from piste.evaluation.benchmark.evaluation_run import evaluate
    >>> loud = piste.load(lambda texts: [text.count("!") for text in texts])
    >>> folder = tempfile.mkdtemp()
    >>> _ = evaluate(loud, ["Stop it !", "Go !"], methods=["occlusion"], folder=folder)
    >>> read_results(folder).examples
    ('0', '1')
    """
    path = Path(folder).parent if Path(folder).name == KIND.manifest else Path(folder)
    plan = Plan.of(path, KIND.read(path))
    return plan.results(_complete(path / ROWS, plan.methods))


def _line(row: Row) -> str:
    return json.dumps(row.to_dict(), ensure_ascii=False, allow_nan=False) + "\n"


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
    remove_unfinished(file.parent, file.name)
    if not file.exists():
        return
    whole = "".join(_line(row) for rows in done.values() for row in rows)
    if file.read_bytes() != whole.encode():
        write_text(file, whole)


def _check_same(folder: Path, before: Plan, now: Plan) -> None:
    """Refuse other settings, and other examples as far as both have them."""
    old, new = dict(before.configuration), dict(now.configuration)
    pairs = zip(before.examples, now.examples, strict=False)
    other = next((pair for pair in pairs if pair[0] != pair[1]), None)
    if other is not None:
        (name, digest), (_, now_digest) = other
        place = f"the data, first in example {name!r}"
        old[place], new[place] = digest, now_digest
    check_same(folder, old, new)
