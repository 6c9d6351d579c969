"""Concept scores in a terminal and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from piste.concepts.report import ConceptReport, ConceptScore, Verdict
from piste.concepts.sensitivity import ABOUT
from piste.show.wording import printable

_STYLES: dict[Verdict, str] = {
    "raises": "bold #1f78d1",
    "lowers": "bold #ea6a00",
    "unclear": "",
    "not separable": "dim",
}
COLUMNS = ("concept", "layer", "score", "random sets", "p", "told apart", "verdict")


def chance(p: float) -> str:
    """A p-value without false precision.

    >>> chance(0.0312), chance(0.00002), chance(1.0)
    ('0.031', '< 0.0001', '1')
    """
    if p < 0.0001:
        return "< 0.0001"
    return "1" if p >= 0.9995 else f"{p:.2g}" if p < 0.1 else f"{p:.2f}"


def cells(one: ConceptScore) -> tuple[str, ...]:
    """One row, in the order of :data:`COLUMNS`; a score that means nothing is not shown."""
    refused = one.verdict == "not separable"
    return (
        one.concept,
        str(one.layer),
        "–" if refused else f"{one.score:.2f} ({one.low:.2f}–{one.high:.2f})",
        f"{one.random_score:.2f} ({one.random_low:.2f}–{one.random_high:.2f})",
        "–" if refused else chance(one.p_corrected),
        f"{one.accuracy:.2f} (random {one.random_accuracy:.2f})",
        one.verdict,
    )


def derived(report: ConceptReport, one: ConceptScore) -> str | None:
    """What derivatives say where states were really moved; None if there is nothing to add."""
    if one.kind != "moved" or "attention" not in report.kinds:
        return None
    other = report.of(one.concept, layer=one.layer, target=one.target, kind="attention")
    if other.verdict == "not separable":
        return "–"
    sure = other.verdict in ("raises", "lowers")
    return f"{other.score:.2f} {other.verdict}" if sure else f"{other.score:.2f}"


def headline(report: ConceptReport) -> str:
    """What was found, in one sentence."""
    found: dict[tuple[str, str, str], list[int]] = {}
    for one in report.select():
        if one.verdict in ("raises", "lowers"):
            found.setdefault((one.concept, one.verdict, one.target), []).append(one.layer)
    if not found:
        return "No concept is shown to move a class more than random sets of examples do"
    parts = [f"{concept} {verb} {target}" for concept, verb, target in found]
    rest = f" and {len(parts) - 4} more" if len(parts) > 4 else ""
    return f"{', '.join(parts[:4])}{rest}"


def how_to_read(report: ConceptReport, *, beside: bool = False) -> str:
    """What the columns mean; ``beside``: with what derivatives say."""
    number = report.settings.get("number", "log-odds")
    moved = report.main_kind == "moved"
    how = "when all token states are moved towards the concept" if moved else "along the concept"
    text = (
        f"score: share of the class's examples whose {number} rises {how}, with its 95 % interval. "
        "random sets: the same for sets of examples drawn at random, with the range that holds "
        "95 % of them: a single score within it says nothing. p: that the mean change is one of "
        "theirs, corrected for all rows. told apart: held-out examples on the right side."
    )
    if beside and moved and "attention" in report.kinds:
        text += " TTCAV: the share by derivatives, weighted by attention."
    return text


def about(report: ConceptReport) -> str:
    """What was measured how, in one line."""
    examples = ", ".join(f"{count} examples for {name}" for name, count in report.examples.items())
    against = "each other" if report.negatives is None else f"{report.negatives} negatives"
    return (
        f"{examples} · {len(report.concepts)} concepts told from {against} · "
        f"{report.settings.get('repeats')} vectors each · {report.calls:,} passes, "
        f"{report.seconds:.1f} s"
    )


def markdown(report: ConceptReport, kind: str | None = None) -> str:
    """One table per class."""
    parts = []
    for target in report.targets:
        chosen = report.select(kind=kind, target=target)
        rows = [_row(report, one) for one in chosen]
        lines = [
            f"**{target}**, {ABOUT[chosen[0].kind]}",
            "",
            "| " + " | ".join(rows[0]) + " |",
            "|" + "---|" * len(rows[0]),
            *("| " + " | ".join(map(_escaped, row.values())) + " |" for row in rows),
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _row(report: ConceptReport, one: ConceptScore) -> dict[str, str]:
    """The cells by their columns."""
    found = dict(zip(COLUMNS, cells(one), strict=True))
    other = derived(report, one)
    return found if other is None else found | {"TTCAV": other}


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def render(report: ConceptReport) -> RenderableType:
    """The main table of every class, and how to read it."""
    return _Rendered(report)


@dataclass(frozen=True)
class _Rendered:
    report: ConceptReport

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        report = self.report
        yield Text(printable(headline(report)), style="bold")
        yield Text(printable(about(report)), style="dim")
        for note in report.notes:
            yield Text(f"Note: {printable(note)}", style="bold yellow")
        for target in report.targets:
            yield ""
            yield Text.assemble(
                (printable(target), "bold"), (f"  {ABOUT[report.main_kind]}", "dim")
            )
            yield _table(report, target, options.max_width)
        yield ""
        yield Text(how_to_read(report, beside=True), style="italic")


def _table(report: ConceptReport, target: str, width: int) -> Table:
    """Without the columns that there is no room for."""
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    chosen = report.select(target=target)
    rows = [_row(report, one) for one in chosen]
    most = {"random sets": 112, "told apart": 92}
    shown = [column for column in rows[0] if width >= most.get(column, 0)]
    for column in shown:
        right = column in ("layer", "p")
        table.add_column(column, justify="right" if right else "left", no_wrap=True)
    before = ""
    for one, row in zip(chosen, rows, strict=True):
        if before not in ("", one.concept):
            table.add_row()
        row["concept"] = "" if one.concept == before else printable(one.concept)
        before = one.concept
        table.add_row(*(Text(row[column], style=_STYLES[one.verdict]) for column in shown))
    return table
