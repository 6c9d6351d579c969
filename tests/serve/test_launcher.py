"""Starting, being asked, and stopping: as a real process."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import pytest

import piste
from piste.serve import Limits, create_app, launcher, serve
from piste.serve.launcher import LOOPBACK, _listen, check_place
from tests.serve.asking import TIMEOUT

TOKEN = "abcdefghijkl123"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.9.1"])
def test_this_machine_alone_needs_no_token(host):
    check_place(host, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "box.lan", "", "127.0.0.1.evil"])
def test_elsewhere_a_token_is_required(host):
    with pytest.raises(piste.PisteError, match="token is required"):
        check_place(host, None)
    check_place(host, TOKEN)


@pytest.mark.parametrize("token", ["", "short", "a" * 11, "with blanks in it", "é" * 12, "a;b" * 9])
def test_tokens_that_are_refused(token):
    with pytest.raises(piste.PisteError, match="12 or more letters and digits"):
        check_place("127.0.0.1", token)


@pytest.mark.parametrize("port", [-1, 65536])
def test_ports_that_are_none(port):
    with pytest.raises(piste.PisteError, match="65535"):
        serve([], port=port)


def test_a_port_that_is_taken_is_told_before_models_are_loaded():
    with _listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(piste.PisteError, match=f"127.0.0.1:{port} can't be listened at"):
            serve(["/a/model/that/is/not/there"], port=port)


@pytest.mark.parametrize("host", ["nowhere.invalid", "x" * 300, "\x00"])
def test_hosts_that_are_none(host):
    with pytest.raises(piste.PisteError, match="can't be listened at"):
        serve([], host=host, token=TOKEN)


def test_an_early_connection_waits():
    """The address may be printed at once: nobody is turned away while models are loaded."""
    with (
        _listen("127.0.0.1", 0) as listening,
        socket.create_connection(listening.getsockname(), timeout=TIMEOUT),
    ):
        pass


@contextmanager
def process(*options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "piste.cli", "serve", "-m", "piste:reviews", *options]
    own = {"COLUMNS": "200", "OMP_NUM_THREADS": "1"}
    environment = {k: v for k, v in os.environ.items() if k != "PISTE_TOKEN"} | own
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def address_of(running: subprocess.Popen[str]) -> str:
    assert running.stderr is not None
    for line in running.stderr:
        if found := re.search(r"http://\S+", line):
            return found[0]
    raise AssertionError("it ended without an address")


@pytest.mark.slow
def test_elsewhere_without_a_token_is_exit_code_2():
    with process("--host", "0.0.0.0", "--port", "0") as running:
        out, err = running.communicate(timeout=TIMEOUT)
    assert running.returncode == 2
    assert "token is required" in err
    assert "Traceback" not in out + err


@pytest.mark.slow
def test_a_real_server_answers_and_ends_when_it_is_told_to():
    """Also while somebody follows an explanation in the making."""
    with process("--port", "0", "--token", TOKEN) as running:
        address = address_of(running)
        place, _, token = address.partition("/?token=")
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", place)
        assert token == TOKEN
        with httpx.Client(base_url=place, timeout=TIMEOUT) as client:
            assert client.get("/").status_code == 401
            assert client.get("/", headers={"host": "evil.example"}).status_code == 421
            page = client.get(f"/?token={token}", follow_redirects=True)
            assert page.status_code == 200
            assert "<title>Piste</title>" in page.text
            request = {"text": "good " * 300, "samples": 5000, "methods": ["kernel_shap"]}
            job = client.post("/api/explanations", json=request)
            assert job.status_code == 202
            with client.stream("GET", f"/api/explanations/{job.json()['id']}/events") as events:
                lines = events.iter_lines()
                assert next(lines).startswith("data: ")
                running.send_signal(signal.SIGINT)
                rest = list(lines)
        assert any('"state":"cancelled"' in line for line in rest), "it is told why it ends"
        out, err = running.communicate(timeout=TIMEOUT)
    assert running.returncode in (0, 130)
    assert "Traceback" not in out + err
    assert "Error" not in err


@pytest.mark.slow
def test_requests_that_never_arrive_are_given_up(monkeypatch):
    """Connections that send half a request, or none, don't keep others out for ever."""
    monkeypatch.setattr(launcher, "ARRIVAL_SECONDS", 0.3)
    loud = piste.load(lambda texts: [float(len(text)) for text in texts], name="loud")
    listening = _listen("127.0.0.1", 0)
    place = listening.getsockname()
    running = launcher.Server(create_app([loud]))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    silent, half, slow, well = (socket.create_connection(place, TIMEOUT) for _ in range(4))
    half.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Half: ")
    head = (
        b"POST /api/explanations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    )
    slow.sendall(head + b"Content-Length: 100\r\n\r\n{")
    for one in (silent, half, slow):
        with suppress(ConnectionResetError):  # as good an end
            assert one.recv(1000) == b""
    well.close()
    with httpx.Client(base_url=f"http://localhost:{place[1]}", timeout=TIMEOUT) as client:
        assert client.get("/api/models").status_code == 200
    running.should_exit = True
    thread.join(TIMEOUT)
    assert not thread.is_alive()


@contextmanager
def loading_server(make: Callable[..., Any]) -> Iterator[tuple[launcher.Server, str]]:
    """A server whose app is made while it answers."""
    listening = _listen("127.0.0.1", 0)
    checks = {"limits": Limits(), "hosts": LOOPBACK, "token": None}
    app = launcher.LoadingApp(make, **checks)
    running = launcher.Server(app)
    app.on_problem = running.end
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield running, f"http://127.0.0.1:{listening.getsockname()[1]}"
    running.should_exit = True
    thread.join(TIMEOUT)
    assert not thread.is_alive()
    listening.close()


def test_the_page_says_what_is_loading_and_requests_wait():
    told, go_on = threading.Event(), threading.Event()
    loud = piste.load(lambda texts: [float(len(text)) for text in texts], name="loud")

    def make(tell: Callable[[str], None]) -> Any:
        tell("loading <loud>")
        told.set()
        assert go_on.wait(TIMEOUT)
        return create_app([loud])

    with (
        loading_server(make) as (_, address),
        httpx.Client(base_url=address, timeout=TIMEOUT) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        assert told.wait(TIMEOUT)
        page = client.get("/")
        assert page.status_code == 200
        assert "is loading &lt;loud&gt; …" in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert client.get("/", headers={"host": "evil.example"}).status_code == 421
        early = pool.submit(client.get, "/api/models")
        go_on.set()
        assert early.result(TIMEOUT).json()["models"][0]["name"] == "loud"
        assert "<form" in client.get("/").text


def test_a_model_that_can_not_be_loaded_ends_the_server():
    with pytest.raises(piste.PisteError, match="does not exist"):
        serve(["/a/model/that/is/not/there"], port=0)
