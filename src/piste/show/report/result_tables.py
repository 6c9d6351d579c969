"""Results as tables: in the terminal, as Markdown, as CSV and Parquet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from piste.data import files, storage
from piste.evaluation.bootstrap import differences, summary
from piste.evaluation.results import Difference, Results
from piste.show import labels
from piste.show.report.standings import (
    Standing,
    Summary,
    number_with_bounds,
    places,
    reference,
    standing,
    table_figures,
    verdict,
)

LEVEL = "≈"
"""Behind a number that is not clearly different from the best."""
LEGEND = f"Bold: the best. {LEVEL}: not clearly different from it on the same examples."
_SIGNS = {"higher": "\u00a0↑", "lower": "\u00a0↓", "neither": ""}
_COLUMNS = 4  # figures side by side that a terminal has room for


@dataclass(frozen=True)
class _Cell:
    """A number as it is shown, and how it stands."""

    text: str
    best: bool = False
    level: bool = False


class _Sheet:
    """What all tables of some results share."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.found: Summary = summary(results)
        there = {figure for _, figure in self.found}
        self.figures = [name for name in table_figures(results) if name in there]
        self._stands: dict[str, Standing | None] = {
            name: standing(results, self.found, name) for name in self.figures
        }
        self._places = {name: places(self.found, name) for name in self.figures}

    @property
    def methods(self) -> list[str]:
        """Methods that have at least one number."""
        there = {method for method, _ in self.found}
        return [method for method in self.results.methods if method in there]

    def title(self, figure: str) -> str:
        found = self.results.figures[figure]
        return found.title + _SIGNS[found.better]

    def cell(self, method: str, figure: str) -> _Cell:
        one, stand = self.found.get((method, figure)), self._stands[figure]
        if one is None:
            return _Cell("–")
        text = number_with_bounds(one, self._places[figure])
        if stand is None or len(self.methods) < 2:
            return _Cell(text)
        return _Cell(text, method == stand.best, method in stand.level)

    def differences(self) -> list[tuple[Difference, str]]:
        """Every method against the reference, with the verdict; costs are no quality."""
        against = reference(self.results)
        if against is None:
            return []
        return [
            (one, _words(self.results, one))
            for figure in self.figures
            if self.results.figures[figure].role != "cost"
            for one in differences(self.results, figure, against)
            if one.interval.examples
        ]

    def remarks(self) -> list[str]:
        """What else a reader must know: refusals, notes, and how few examples there are."""
        results, total = self.results, len(self.results.examples)
        lines = [
            f"{method} refused {count} of {total} examples: {reason}"
            for method, reasons in results.problems().items()
            for reason, count in reasons.items()
        ]
        lines += [f"{kind}: {count} of {total} examples" for kind, count in results.notes().items()]
        if 0 < total < 20:
            lines.append(f"Only {total} examples: intervals are rough.")
        return lines


def _words(results: Results, one: Difference) -> str:
    found = verdict(results, one)
    if results.figures[one.figure].better == "neither" and one.clear:
        return "clearly higher" if one.interval.centre > 0 else "clearly lower"
    return found if found == "no clear difference" else f"clearly {found}"


def _difference(one: Difference) -> str:
    bounds = [one.interval.centre, one.interval.low, one.interval.high]
    decimals = labels.places(one.figure, [bound for bound in bounds if not math.isnan(bound)])
    plus = "+" if one.interval.centre > 0 else ""
    return plus + number_with_bounds(one.interval, decimals)


def _blocks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), _COLUMNS):
        yield names[start : start + _COLUMNS]


def _heading(results: Results) -> str:
    model, data = results.settings.get("model"), results.settings.get("data")
    named = model.get("name") if isinstance(model, Mapping) else model
    what = " on ".join(str(part) for part in (named, data) if part)
    examples = f"{len(results.examples)} examples, {len(results.methods)} methods"
    return f"{what}: {examples}" if what else examples


