"""Words put together over documents: by hand, by slice, and against another run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import piste
from piste import PisteError, corpus
from piste.corpus.words import Change, Word, clear, from_vocabulary
from piste.show.html import words_html
from piste.slalom import Slalom
from piste.vocabulary import Vocabulary, fit_vocabulary
from studies.reviews import made_up
from tests.cli.commands import run
from tests.corpus.corpora import loud, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("words")
    rows = [{"text": one.text, "label": one.label} for one in made_up(24, seed=2)]
    (base / "some.jsonl").write_text("\n".join(map(json.dumps, rows)))
    options = {"method": "occlusion", "columns": corpus.Columns(keep=("label",))}
    corpus.run(base / "some.jsonl", "piste:reviews", base / "out", progress=False, **options)
    return base / "out"


def test_averages_are_those_by_hand(folder: Path) -> None:
    """Of two classes everything counts for the second, whichever was explained."""
    found = {one.word: one for one in corpus.words(folder, least=4)}
    scores: dict[str, list[float]] = {}
    for e in corpus.explanations(folder):
        sign = 1 if e.target.indices[0] == 1 else -1
        own: dict[str, list[float]] = {}
        for unit, score in zip(e.units, e.score(), strict=True):
            if any(letter.isalnum() for letter in unit.text):
                own.setdefault(unit.text.lower(), []).append(sign * score)
        for word, parts in own.items():
            scores.setdefault(word, []).append(float(np.mean(parts)))
    expected = {word: parts for word, parts in scores.items() if len(parts) >= 4}
    assert set(found) == set(expected)
    for word, parts in expected.items():
        assert found[word].documents == len(parts)
        assert found[word].effect == pytest.approx(np.mean(parts), abs=1e-5)
        assert found[word].error == pytest.approx(
            np.std(parts, ddof=1) / np.sqrt(len(parts)), abs=1e-5
        )
    assert {one.target for one in found.values()} == {"log-odds of 'positive'"}


def test_slices_add_up(folder: Path) -> None:
    whole = {one.word: one.documents for one in corpus.words(folder, least=1)}
    parts = corpus.words(folder, by="label", least=1)
    assert {one.slice for one in parts} == {"0", "1"}
    for word, documents in whole.items():
        assert documents == sum(one.documents for one in parts if one.word == word)
    with pytest.raises(PisteError, match="no column 'topic' to slice by"):
        corpus.words(folder, by="topic")
    with pytest.raises(PisteError, match="no score 'magic'"):
        corpus.words(folder, score="magic")


def word(effect: float, error: float, documents: int = 30) -> Word:
    return Word("w", "t", None, documents, effect, error)


def test_only_what_is_more_than_chance_is_clear() -> None:
    """Among a hundred words that differ by chance alone, hardly one is clear; a real one is."""
    rng = np.random.default_rng(0)
    noise = [Change(f"{n}", "t", word(0, 1), word(rng.normal() * 2**0.5, 1)) for n in range(100)]
    assert len(clear(noise)) <= 1
    real = Change("real", "t", word(0, 1), word(9, 1))
    assert clear([*noise, real])[0] is real
    few = Change("few", "t", word(0, 1, 2), word(9, 1, 2))
    assert few.chance > 0.05
    assert word(1, 0.5).low == pytest.approx(1 - 2.045 * 0.5, abs=1e-3)


@pytest.mark.slow
def test_runs_and_vocabularies_are_compared(folder: Path, tmp_path: Path, monkeypatch, capsys):
    same = corpus.diff(folder, folder, least=3)
    assert same
    assert all(change.difference == 0 for change in same)
    assert not corpus.clear(same)
    other = piste.load("piste:reviews-gpt")
    first = piste.load("piste:reviews")
    texts = [one.text for one in made_up(40)]
    for name, model in (("a", first), ("b", other)):
        found = fit_vocabulary(model, [model.subject(text) for text in texts])
        found.to_parquet(tmp_path / f"{name}.parquet")
    code, out, _ = run(
        monkeypatch, capsys, "diff", tmp_path / "a.parquet", tmp_path / "b.parquet", "--json"
    )
    assert code == 0
    rows = json.loads(out)
    assert any(row["word"] == "the" for row in rows)
    code, out, _ = run(monkeypatch, capsys, "words", folder, "--by", "label", "--least", "3")
    assert code == 0
    assert "label = 1" in out
    with pytest.raises(PisteError, match="no word in common"):
        corpus.diff(folder, folder, least=1000)


def test_words_stand_where_they_speak_for(folder: Path, monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, "words", folder, "--least", "1", "--top", "500")
    assert code == 0
    above, below = out.split("against the log-odds")
    for part, wrong in ((above, "-"), (below.split("say much")[0], "+")):
        effects = [line.split("│")[2].strip() for line in part.splitlines() if "│" in line]
        assert effects
        assert not [effect for effect in effects if effect.startswith(wrong)]
    assert any(not line.split("│")[3].strip() for line in above.splitlines() if "│" in line), (
        "one document has no interval"
    )
    code, out, problem = run(monkeypatch, capsys, "words", folder, "--least", "999")
    assert (code, out) == (2, "")
    assert "No word stands in 999 documents" in problem
    assert run(monkeypatch, capsys, "words", folder, "--least", "999", "--json")[:2] == (0, "[]\n")


def test_importances_are_told_where_weights_are_determined(tmp_path: Path) -> None:
    """In an additive form they are not; the score is the Shapley value in both."""
    path = write(tmp_path / "few.jsonl")
    model = piste.load(loud, outputs="logits")
    for form in ("additive", "paper"):
        out = tmp_path / form
        corpus.run(path, model, out, samples=40, form=form, progress=False)
        found = corpus.words(out, least=1)
        assert found
        assert all(one.value is not None for one in found)
        assert all((one.importance is None) == (form == "additive") for one in found)
        shapley = corpus.words(out, least=1, score="shapley")
        assert [one.effect for one in found] == [one.effect for one in shapley]


def test_results_of_the_first_format_are_read(tmp_path: Path) -> None:
    """They rank by the linear score, and their surrogate is a weighted mean without a mixing."""
    out = tmp_path / "out"
    model = piste.load(loud, outputs="logits")
    path = write(tmp_path / "few.jsonl")
    corpus.run(path, model, out, samples=40, form="paper", progress=False)
    for file in (out / "documents").glob("*.parquet"):
        rows = pq.read_table(file).to_pylist()
        for row in rows:
            about = json.loads(row["about"])
            assert about["ranking"] == "linear"
            about |= {"piste": 1, "surrogate": {"kind": "slalom", "weight": 0.5, "base": 0.25}}
            row["about"] = json.dumps(about)
        pq.write_table(pa.Table.from_pylist(rows), file)
    for file in (out / "units").glob("*.parquet"):
        table = pq.read_table(file)
        new = [name for name in table.column_names if name.startswith("contribution")]
        assert new
        pq.write_table(table.drop_columns(new), file)
    assert all(one.importance is not None for one in corpus.words(out, least=1))
    assert corpus.words(out, least=1, score="linear")
    for e in corpus.explanations(out):
        weights = np.exp(e.scores["importance"])
        mean = (weights @ e.scores["value"] + 0.5 * 0.25) / (weights.sum() + 0.5)
        assert e.predict(np.arange(len(e))) == pytest.approx(mean, rel=1e-4)
        np.testing.assert_array_equal(e.score(), e.scores["linear"])


@pytest.mark.parametrize("mixing", [0.0, 0.5])
def test_a_vocabulary_without_weights_is_shown_by_effects(mixing: float) -> None:
    names = ("value", "importance", "evidence", "effect")
    slalom = Slalom(np.array([1.0, -2.0, 0.5]), np.array([0.3, -0.3, 0.0]), mixing)
    found = Vocabulary(
        ("good", "bad", "film"),
        slalom,
        dict.fromkeys(names, np.full(3, 0.1)),
        np.array([9, 9, 9]),
        True,
        {"target": "log-odds of 'positive'", "documents": 20, "usual_weight": 5.0, "r2": 0.9},
    )
    rows = from_vocabulary(found)
    assert [row.value for row in rows] == [1.0, -2.0, 0.5]
    assert all((row.importance is None) == (mixing == 0) for row in rows)
    assert [row.degrees for row in rows] == [19, 19, 19]
    body = words_html.of_vocabulary(found).body
    assert "<svg" in body
    assert ("Value against importance" in body) == (mixing > 0)
    assert ("Value against effect" in body) == (mixing == 0)
    assert ("weights are not determined" in body) == (mixing == 0)
