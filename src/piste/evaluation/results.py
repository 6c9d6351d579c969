"""What an evaluation found: one row per example, method and figure, and what follows from them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from piste.data.storage import number, numbers, write_text
from piste.errors import PisteError
from piste.evaluation.metrics import Figure, read_figure
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
        from piste.evaluation import exports

        exports.to_csv(self, path)

    def to_parquet(self, path: str | Path) -> None:
        """One row per example, method and figure."""
        from piste.evaluation import exports

        exports.to_parquet(self, path)

    def __rich__(self) -> RenderableType:
        return VIEWS["evaluation_terminal"](self)


def read(path: str | Path) -> Results:
    """Stored results."""
    file = Path(path)
    if not file.is_file():
        raise PisteError(f"There is no file {str(path)!r}.")
    try:
        return Results.from_json(file.read_bytes().decode("utf-8-sig"))
    except PisteError as problem:
        raise PisteError(f"{str(path)!r}: {problem}") from problem
    except UnicodeDecodeError as problem:
        raise PisteError(f"{str(path)!r} is not UTF-8 text.") from problem
    except OSError as problem:
        raise PisteError(f"{str(path)!r} could not be read: {problem.strerror}.") from problem
