"""What all studies share: what was measured is kept, findings are tables beside the paper's."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from matplotlib.figure import Figure

from piste.data.files import make_folder
from piste.engine.progress import Progress, ProgressOption
from piste.errors import PisteError
from piste.evaluation import Interval
from piste.show.figures.canvas import save


class _Parts(Progress):
    title = "measuring"


Figures = Mapping[str, Callable[[], Figure]]


class Study(ABC):
    """One experiment."""

    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def run(self, work: Work) -> Findings:
        """Measure what was not measured yet, and sum it up."""


@dataclass
class Work:
    """One run of a study: where it keeps things, and how much of it is wanted."""

    folder: Path
    models: Path
    """Where trained models are kept, for this study and for others."""
    quick: bool
    seed: int
    parts: dict[str, Any]
    progress: Progress
    data: Path | None = None
    """Where the data sets are, if the user has them; never needed for a quick run."""
    weights: Path | None = None
    """Where pretrained weights are, a folder each, if the user has them."""

    @staticmethod
    @contextmanager
    def on(
        folder: Path,
        study: Study,
        *,
        quick: bool,
        seed: int,
        progress: ProgressOption,
        data: Path | None = None,
        weights: Path | None = None,
    ) -> Iterator[Work]:
        """Begin or take up a run; settings and scale are part of where it is kept."""
        own = make_folder(folder / f"{study.name}{'-quick' * quick}")
        kept = make_folder(folder / "models")
        with _Parts(progress) as shown:
            parts = _read(own / "parts.jsonl")
            yield Work(own, kept, quick, seed, parts, shown, data, weights)

    def need(self, name: str, of: Literal["data", "weights"]) -> Path:
        """A file of the data, or a folder of weights, that a full run can't do without."""
        where: Path | None = getattr(self, of)
        if where is None or not (where / name).exists():
            came = "it was not given" if where is None else f"{where} has no {name}"
            raise PisteError(
                f"A full run needs {name} in the folder that --{of} names, and {came}: name the "
                "folder, or add --quick for a run with what is bundled."
            )
        return where / name

    def command(self, name: str) -> str:
        """What was typed for it, but for the places of this machine."""
        parts = [f"python -m studies {name}"]
        parts += ["--quick"] * self.quick
        parts += [] if self.seed == 0 else [f"--seed {self.seed}"]
        if not self.quick:
            parts += [f"--{of} {of.upper()}" for of in ("data", "weights") if getattr(self, of)]
        return " ".join(parts)

    def plan(self, steps: int) -> None:
        """Say how many parts there will be."""
        self.progress.plan(steps)

    def part(self, key: str, measure: Callable[[], Any]) -> Any:
        """A part's numbers, measured unless they are there already.

        They are kept as JSON, so that a run that was stopped goes on where it was.
        """
        full = f"{key}, seed {self.seed}"
        if full not in self.parts:
            found = json.loads(json.dumps(measure()))
            with (self.folder / "parts.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps({"part": full, "found": found}) + "\n")
            self.parts[full] = found
        self.progress.advance(1)
        return self.parts[full]


def _read(path: Path) -> dict[str, Any]:
    """Parts that were measured; a last line that was cut off is measured again."""
    found: dict[str, Any] = {}
    if not path.is_file():
        return found
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            found[row["part"]] = row["found"]
        except (ValueError, KeyError, TypeError) as problem:
            if number < len(lines):
                raise PisteError(
                    f"{path} is damaged in line {number}: delete it to measure again."
                ) from problem
            # What comes next must not be written onto it.
            path.write_text("".join(f"{kept}\n" for kept in lines[:-1]), encoding="utf-8")
    return found


def graded(whole: bool, part: bool) -> str:
    """The verdict on a claim."""
    return "holds" if whole else "holds in part" if part else "does not hold"


def shown(one: Interval, digits: int = 2) -> str:
    """Mean (low to high).

    >>> shown(Interval(0.5, 0.25, 0.75, 9))
    '0.50 (0.25 to 0.75)'
    """
    return f"{one.centre:.{digits}f} ({one.low:.{digits}f} to {one.high:.{digits}f})"


@dataclass(frozen=True)
class Table:
    """Rows of cells as they are shown."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        lines = [
            f"### {self.title}\n",
            "| " + " | ".join(self.columns) + " |",
            "|" + "---|" * len(self.columns),
            *("| " + " | ".join(map(_shown, row)) + " |" for row in self.rows),
        ]
        return "\n".join(lines) + "\n"


def _shown(cell: str) -> str:
    """With a minus where a number begins with a hyphen."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", cell)


@dataclass(frozen=True)
class Findings:
    """What a study found."""

    name: str
    title: str
    command: str
    tables: Sequence[Table]
    claims: Sequence[tuple[str, str, str]]
    """What the paper says, what was measured, and whether it holds."""
    figures: Figures = field(default_factory=dict)

    def markdown(self) -> str:
        """The page."""
        parts = [f"# {self.title}\n", f"    {self.command}\n"]
        parts += [f"![{name}]({name}.png)\n" for name in self.figures]
        parts += [table.markdown() for table in self.tables]
        parts.append(
            Table("Claims", ("the paper says", "we measure", "it"), self.claims).markdown()
        )
        return "\n".join(parts)

    def write(self, folder: Path) -> None:
        """The page as ``findings.md``, and its figures beside it."""
        for name, draw in self.figures.items():
            save(draw(), folder / f"{name}.png")
        (folder / "findings.md").write_text(self.markdown(), encoding="utf-8")
