"""Language models through the interface: prompts, answers and spans of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from transformers import LlamaForCausalLM

import piste
from piste.data import storage
from piste.serve import Limits, create_app
from tests.language_models import save_language_model
from tests.serve.asking import ended, explained

PROMPT = "{context}\nquestion : {question} ?\nanswer :"
FIELDS = {
    "context": ["the tower stands in paris .", "the man walked on the moon ."],
    "question": "when did the man",
}
ANSWER = "the year was 1969 ."
LIMITS = Limits(characters=300, answer_characters=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_language_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def models(folder: Path) -> dict[str, Any]:
    return {
        "free": piste.load(folder, name="free"),
        "fields": piste.load(folder, prompt=PROMPT, name="fields"),
        "labels": piste.load(
            folder, prompt="review : {text}\nsentiment :", labels=["good", "bad"], name="labels"
        ),
    }


@pytest.fixture(scope="module")
def client(models: dict[str, Any]) -> Iterator[TestClient]:
    app = create_app(list(models.values()), limits=LIMITS)
    with TestClient(app, base_url="http://localhost") as one:
        yield one


@pytest.fixture(scope="module")
def answered(client: TestClient) -> str:
    return explained(client, model="fields", fields=FIELDS, answer=ANSWER, samples=60)


def refused(client: TestClient, path: str, body: dict[str, Any]) -> tuple[int, str]:
    answer = client.post(path, json=body)
    assert answer.status_code >= 400, answer.text
    return answer.status_code, answer.json()["problem"]


def result(client: TestClient, address: str) -> piste.Explanation:
    [one] = client.get(f"{address}/result").json()["explanations"].values()
    return storage.from_dict(one)


def test_models_say_how_they_are_asked(client):
    free, fields, labels = client.get("/api/models").json()["models"]
    assert (free["is_language_model"], free["chat"], free["fields"]) == (True, True, [])
    assert (fields["prompt"], fields["fields"]) == (PROMPT, ["context", "question"])
    assert "parts" in fields["units"]
    assert (labels["is_language_model"], labels["labels"]) == (False, ["good", "bad"])
    assert "gradient" not in free["methods"]


def test_an_answer_is_what_the_library_says(client, answered, models):
    wanted = piste.explain(models["fields"], FIELDS, answer=ANSWER, samples=60)
    told = result(client, answered)
    assert told.input == wanted.input
    assert told.score() == pytest.approx(wanted.score(), abs=1e-5)
    assert told.answer is not None
    assert told.answer.text == ANSWER


def test_spans_are_explained_without_the_model(client, answered, monkeypatch):
    e = result(client, answered)
    start = ANSWER.index("1969")
    monkeypatch.setattr(LlamaForCausalLM, "forward", None)
    found = client.post(f"{answered}/spans", json={"start": start, "end": start + 4})
    assert found.status_code == 200
    wanted = e.of("1969")
    assert found.json()["scores"] == pytest.approx(wanted.score(), rel=1e-2, abs=1e-4)
    assert found.json()["said"].startswith("“1969” (log-probability")
    assert found.json()["r2"] == pytest.approx(wanted.fidelity.r2, abs=1e-3)


def test_wrong_spans_are_refused_in_a_sentence(client, answered):
    for span in ({"start": 3, "end": 2}, {"start": 0, "end": 900}):
        status, problem = refused(client, f"{answered}/spans", span)
        assert status == 422
        assert "Expected a piece of the answer" in problem
    assert refused(client, f"{answered}/spans", {"start": -1, "end": 2})[0] == 422
    assert refused(client, f"{answered}/spans", {"start": 0, "end": 2, "more": 1})[0] == 422
    assert refused(client, "/api/explanations/none/spans", {"start": 0, "end": 2})[0] == 404


def test_only_answers_have_spans(client):
    address = explained(client, model="labels", text="a slow film", samples=30)
    status, problem = refused(client, f"{address}/spans", {"start": 0, "end": 2})
    assert status == 422
    assert "has spans" in problem
    view = client.get(f"{address}/view").json()
    assert view["data"]["answer"] is None


def test_removals_ask_the_model_about_the_same_answer(client, answered):
    found = client.post(f"{answered}/removals", json={"removed": [1]}).json()
    assert found["label"] == ANSWER
    assert found["answer"] < 0


def test_the_view_leaves_spans_to_the_server_and_the_file_holds_them(client, answered):
    view = client.get(f"{answered}/view").json()
    assert view["data"]["answer"]["live"] is True
    assert view["data"]["answer"]["known"] == []
    page = client.get(f"{answered}/export/html").text
    assert '"live":false' in page
    assert client.get(f"{answered}/export/png").status_code == 200


def test_the_model_answers_itself_also_to_a_message(client):
    plain = result(client, explained(client, model="free", text="when was it ?", samples=20))
    chat = result(
        client, explained(client, model="free", text="when was it ?", chat=True, samples=20)
    )
    assert plain.answer is not None
    assert plain.answer.text
    assert "assistant :" in chat.input
    assert plain.input == "when was it ?"


def test_several_methods_are_compared_on_an_answer(client):
    address = explained(
        client, model="free", text="when was it ?", answer="the year", samples=20,
        methods=["slalom", "occlusion"],
    )  # fmt: skip
    assert client.get(f"{address}/view").status_code == 200


@pytest.mark.parametrize(
    ("request_", "status", "words"),
    [
        ({"model": "labels", "text": "a", "answer": "b"}, 422, "no language model"),
        ({"model": "free", "text": "a", "target": "b"}, 422, "no classes"),
        ({"model": "free", "text": "a", "answer": "b" * 61}, 413, "at most 60 characters"),
        ({"model": "free", "text": "a", "pair": "b"}, 422, "one text"),
        ({"model": "free", "fields": {"a": "b"}}, 422, "no prompt with fields"),
        ({"model": "labels", "text": "a", "chat": True}, 422, "takes no messages"),
        ({"model": "fields", "fields": {"context": "b"}}, 422, "a value for each field"),
        ({"model": "fields", "fields": FIELDS, "text": "a"}, 422, "send one of them"),
        (
            {"model": "fields", "fields": {"context": ["a" * 200] * 2, "question": "a"}},
            413,
            "at most 300 characters",
        ),
        ({"model": "fields", "fields": {"context": [], "question": "a"}}, 422, "fields.context"),
    ],
)
def test_problems_are_one_sentence(client, request_, status, words):
    found, problem = refused(client, "/api/explanations", request_)
    assert found == status, problem
    assert words in problem


def test_problems_of_the_prompt_end_the_job(client):
    last = ended(client, model="free", text="a", answer="the year", against="the year")
    assert last["state"] == "failed"
    assert "another answer" in last["problem"]


def test_folders_are_loaded_with_prompt_and_labels(folder):
    loading = {"prompt": "{text}\nsentiment :", "labels": ["good", "bad"]}
    with TestClient(create_app([folder], loading=loading), base_url="http://localhost") as client:
        [one] = client.get("/api/models").json()["models"]
        assert (one["name"], one["labels"]) == ("tiny", ["good", "bad"])
        assert "%" in client.get(f"{explained(client, text='a film', samples=20)}/view").text
