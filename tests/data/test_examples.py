"""Examples from files: every format, a seeded choice, rationales, and clear refusals."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import piste
from piste import PisteError
from piste.data.examples import Example, as_examples, read_data
from piste.image import ImageInput

ROWS: list[dict[str, Any]] = [
    {"text": f"review number {n}, with “quotes”,\nand {'more ' * n}lines", "label": int(n >= 10)}
    | {"split": "test" if n % 2 else "train"}
    for n in range(20)
]


def write(rows: list[dict[str, Any]], path: Path) -> Path:
    """The same rows in the format the ending says."""
    if path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(
            pyarrow.Table.from_pylist(rows), str(path)
        )
    elif path.suffix in (".jsonl", ".ndjson"):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            tab = "\t" if path.suffix == ".tsv" else ","
            writer = csv.DictWriter(file, list(rows[0]), delimiter=tab)
            writer.writeheader()
            for row in rows:
                lists = {k: json.dumps(v) if isinstance(v, list) else v for k, v in row.items()}
                writer.writerow(lists)
    return path


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "ndjson", "parquet"])
def test_every_format_says_the_same(tmp_path: Path, ending: str) -> None:
    found = read_data(write(ROWS, tmp_path / f"data.{ending}"), shuffle=False)
    wanted = [
        Example(str(n), row["text"], label=row["label"], split=row["split"])
        for n, row in enumerate(ROWS)
    ]
    assert found == wanted


def test_the_choice_depends_on_the_seed_and_is_not_the_first(tmp_path: Path) -> None:
    file = write(ROWS, tmp_path / "data.jsonl")
    few = read_data(file, examples=6, seed=3)
    assert few == read_data(file, examples=6, seed=3)
    assert few == read_data(file, examples=11, seed=3)[:6], "more examples begin with the same"
    assert few != read_data(file, examples=6, seed=4)
    assert {example.label for example in few} == {0, 1}, "the file is sorted by label"
    assert len(read_data(file, examples=100)) == 20
    for example in few:
        assert example.text == ROWS[int(example.id)]["text"]


def test_split_and_number_of_words(tmp_path: Path) -> None:
    file = write(ROWS, tmp_path / "data.csv")
    test = read_data(file, split="test")
    assert sorted(int(example.id) for example in test) == list(range(1, 20, 2))
    some = read_data(file, split="test", words=(10, 15))
    assert some
    assert all(10 <= len(example.text.split()) <= 15 for example in some)
    assert {example.id for example in some} < {example.id for example in test}


def test_other_columns_pairs_and_labels(tmp_path: Path) -> None:
    rows = [{"premise": "it rains", "guess": "it is wet", "gold": "entailment"}]
    file = write(rows, tmp_path / "pairs.csv")
    (example,) = read_data(file, text="premise", pair="guess", label="gold")
    assert example.input == ("it rains", "it is wet")
    assert example.label == "entailment"
    assert read_data(file, text="premise")[0].label is None, "no label column is fine"


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_rationales(tmp_path: Path, ending: str) -> None:
    text = "Not bad, really."
    rows = [{"text": text, "said": ["Not", "bad,", "really."], "marks": [1, 1, 0]}]
    rows += [{"text": text, "said": ["Not", "bad", ",", "really", "."], "marks": [0, 1, 0, 0, 0]}]
    file = write(rows, tmp_path / f"marks.{ending}")
    subject = piste.load(lambda texts: [len(t) for t in texts]).subject(text)
    first, second = read_data(file, rationale="marks", words_column="said", shuffle=False)
    assert first.rationale.units(subject).tolist() == [True, True, True, False, False]
    assert second.rationale.units(subject).tolist() == [False, True, False, False, False]
    split = write(rows[:1], tmp_path / f"split.{ending}")
    assert read_data(split, rationale="marks")[0].rationale == first.rationale
    spans = [{"text": text, "spans": [[4, 7]]}, {"text": text, "spans": [[0, 3], [9, 15]]}]
    one, two = read_data(
        write(spans, tmp_path / f"spans.{ending}"), rationale="spans", shuffle=False
    )
    assert one.rationale.units(subject).tolist() == [False, True, False, False, False]
    assert two.rationale.units(subject).tolist() == [True, False, False, True, False]
    none = write([{"text": text, "spans": []}], tmp_path / f"none.{ending}")
    assert not read_data(none, rationale="spans")[0].rationale.units(subject).any()


def test_a_missing_text_is_kept_for_methods_to_refuse(tmp_path: Path) -> None:
    file = write([{"text": "fine", "label": 1}, {"text": None, "label": 0}], tmp_path / "d.jsonl")
    assert [example.text for example in read_data(file, shuffle=False)] == ["fine", ""]


def broken(folder: Path, name: str) -> Path:
    """A file that can't be used."""
    file = folder / name
    contents = {
        "empty.csv": b"",
        "head.csv": b"text,label\n",
        "latin.csv": "text\ncaf\xe9\n".encode("latin1"),
        "ragged.csv": b"text,label\nno quotes, here,1\n",
        "torn.jsonl": b'{"text": "good"}\n{"text": "ba\n',
        "list.jsonl": b'["good"]\n',
        "number.jsonl": b'{"text": 7}\n',
        "short.jsonl": b'{"text": "two words", "marks": [1]}\n',
        "odd.jsonl": b'{"text": "two words", "marks": [1, 2]}\n',
        "word.jsonl": b'{"text": "two words", "marks": "first"}\n',
        "span.jsonl": b'{"text": "two words", "marks": [[4, 90]]}\n',
        "torn.parquet": b"PAR1 and no more",
        "notes.txt": b"good",
    }
    if name in contents:
        file.write_bytes(contents[name])
    return file


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("missing.csv", {}, "There is no file"),
        ("notes.txt", {}, ".jsonl"),
        ("empty.csv", {}, "is empty"),
        ("head.csv", {}, "no rows"),
        ("latin.csv", {}, "not UTF-8 in the column 'text': convert"),
        ("ragged.csv", {}, "Row 1"),
        ("torn.jsonl", {}, "Row 2"),
        ("list.jsonl", {}, "Row 1"),
        ("number.jsonl", {}, "Row 1"),
        ("torn.parquet", {}, "not a whole Parquet file"),
        ("number.jsonl", {"text": "review"}, "it has text"),
        ("number.jsonl", {"label": "gold"}, "it has text"),
        ("number.jsonl", {"split": "test"}, "it has text"),
        ("short.jsonl", {"rationale": "marks"}, "1 marks for 2 words"),
        ("odd.jsonl", {"rationale": "marks"}, "0 or 1"),
        ("word.jsonl", {"rationale": "marks"}, "expected a list"),
        ("span.jsonl", {"rationale": "marks"}, "9 characters"),
        ("short.jsonl", {"words": (5, 9)}, "has 5 to 9 words"),
        ("short.jsonl", {"words": (5, 2)}, "least ≤ most"),
        ("short.jsonl", {"examples": 0}, "examples: expected"),
        ("short.jsonl", {"seed": -1}, "seed: expected"),
    ],
)
def test_refusals_are_one_sentence(
    tmp_path: Path, name: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(PisteError) as refused:
        read_data(broken(tmp_path, name), **options)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_split_that_is_not_there_says_which_are(tmp_path: Path) -> None:
    with pytest.raises(PisteError, match="train, test"):
        read_data(write(ROWS, tmp_path / "data.csv"), split="validation")


def test_long_cells_leave_the_csv_module_as_it_was(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    text = "word " * 60_000
    file = write([{"text": text}], tmp_path / "long.csv")
    assert read_data(file)[0].text == text
    assert csv.field_size_limit() == before


def test_plain_texts_and_digests() -> None:
    one, two = as_examples(["good", ("a", "b")], None, 0)
    assert (one.id, two.input) == ("0", ("a", "b"))
    assert one.digest != two.digest
    assert one.digest == Example("0", "good").digest
    assert one.digest != Example("0", "good", label=1).digest
    assert len(as_examples(["a", "b", "c"], 2, 0)) == 2
    for wrong in ([], [7], [Example("a", "x"), Example("a", "y")]):
        with pytest.raises(PisteError):
            as_examples(wrong, None, 0)


def test_numbers_as_labels(tmp_path: Path) -> None:
    rows = [{"text": "a", "label": label} for label in (1.0, float("nan"), True, "3", "x", 2.5)]
    found = read_data(write(rows, tmp_path / "labels.jsonl"), shuffle=False)
    assert [example.label for example in found] == [1, None, 1, 3, "x", "2.5"]
    assert all(not isinstance(example.label, (bool, np.generic)) for example in found)


def test_images_come_as_bytes_or_as_files_beside_the_data(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    pixels = [rng.integers(0, 256, (6, 6, 3)).astype(np.uint8) for _ in range(3)]
    rows: list[dict[str, Any]] = []
    for number, one in enumerate(pixels):
        Image.fromarray(one).save(tmp_path / f"{number}.png")
        content = (tmp_path / f"{number}.png").read_bytes()
        mask = [[0, 1], [1, 1]]
        rows.append({"image": content, "file": f"{number}.png", "label": number, "mask": mask})
    file = write(rows, tmp_path / "some.parquet")
    by_bytes = read_data(file, image="image", rationale="mask", shuffle=False)
    by_name = read_data(file, image="file", shuffle=False)
    for one, other, array in zip(by_bytes, by_name, pixels, strict=True):
        assert one.image is not None
        assert one.image == other.image == one.input
        assert (one.image.pixels == array).all()
        assert one.rationale is not None
        assert one.digest != other.digest
    (tmp_path / "1.png").write_bytes(b"nothing")
    with pytest.raises(PisteError, match="Row 2 of"):
        read_data(file, image="file")
    with pytest.raises(PisteError, match="expected the bytes of an image"):
        read_data(file, image="label")
    (only,) = as_examples([ImageInput(pixels[0])], None, 0)
    assert isinstance(only.input, ImageInput)