def render(results: Results) -> RenderableType:
    """The tables for a terminal."""
    sheet = _Sheet(results)
    parts: list[RenderableType] = [Text(_heading(results), style="bold"), Text("")]
    for names in _blocks(sheet.figures):
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("method")
        for name in names:
            table.add_column(sheet.title(name), justify="right")
        for method in sheet.methods:
            cells = [_styled(sheet.cell(method, name)) for name in names]
            table.add_row(Text(method), *cells)
        parts += [table, Text("")]
    parts.append(Text(f"{LEGEND} ↑: higher is better, ↓: lower is.", style="dim"))
    parts += _compared(sheet)
    parts += [Text(line, style="yellow") for line in sheet.remarks()]
    return Group(*parts)


def _styled(cell: _Cell) -> Text:
    """The average, and its bounds below it, which would make the table too wide beside it."""
    average, _, bounds = cell.text.partition(" (")
    style = "bold green" if cell.best else "green" if cell.level else ""
    text = Text(average + (f" {LEVEL}" if cell.level else "  "), style=style)
    return text.append(f"\n{bounds[:-1]}  ", style="not bold dim") if bounds else text


def _compared(sheet: _Sheet) -> list[RenderableType]:
    rows = sheet.differences()
    if not rows:
        return []
    title = f"Against {rows[0][0].other}, on the same examples"
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("figure", "method"):
        table.add_column(name)
    table.add_column("difference", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    looks = {"clearly better": "green", "clearly worse": "red"}
    before = ""
    for one, words in rows:
        figure = "" if one.figure == before else sheet.title(one.figure)
        before = one.figure
        judged = Text(words, style=looks.get(words, "dim"))
        table.add_row(figure, Text(one.method), _difference(one), judged)
    return [Text(""), Text(title, style="bold"), Text(""), table, Text("")]


def compared(results: Results) -> list[dict[str, Any]]:
    """The paired differences to the reference for programs, with their verdicts."""
    return [
        {
            "figure": one.figure,
            "method": one.method,
            "other": one.other,
            **{name: storage.numbers(value) for name, value in asdict(one.interval).items()},
            "verdict": words,
        }
        for one, words in _Sheet(results).differences()
    ]


def to_markdown(results: Results, path: str | Path | None = None) -> str:
    """The tables as Markdown, also written to ``path`` if given."""
    sheet = _Sheet(results)
    lines = [f"# {_escape(_heading(results))}", ""]
    if sheet.figures:
        rows = [
            [method, *(_marked(sheet.cell(method, name)) for name in sheet.figures)]
            for method in sheet.methods
        ]
        lines += _grid(["method", *map(sheet.title, sheet.figures)], rows)
        lines += ["", f"{LEGEND} ↑: higher is better, ↓: lower is. Numbers in brackets are the "]
        lines[-1] += "95 % bootstrap interval over examples, of the mean, or of the median for "
        lines[-1] += "errors and R²."
    compared = sheet.differences()
    if compared:
        lines += ["", f"## Against {_escape(compared[0][0].other)}, on the same examples", ""]
        rows = [
            [sheet.title(one.figure), one.method, _difference(one), words]
            for one, words in compared
        ]
        lines += _grid(["figure", "method", "difference", "verdict"], rows)
    remarks = [f"- {_escape(line)}" for line in sheet.remarks()]
    meanings = [
        f"- **{_escape(results.figures[name].title)}**: {_escape(results.figures[name].about)}"
        for name in sheet.figures
    ]
    for title, listed in (("Remarks", remarks), ("What the figures mean", meanings)):
        if listed:
            lines += ["", f"## {title}", "", *listed]
    text = "\n".join([*lines, ""])
    if path is not None:
        files.write_text(path, text)
    return text


def _marked(cell: _Cell) -> str:
    return f"**{cell.text}**" if cell.best else f"{cell.text} {LEVEL}" if cell.level else cell.text


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(_escape(cell) for cell in line) + " |" for line in lines]


def _escape(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
