"""What an evaluation found: one row per example, method and figure; as files, and F1 of classes."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from piste.data import files, storage
from piste.data.files import write_text
from piste.data.storage import number, numbers
from piste.errors import PisteError, need
from piste.evaluation.metrics import Figure, read_figure
from piste.types import Ints
from piste.views import VIEWS

if TYPE_CHECKING:
    from rich.console import RenderableType


FORMAT = 1
"""Version of the stored form of results and run folders."""


LEAST_EXAMPLES = 6
"""With fewer no difference is called clear."""


@dataclass(frozen=True)
class Row:
    """One method on one example."""

    example: str
    """Identifies the example: its number in the data, or a file name."""
    method: str
    """The method's name, with its score behind a colon if it isn't its own ranking."""
    figures: Mapping[str, float]
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)
    problem: str = ""
    """Why there are no figures, if the method refused or failed."""
    note: str = ""
    """What a reader of the figures should know of this example: that its text was cut, say."""

    def to_dict(self) -> dict[str, Any]:
        """Plain parts that JSON can hold: None for NaN, "inf" for infinity."""
        return {
            "example": self.example,
            "method": self.method,
            "figures": {name: numbers(value) for name, value in self.figures.items()},
            "curves": {name: numbers(list(curve)) for name, curve in self.curves.items()},
            "problem": self.problem,
            "note": self.note,
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Row:
        """The row that :meth:`to_dict` described."""
        return Row(
            example=str(data["example"]),
            method=str(data["method"]),
            figures={name: number(value) for name, value in data["figures"].items()},
            curves={
                name: tuple(number(value) for value in curve)
                for name, curve in data["curves"].items()
            },
            problem=str(data["problem"]),
            note=str(data["note"]),
        )


@dataclass(frozen=True)
class Interval:
    """The mean or median over examples (as the figure says) with its bootstrap interval."""

    centre: float
    low: float
    high: float
    examples: int


@dataclass(frozen=True)
class Difference:
    """Method minus other method on the examples both have, paired."""

    figure: str
    method: str
    other: str
    interval: Interval

    @property
    def clear(self) -> bool:
        """Whether the interval leaves zero out: only then the two are called different.

        Never with fewer than six examples, of which chance alone often makes all agree.
        """
        enough = self.interval.examples >= LEAST_EXAMPLES
        return enough and (self.interval.low > 0 or self.interval.high < 0)


@dataclass(frozen=True)
class Results:
    """Everything an evaluation found, ready for tables, plots and pages."""

    rows: tuple[Row, ...]
    figures: Mapping[str, Figure]
    methods: tuple[str, ...]
    """In the order they were asked for."""
    settings: Mapping[str, Any]
    """Model, data, budget, seed, versions, command."""

    def values(self, method: str, figure: str) -> dict[str, float]:
        """A figure of a method by example; those without a number are left out."""
        return {
            row.example: row.figures[figure]
            for row in self.rows
            if row.method == method
            and row.figures.get(figure) is not None
            and row.figures[figure] == row.figures[figure]  # not NaN
        }

    @property
    def examples(self) -> tuple[str, ...]:
        """The examples there are rows of, in their order."""
        return tuple(dict.fromkeys(row.example for row in self.rows))

    def problems(self) -> dict[str, dict[str, int]]:
        """For every method that refused something: the reasons, and of how many examples."""
        found: dict[str, Counter[str]] = {}
        for row in self.rows:
            if row.problem:
                found.setdefault(row.method, Counter())[row.problem] += 1
        return {method: dict(reasons.most_common()) for method, reasons in found.items()}

    def notes(self) -> dict[str, int]:
        """What was noted, up to its colon, and of how many examples."""
        found: dict[str, set[str]] = {}
        for row in self.rows:
            for note in filter(None, row.note.split("; ")):
                found.setdefault(note.partition(":")[0], set()).add(row.example)
        return {kind: len(examples) for kind, examples in found.items()}

    # -- stored and shown ----------------------------------------------------------------------

    def to_json(self, path: str | Path | None = None) -> str:
        """Everything as JSON, also written to ``path`` if given."""
        data = {
            "piste_results": FORMAT,
            "settings": dict(self.settings),
            "methods": list(self.methods),
            "figures": [asdict(figure) for figure in self.figures.values()],
            "rows": [row.to_dict() for row in self.rows],
        }
        text = json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False, default=str)
        if path is not None:
            write_text(path, text)
        return text

    @staticmethod
    def from_json(text: str) -> Results:
        """The results that :meth:`to_json` wrote."""
        try:
            data = json.loads(text)
            if data["piste_results"] != FORMAT:
                raise PisteError(
                    f"The results have the format {data['piste_results']!r}, this version of "
                    f"Piste reads {FORMAT}: update Piste, or evaluate again."
                )
            return Results(
                rows=tuple(Row.from_dict(row) for row in data["rows"]),
                figures={one["name"]: read_figure(one) for one in data["figures"]},
                methods=tuple(data["methods"]),
                settings=data["settings"],
            )
        except PisteError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise PisteError(f"These are no stored results, or not whole ones ({problem}).") from (
                problem
            )

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The tables as Markdown, also written to ``path`` if given."""
        return VIEWS["evaluation_markdown"](self, path)

    def to_csv(self, path: str | Path) -> None:
        """One line per example, method and figure."""
        to_csv(self, path)

    def to_parquet(self, path: str | Path) -> None:
        """One row per example, method and figure."""
        to_parquet(self, path)

    def __rich__(self) -> RenderableType:
        return VIEWS["evaluation_terminal"](self)


