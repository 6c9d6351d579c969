"""Where examples come from: lists, files, folders, and what is shipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from piste import PisteError
from piste.concepts import draw, score, sentences, shipped
from piste.concepts.examples import CONTROLS, NAMES, examples_of
from piste.concepts.shipped_concepts import HUES


def size() -> tuple[int, int]:
    return 16, 16


def test_shipped_sentences_are_many_and_differ() -> None:
    names = shipped("texts")
    assert {"praise", "blame", "boredom", "acting", "music", "price"} <= set(names)
    everything = [text for name in names for text in sentences(name)]
    assert all(len(sentences(name)) >= 40 for name in names)
    assert len(set(everything)) == len(everything)
    assert all(text == text.strip() and text for text in everything)
    assert CONTROLS["texts"] in names


def test_shipped_images_are_what_they_are_called() -> None:
    assert shipped("images") == tuple(NAMES)
    for name in shipped("images"):
        drawn = draw(name, (24, 16), count=3)
        assert [one.pixels.shape for one in drawn] == [(16, 24, 3)] * 3
        assert len({one.digest for one in drawn}) == 3
    means = {name: draw(name, (16, 16), count=1)[0].pixels.mean(axis=(0, 1)) for name in HUES}
    assert [int(np.argmax(means[name])) for name in ("red", "green", "blue")] == [0, 1, 2]
    with pytest.raises(PisteError, match="no image concept 'pink'"):
        draw("pink", (16, 16))


def test_files_of_texts(tmp_path: Path) -> None:
    lines = tmp_path / "some.txt"
    lines.write_bytes("\ufeffone film\r\n\r\n  two films \n".encode())
    assert examples_of(lines, "texts", size) == ["one film", "two films"]
    table = tmp_path / "some.csv"
    table.write_text("text,label\none film,1\ntwo films,0\n", encoding="utf-8")
    assert examples_of(str(table), "texts", size) == ["one film", "two films"]
    (tmp_path / "latin.txt").write_bytes("café".encode("latin1"))
    with pytest.raises(PisteError, match="not UTF-8"):
        examples_of(tmp_path / "latin.txt", "texts", size)
    assert examples_of(tmp_path, "texts", size) == ["one film", "two films"], "of its tables"
    (tmp_path / "empty").mkdir()
    with pytest.raises(PisteError, match="has no table"):
        examples_of(tmp_path / "empty", "texts", size)
    with pytest.raises(PisteError, match=r"Expected a file of texts or .* praise.*, got 'nothing'"):
        examples_of("nothing", "texts", size)


def test_folders_of_images(tmp_path: Path) -> None:
    for number, one in enumerate(draw("red", (16, 16), count=3)):
        (tmp_path / f"red{number}.png").write_bytes(one.png())
    (tmp_path / "notes.txt").write_text("no image", encoding="utf-8")
    found = examples_of(tmp_path, "images", size)
    assert [path.name for path in found] == ["red0.png", "red1.png", "red2.png"]
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(PisteError, match="holds no images"):
        examples_of(empty, "images", size)
    with pytest.raises(PisteError, match="is a file, and the model reads images"):
        examples_of(tmp_path / "red0.png", "images", size)
    assert len(examples_of("striped", "images", size)) >= 40


def test_a_broken_image_is_named(reader_of_images: Any, tmp_path: Path) -> None:
    for number, one in enumerate(draw("red", (16, 16), count=12)):
        (tmp_path / f"red{number:02}.png").write_bytes(one.png())
    whole = (tmp_path / "red05.png").read_bytes()
    (tmp_path / "red05.png").write_bytes(whole[: len(whole) // 2])
    data = draw("chequered", (16, 16), count=10)
    with pytest.raises(PisteError, match=r"concept 'mine', example 5: .*red05\.png"):
        score(reader_of_images, data, {"mine": tmp_path}, target="warm", layers=[1], repeats=2)
