from __future__ import annotations

from email.utils import formatdate

import pytest

from piste.classifiers.served.client import TRIES, Client, Refused
from piste.errors import PisteError, ServiceError
from tests.classifiers.served.fake_server import FakeServer, serving

BODY = {"prompt": "Review: good\nSentiment:", "logprobs": 1, "max_tokens": 1}


def ask(client: Client) -> object:
    return client.post("/completions", BODY, lambda content: content["choices"][0]["text"])


def troubles(*names: str | None):
    """What goes wrong with the first requests."""
    return lambda number: names[number] if number < len(names) else None


@pytest.mark.parametrize("trouble", ["drop", "429", "500", "503", "garbage", "half"])
def test_tries_again_and_pays_once(trouble: str, pauses: list[float]) -> None:
    with serving(FakeServer(behave=troubles(None, trouble, trouble))) as server:
        client = Client(server.url)
        assert [ask(client), ask(client)] == ["x", "x"]
        assert sum(server.paid.values()) == 2
        assert client.requests == 4
    assert 0.25 <= pauses[0] <= 0.5 <= pauses[1] <= 1.0


def test_waits_as_long_as_the_server_says(pauses: list[float]) -> None:
    with serving(FakeServer(behave=troubles("429:7", "503:11"))) as server:
        assert ask(Client(server.url)) == "x"
    assert pauses == [7.0, 11.0]


def test_retry_after_may_be_a_date(pauses: list[float]) -> None:
    with serving(FakeServer(behave=troubles(f"429:{formatdate(0)}"))) as server:
        ask(Client(server.url))
    assert pauses == [0.0]


def test_a_very_long_wish_ends_it(pauses: list[float]) -> None:
    with (
        serving(FakeServer(behave=lambda number: "429:3600")) as server,
        pytest.raises(ServiceError, match="asks to wait for 3600 s"),
    ):
        ask(Client(server.url))
    assert pauses == []


def test_gives_up_in_one_sentence() -> None:
    with serving(FakeServer(behave=lambda number: "500")) as server:
        client = Client(server.url)
        with pytest.raises(ServiceError, match=f"asked {TRIES} times and gave no usable answer"):
            ask(client)
        assert client.requests == TRIES


def test_a_slow_server_is_a_timeout() -> None:
    with serving(FakeServer(behave=troubles("slow"))) as server:
        client = Client(server.url, timeout=1.0)
        assert ask(client) == "x"
        assert client.requests >= 2
        server.waiting.set()


def test_nobody_there_is_said_soon() -> None:
    with serving() as server:
        url = server.url
    client = Client(url)
    with pytest.raises(ServiceError, match="can't be reached"):
        ask(client)
    assert client.requests == 2


def test_refusals_are_not_repeated() -> None:
    with serving(FakeServer(behave=lambda number: "400")) as server:
        client = Client(server.url)
        with pytest.raises(Refused, match="status 400"):
            ask(client)
        assert client.requests == 1


@pytest.mark.parametrize("status", ["401", "403", "400", "500"])
def test_the_key_is_sent_and_never_said(status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    monkeypatch.setenv("PISTE_API_KEY", "sk-secret-1")
    with serving(FakeServer(behave=lambda number: status)) as server:
        client = Client(server.url)
        with pytest.raises((ServiceError, Refused)) as caught:
            ask(client)
        assert server.keys == {"Bearer sk-secret-1"}
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(client) + repr(vars(client))


def test_the_usual_key_does_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    with serving() as server:
        ask(Client(server.url))
        assert server.keys == {"Bearer sk-other"}


def test_a_line_end_is_no_part_of_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PISTE_API_KEY", " sk-secret-1\n")
    with serving() as server:
        ask(Client(server.url))
        assert server.keys == {"Bearer sk-secret-1"}


@pytest.mark.parametrize("key", ["sk-secret\nsk-2", "sk-…secret", "sk-sécret"])
def test_a_key_that_can_not_be_sent_is_not_repeated(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PISTE_API_KEY", key)
    with serving() as server:
        with pytest.raises(ServiceError, match="PISTE_API_KEY holds no key") as refused:
            ask(Client(server.url))
        assert server.received == 0
    assert "sk-" not in str(refused.value)
    assert refused.value.__cause__ is refused.value.__context__ is None


@pytest.mark.parametrize(
    "url", ["http://me:secret@host/v1", "http://host/v1?key=secret", "http://host/v1#secret"]
)
def test_urls_with_secrets_are_refused(url: str) -> None:
    with pytest.raises(PisteError, match="without user, password or query") as caught:
        Client(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://", "http:///v1", "http://host:99999/v1"])
def test_urls_must_be_urls(url: str) -> None:
    with pytest.raises(PisteError, match="Expected a URL"):
        Client(url)


def test_the_endpoint_may_be_part_of_the_url() -> None:
    assert Client("http://host:1/v1/chat/completions").url == "http://host:1/v1"
    assert Client("https://host/v1/").url == "https://host/v1"


def test_caps_hold_for_every_try() -> None:
    with serving(FakeServer(behave=lambda number: "500")) as server:
        client = Client(server.url, max_requests=3)
        with pytest.raises(ServiceError, match="max_requests=3"):
            ask(client)
        assert server.received == 3
    with serving() as server:
        client = Client(server.url, max_tokens=10)
        for _ in range(2):
            ask(client)
        with pytest.raises(ServiceError, match="max_tokens=10"):
            ask(client)
        assert client.tokens >= 10


def test_connections_are_kept() -> None:
    with serving() as server:
        client = Client(server.url)
        for _ in range(5):
            ask(client)
        assert client._idle.qsize() == 1
