"""Explanations through the interface: the same as from the library, within limits."""

from __future__ import annotations

import base64
import io
import json
import shutil
import struct
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from PIL import Image

import piste
from piste import zoo
from piste.comparison import Comparison
from piste.data import storage
from piste.explanation import Explanation
from piste.methods import METHODS
from piste.serve import Limits, create_app
from piste.serve.model_host import PAPER
from piste.zoo.clothes import draw_clothes
from tests.serve.asking import TIMEOUT, ended, events, explained, wait_for

TEXT = "A slow start, but a wonderful ending."
MODEL, GPT, FASHION = "piste:reviews", "piste:reviews-gpt", "piste:fashion"
LIMITS = Limits(characters=2000, units=40, samples=3000, methods=3, image_bytes=50_000)


@pytest.fixture(scope="module")
def fashion() -> Any:
    return piste.load(FASHION)


@pytest.fixture(scope="module")
def client(reviews: Any, reviews_gpt: Any, fashion: Any) -> Iterator[TestClient]:
    app = create_app([reviews, reviews_gpt, fashion], limits=LIMITS)
    with TestClient(app, base_url="http://localhost") as one:
        yield one


@pytest.fixture(scope="module")
def one(client: TestClient) -> str:
    """The address of an explanation by one method."""
    return explained(client, text=TEXT)


@pytest.fixture(scope="module")
def several(client: TestClient) -> str:
    """The address of a comparison."""
    return explained(client, text=TEXT, methods=["slalom", "occlusion"], samples=200)


def refused(client: TestClient, **request: Any) -> tuple[int, str]:
    """Status and sentence of a request that is refused at once."""
    answer = client.post("/api/explanations", json=request)
    assert answer.status_code >= 400, answer.text
    return answer.status_code, answer.json()["problem"]


def same(told: Explanation, wanted: Explanation) -> None:
    """Equal in all but the time it took."""
    assert (told.input, told.units, told.target) == (wanted.input, wanted.units, wanted.target)
    assert told.output == wanted.output
    for name, scores in wanted.scores.items():
        assert told.scores[name] == pytest.approx(scores)


def stored(client: TestClient, address: str) -> dict[str, Explanation]:
    """The explanations in a result, read as the library reads them."""
    data = client.get(f"{address}/result").json()["explanations"]
    return {name: storage.from_json(json.dumps(one)) for name, one in data.items()}


def test_one_method_is_what_the_library_says(client, one, reviews):
    [(name, told)] = stored(client, one).items()
    assert name == "slalom"
    same(told, piste.explain(reviews, TEXT))


def test_several_methods_are_judged_as_the_library_does(client, several, reviews):
    wanted = piste.compare(reviews, TEXT, ["slalom", "occlusion"], samples=200)
    explanations = stored(client, several)
    assert list(explanations) == list(wanted.explanations)
    for name, explanation in wanted.explanations.items():
        same(explanations[name], explanation)
    found = Comparison.from_json(client.get(f"{several}/result").text)
    assert list(found.verdicts) == list(wanted.verdicts)
    for name, verdict in wanted.verdicts.items():
        figures = {figure: value for figure, value in verdict.items() if figure != "seconds"}
        assert {figure: found.verdicts[name][figure] for figure in figures} == pytest.approx(
            figures
        )
    asked = found.checks[: len(wanted.checks)]  # the fixture's own removals come behind them
    assert [one.removed for one in asked] == [one.removed for one in wanted.checks]
    for one, other in zip(asked, wanted.checks, strict=True):
        assert one.expected == pytest.approx(dict(other.expected))
        assert one.answer == pytest.approx(other.answer)


def test_one_method_that_is_left_has_its_verdict_as_in_the_library():
    loud = piste.load(lambda texts: [float(text.count("!")) for text in texts], name="loud")
    wanted = piste.compare(loud, "Stop it now !", ["slalom"])
    with TestClient(create_app([loud]), base_url="http://localhost") as client:
        address = explained(client, text="Stop it now !", methods=["slalom", "gradient"])
        found = Comparison.from_json(client.get(f"{address}/result").text)
    assert found.verdicts["slalom"]["r2_all"] == pytest.approx(wanted.verdicts["slalom"]["r2_all"])
    assert [one.removed for one in found.checks] == [one.removed for one in wanted.checks]


