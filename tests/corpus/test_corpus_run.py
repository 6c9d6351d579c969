"""Runs store what explain says, refuse what is bad, and go on as if nothing had been."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import piste
from piste import PisteError, corpus
from piste.corpus import blocks, plan
from piste.data import files
from tests.corpus.corpora import TEXTS, left, loud, write


def model() -> piste.Classifier:
    return piste.load(loud, name="loud", outputs="logits")


def run(folder: Path, **options: Any) -> corpus.Counts:
    options = {"block": 3, "samples": 40, "progress": False} | options
    return corpus.run(folder.parent / "few.csv", model(), folder, **options)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    write(tmp_path / "few.csv")
    return tmp_path / "out"


def test_a_run_stores_what_explain_says(out: Path) -> None:
    counts = run(out, columns=corpus.Columns(keep=("label",)))
    assert counts.rows == counts.documents == len(TEXTS)
    found = left(out)
    assert [row["text"] for row in found["documents"]] == TEXTS
    assert [row["label"] for row in found["documents"]] == list("0101010")
    assert len(found["units"]) == sum(row["units"] for row in found["documents"])
    for text, stored in zip(TEXTS, corpus.explanations(out), strict=True):
        direct = piste.explain(model(), text, samples=40)
        assert stored.units == direct.units
        assert stored.output == direct.output
        assert stored.target.name == direct.target.name
        for name, scores in direct.scores.items():
            np.testing.assert_allclose(stored.scores[name], scores, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(stored.predict([0, 1]), direct.predict([0, 1]), rtol=1e-4)
    manifest = corpus.read_manifest(out)
    assert manifest["state"] == "done"
    assert manifest["counts"]["calls"] == counts.calls > 0


def test_all_levels_are_kept(tmp_path: Path) -> None:
    path, text = tmp_path / "levels.jsonl", "A film! I know.\n\nIt is long. Stop! Now."
    path.write_text("\n".join(json.dumps({"text": one}) for one in (text, f"{text} Yes.")))
    how: dict[str, Any] = {"units": ["paragraphs", "words"], "samples": 60}
    corpus.run(path, model(), tmp_path / "out", progress=False, **how)
    corpus.run(path, model(), tmp_path / "again", progress=False, **how)
    assert left(tmp_path / "out")["documents"] == left(tmp_path / "again")["documents"]
    stored, _ = corpus.explanations(tmp_path / "out")
    direct = piste.explain(model(), text, **how)
    assert [len(level) for level in stored.levels] == [len(level) for level in direct.levels] == [2]
    np.testing.assert_allclose(stored.levels[0].score(), direct.levels[0].score(), rtol=1e-5)
    assert stored.levels[0].input == text


def test_bad_rows_are_kept_with_their_reasons(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    lines = ['{"text": "a fine film"}', '{"text": ""}', "{", '{"text": "no film!"}']
    path.write_text("\n".join(lines))
    counts = corpus.run(path, model(), tmp_path / "out", block=2, progress=False)
    assert (counts.documents, counts.refused) == (2, 2)
    found = left(tmp_path / "out")
    assert [row["document"] for row in found["documents"]] == [0, 3]
    assert [(row["document"], row["source"]) for row in found["errors"]] == [
        (1, "bad.jsonl:2"),
        (2, "bad.jsonl:3"),
    ]
    assert list(corpus.errors(tmp_path / "out")) == found["errors"]


def test_texts_that_the_model_can_not_read_do_not_stop_the_others(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    texts = ["A fine film.", "long " * 2000, "A bad film."]
    path.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    options: dict[str, Any] = {"progress": False, "samples": 30, "sampler": "subsets"}
    counts = corpus.run(path, "piste:reviews", tmp_path / "out", long="error", **options)
    assert (counts.documents, counts.refused) == (2, 1)
    assert "tokens" in left(tmp_path / "out")["errors"][0]["reason"]
    corpus.run(path, "piste:reviews", tmp_path / "cut", **options)
    assert "truncated_tokens: 1490" in left(tmp_path / "cut")["documents"][1]["note"]


def test_a_run_that_was_stopped_goes_on_and_is_the_same(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stops before, between and after the files of the second block."""
    whole = out.parent / "whole"
    quickly: dict[str, Any] = {"method": "occlusion", "samples": None}
    run(whole, **quickly)
    write_bytes = files.write_bytes
    for fatal in range(1, 7):
        folder = out.parent / f"stopped{fatal}"
        count = iter(range(1, 99))

        def dying(path: Path, content: bytes, count: Any = count, fatal: int = fatal) -> None:
            if next(count) == fatal:
                raise OSError(28, "No space left on device")
            write_bytes(path, content)

        monkeypatch.setattr("piste.corpus.part_store.write_bytes", dying)
        with pytest.raises(OSError, match="No space left"):
            run(folder, **quickly)
        monkeypatch.undo()
        assert vars(run(folder, **quickly)) == vars(corpus.Counts(**_counts(whole)))
        assert left(folder) == left(whole)


