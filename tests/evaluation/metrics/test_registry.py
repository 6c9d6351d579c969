"""One list of metrics: what it holds is complete, and a metric of one's own works everywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import piste
from piste import PisteError
from piste.evaluation import METRICS, Answers, Case, Figure, Measured, Metric, evaluate, judge
from piste.evaluation.benchmark.run_store import read_results
from piste.evaluation.metrics import BaseMetric, make, model_metrics
from piste.evaluation.metrics.base import RUNTIME
from piste.evaluation.results import Results
from piste.show.report.evaluation_html import write_report
from tests.cli import commands

STORED = Path(__file__).parents[1] / "benchmark" / "stored_run"


@dataclass(frozen=True)
class Evenness(Metric):
    """How evenly the scores are spread: 1 − the largest share of all |scores|."""

    power: float = 1.0

    name: ClassVar[str] = "evenness"
    about: ClassVar[str] = "whether all units share the score"
    needs = "marks"  # not among judge's usual ones
    figures = (
        Figure(
            "evenness",
            "higher",
            title="evenly spread",
            skill="spreading the score",
            about="what the strongest unit leaves to the others",
        ),
    )

    def measure(self, case: Case, answers: Answers) -> Measured:
        sizes = case.sizes**self.power
        return Measured({"evenness": float(1 - sizes.max() / max(sizes.sum(), 1e-9))})


@pytest.fixture
def evenness() -> Iterator[None]:
    METRICS.register("evenness", Evenness)
    yield
    METRICS.remove("evenness")


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_and_figure_is_described(name: str) -> None:
    metric = METRICS[name]
    assert metric.name == name
    assert issubclass(metric, BaseMetric)
    assert metric.about
    assert metric.__doc__
    assert metric.figures
    for figure in metric.figures:
        assert figure.better in ("higher", "lower")
        assert figure.title
        assert figure.skill
        assert figure.about


def test_titles_tell_all_figures_apart() -> None:
    figures = [*(figure for metric in METRICS.values() for figure in metric.figures), *RUNTIME]
    assert len({figure.name for figure in figures}) == len(figures)
    assert len({figure.title for figure in figures}) == len(figures)


def test_a_registered_metric_is_measured_stored_and_reported(
    evenness: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("piste.show.report.metric_figures.write_figures", lambda *_: [])
    loud = piste.load(lambda texts: [text.count("!") for text in texts])
    texts = [f"Stop number {n} now !" for n in range(7)]
    metrics = ["evenness[power=2]", "stability[repeats=1]"]
    found = evaluate(loud, texts, methods=["occlusion", "zero"], metrics=metrics, folder=tmp_path)
    assert found.values("zero", "evenness") == dict.fromkeys(map(str, range(7)), 1.0)
    again = read_results(tmp_path)
    assert again.figures == found.figures
    assert Results.from_json(found.to_json()).figures == found.figures
    page = write_report(again, tmp_path)[0].read_text(encoding="utf-8")
    assert "evenly spread" in page
    assert "zero is clearly best at spreading the score: evenly spread 1.0" in page
    assert "What the strongest unit leaves to the others. Higher is better." in page
    assert "evenly spread" in found.to_markdown()


def test_a_registered_metric_works_on_the_command_line(
    evenness: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    data = tmp_path / "data.csv"
    data.write_text("text\nA slow start but a wonderful ending\n")
    given = ("-d", data, "--methods", "zero", "--metrics", "evenness,single", "-n", 1, "--json")
    code, out, _ = commands.run(monkeypatch, capsys, "evaluate", *given)
    assert code == 0
    assert json.loads(out)["methods"][0]["evenness"] == 1.0
    _, out, _ = commands.run(monkeypatch, capsys, "metrics", "--json")
    assert [one["name"] for one in json.loads(out)] == list(METRICS)
    assert "evenness" in METRICS


def test_metrics_that_need_nothing_but_the_model_are_the_usual_ones() -> None:
    assert model_metrics() == ("deletion", "insertion", "eraser", "fidelity", "single")


def test_what_is_no_metric_is_refused() -> None:
    METRICS.register("dictionary", dict)  # type: ignore[arg-type]  # what an entry point may name
    try:
        with pytest.raises(PisteError, match="must be a subclass of Metric"):
            make("dictionary")
    finally:
        METRICS.remove("dictionary")
    loud = piste.load(lambda texts: [text.count("!") for text in texts])
    e = piste.explain(loud, "Stop it now !", method="occlusion")
    with pytest.raises(PisteError, match="'stability' explains again"):
        judge(loud, e, "stability")


def test_runs_stored_before_figures_had_titles_are_read() -> None:
    found = read_results(STORED)
    assert found.figures["aopc"] == METRICS["deletion"].figures[0]
    assert found.figures["stability_top5"] == METRICS["stability"].figures[2]
    assert {name: found.figures[name] for name in ("seconds", "calls")} == {
        figure.name: figure for figure in RUNTIME
    }
    own = found.figures["unit_count"]
    assert (own.title, own.about, own.better) == ("unit count", "number of units", "neither")
    assert found.values("occlusion", "unit_count") == {"0": 4.0, "1": 3.0}
    assert "deletion AOPC" in found.to_markdown()
    whole = json.loads(found.to_json())
    whole["figures"] = json.loads((STORED / "run.json").read_text())["figures"]
    assert Results.from_json(json.dumps(whole)).figures == found.figures
