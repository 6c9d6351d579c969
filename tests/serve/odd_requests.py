"""Requests whose names exist and whose values are odd, so that they come through to the models."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
from hypothesis import strategies as st

from piste.serve.request_limits import INTERNAL_ERROR
from tests.bad_inputs.files import is_sentence, png
from tests.serve.asking import wait_for

TEXTS = (
    "A slow start, but a wonderful ending.", "the man walked on the moon .", "", " \n\t", "[PAD]",
    "not bad not bad not bad", "a", "<script>alert(1)</script> film", "{text} {0} %s ${x}",
    "\u202eevil\u202c \u200b\ufeff", "e\u0301" * 40, "\U0001f469\u200d\U0001f467",
    "電影很好看。",
    "\x00\x01 film \x7f", "../../etc/passwd",
    "[SEP] [CLS] [MASK] good", "good " * 60, "x" * 400, "{{ messages }} {% for %}",
)  # fmt: skip
IMAGE = base64.b64encode(png(28, 28, bytes(28 * (28 * 3 + 1)))).decode()
text = st.one_of(st.sampled_from(TEXTS), st.text(max_size=40))
number = st.one_of(st.integers(-2, 40), st.integers(-(2**70), 2**70), st.floats())
span = st.lists(st.integers(-1, 40), min_size=0, max_size=4)
name = st.one_of(st.text(max_size=12), st.sampled_from(["auto", "words", "__class__", "0", "-1"]))


def anything(most: int) -> st.SearchStrategy[Any]:
    """JSON of any shape."""
    leaf = st.one_of(st.none(), st.booleans(), number, text)
    return st.recursive(
        leaf,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(name, inner, max_size=3),
        max_leaves=most,
    )


def requests(models: list[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Explanations to ask for; about half of the values are of the right kind."""

    def of(model: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
        units = st.sampled_from([*model["units"], "words,tokens", "0-3", "grid:9", ""])
        own: dict[str, st.SearchStrategy[Any]] = {
            "pair": text,
            "fields": st.dictionaries(
                st.sampled_from([*model["fields"], "text"]) | name,
                text | st.lists(text, max_size=3),
                max_size=3,
            ),
            "chat": st.booleans(),
            "answer": text,
            "against": text,
            "methods": st.lists(st.sampled_from(model["methods"]), max_size=2, unique=True),
            "units": units | st.lists(units, max_size=3) | st.lists(span, max_size=3),
            "phrases": st.sampled_from(["auto", "not bad"]) | st.lists(text | span, max_size=3),
            "target": st.sampled_from([*model["labels"], "all", "0", "0 vs 1", "x"]),
            "samples": st.sampled_from([10, 20, 40]),
            "seed": st.sampled_from([0, 7]),
            "long": st.sampled_from(["error", "truncate", "windows"]),
            "removal": st.sampled_from(["delete", "mask", "pad", "attention", "mean"]),
        }
        image = {"image": st.sampled_from([IMAGE, IMAGE[:-9], ""]) | text}
        always = image if model["reads"] == "images" else {"text": text}
        always = {"model": st.just(model["name"]), **always}
        odd = st.tuples(st.sampled_from([*own, *always, "other"]), anything(6))
        some = st.sets(st.sampled_from(sorted(own)), max_size=3).flatmap(
            lambda chosen: st.fixed_dictionaries(always | {one: own[one] for one in chosen})
        )
        return st.tuples(some, st.none() | st.none() | st.none() | odd).map(
            lambda both: both[0] | ({both[1][0]: both[1][1]} if both[1] else {})
        )

    return st.sampled_from(models).flatmap(of)


class Visitor:
    """Sends requests to a server, and checks that every answer is one it may give."""

    def __init__(self, client: httpx.Client, secrets: tuple[str, ...]) -> None:
        self.client, self.secrets = client, secrets
        self.seen: dict[int, int] = {}

    def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """The answer: one that was foreseen, with the security headers, without paths."""
        content = None if body is None else json.dumps(body).encode()
        kind = {"content-type": "application/json"}
        answer = self.client.request(method, path, content=content, headers=kind)
        self.seen[answer.status_code] = self.seen.get(answer.status_code, 0) + 1
        assert answer.status_code < 500, (path, body, answer.text)
        assert "content-security-policy" in answer.headers
        for secret in self.secrets:
            assert secret not in answer.text, (path, body, answer.text)
        if answer.status_code >= 400:
            assert list(answer.json()) == ["problem"]
            self.check_sentence(answer.json()["problem"], body)
        return answer

    def check_sentence(self, problem: str, body: Any) -> None:
        """One sentence, and none about a mistake of ours."""
        assert problem != INTERNAL_ERROR, body
        assert is_sentence(problem), (problem, body)

    def explain(self, request: Any, span: Any, removed: Any) -> str:
        """Ask, wait, and look at all that is made of it; how it ended."""
        answer = self.ask("POST", "/api/explanations", request)
        if answer.status_code != 202:
            return "refused"
        path = f"/api/explanations/{answer.json()['id']}"
        wait_for(lambda: self.ask("GET", path).json()["state"] in ("done", "failed"))
        last = self.ask("GET", path).json()
        if last["state"] == "failed":
            self.check_sentence(last["problem"], request)
        for view in ("view", "result", "export/html", "export/json"):
            found = self.ask("GET", f"{path}/{view}")
            assert (found.status_code == 200) == (last["state"] == "done")
        self.ask("POST", f"{path}/spans", span)
        self.ask("POST", f"{path}/removals", removed)
        return str(last["state"])
