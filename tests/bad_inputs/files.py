"""Files and folders of every wrong kind, and what a good refusal looks like."""

from __future__ import annotations

import json
import os
import struct
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from piste import zoo

GOOD = "A slow start, but a wonderful ending."


def is_sentence(text: str) -> bool:
    """One plain sentence or two, on one line, without the words of a traceback."""
    inner = ("Traceback", "Error(", 'File "', "object at 0x", "<class ", "<function")
    return (
        bool(text.strip())
        and "\n" not in text.strip()
        and len(text) < 1200
        and not any(word in text for word in inner)
    )


def png(width: int, height: int, pixels: bytes = b"") -> bytes:
    """The beginning of an image file that says it is so large."""

    def chunk(name: bytes, content: bytes) -> bytes:
        whole = name + content
        return struct.pack(">I", len(content)) + whole + struct.pack(">I", zlib.crc32(whole))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def make_all(here: Path) -> Path:
    """Everything, in one folder."""
    _texts(here)
    _tables(here)
    _images(here)
    _results(here)
    _models(here)
    _runs(here)
    return here


def _texts(here: Path) -> None:
    contents = {
        "empty.txt": b"",
        "blank.txt": b" \n\t\n",
        "latin.txt": "caf\xe9 cr\xe8me".encode("latin1"),
        "binary.bin": bytes(range(256)),
        "utf16.txt": GOOD.encode("utf-16"),
        "good.txt": GOOD.encode(),
        "page.docx": b"PK\x03\x04 no archive",
    }
    for name, content in contents.items():
        (here / name).write_bytes(content)
    for name, size in (("huge.txt", 50_000_000), ("huge.png", 300_000_000)):
        (here / name).touch()
        os.truncate(here / name, size)  # takes no room on the disk
    (here / "folder").mkdir()


def _tables(here: Path) -> None:
    contents = {
        "good.csv": b"text,label\nA fine film.,1\nA dull film.,0\nNot bad.,1\n",
        "empty.csv": b"",
        "head.csv": b"text,label\n",
        "wrong.csv": b"review,label\nA fine film.,1\n",
        "latin.csv": "text\ncaf\xe9\n".encode("latin1"),
        "blank.csv": b'text,label\n"",1\n" ",0\n',
        "quote.csv": b'text,label\n"never closed' + b" word" * 2_100_000 + b"\n",
        "broken.jsonl": b"{\nno\n",
        "list.jsonl": b"[1, 2]\n3\n",
        "wrong.jsonl": b'{"review": "A fine film."}\n',
        "numbers.jsonl": b'{"text": 1}\n{"text": null}\n',
        "empty.jsonl": b"",
        "broken.parquet": b"PAR1 and no more",
        "empty.parquet": b"",
        "broken.arrow": b"ARROW1",
        "table.xlsx": b"PK\x03\x04",
    }
    for name, content in contents.items():
        (here / name).write_bytes(content)
    pq.write_table(pa.table({"text": [1, 2]}), here / "numbers.parquet")
    pq.write_table(pa.table({"text": [b"a", b"b"]}), here / "bytes.parquet")


def _images(here: Path) -> None:
    (here / "bomb.png").write_bytes(png(30_000, 30_000))
    (here / "large.png").write_bytes(png(12_000, 12_000))
    (here / "broken.png").write_bytes(png(20, 20))
    (here / "empty.png").write_bytes(b"")
    (here / "text.png").write_text(GOOD)


def _results(here: Path) -> None:
    contents = {
        "no.json": "not JSON",
        "list.json": "[]",
        "other.json": '{"a": 1}',
        "part.json": '{"piste": 2}',
        "future.json": '{"piste": 99}',
        "unknown.json": '{"piste_dreams": 1}',
        "comparison.json": '{"piste_comparison": 1}',
        "deep.json": "[" * 100_000,
        "no.csv": "a,b\n1,2\n",
    }
    for name, content in contents.items():
        (here / name).write_text(content)
    (here / "huge.json").touch()
    os.truncate(here / "huge.json", 2_000_000_000)


def _models(here: Path) -> None:
    source = zoo.folder("piste:reviews")
    files = {file.name: file.read_bytes() for file in source.iterdir() if file.is_file()}
    weights = next(name for name in files if name.endswith(".safetensors"))
    config = json.loads(files["config.json"])
    changes: dict[str, dict[str, bytes | None]] = {
        "no_config": {"config.json": None},
        "bad_config": {"config.json": b"{"},
        "list_config": {"config.json": b"[]"},
        "no_type": {"config.json": b"{}"},
        "odd_type": {"config.json": json.dumps(config | {"model_type": "dream"}).encode()},
        "no_weights": {weights: None},
        "cut_weights": {weights: files[weights][:1000]},
        "empty_weights": {weights: b""},
        "pickle": {weights: None, "pytorch_model.bin": b"\x80\x04."},
        "bad_tokenizer": {"tokenizer.json": b"{"},
        "other_size": {"config.json": json.dumps(config | {"vocab_size": 7}).encode()},
        "t5": {"config.json": json.dumps({"model_type": "t5", "architectures": ["T5"]}).encode()},
    }
    (here / "no_model").mkdir()
    for name, changed in changes.items():
        (here / name).mkdir()
        for file, content in (files | changed).items():
            if content is not None:
                (here / name / file).write_bytes(content)


def _runs(here: Path) -> None:
    manifests = {"run_broken": "{", "run_list": "[]", "run_future": '{"piste_corpus": 99}'}
    for name, content in manifests.items():
        (here / name).mkdir()
        (here / name / "manifest.json").write_text(content)
    (here / "thesis").mkdir()
    (here / "thesis" / "thesis.txt").write_text("mine")