def read(path: str | Path) -> Results:
    """Stored results."""
    return storage.read_text(path, Results.from_json, "evaluation")


Rows: TypeAlias = Callable[[Results], list[dict[str, Any]]]


def long_rows(results: Results) -> list[dict[str, Any]]:
    """One row per example, method and figure; one without figure where a method refused."""
    rows: list[dict[str, Any]] = []
    for row in results.rows:
        common = {"example": row.example, "method": row.method}
        if row.problem:
            rows.append({**common, "figure": None, "value": None, "problem": row.problem})
        for figure, value in row.figures.items():
            number = None if math.isnan(value) else float(value)
            rows.append({**common, "figure": figure, "value": number, "problem": None})
    return rows


def summary_rows(results: Results) -> list[dict[str, Any]]:
    """One row per method: every figure's average, bounds and number of examples."""
    from piste.evaluation.bootstrap import summary  # it reads results

    found = summary(results)
    rows = []
    for method in results.methods:
        row: dict[str, Any] = {"method": method}
        for figure in results.figures:
            one = found.get((method, figure))
            for part in ("centre", "low", "high", "examples"):
                name = figure if part == "centre" else f"{figure}_{part}"
                value = None if one is None else getattr(one, part)
                row[name] = None if value is None or math.isnan(value) else value
        rows.append(row)
    return rows


def to_csv(
    results: Results,
    path: str | Path,
    rows: Rows = long_rows,
) -> None:
    """A CSV file, numbers to full precision; ``rows`` may be :func:`summary_rows`."""
    listed = rows(results)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(listed[0]) if listed else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    files.write_text(path, buffer.getvalue())


def to_parquet(
    results: Results,
    path: str | Path,
    rows: Rows = long_rows,
) -> None:
    """The same as a Parquet file."""
    pyarrow: Any = need("pyarrow", "tables", "A Parquet file")
    parquet: Any = need("pyarrow.parquet", "tables", "A Parquet file")
    schema = None
    if rows is long_rows:
        text, number = pyarrow.string(), pyarrow.float64()
        kinds = {"example": text, "method": text, "figure": text, "value": number, "problem": text}
        schema = pyarrow.schema(kinds.items())
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows(results), schema=schema), buffer)
    files.write_bytes(path, buffer.getvalue())


def class_f1(
    results: Results, method: str, truth: Mapping[str, int] | None = None
) -> dict[str, float]:
    """Macro and weighted F1 of the class from the top units alone (metric "alone").

    Held against the model's own class for the whole input, or against ``truth``, the right class
    by example. Macro: the mean over the classes that occur in either; weighted: by how often each
    is right.
    """
    found = {
        row.example: row.curves["classes"]
        for row in results.rows
        if row.method == method and "classes" in row.curves
    }
    names = [name for name in found if truth is None or name in truth]
    if not names:
        raise PisteError(f"The classes that {method!r} leaves are not known: add 'alone'.")
    given = np.array([int(found[name][0]) for name in names])
    right = np.array([int(found[name][1] if truth is None else truth[name]) for name in names])
    return f1(given, right)


def f1(given: Ints, right: Ints) -> dict[str, float]:
    """F1 = 2·hits / (given + right) of every class, put together.

    >>> f1(np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1]))
    {'macro': 0.7333333333333334, 'weighted': 0.7333333333333334}
    """
    classes = np.union1d(given, right)
    hits = np.array([((given == one) & (right == one)).sum() for one in classes])
    each = np.array([(given == one).sum() + (right == one).sum() for one in classes])
    scores = 2 * hits / each
    support = np.array([(right == one).sum() for one in classes])
    return {"macro": float(scores.mean()), "weighted": float(scores @ support / support.sum())}