def test_a_doubtful_explanation_offers_more_questions_which_are_asked():
    def uneven(texts: list[str]) -> list[float]:
        return [float(zlib.crc32(text.encode()) % 1000) - 500.5 for text in texts]

    text = "one two three four five six seven eight nine ten"
    with TestClient(create_app([piste.load(uneven)]), base_url="http://localhost") as client:
        first = explained(client, text=text, samples=60)
        more = client.get(f"{first}/view").json()["data"]["more"]
        assert more == 200
        again = explained(client, text=text, samples=more)
        assert stored(client, again)["slalom"].calls > 2 * stored(client, first)["slalom"].calls


def test_events_tell_the_way_to_the_end(client):
    answer = client.post("/api/explanations", json={"text": TEXT, "samples": 2000, "seed": 3})
    news = events(client, answer.json()["id"])
    assert [job["id"] for job in news] == [answer.json()["id"]] * len(news)
    assert news[-1]["state"] == "done"
    assert all(job["state"] in ("waiting", "working") for job in news[:-1])
    assert len({json.dumps(job) for job in news}) == len(news), "nothing is told twice"
    assert events(client, answer.json()["id"]) == news[-1:], "who comes late is told the end"


def test_the_same_request_is_not_made_twice(client, one):
    again = client.post("/api/explanations", json={"text": TEXT}).json()
    assert f"/api/explanations/{again['id']}" == one
    assert again["state"] == "done"
    other = client.post("/api/explanations", json={"text": TEXT, "seed": 1}).json()
    assert other["id"] != again["id"]


@pytest.mark.parametrize("removed", [[6], [0, 2], [6, 0, 6]])
def test_removals_are_what_the_library_finds(client, several, reviews, removed):
    told = client.post(f"{several}/removals", json={"removed": removed}).json()
    [wanted] = piste.check(reviews, list(stored(client, several).values()), [removed])
    assert told["removed"] == sorted(set(removed))
    assert told["answer"] == pytest.approx(wanted.answer)
    assert told["probability"] == pytest.approx(wanted.probability)
    assert told["label"] == wanted.label
    expected = dict(zip(told["methods"], told["expected"], strict=True))
    assert expected == pytest.approx(dict(wanted.expected))


@pytest.mark.parametrize(
    ("body", "says"),
    [({"removed": [99]}, "no unit 99"), ({"removed": []}, "removed"), ({"removed": [-1]}, "0"),
     ({"removed": [True]}, "integer"), ({"removed": [1.0]}, "integer"), ({}, "required"),
     ({"removed": [2**40]}, "removed"), ({"removed": [0], "more": 1}, "more"), ([0], "body")],
)  # fmt: skip
def test_removals_that_are_refused(client, one, body, says):
    answer = client.post(f"{one}/removals", json=body)
    assert answer.status_code == 422
    assert says in answer.json()["problem"]


def test_removing_everything(client, one):
    units = len(stored(client, one)["slalom"].units)
    answer = client.post(f"{one}/removals", json={"removed": list(range(units))})
    assert answer.status_code == 200, "an encoder can read nothing at all"
    from_gpt = explained(client, text="good", model=GPT, samples=50)
    answer = client.post(f"{from_gpt}/removals", json={"removed": [0]})
    assert answer.status_code == 422
    assert "keep at least one" in answer.json()["problem"]


def test_the_view_is_for_the_page(client, several):
    view = client.get(f"{several}/view").json()
    assert set(view) == {"title", "html", "rules", "data"}
    assert "wonderful" in view["html"]
    assert "<script" not in view["html"]


def test_a_text_can_not_smuggle_html(client):
    text = "<script>alert(1)</script> <img src=x onerror=alert(1)> & good"
    address = explained(client, text=text, samples=100)
    page = client.get(f"{address}/view").json()["html"]
    assert "<script>" not in page
    assert "<img src=x" not in page
    assert "<script>alert" not in client.get(f"{address}/export/html").text


