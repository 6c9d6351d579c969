"""Results of other commands in the browser's reach: right, bounded, and without a path."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import piste
from piste import PisteError, corpus
from piste.corpus.sql import connected
from piste.serve import create_app, document_query
from piste.serve.document_query import DocumentQuery
from piste.serve.result_sources import open_results
from piste.show.html import explanation_html
from piste.show.report import evaluation_html
from tests.serve import results_made as made

NAMES = (
    "some run", "words.parquet", "concepts.json", "one.json", "several.json", "measured",
    "results.json",
)  # fmt: skip
KINDS = (
    "corpus", "vocabulary", "concepts", "explanation", "comparison", "evaluation", "evaluation",
)  # fmt: skip
GONE = (
    "The files of this run can't be read, or not any more: look at them with `piste query`, then "
    "start the server again."
)
VIEWS = (
    "0/words",
    "0/documents/1",
    "1/view",
    "1/words",
    *(f"{number}/view" for number in range(2, 7)),
)


def client_of(model: Any, *results: Path) -> TestClient:
    return TestClient(create_app([model], results=results), base_url="http://localhost")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, reviews: Any) -> Path:
    folder = tmp_path_factory.mktemp("secret-place")
    made.make_run(folder, "piste:reviews")
    manifest = folder / "some run" / "manifest.json"
    data = json.loads(manifest.read_text(encoding="utf-8"))
    data["classifier"]["name"] = str(folder / "models" / "mine")  # as of a model in a folder
    manifest.write_text(json.dumps(data), encoding="utf-8")
    made.make_vocabulary(folder / "words.parquet", reviews)
    made.make_concepts(folder / "concepts.json")
    made.make_explanation(folder / "one.json", reviews)
    made.make_comparison(folder / "several.json", reviews)
    made.make_evaluation(folder / "measured", reviews).to_json(folder / "results.json")
    return folder


@pytest.fixture(scope="module")
def client(base: Path, reviews: Any) -> TestClient:
    return client_of(reviews, *(base / name for name in NAMES))


def found(client: TestClient, **query: Any) -> dict[str, Any]:
    answer = client.get("/api/results/0/documents", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def numbers(client: TestClient, **query: Any) -> list[int]:
    return [row["document"] for row in found(client, **query)["rows"]]


def test_results_are_listed_by_name_and_kind(client: TestClient) -> None:
    listed = client.get("/api/results").json()
    assert [one["kind"] for one in listed] == list(KINDS)
    assert [one["number"] for one in listed] == list(range(len(KINDS)))
    names = [one["name"] for one in listed]
    assert names == list(NAMES)
    assert listed[0]["about"] == "6 documents, by slalom, of mine"
    assert client.get("/api/models").json()["results"] == names


def test_no_answer_tells_a_path(client: TestClient, base: Path) -> None:
    places = ("", "/0/documents", "/9/view", *(f"/{view}" for view in VIEWS))
    answers = [client.get(f"/api/results{place}").text for place in places]
    for answer in (*answers, client.get("/").text, client.get("/api/openapi.json").text):
        assert "secret" not in answer
        assert str(base.parent) not in answer


def test_rows_are_those_of_the_run(client: TestClient, base: Path) -> None:
    answer = found(client, sort="document", descending=False)
    assert answer["total"] == 6
    assert [row["document"] for row in answer["rows"]] == [0, 1, 3, 4, 5, 6]  # 2 was refused
    assert (answer["kept"], answer["truth"]) == (["label", "to<pic>"], "label")
    for row, e in zip(answer["rows"], corpus.explanations(base / "some run"), strict=True):
        given = made.ROWS[row["document"]]
        assert row["predicted"] == e.output.label
        assert row["probability"] == pytest.approx(e.output.probability)
        assert row["kept"] == {name: given[name] for name in answer["kept"]}
        assert row["agrees"] == (e.output.label == given["label"])
        right = e.output.probabilities[e.output.labels.index(str(given["label"]))]
        assert row["surprise"] == pytest.approx(1 - right)
        assert row["text"].removesuffix("…") in " ".join(str(given["text"]).split())
        assert len(row["text"]) <= 201


def test_numbers_of_classes_are_labels_where_the_column_says_so(base: Path, tmp_path: Path) -> None:
    known = facts_of(base)
    assert "column label" in known.surprise
    named = document_query.page(base / "some run", known, DocumentQuery(sort="document"))
    rows = [{**row, "label": int(row["label"] == "positive")} for row in made.ROWS]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    columns = corpus.Columns(keep=("to<pic>", "label"))
    corpus.run(
        tmp_path / "rows.jsonl", "piste:reviews", tmp_path / "run", method="occlusion",
        columns=columns, progress=False,
    )  # fmt: skip
    with connected(tmp_path / "run") as connection:
        numbered = document_query.facts(connection)
    assert (numbered.truth, numbered.numbered) == ("label", True)
    again = document_query.page(tmp_path / "run", numbered, DocumentQuery(sort="document"))
    for one, other in zip(named.rows, again.rows, strict=True):
        assert (one.truth, one.agrees) == (other.truth, other.agrees)
        assert one.surprise == pytest.approx(other.surprise, abs=1e-5)


def facts_of(base: Path) -> document_query.Facts:
    with connected(base / "some run") as connection:
        return document_query.facts(connection)


def test_without_labels_the_unsure_and_the_poor_surprise(base: Path) -> None:
    known = replace(facts_of(base), truth=None)
    assert "how unsure the model is" in known.surprise
    rows = document_query.page(base / "some run", known, DocumentQuery()).rows
    assert all(row.agrees is None and row.truth is None for row in rows)
    by_chance = sorted(rows, key=lambda row: -(row.probability or 0))
    by_fit = sorted(rows, key=lambda row: -2.0 if row.r2 is None else -row.r2)
    for row in rows:
        ranks = by_chance.index(row), by_fit.index(row)
        assert row.surprise == pytest.approx(sum(ranks) / 2 / (len(rows) - 1))


@pytest.mark.parametrize("sort", ["document", "predicted", "probability", "r2", "units"])
def test_sorting(client: TestClient, sort: str) -> None:
    for descending in (True, False):
        rows = found(client, sort=sort, descending=descending)["rows"]
        known = [row[sort] for row in rows if row[sort] is not None]
        assert known == sorted(known, reverse=descending)
        assert all(row[sort] is None for row in rows[len(known) :])  # unknown ones come last


def test_surprising_ones_come_first(client: TestClient) -> None:
    rows = found(client)["rows"]
    surprises = [row["surprise"] for row in rows]
    assert surprises == sorted(surprises, reverse=True)
    assert not rows[0]["agrees"]


def test_search_takes_every_sign_as_itself(client: TestClient) -> None:
    for text, expected in (
        ("stupid", [4]),
        ("<SCRIPT>", [1]),
        ("'x'", [1]),
        ('"lovely"; drop', [3]),
        ("%", [3]),
        ("fine_", [3]),
        ("' OR 1=1 --", []),
        ("'; DROP VIEW documents; --", []),
        ("$limit", []),
        ("\x00", []),
        ("\\", []),
    ):
        assert numbers(client, search=text, sort="document", descending=False) == expected, text
    assert found(client)["total"] == 6
    late = found(client, search="<script>")["rows"][0]["text"]
    assert "<script>" in late


def test_filters_and_pages(client: TestClient) -> None:
    every = numbers(client)
    parts = [numbers(client, offset=start, limit=2) for start in (0, 2, 4, 6)]
    assert [number for part in parts for number in part] == every
    assert parts[-1] == []
    labels = found(client)["predicted"]
    sizes = [found(client, predicted=label)["total"] for label in labels]
    assert sum(sizes) == 6
    assert all(sizes)
    assert found(client, predicted="' OR ''='")["total"] == 0


@pytest.mark.parametrize(
    "query",
    [
        {"sort": "about"},
        {"sort": "document; DROP TABLE x"},
        {"limit": 101},
        {"limit": 0},
        {"offset": -1},
        {"offset": 2**40},
        {"search": "x" * 201},
        {"descending": "perhaps"},
    ],
)
def test_what_is_out_of_bounds_is_refused(client: TestClient, query: dict[str, Any]) -> None:
    answer = client.get("/api/results/0/documents", params=query)
    assert answer.status_code == 422
    assert list(answer.json()) == ["problem"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("7/view", 404),
        ("7/documents", 404),
        ("4/documents", 404),
        ("5/words", 404),
        ("0/view", 404),
        ("0/documents/2", 404),  # refused in the run
        ("0/documents/99", 404),
        ("1/documents", 404),
        ("2/words", 404),
        ("-1/view", 422),
        ("x/view", 422),
        ("0/documents/-1", 422),
        ("0/documents/..%2F..%2Fmanifest.json", 404),
        ("..%2f0/view", 404),
    ],
)
def test_what_is_not_there(client: TestClient, path: str, status: int) -> None:
    answer = client.get(f"/api/results/{path}")
    assert answer.status_code == status
    assert list(answer.json()) == ["problem"]


def test_a_document_is_shown_as_its_page_shows_it(client: TestClient, base: Path) -> None:
    told = dict(zip([0, 1, 3, 4, 5, 6], corpus.explanations(base / "some run"), strict=True))
    for number, e in told.items():
        view = client.get(f"/api/results/0/documents/{number}").json()
        body = explanation_html.view(e).body
        assert view["html"].count("data-u=") == body.count("data-u=")
        assert view["title"] == explanation_html.view(e).title
        assert "nan s" not in view["html"]
    shown = client.get("/api/results/0/documents/1").json()["html"]
    assert "Document 1" in shown
    assert escape("<b>b</b>") in shown


def test_a_comparison_is_shown_as_its_page_shows_it(client: TestClient, base: Path) -> None:
    comparison = piste.read(base / "several.json")
    view = client.get("/api/results/4/view").json()
    page = comparison.to_html()
    units = re.compile(r'data-u="\d')
    assert len(units.findall(view["html"])) == len(units.findall(page))
    assert f"<title>{escape(view['title'])} · Piste</title>" in page
    for name in ("slalom", "occlusion"):
        assert f"<h3>{name}" in view["html"]
    assert "others.txt" in view["html"]  # why a method was left out


def test_an_evaluation_is_shown_as_its_report(client: TestClient, base: Path) -> None:
    results = piste.read(base / "measured")
    for number in (5, 6):
        view = client.get(f"/api/results/{number}/view").json()
        assert view["title"] == evaluation_html.view(results).title
        assert "Evaluation of" in view["html"]
        for method in results.methods:
            assert method in view["html"]
    assert client.get("/api/results").json()[5]["about"] == "2 methods on 2 examples"


def test_an_unfinished_evaluation_is_shown(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base / "measured", tmp_path / "run")
    rows = (tmp_path / "run" / "rows.jsonl").read_text(encoding="utf-8").splitlines(True)
    for kept in (rows[:3], []):
        (tmp_path / "run" / "rows.jsonl").write_text("".join(kept), encoding="utf-8")
        [opened] = open_results([tmp_path / "run"])
        assert opened.about == f"2 methods on {len(kept) // 2} examples"


def test_a_result_is_read_again_when_its_file_has_changed(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base / "measured", tmp_path / "run")
    file = tmp_path / "run" / "rows.jsonl"
    rows = file.read_text(encoding="utf-8").splitlines(True)
    file.write_text("".join(rows[:2]), encoding="utf-8")
    [opened] = open_results([tmp_path / "run"])
    assert opened.about == "2 methods on 1 examples"
    before = opened.answer
    assert opened.answer is before, "made once as long as nothing changes"
    file.write_text("".join(rows), encoding="utf-8")
    assert opened.about == "2 methods on 2 examples"
    assert opened.answer != before
    (tmp_path / "run" / "run.json").write_text("{", encoding="utf-8")
    assert opened.about == "2 methods on 2 examples", "what can't be read leaves all as it was"


@pytest.mark.parametrize("path", VIEWS)
def test_nothing_in_a_view_is_markup_of_a_text(client: TestClient, path: str) -> None:
    answer = client.get(f"/api/results/{path}")
    assert answer.status_code == 200
    for mark in ("<script", "<b>b</b>", "<ai>", "<pic>", "onerror", "<style"):
        assert mark not in answer.json()["html"]


def test_one_document_reads_only_its_part(base: Path, reviews: Any, tmp_path: Path) -> None:
    shutil.copytree(base / "some run", tmp_path / "run")
    for kind in ("units", "documents"):
        assert len(list((tmp_path / "run" / kind).iterdir())) == 3
    (tmp_path / "run" / "units" / "part-000002.parquet").write_bytes(b"broken")
    e = corpus.explanation(tmp_path / "run", 4)
    assert e.input == made.ROWS[4]["text"]
    with pytest.raises(PisteError, match="no document 2"):
        corpus.explanation(base / "some run", 2)
    with pytest.raises(PisteError, match="no document -1"):
        corpus.explanation(base / "some run", -1)
    # What can't be read any more is told without saying where it lies.
    client = client_of(reviews, tmp_path / "run")
    assert client.get("/api/results/0/documents/4").status_code == 200
    for path in ("documents/6", "words"):
        answer = client.get(f"/api/results/0/{path}")
        assert (answer.status_code, answer.json()["problem"]) == (404, GONE)
    shutil.rmtree(tmp_path / "run")
    answer = client.get("/api/results/0/documents")
    assert (answer.status_code, answer.json()["problem"]) == (404, GONE)


def test_a_run_may_grow(base: Path, reviews: Any, tmp_path: Path) -> None:
    shutil.copytree(base / "some run", tmp_path / "run")
    late = [tmp_path / "run" / kind / "part-000001.parquet" for kind in ("documents", "units")]
    contents = [file.read_bytes() for file in late]
    for file in late:
        file.unlink()
    client = client_of(reviews, tmp_path / "run")
    assert sorted(numbers(client)) == [0, 1, 6]
    before = client.get("/api/results/0/words").json()
    for file, content in zip(late, contents, strict=True):
        file.write_bytes(content)
    assert sorted(numbers(client)) == [0, 1, 3, 4, 5, 6]
    assert client.get("/api/results/0/words").json() != before
    for kind in ("documents", "units"):
        for file in (tmp_path / "run" / kind).iterdir():
            file.unlink()
    empty = client_of(reviews, tmp_path / "run")
    assert found(empty)["total"] == 0


def test_what_is_no_result_is_refused_before_models_are_loaded(base: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.json").write_text("[1, 2]")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "table.parquet").write_bytes(b"PAR1")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    names = ("gone", "empty", "text.json", "broken.json", "table.parquet", "table.csv", "bytes")
    for name in names:
        with pytest.raises(PisteError) as refused:
            create_app(["no/such-model"], results=[tmp_path / name])
        assert "\n" not in str(refused.value)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "manifest.json").write_text('{"piste_corpus": 1}')
    with pytest.raises(PisteError, match="not whole"):
        open_results([broken])


def test_explanations_of_every_form_are_known(base: Path, tmp_path: Path) -> None:
    e = piste.read(base / "one.json")
    for ending in ("csv", "parquet"):
        getattr(e, f"to_{ending}")(tmp_path / f"e.{ending}")
        [opened] = open_results([tmp_path / f"e.{ending}"])
        assert (opened.kind, opened.name) == ("explanation", f"e.{ending}")


def test_without_results_there_is_nothing_to_browse(reviews: Any) -> None:
    client = client_of(reviews)
    assert client.get("/api/results").json() == []
    assert client.get("/api/results/0/view").status_code == 404
    assert client.get("/api/models").json()["results"] == []


def test_filters_combine(client: TestClient) -> None:
    every = found(client, sort="document", descending=False)
    assert every["choices"]["label"] == ["negative", "positive"]
    assert (every["measured"], every["noted"]) == (True, True)
    wanted = {"column": "label", "cell": "negative"}
    assert numbers(client, sort="document", descending=False, **wanted) == [1, 3, 4]
    assert numbers(client, search="stupid", **wanted) == [4]
    assert numbers(client, column=["label", "to<pic>"], cell=["negative", 'd "e"']) == [3]
    rows = every["rows"]
    bound = sorted(row["r2"] for row in rows)[2]
    for name, fits in (("least_r2", bound.__le__), ("most_r2", bound.__ge__)):
        kept = {row["document"] for row in rows if fits(row["r2"])}
        assert set(numbers(client, **{name: bound})) == kept
    assert numbers(client, note="no such note") == []
    assert found(client, note="TOKENS")["total"] == 6


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"column": "text", "cell": "a"}, "column: expected one of label, to<pic>, got 'text'"),
        ({"column": "label"}, "cell: expected one for every column, got 0 for 1 columns"),
    ],
)
def test_wrong_filters_are_refused(client: TestClient, query: Any, words: str) -> None:
    answer = client.get("/api/results/0/documents", params=query)
    assert answer.status_code == 422
    assert words in answer.json()["problem"]


def test_what_fits_is_exported(client: TestClient, base: Path) -> None:
    query = {"column": "label", "cell": "negative", "sort": "document", "descending": False}
    path = "/api/results/0/documents/export"
    as_json = client.get(f"{path}/json", params=query)
    rows = as_json.json()
    assert [row["document"] for row in rows] == [1, 3, 4]
    assert rows[0]["text"] == made.SCRIPT
    assert rows[0]["to<pic>"] == "<b>b</b>"
    as_csv = client.get(f"{path}/csv", params=query)
    assert as_csv.headers["content-disposition"] == 'attachment; filename="documents.csv"'
    told = list(csv.DictReader(io.StringIO(as_csv.text)))
    assert [row["text"] for row in told] == [row["text"] for row in rows]
    assert client.get(f"{path}/json", params={"search": "nowhere to be found"}).json() == []
    assert "secret" not in as_csv.text + as_json.text


def test_too_much_is_not_exported(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("piste.serve.corpus_results._MOST_EXPORTED", 2)
    answer = client.get("/api/results/0/documents/export/csv")
    assert answer.status_code == 413
    assert "6 documents fit, and at most 2 are exported" in answer.json()["problem"]


def test_a_document_knows_its_neighbours(client: TestClient) -> None:
    query = {"sort": "document", "descending": False, "column": "label", "cell": "negative"}
    told = client.get("/api/results/0/documents/3", params=query).json()
    assert told["neighbours"] == {"before": 1, "after": 4, "place": 2, "total": 3}
    outside = client.get("/api/results/0/documents/0", params=query).json()
    assert outside["neighbours"]["place"] is None
    assert told["data"]["explain"] == {"text": made.QUOTES, "model": "mine", "methods": "slalom"}
    stored = client.get("/api/results/3/view").json()
    assert stored["data"]["explain"]["model"] == "piste:reviews"