def _counts(folder: Path) -> dict[str, int]:
    return corpus.read_manifest(folder)["counts"]


def test_done_is_done(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(out)
    before = left(out)

    def never(*_: object) -> None:
        raise AssertionError("explained again")

    monkeypatch.setattr("piste.corpus.corpus_run.explain_block", never)
    for asked in ({}, {"resume": True}, {"resume": False}):  # it goes on unasked
        run(out, **asked)
    assert left(out) == before


def test_only_the_same_run_goes_on(out: Path) -> None:
    run(out)
    with pytest.raises(PisteError, match=r"other settings \(samples 40, now 50\)"):
        run(out, samples=50)
    source = out.parent / "few.csv"
    content = source.read_bytes()
    source.write_bytes(content + b"one more,1\n")
    with pytest.raises(PisteError, match=r"input few\.csv bytes 258, now 269"):
        run(out)
    source.write_bytes(content.replace(b"wonderful", b"miserable"))
    with pytest.raises(PisteError, match=r"input few\.csv digest"):
        run(out)


def test_a_run_of_an_earlier_version_goes_on(out: Path) -> None:
    """Its manifest has no digests of the input."""
    counts = run(out)
    manifest = json.loads((out / "manifest.json").read_text())
    for file in manifest["input"]:
        del file["digest"]
    (out / "manifest.json").write_text(json.dumps(manifest | {"state": "running"}))
    (out / "documents" / blocks.part_name(1)).unlink()
    assert vars(run(out)) == vars(counts)
    assert corpus.read_manifest(out)["state"] == "done"


def test_folders_with_other_things_are_left_alone(out: Path) -> None:
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    with pytest.raises(PisteError, match="not empty and holds no corpus run"):
        run(out)
    assert os.listdir(out) == ["thesis.txt"]


def test_a_run_killed_before_it_began_is_no_other_thing(out: Path) -> None:
    for kind in ("documents", "units", "errors"):
        (out / kind).mkdir(parents=True)
    (out / ".lock").touch()
    (out / ".manifest.json.x1").write_text("{")
    assert run(out).documents == len(TEXTS)


def test_two_runs_can_not_write_to_one_folder(out: Path) -> None:
    pytest.importorskip("fcntl")
    from piste.corpus.part_store import PartStore

    own = plan.Plan(str(out.parent / "few.csv"), loud)
    manifest = own.manifest(model(), own.files())
    with (
        PartStore.opened(out, manifest),
        pytest.raises(PisteError, match="Another run is writing"),
        PartStore.opened(out, manifest),
    ):
        pass


def test_choices_are_refused_before_the_work(out: Path) -> None:
    with pytest.raises(PisteError, match="samples"):
        run(out, samples=-1)
    with pytest.raises(PisteError, match="'text' can't be kept"):
        run(out, columns=corpus.Columns(keep=("text",)))
    with pytest.raises(PisteError, match="engine: expected 'local' or 'ray'"):
        run(out, engine="magic")
    with pytest.raises(PisteError, match="block: expected"):
        run(out, block=0)
    assert not out.exists()


@pytest.mark.parametrize(
    ("rows", "block"), [(0, 8), (10, 8), (320, 10), (4_000, 125), (1_000_000, 128)]
)
def test_a_small_corpus_is_cut_finer(rows: int, block: int) -> None:
    assert plan.suitable_block(rows) == block


def test_without_a_block_the_corpus_decides(tmp_path: Path) -> None:
    path = tmp_path / "ten.csv"
    path.write_text("text\n" + "a fine film\n" * 10)
    for _ in range(2):  # the second finds the first's parts
        corpus.run(path, model(), tmp_path / "out", method="occlusion", progress=False)
    assert corpus.read_manifest(tmp_path / "out")["settings"]["block"] == 8
    assert len(list((tmp_path / "out" / "documents").glob("*.parquet"))) == 2


def test_an_estimate_counts(out: Path) -> None:
    found = corpus.estimate(out.parent / "few.csv", model(), samples=40)
    assert (found.rows, found.tried) == (len(TEXTS), len(TEXTS))
    assert found.calls == run(out).calls
    assert found.seconds > 0


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none.csv"
    path.write_text("text\n\n")
    with pytest.raises(PisteError, match="no row to explain"):
        corpus.estimate(path, model())
    assert corpus.run(path, model(), tmp_path / "out", progress=False).rows == 0


def test_names_of_parts_sort() -> None:
    assert sorted([blocks.part_name(n) for n in (2, 10, 100)]) == [
        blocks.part_name(n) for n in (2, 10, 100)
    ]