@pytest.mark.parametrize("address", ["one", "several"])
def test_exports(client, request, address):
    address = request.getfixturevalue(address)
    page, figure, data = (
        client.get(f"{address}/export/{kind}") for kind in ("html", "png", "json")
    )
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.text.startswith("<!doctype html>")
    assert "wonderful" in page.text
    assert page.headers["content-security-policy"].startswith("sandbox")
    assert figure.headers["content-type"] == "image/png"
    with Image.open(io.BytesIO(figure.content)) as image:
        image.load()
        assert image.width > 500
    assert data.headers["content-type"] == "application/json"
    assert data.json() == client.get(f"{address}/result").json()
    for kind, answer in (("html", page), ("png", figure), ("json", data)):
        wanted = f'attachment; filename="explanation.{kind}"'
        assert answer.headers["content-disposition"] == wanted
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_what_does_not_exist(client, one):
    for end in ("", "/events", "/view", "/result", "/export/html"):
        answer = client.get(f"/api/explanations/{'a' * 22}{end}")
        assert answer.status_code == 404, end
        assert "no such explanation" in answer.json()["problem"]
    assert client.get(f"{one}/export/exe").status_code == 422
    for name in ("../models", "%2e%2e%2fmodels", "..%2f..%2fetc%2fpasswd", "a%00b", "%ff"):
        assert client.get(f"/assets/{name}").status_code == 404
        assert client.get(f"/api/explanations/{name}/view").status_code == 404


def test_cancelling(client):
    begun = client.post(
        "/api/explanations", json={"text": TEXT * 3, "samples": 3000, "methods": ["slalom"]}
    ).json()
    waiting = client.post("/api/explanations", json={"text": "Another text.", "seed": 9}).json()
    address, other = (f"/api/explanations/{job['id']}" for job in (begun, waiting))
    assert client.delete(other).json()["state"] == "cancelled"
    assert client.delete(address).json()["state"] == "cancelled"
    assert events(client, begun["id"])[-1]["problem"] == "It was cancelled."
    answer = client.get(f"{address}/view")
    assert answer.status_code == 409
    assert "cancelled" in answer.json()["problem"]
    assert ended(client, text="Another text.", seed=9)["state"] == "done", "it can be asked again"


@pytest.mark.parametrize(
    ("request_", "code", "says"),
    [
        ({}, 422, "send a text"),
        ({"text": ""}, 422, "empty"),
        ({"text": " \n\t\u00a0"}, 422, "empty"),
        ({"text": "x" * 2001}, 413, "got 2,001"),
        ({"text": "x", "pair": "y" * 2001}, 413, "got 2,001"),
        ({"text": 1}, 422, "text"),
        ({"text": TEXT, "image": "aaaa"}, 422, "no image"),
        ({"text": TEXT, "model": "piste:nothing"}, 404, "no model"),
        ({"text": TEXT, "model": "/etc"}, 404, "no model"),
        ({"text": TEXT, "model": FASHION}, 422, "sees images"),
        ({"text": TEXT, "methods": ["nothing"]}, 422, "no method 'nothing'"),
        ({"text": TEXT, "methods": []}, 422, "methods"),
        ({"text": TEXT, "methods": ["slalom", "slalom"]}, 422, "twice"),
        ({"text": TEXT, "methods": ["slalom", "lime", "linear", "occlusion"]}, 413, "At most 3"),
        ({"text": TEXT, "methods": ["vocabulary"]}, 422, "no method"),
        ({"text": TEXT, "methods": ["slalom[sampler=short]"]}, 422, "no method"),
        ({"text": TEXT, "methods": ["vocabulary[path=/etc/passwd]"]}, 422, "no method"),
        ({"text": TEXT, "methods": ["slalom:value"]}, 422, "no method"),
        ({"text": TEXT, "methods": ["centre"]}, 422, "no method"),
        ({"text": TEXT, "units": "letters"}, 422, "units: expected"),
        ({"text": TEXT, "units": "grid:4"}, 422, "units: expected"),
        ({"text": TEXT, "units": "words,sentences"}, 422, "units: expected"),
        ({"text": TEXT, "units": "0-3,words"}, 422, "units: expected"),
        ({"text": TEXT, "target": "nothing"}, 422, "nothing"),
        ({"text": TEXT, "target": "positive vs positive"}, 422, "two different"),
        ({"text": TEXT, "samples": 9}, 422, "samples"),
        ({"text": TEXT, "samples": 3001}, 413, "3,000"),
        ({"text": TEXT, "samples": 10**400}, 413, "3,000"),
        ({"text": TEXT, "samples": True}, 422, "integer"),
        ({"text": TEXT, "samples": 100.0}, 422, "integer"),
        ({"text": TEXT, "seed": -1}, 422, "seed"),
        ({"text": TEXT, "long": "maybe"}, 422, "long"),
        ({"text": TEXT, "cache": "/tmp"}, 422, "cache"),
        ({"text": TEXT, "x" * 5000: 1}, 422, "not permitted"),
    ],
)
def test_requests_that_are_refused(client, request_, code, says):
    found, problem = refused(client, **request_)
    assert found == code
    assert says in problem
    assert len(problem) < 600


