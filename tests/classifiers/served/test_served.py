"""Served models as classifiers, against a server in this process."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import piste
from piste import corpus
from piste.classifiers.served.endpoint import Endpoint, Generated, Turns
from piste.engine import Engine
from piste.engine.cache import AnswerCache
from piste.errors import PisteError, ServiceError
from piste.show import wording
from tests.classifiers.served.fake_server import (
    FakeServer,
    forced,
    next_logprobs,
    rendered,
    serving,
)

PROMPT = "Review: {text}\nSentiment:"
CHAT = [
    {"role": "system", "content": "You judge reviews."},
    {"role": "user", "content": "Review: {text}\nIs it positive or negative?"},
]
LABELS = ["positive", "negative"]
LONG = ["unforgettable", "unremarkable"]
TEXT = "A slow start, but a wonderful and great ending."


def load(server: FakeServer, prompt=PROMPT, labels=LABELS, **options):
    return piste.load(server.url, model="fake", prompt=prompt, labels=labels, **options)


def expected(prompt, labels, text: str) -> list[float]:
    """Teacher-forced log-probabilities of the labels."""
    if isinstance(prompt, str):
        return [forced(prompt.format(text=text), f" {label}") for label in labels]
    messages = [{**one, "content": one["content"].format(text=text)} for one in prompt]
    return [forced(rendered(messages, open_end=False), label) for label in labels]


WAYS = {
    "token ids": FakeServer(prompt_logprobs=True, token_ids=True),
    "prompt_logprobs": FakeServer(prompt_logprobs=True),
    "echo": FakeServer(echo=True, max_top=500),
    "top": FakeServer(max_top=500),
}
SAID = {
    "token ids": "logprob_token_ids",
    "prompt_logprobs": "prompt_logprobs",
    "echo": "echo",
    "top": "likeliest tokens",
}


def fresh(way: str) -> FakeServer:
    own = WAYS[way]
    return FakeServer(
        max_top=own.max_top,
        prompt_logprobs=own.prompt_logprobs,
        echo=own.echo,
        token_ids=own.token_ids,
    )


@pytest.mark.parametrize("labels", [LABELS, LONG, ["very", "very good", "negative"]], ids=len)
@pytest.mark.parametrize("prompt", [PROMPT, CHAT], ids=["completions", "chat"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_the_teacher_forced_numbers(way: str, prompt, labels) -> None:
    with serving(fresh(way)) as server:
        classifier = load(server, prompt, labels)
        subject = classifier.subject(TEXT)
        found = subject.ask([subject.whole, [1, 5, 6], []])
        said = classifier.describe()
    truth = np.array([expected(prompt, labels, text) for text in (TEXT, "slow a wonderful", "")])
    if "very" in labels:  # counts only where it does not go on as "very good"
        truth[:, 0] = np.log(np.exp(truth[:, 0]) - np.exp(truth[:, 1]))
    np.testing.assert_allclose(found, truth, atol=1e-9)
    if prompt is CHAT and way == "echo":
        way = "top"  # chats can't be echoed
    if not (way == "token ids" and labels is not LABELS):  # labels of several tokens
        assert SAID[way] in said["scoring"]
    assert "bounded" not in said


def test_wordings_add_up() -> None:
    labels = {"positive": ["positive", "Positive"], "negative": ["negative", "Negative"]}
    with serving(FakeServer(max_top=500)) as server:
        subject = load(server, labels=labels).subject(TEXT)
        found = subject.ask([subject.whole])[0]
    chances = [sum(math.exp(one) for one in expected(PROMPT, own, TEXT)) for own in labels.values()]
    np.testing.assert_allclose(np.exp(found), chances)


def test_labels_outside_the_list_are_bounded_and_counted() -> None:
    with serving(FakeServer(max_top=5)) as server:
        classifier = load(server, labels=["positive", "unremarkable"])
        subject = classifier.subject("A wonderful, great, good film.")
        found = subject.ask([subject.whole])[0]
        truth = expected(PROMPT, classifier.labels, "A wonderful, great, good film.")
        likeliest = sorted(next_logprobs(PROMPT.format(text=subject.input)).values())[-5:]
        assert "1 of 1 answers" in classifier.describe()["bounded"]
    rest = math.log(1 - sum(map(math.exp, likeliest)))
    assert found[0] == pytest.approx(truth[0])
    assert truth[1] < found[1] == pytest.approx(min(likeliest[0], rest))


def test_bounds_are_said_with_the_result() -> None:
    with serving(FakeServer(max_top=3)) as server:
        e = piste.explain(load(server), TEXT, samples=20)
    assert "answers hold upper bounds" in e.classifier["bounded"]
    (said,) = [line for line in wording.warnings(e) if "upper bounds" in line]
    assert said.endswith("Ask for the labels in the prompt, or add wordings.")
    assert "upper bounds" in e.to_html()


def test_without_continuation_first_tokens_count_and_it_is_said() -> None:
    with serving(FakeServer(max_top=100, prefill=False)) as server:
        classifier = load(server, CHAT, ["unforgettable", "negative"])
        subject = classifier.subject(TEXT)
        found = subject.ask([subject.whole])[0]
        assert "by their first token" in repr(classifier)
        first = expected(CHAT, ["unforget", "negative"], TEXT)
        np.testing.assert_allclose(found, first)
        with pytest.raises(PisteError, match="same tokens"):
            load(server, CHAT, ["unforgettable", "unforgetful"]).subject(TEXT).ask([[0]])


def test_a_chat_server_gets_a_text_as_a_message() -> None:
    with serving(FakeServer(chat_only=True)) as server:
        classifier = load(server)
        subject = classifier.subject(TEXT)
        found = subject.ask([subject.whole])[0]
        told = classifier.describe()["server_returns"]
    messages = [{"role": "user", "content": PROMPT.format(text=TEXT)}]
    np.testing.assert_allclose(found[0], forced(rendered(messages, open_end=False), "positive"))
    assert told["endpoint"] == "chat"


@pytest.mark.parametrize(
    ("server", "told"),
    [
        (FakeServer(echo="empty"), {"echo": "not returned"}),
        (FakeServer(echo=True, wrong_prompt_logprobs=True), {"echo": "returned, but unlike"}),
        (FakeServer(max_top=5), {"top_logprobs": "5"}),
    ],
    ids=["echo without log-probs", "wrong log-probs", "few"],
)
def test_what_does_not_look_right_is_not_used(server: FakeServer, told: dict[str, str]) -> None:
    with serving(server):
        classifier = load(server)
        classifier.calibrate(classifier.subject(TEXT))
        said = classifier.describe()
    assert "likeliest" in said["scoring"]
    for name, text in told.items():
        assert text in str(said["server_returns"][name])
    assert classifier.calibration.batches == server.received


def test_no_log_probs_at_all_are_refused() -> None:
    with (
        serving(FakeServer(logprobs=False)) as server,
        pytest.raises(ServiceError, match="returns no log-probabilities"),
    ):
        load(server).subject(TEXT).ask([[0]])


# -- failures --------------------------------------------------------------------------------


def questions(server: FakeServer) -> int:
    """The most often that one question was paid for."""
    return max(server.paid.values())


def test_trouble_everywhere_changes_nothing(tmp_path: Path) -> None:
    kinds = ["drop", "429:1", "500", "garbage", "half", "none"]
    trouble = FakeServer(behave=lambda number: kinds[number % 18] if number % 18 < 6 else None)
    with serving(trouble) as server:
        shaken = piste.explain(load(server, concurrency=1), TEXT, samples=40)
        assert questions(server) == 1
    with serving() as server:
        calm = piste.explain(load(server, concurrency=8), TEXT, samples=40)
        assert questions(server) == 1
        assert server.most_at_once <= 8
    np.testing.assert_array_equal(shaken.scores["value"], calm.scores["value"])


def test_a_dead_server_loses_nothing_and_nothing_is_paid_twice(tmp_path: Path) -> None:
    dies = FakeServer(behave=lambda number: "drop" if number >= 25 else None)
    with serving(dies) as server:
        port = int(server.url.split(":")[2].split("/")[0])
        with pytest.raises(ServiceError, match="gave no usable answer"):
            piste.explain(load(server), TEXT, samples=60, cache=tmp_path)
        first = server.paid.copy()
    assert sum(first.values()) == 23  # and two lists that were too long for the server
    with serving(FakeServer(), port) as server:  # it comes back
        classifier = load(server)
        e = piste.explain(classifier, TEXT, samples=60, cache=tmp_path)
        assert questions(server) == 1
        again = [body for body in server.paid if body in first]
        assert len(again) == 1  # a look whether the server is as it was
        assert "This is a text." in again[0]
        assert sum("This is a text." not in body for body in server.paid | first) == e.calls
        silent = server.received
        piste.explain(load(server), TEXT, samples=60, cache=tmp_path)
        assert server.received - silent == classifier.calibration.batches
    assert e.scores["value"].shape == (len(e),)


def test_a_killed_process_goes_on_from_the_cache(tmp_path: Path) -> None:
    """Killed outright: only what was under way, here one question, can be lost."""
    begin = (
        "import sys, piste; piste.explain(piste.load(sys.argv[1], model='fake', "
        f"prompt={PROMPT!r}, labels={LABELS!r}, concurrency=1), {TEXT!r}, samples=60, "
        "cache=sys.argv[2])"
    )
    with serving() as server:
        process: list[subprocess.Popen[bytes]] = []

        def kill(number: int) -> str | None:
            if number != 30:
                return None
            process[0].kill()
            process[0].wait()
            return "drop"

        server.behave = kill
        process.append(subprocess.Popen([sys.executable, "-c", begin, server.url, str(tmp_path)]))
        process[0].wait()
        assert server.received == 31
        e = piste.explain(load(server), TEXT, samples=60, cache=tmp_path)
        own = {body: times for body, times in server.paid.items() if "a text." not in body}
    assert set(own.values()) == {1}
    assert len(own) == e.calls


def test_one_failure_keeps_the_answers_beside_it(tmp_path: Path) -> None:
    """With eight under way, the answers of seven are handed over before the failure is told."""
    with serving() as server:
        classifier = load(server)
        subject = classifier.subject(TEXT)
        classifier.calibrate(subject)
        begun = server.received
        server.behave = lambda number: "400" if number == begun else None
        encoded = [subject.encode([n])[0][0] for n in range(8)]
        got = set()

        def take() -> None:
            for batch, _ in classifier.share(encoded, 8):
                got.add(batch[0].key)

        with pytest.raises(PisteError, match="refuses a question"):
            take()
        assert server.received - begun == 8
        assert len(got) == 7


def test_answers_are_saved_one_by_one(tmp_path: Path) -> None:
    with serving() as server, AnswerCache(tmp_path) as cache:
        classifier = load(server, concurrency=1)
        seen: list[int] = []

        def look(number: int) -> None:
            seen.append(len(cache))

        server.behave = look
        subject = classifier.subject(TEXT)
        Engine(classifier, cache=cache).ask([(subject, [[0], [1], [2], [3]])])
    assert seen[-4:] == [0, 1, 2, 3]


# -- caps, keys, results ---------------------------------------------------------------------


def test_a_run_beyond_a_cap_is_not_begun() -> None:
    with serving() as server:
        with pytest.raises(ServiceError, match=r"at least 61 more requests.*max_requests is 50"):
            piste.explain(load(server, max_requests=50), TEXT, samples=60)
        assert server.received == 0
        with pytest.raises(ServiceError, match=r"tokens, .*max_tokens is 200"):
            piste.explain(load(server, max_tokens=200), TEXT, samples=60)
        assert server.received < 10  # only found out what the server returns


def test_with_a_cache_a_cap_counts_what_is_left(tmp_path: Path) -> None:
    with serving() as server:
        piste.explain(load(server), TEXT, samples=60, cache=tmp_path)
        piste.explain(load(server, max_requests=12), TEXT, samples=60, cache=tmp_path)
        with pytest.raises(ServiceError, match="max_requests is 12"):
            piste.explain(load(server, max_requests=12), TEXT, samples=90, cache=tmp_path)


def test_what_it_takes_is_said_first(capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as server:
        piste.explain(load(server), TEXT, samples=30)
        assert "up to 31 requests and" in capsys.readouterr().err
        piste.explain(load(server), TEXT, samples=30, progress=False)
        assert capsys.readouterr().err == ""


def test_no_key_is_kept_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PISTE_API_KEY", "sk-secret-1")
    with serving() as server:
        classifier = load(server)
        e = piste.explain(classifier, TEXT, samples=30, cache=tmp_path / "cache")
        e.to_json(tmp_path / "e.json")
        e.to_html(tmp_path / "e.html")
        loading = {"model": "fake", "prompt": PROMPT, "labels": LABELS}
        server.refused = "forbidden"  # it repeats the key in what it says
        texts = [TEXT, "A forbidden film."]
        corpus.run(texts, server.url, tmp_path / "run", samples=20, loading=loading)
        assert server.keys == {"Bearer sk-secret-1"}
    (refused,) = corpus.errors(tmp_path / "run")
    assert "not this text, Bearer …" in refused["reason"]
    said = [repr(classifier), str(classifier.fingerprint()), repr(classifier.describe())]
    assert "secret" not in " ".join(said)
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or b"sk-secret" not in file.read_bytes()


def test_results_say_how_they_came_about(tmp_path: Path) -> None:
    with serving() as server:
        e = piste.explain(load(server), TEXT, samples=60)
        assert e.classifier["requests"] == server.received
        assert e.classifier["tokens"] > 60
    assert "20 likeliest tokens" in e.classifier["scoring"]
    assert e.output.labels == ("positive", "negative")
    best = e.units[int(np.argmax(e.scores["contribution"]))].text
    assert best in ("wonderful", "great")
    e.to_json(tmp_path / "e.json")
    assert piste.read(tmp_path / "e.json").classifier == e.classifier


def test_fingerprints_differ_where_answers_do() -> None:
    with serving() as server, serving(FakeServer(echo=True)) as other:
        same = load(server).fingerprint()
        assert load(server, concurrency=2, max_requests=1000, name="x").fingerprint() == same
        assert load(server, PROMPT + " I think").fingerprint() != same
        assert load(server, labels=["good", "bad"]).fingerprint() != same
        assert load(other).fingerprint() != same


# -- what is remembered of a server -----------------------------------------------------------


@pytest.mark.parametrize("labels", [LABELS, LONG], ids=["one token", "several"])
@pytest.mark.parametrize("way", WAYS)
def test_a_server_is_probed_once_for_a_cache(tmp_path: Path, way: str, labels) -> None:
    with serving(fresh(way)) as server:
        first = piste.explain(load(server, labels=labels), TEXT, samples=16, cache=tmp_path)
        before = server.received
        later = load(server, labels=labels)
        again = piste.explain(later, TEXT, samples=16, cache=tmp_path)
        assert server.received - before == later.findings.scoring.requests  # one look at it
        np.testing.assert_array_equal(first.score(), again.score())
        assert again.classifier["scoring"] == first.classifier["scoring"]
        assert again.classifier["server_returns"] == first.classifier["server_returns"]


def test_a_server_that_changed_is_probed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as server:
        first = load(server)
        piste.explain(first, TEXT, samples=16, cache=tmp_path)
        monkeypatch.setitem(FakeServer.__dict__["answer"].__globals__, "GOOD", ("text",))
        other = load(server)
        other.remember(tmp_path)
        with pytest.warns(UserWarning, match="answers otherwise"):
            assert other.fingerprint() != first.fingerprint()
        once_more = load(server)
        once_more.remember(tmp_path)
        assert once_more.fingerprint() == other.fingerprint()
        server.max_top = 5  # what was remembered is refused now
        shorter = load(server)
        shorter.remember(tmp_path)
        with pytest.warns(UserWarning, match="answers otherwise"):  # a label is bounded now
            assert shorter.findings.scoring.top == 5


def test_a_broken_memory_is_probed_again(tmp_path: Path) -> None:
    with serving() as server:
        piste.explain(load(server), TEXT, samples=16, cache=tmp_path)
        [file] = tmp_path.glob("server-*.json")
        for broken in ("", "[]", file.read_text()[:60], file.read_text().replace("pieces", "p")):
            file.write_text(broken)
            e = piste.explain(load(server), TEXT, samples=16, cache=tmp_path)
            assert e.classifier["requests"] > 3
        assert json.loads(file.read_text())["scheme"] == 1


# -- inputs ----------------------------------------------------------------------------------


def test_spans_count_in_the_text_or_in_the_prompt() -> None:
    with serving() as server:
        subject = load(server).subject(TEXT)
        assert subject.input == TEXT
        assert [TEXT[u.start : u.end] for u in subject.units] == [u.text for u in subject.units]
        two = load(server, "{title}: Review: {text}\nSentiment:")
        subject = two.subject({"title": "Ice", "text": "A good film"})
        assert subject.input == "Ice: Review: A good film\nSentiment:"
        assert [u.text for u in subject.units] == ["Ice", "A", "good", "film"]
        for unit in subject.units:
            assert subject.input[unit.start : unit.end] == unit.text
        assert subject.encode([0, 2])[0][0].payload[0][1] == "Ice: Review: good\nSentiment:"
        with pytest.raises(PisteError, match="can only be dropped"):
            subject.encode([2, 0])
        sentences = load(server).subject("One. Two.", units="sentences")
        assert len(sentences) == 2


FIELDS = {"title": "Ice", "notes": ["A good film.", "A dull start. A slow end."]}


@pytest.mark.parametrize("chat", [False, True])
def test_a_stored_result_with_several_parts_is_bound_again(tmp_path: Path, chat: bool) -> None:
    template = "Review of {title}: {notes}\nSentiment:"
    prompt = [{"role": "user", "content": template}] if chat else template
    examples = [({"title": "Fire", "notes": "A bad film."}, "negative")]
    with serving() as server:
        classifier = load(server, prompt, examples=examples)
        e = piste.explain(classifier, FIELDS, samples=20, units="sentences")
        e.to_json(tmp_path / "e.json")
        stored = piste.read(tmp_path / "e.json")
        again = load(server, prompt, examples=examples).subject(stored.input, units="sentences")
        assert again.units == e.units
        first = classifier.subject(FIELDS, units="sentences")
        for kept in (first.whole, [1], [0, 2]):
            assert again.encode(kept)[0][0].key == first.encode(kept)[0][0].key
        [check] = piste.check(classifier, stored, [[1]])
        asked = first.ask([[0, 2, 3]])[0]
        assert check.answer == pytest.approx(asked.max() - asked.min())
        compared = piste.compare(classifier, FIELDS, ["slalom", "occlusion"], samples=20)
        assert compared.verdicts["occlusion"]["r2_all"] <= 1


def test_levels_and_spans_of_several_parts() -> None:
    with serving() as server:
        classifier = load(server, "Review of {title}: {notes}\nSentiment:", pinned=["title"])
        e = piste.explain(classifier, FIELDS, samples=60, units=["parts", "sentences", "words"])
        assert [unit.part for unit in e.levels[0].units] == ["notes 1", "notes 2"]
        assert len(e) > 3
        start = e.input.index("good")
        subject = classifier.subject(FIELDS, units=[(start, start + 4)])
        assert [(unit.text, unit.part) for unit in subject.units] == [("good", "notes 1")]
        assert "A film." in subject.encode([])[0][0].payload[0][1]
        for wrong in ((0, 6), (start, len(e.input))):
            with pytest.raises(PisteError, match="within one part"):
                classifier.subject(FIELDS, units=[wrong])


def test_bad_inputs_are_refused_before_anything_is_sent() -> None:
    with serving() as server:
        classifier = load(server)
        for wrong in ("", " ", ("a", "b"), 3, {"other": "x"}):
            with pytest.raises(PisteError):
                classifier.subject(wrong)
        with pytest.raises(PisteError, match="keeps its own"):
            classifier.subject(TEXT, units="tokens")
        with pytest.raises(PisteError, match="keeps its own"):
            classifier.subject(TEXT, removal="mask")
        with pytest.raises(PisteError, match="needs prompt="):
            piste.load(server.url)
        with pytest.raises(PisteError, match="two or more labels"):
            load(server, labels=["one"])
        with pytest.raises(PisteError, match="concurrency"):
            load(server, concurrency=0)
        assert server.received == 0


# -- corpora ---------------------------------------------------------------------------------


def corpus_file(folder: Path) -> Path:
    file = folder / "rows.jsonl"
    texts = [f"A {mood} film number {n}." for n, mood in enumerate(("good", "dull") * 8)]
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return file


def test_a_corpus_stops_with_its_server_and_goes_on(tmp_path: Path) -> None:
    file, out = corpus_file(tmp_path), tmp_path / "out"
    loading = {"model": "fake", "prompt": PROMPT, "labels": LABELS}
    how = {"samples": 20, "loading": loading, "block": 4}
    with serving() as whole:
        corpus.run(file, whole.url, tmp_path / "whole", **how)
        needed = sum(whole.paid.values())
    with serving(FakeServer(behave=lambda n: "500" if n >= needed // 2 else None)) as server:
        with pytest.raises(ServiceError, match="no usable answer"):
            corpus.run(file, server.url, out, **how)
        assert list(corpus.errors(out)) == []
        server.behave = lambda n: None
        counts = corpus.run(file, server.url, out, **how)
        assert counts.documents == 16
        assert counts.refused == 0
        twice = [body for body, times in server.paid.items() if times > 1]
        assert all("This is a text." in body for body in twice)
        assert sum(server.paid.values()) <= needed + 10


def test_a_text_the_server_refuses_is_a_refused_row(tmp_path: Path) -> None:
    """Too long for it, or against its rules: the other rows are explained, and paid for once."""
    texts = ["A good film.", "A forbidden film.", "A dull film."]
    server = FakeServer(refused="forbidden")
    with serving(server):
        loading = {"model": "fake", "prompt": PROMPT, "labels": LABELS}
        corpus.run(texts, server.url, tmp_path / "out", samples=20, loading=loading)
        (refused,) = corpus.errors(tmp_path / "out")
        assert refused["document"] == 1
        assert "refuses a question (status 400: not this text, " in refused["reason"]
        own = {body: times for body, times in server.paid.items() if "a text." not in body}
        assert set(own.values()) == {1}
    assert [e.input for e in corpus.explanations(tmp_path / "out")] == [texts[0], texts[2]]


def test_half_a_character_is_refused_at_once(pauses: list[float]) -> None:
    """llama.cpp gives no log-probabilities of such a token, however often it is asked."""
    with serving() as server:
        subject = load(server).subject(TEXT)
        subject.ask([[0]])
        server.behave = lambda number: "half a character"
        sent = server.received
        with pytest.raises(PisteError, match="a token that is half a character"):
            subject.ask([[1]])
        assert server.received == sent + 1
    assert pauses == []


def test_labels_whose_tokens_are_not_told_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def generate(self: Endpoint, turns: Turns, *, top: int, tokens: int = 1) -> list[Generated]:
        likely = {b" the": -0.1, b"\xbd": -3.0}
        return [Generated("好".encode() if tokens > 1 else b" the", -0.1, likely)]

    monkeypatch.setattr(Endpoint, "generate", generate)
    with serving() as server, pytest.raises(ServiceError, match="label '好', which are parts of"):
        load(server, labels=["好", "坏"]).subject(TEXT).ask([[0]])


def test_half_a_character_is_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels count by their first tokens, where a beginning of them is no text."""
    real = Endpoint.generate

    def generate(self: Endpoint, turns: Turns, *, top: int, tokens: int = 1) -> list[Generated]:
        if tokens == 1:
            return real(self, turns, top=top)
        label = turns[0][1].split("\n\n")[0][-1]
        pieces = label.encode()[:2], label.encode()[2:]
        return [Generated(piece, -0.1, {piece: -0.1}) for piece in pieces]

    monkeypatch.setattr(Endpoint, "generate", generate)
    with serving() as server:
        classifier = load(server, labels=["👍", "坏"])
        assert classifier.subject(TEXT).ask([[0]]).shape == (1, 2)
        assert "by their first token" in classifier.describe()["scoring"]


def test_a_corpus_beyond_its_cap_is_not_begun(tmp_path: Path) -> None:
    loading = {"prompt": PROMPT, "labels": LABELS, "max_requests": 100}
    with serving() as server:
        with pytest.raises(ServiceError, match="max_requests is 100"):
            corpus.run(
                corpus_file(tmp_path), server.url, tmp_path / "o", samples=20, loading=loading
            )
        assert server.received < 10
        found = corpus.estimate(corpus_file(tmp_path), server.url, samples=20, loading=loading)
        assert found.calls == 16 * 21
        assert found.seconds is None
