"""Tables say what the rows say, and claim no difference that the pairs don't show."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from piste import PisteError
from piste.evaluation.bootstrap import summary
from piste.evaluation.metrics import Figure, figures_of, make
from piste.evaluation.results import Results, Row, summary_rows, to_csv, to_parquet
from piste.show.report.result_tables import compared, render, to_markdown
from piste.show.report.standings import standing

KNOWN = figures_of(make(["deletion", "fidelity"]))
FIGURES = {
    **{name: KNOWN[name] for name in ("aopc", "mse_few", "mse_3", "seconds")},
    "length": Figure("length", "neither", "length", "length", "number of units"),
}
METHODS = ("slalom", "lime", "random", "gradient")


def invented(examples: int = 30) -> Results:
    """lime is as good as slalom on average, random is clearly worse, gradient refuses."""
    rows = []
    for n in range(examples):
        wave, text = 0.1 * math.sin(n), str(n)
        rows += [
            _row(text, "slalom", 0.50 + wave, 1.0 + wave, note="text cut: 3 tokens" if n else ""),
            _row(text, "lime", 0.49 + wave + (0.03 if n % 2 else -0.02), 0.5 + wave),
            _row(text, "random", 0.2 + wave, 3.0 + wave),
            Row(text, "gradient", {}, problem="it | only answers"),
        ]
    settings = {"model": {"name": "toy"}, "data": "few.csv", "reference": None}
    return Results(tuple(rows), FIGURES, METHODS, settings)


def _row(example: str, method: str, aopc: float, mse: float, note: str = "") -> Row:
    figures = {"aopc": aopc, "mse_few": mse, "mse_3": mse, "seconds": 0.1, "length": len(method)}
    return Row(example, method, figures, {"deletion": (0.9, math.nan)}, note=note)


def shown(results: Results, width: int = 100) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(render(results))
    return console.export_text().replace("\u00a0", " ")


def grid(markdown: str, head: str) -> list[list[str]]:
    """The cells of the Markdown table whose head begins so."""
    lines = markdown.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {head}"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.replace("\\|", "/").split("|")[1:-1]])
    return rows


def test_the_best_and_those_level_with_it_are_marked() -> None:
    head, _, *rows = grid(to_markdown(invented()), "method")
    cells = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    assert head[1:3] == ["deletion AOPC ↑", "error, few removed ↓"]
    aopc, error = head[1], head[2]
    assert cells["slalom"][aopc].startswith("**0.5")
    assert cells["lime"][aopc].endswith("≈")
    assert "≈" not in cells["random"][aopc]
    assert "*" not in cells["random"][aopc]
    assert cells["lime"][error].startswith("**0.5"), "lower is better"
    assert "≈" not in cells["slalom"][error]
    assert "gradient" not in cells, "it has no numbers"
    assert not any(title.startswith("mse 3") for title in head), "a curve, no column"
    for row in cells.values():
        assert "*" not in row["length"], "neither way is good"


def test_differences_to_the_reference_in_words() -> None:
    results = invented()
    rows = {(one["figure"], one["method"]): one for one in compared(results)}
    assert {one["other"] for one in rows.values()} == {"slalom"}
    assert rows["aopc", "lime"]["verdict"] == "no clear difference"
    assert rows["aopc", "random"]["verdict"] == "clearly worse"
    assert rows["mse_few", "lime"]["verdict"] == "clearly better"
    assert rows["mse_few", "random"]["verdict"] == "clearly worse"
    assert rows["length", "lime"]["verdict"] == "clearly lower"
    assert rows["aopc", "random"]["centre"] == pytest.approx(-0.3)
    assert not any("seconds" in key or "gradient" in key for key in rows)
    other = Results(results.rows, FIGURES, METHODS, {"reference": "random"})
    rows = {(one["figure"], one["method"]): one for one in compared(other)}
    assert rows["aopc", "slalom"]["verdict"] == "clearly better"
    written = grid(to_markdown(results), "figure")
    assert ["error, few removed ↓", "random", "+2.00 (2.00 to 2.00)", "clearly worse"] in written


def test_refusals_notes_and_few_examples_are_told() -> None:
    for text in (to_markdown(invented()).replace("\\|", "|"), " ".join(shown(invented()).split())):
        assert "gradient refused 30 of 30 examples: it | only answers" in text
        assert "text cut: 29 of 30 examples" in text
        assert "intervals are rough" not in text
    assert "Only 3 examples" in to_markdown(invented(3))


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_terminal_has_every_method_and_figure(width: int) -> None:
    text = shown(invented(), width)
    assert max(map(len, text.splitlines())) <= width
    for word in ("slalom", "lime", "random", "AOPC", "seconds", "clearly worse", "toy on few.csv"):
        assert word in " ".join(text.split())


def test_one_method_one_example_and_nothing_at_all() -> None:
    few = invented(1)
    alone = Results(few.rows[:1], FIGURES, ("slalom",), {})
    assert "0.5" in shown(alone)
    assert "**" not in to_markdown(alone).split("## What")[0], "best of one is no merit"
    assert compared(alone) == []
    refused = Results(few.rows[3:], FIGURES, ("gradient",), {})
    assert "refused 1 of 1" in shown(refused)
    assert to_markdown(Results((), FIGURES, (), {}))


def test_long_tables(tmp_path: Path) -> None:
    results = invented(3)
    to_csv(results, tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * (3 * len(FIGURES) + 1)
    first = results.rows[0]
    assert rows[0] == {"example": "0", "method": "slalom", "figure": "aopc"} | {
        "value": repr(first.figures["aopc"]),
        "problem": "",
    }
    pandas = pytest.importorskip("pandas")
    to_parquet(results, tmp_path / "rows.parquet")
    frame = pandas.read_parquet(tmp_path / "rows.parquet")
    assert list(frame.columns) == ["example", "method", "figure", "value", "problem"]
    table = frame.pivot_table(index="example", columns=["method", "figure"], values="value")
    assert table["lime"]["aopc"].to_dict() == results.values("lime", "aopc")
    assert (frame[frame.method == "gradient"].problem == "it | only answers").all()
    to_csv(results, tmp_path / "summary.csv", summary_rows)
    with (tmp_path / "summary.csv").open(encoding="utf-8", newline="") as file:
        summed = {row["method"]: row for row in csv.DictReader(file)}
    assert float(summed["lime"]["mse_3_low"]) <= float(summed["lime"]["mse_3"])
    assert summed["gradient"]["aopc"] == ""
    assert summed["slalom"]["aopc_examples"] == "3"


def test_json_brings_everything_back(tmp_path: Path) -> None:
    results = invented(2)
    odd = Row("2", "slalom", {"aopc": math.nan, "mse_few": math.inf}, note="odd")
    results = Results((*results.rows, odd), FIGURES, METHODS, results.settings)
    text = results.to_json(tmp_path / "r.json")
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    back = Results.from_json((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert [row.to_dict() for row in back.rows] == [row.to_dict() for row in results.rows]
    assert math.isnan(back.rows[-1].figures["aopc"])
    assert back.rows[-1].figures["mse_few"] == math.inf
    assert back.figures == results.figures
    assert back.methods == results.methods
    assert back.settings == results.settings
    for wrong in ("{}", "[", '{"piste_results": 99}', "[1]"):
        with pytest.raises(PisteError):
            Results.from_json(wrong)


def test_results_show_themselves(tmp_path: Path) -> None:
    results: Any = invented(2)
    assert results.to_markdown(tmp_path / "r.md") == (tmp_path / "r.md").read_text(encoding="utf-8")
    results.to_csv(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text(encoding="utf-8").startswith("example,method,figure")
    assert "slalom" in shown(results)


def test_a_method_that_refused_the_hard_examples_is_not_the_best() -> None:
    rows = []
    for n in range(30):
        easy = 0.5 if n < 10 else 0.0  # where "lime" answers
        rows.append(_row(str(n), "slalom", 0.3 + easy + 0.001 * n, 1.0))
        if easy:
            rows.append(_row(str(n), "lime", 0.2 + easy, 1.0))
        else:
            rows.append(Row(str(n), "lime", {}, problem="too long"))
    results = Results(tuple(rows), FIGURES, ("slalom", "lime"), {})
    found = summary(results)
    assert found["lime", "aopc"].centre > found["slalom", "aopc"].centre
    held = standing(results, found, "aopc")
    assert held is not None
    assert (held.best, held.behind) == ("slalom", ("lime",))