BODIES = {
    "empty": (b"", 422), "open": (b"{", 422), "null": (b"null", 422), "list": (b"[]", 422),
    "text": (b'"text"', 422), "NaN": (b'{"text":NaN}', 422), "bytes": (b'{"text":"\xff"}', 400),
    "infinity": (b'{"text":"a","samples":1e999}', 422),
    "digits": (b'{"text":"a","samples":' + b"9" * 5000 + b"}", 400),
    "deep": (b"[" * 80_000, 400),
    "deep text": (b'{"text":' + b"[" * 40_000 + b"]" * 40_000 + b"}", 400),
    "half a sign": (rb'{"text":"a \ud800 b"}', 422),
    "half a name": (rb'{"text":"a","\ud800":1}', 422),
    "half a target": (rb'{"text":"a","target":"\udfff"}', 422),
    "half a model": (rb'{"text":"a","model":"\udfff"}', 422),
    "half a unit": (rb'{"text":"a","units":"\udfff"}', 422),
    "half a method": (rb'{"text":"a","methods":["\udfff"]}', 422),
}  # fmt: skip


@pytest.mark.parametrize(("body", "code"), BODIES.values(), ids=BODIES)
def test_bodies_that_are_no_requests(client, body, code):
    kind = {"content-type": "application/json"}
    answer = client.post("/api/explanations", content=body, headers=kind)
    assert answer.status_code == code
    assert answer.json()["problem"].endswith(".")


ODD = {
    "marks": "\u0301\u0302 \u0303", "no width": "\u200b\u200b", "nul": "good \x00 \x00 film",
    "order": "\ufeff", "direction": "good \u202e film \u2066x\u2069", "family": "👨‍👩‍👧‍👦 " * 10,
    "long word": "a" * 2000, "dots": "..." * 600 + "x", "contractions": "don't " * 30,
    "tokens": "[CLS] [SEP] [PAD]", "mathematics": "$\\frac{a}$ _{", "chinese": "这部电影很好看",
    "no signs": "\uffff \U0010ffff", "lines": "a\n\n\nb\r\nc",
}  # fmt: skip


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
@pytest.mark.parametrize("model", [MODEL, GPT])
def test_odd_texts_are_explained_or_refused_with_a_reason(client, text, model, capfd):
    last = ended(client, text=text, model=model, samples=20, long="truncate")
    if last["state"] == "failed":
        assert "nothing the tokenizer knows" in last["problem"] or "units, and" in last["problem"]
    else:
        address = f"/api/explanations/{last['id']}"
        # Figures take longest, and are the same for both models.
        for end in ("view", "result", *(["export/png"] if model == MODEL else [])):
            assert client.get(f"{address}/{end}").status_code == 200
    assert "Traceback" not in capfd.readouterr().err


def test_too_many_units_are_refused_after_they_are_counted(client):
    last = ended(client, text="word " * 41)
    assert last["state"] == "failed"
    assert "41 units" in last["problem"]
    assert ended(client, text="word " * 41, units="sentences", samples=20)["state"] == "done"


def test_a_method_that_can_not_explain_it_is_named_and_the_others_are_shown():
    loud = piste.load(lambda texts: [float(text.count("!")) for text in texts], name="loud")
    with TestClient(create_app([loud]), base_url="http://localhost") as client:
        address = explained(client, text="Stop it now !", methods=["slalom", "gradient"])
        result = client.get(f"{address}/result").json()
        assert list(result["explanations"]) == ["slalom"]
        assert "looks inside" in result["skipped"]["gradient"]
        assert "gradient" in client.get(f"{address}/view").json()["html"]
        last = ended(client, text="Stop it now !", methods=["gradient"])
        assert last["state"] == "failed"
        assert "looks inside" in last["problem"]


def encoded(image: Image.Image | bytes, kind: str = "PNG") -> str:
    if isinstance(image, bytes):
        return base64.b64encode(image).decode()
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return encoded(buffer.getvalue())


def test_an_image_is_explained_as_the_library_does(client, fashion):
    boot = draw_clothes("boot")
    address = explained(
        client, image=encoded(boot.to_pil()), model=FASHION, methods=["occlusion"], units="grid:4"
    )
    same(
        stored(client, address)["occlusion"],
        piste.explain(fashion, boot, method="occlusion", units="grid:4"),
    )
    for end in ("view", "export/html", "export/png"):
        assert client.get(f"{address}/{end}").status_code == 200
    told = client.post(f"{address}/removals", json={"removed": [5]}).json()
    [wanted] = piste.check(fashion, list(stored(client, address).values()), [[5]])
    assert told["answer"] == pytest.approx(wanted.answer)


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "GIF", "BMP"])
def test_formats_of_images(client, kind):
    image = encoded(draw_clothes("bag").to_pil(), kind)
    last = ended(client, image=image, model=FASHION, methods=["occlusion"], units="grid:4")
    assert last["state"] == "done"


def chunk(name: bytes, content: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(name + content))
    return struct.pack(">I", len(content)) + name + content + check


def png(width: int, height: int, pixels: bytes) -> bytes:
    """A PNG that says it has this size, whatever its pixels are."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(pixels, 9))
        + chunk(b"IEND", b"")
    )


BROKEN = png(28, 28, bytes(28 * 29))[:48]
BOMB = png(5001, 5001, bytes(5001 * 5002))
POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n(x) print\n%%EOF\n"


IMAGES = {
    "no base64": ("not base64!", 422, "no base64"),
    "letters": ("é", 422, "no base64"),
    "nothing": ("", 422, "can't be read"),
    "no image": (encoded(b"no image"), 422, "can't be read"),
    "broken": (encoded(BROKEN), 422, "broken"),
    "a program": (encoded(POSTSCRIPT), 422, "can't be read"),
    "huge": (encoded(png(30_000, 30_000, b"")), 413, "too many pixels"),
    "large": (encoded(png(5001, 5000, b"")), 413, "5001 × 5000"),
    "bomb": (encoded(BOMB), 413, "5001 × 5001"),
    "file": (encoded(b"x" * 50_001), 413, "50,000 bytes"),
}


@pytest.mark.parametrize(("image", "code", "says"), IMAGES.values(), ids=IMAGES)
def test_images_that_are_refused(client, image, code, says):
    assert len(BOMB) < LIMITS.image_bytes, "small as a file, large in memory"
    found, problem = refused(client, image=image, model=FASHION)
    assert (found, says in problem) == (code, True), problem


@pytest.mark.parametrize(
    "more",
    [{"units": "words"}, {"units": "grid:0"}, {"units": "grid:1000"}, {"units": "grid:4\n"},
     {"units": "superpixels:-1"}, {"text": "x"}, {"pair": "x"}],
)  # fmt: skip
def test_requests_with_an_image_that_are_refused(client, more):
    image = encoded(draw_clothes("bag").to_pil())
    assert refused(client, image=image, model=FASHION, **more)[0] == 422


def test_a_grid_that_does_not_fit_is_refused_with_a_reason(client):
    image = encoded(draw_clothes("bag").to_pil())
    last = ended(client, image=image, model=FASHION, units="grid:999")
    assert last["state"] == "failed"
    assert "went wrong" not in last["problem"]


def test_the_paper_form_is_a_method_of_its_own(client):
    job = ended(client, text=TEXT, methods=["slalom", PAPER], samples=60)
    result = client.get(f"/api/explanations/{job['id']}/result").json()
    assert result["explanations"]["slalom"]["ranking"] == "contribution"
    assert result["explanations"][PAPER]["ranking"] == "linear"
    assert result["explanations"][PAPER]["settings"]["form"] == "paper"
    assert ended(client, text=TEXT, methods=[PAPER], samples=60)["state"] == "done"


def test_models_tell_what_can_be_asked(client):
    told = client.get("/api/models").json()
    assert [model["name"] for model in told["models"]] == [MODEL, GPT, FASHION]
    assert {one["name"] for one in told["methods"]} == {*METHODS, PAPER}
    assert all(PAPER in model["methods"] for model in told["models"])
    assert told["limits"]["characters"] == LIMITS.characters
    for model in told["models"]:
        assert "vocabulary" not in model["methods"]
        assert ("centre" in model["methods"]) == (model["reads"] == "images")


def test_a_queue_that_is_full_asks_to_come_back(reviews):
    app = create_app([reviews], limits=Limits(waiting=1, kept=2))
    with TestClient(app, base_url="http://localhost") as client:
        long = {"text": TEXT * 5, "samples": 5000, "methods": ["slalom"]}
        begun = client.post("/api/explanations", json=long).json()["id"]
        address = f"/api/explanations/{begun}"
        wait_for(lambda: client.get(address).json()["state"] != "waiting")
        answers = [
            client.post("/api/explanations", json={"text": TEXT, "seed": seed}) for seed in (1, 2)
        ]
        assert [one.status_code for one in answers] == [202, 503]
        assert answers[1].headers["retry-after"] == "5"
        assert "try again" in answers[1].json()["problem"]
        client.delete(address)


def test_nobody_learns_where_a_folder_is(tmp_path, reviews):
    place = tmp_path / "a-secret-place" / "shown"
    shutil.copytree(zoo.folder(MODEL), place)
    loaded = piste.load(str(place.parent / "shown"))  # its name is the whole path
    assert str(tmp_path) in loaded.name
    for model in (f"{place}/", loaded):
        app = create_app([model])
        with TestClient(app, base_url="http://localhost") as client:
            assert client.get("/api/models").json()["models"][0]["name"] == "shown"
            address = explained(client, text=TEXT, methods=["slalom", "occlusion"], samples=50)
            answers = [
                client.get(path)
                for path in (
                    "/", "/api/models", address, f"{address}/view", f"{address}/result",
                    f"{address}/export/html", f"{address}/export/png", f"{address}/events",
                    "/api/openapi.json",
                )
            ]  # fmt: skip
            answers += [
                client.post("/api/explanations", json=request)
                for request in ({}, {"text": "x", "model": "y"}, {"image": "x", "text": None})
            ]
            for answer in answers:
                assert b"a-secret-place" not in answer.content
                assert str(Path(piste.__file__).parent).encode() not in answer.content
    assert str(tmp_path) in loaded.name, "the user's own classifier keeps its name"


def test_two_models_need_two_names(tmp_path, reviews):
    with pytest.raises(piste.PisteError, match="Two models are called"):
        create_app([reviews, reviews])
    with pytest.raises(piste.PisteError, match="no model to serve"):
        create_app([])


def test_streams_do_not_hold_threads(client):
    """More followers than threads, and everybody else is still answered."""
    request = {"text": TEXT * 4, "samples": 3000, "methods": ["slalom"], "seed": 5}
    job = client.post("/api/explanations", json=request).json()["id"]
    ends: list[str] = []
    followers = [
        threading.Thread(target=lambda: ends.append(events(client, job)[-1]["state"]), daemon=True)
        for _ in range(60)
    ]
    for follower in followers:
        follower.start()
    assert client.get("/api/models").status_code == 200
    assert client.delete(f"/api/explanations/{job}").status_code == 200
    for follower in followers:
        follower.join(TIMEOUT)
    assert len(ends) == 60
    assert set(ends) <= {"cancelled", "done"}


def test_two_explanations_stand_side_by_side(client: TestClient) -> None:
    text = "A slow start, but a wonderful ending."
    before = explained(client, text=text, target="positive", samples=60)
    now = explained(client, text="A slow start.", target="positive", samples=60)
    answer = client.get(f"{before}/beside/{now.rpartition('/')[2]}")
    assert answer.status_code == 200
    told = answer.json()
    assert "The first explanation predicted" in told["html"]
    assert [one["name"] for one in told["data"]["columns"]] == ["first", "second", "difference"]
    assert client.get(f"{before}/beside/nothing").status_code == 404
