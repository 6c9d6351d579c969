"""One SLALOM for a corpus: it foretells other documents, is stored, applied and refined."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import piste
from piste import PisteError, corpus
from piste.studies.reviews import made_up
from piste.vocabulary import Vocabulary, fit_vocabulary
from tests.cli.commands import run
from tests.corpus.corpora import left


@pytest.fixture(scope="module")
def reviews() -> Any:
    return piste.load("piste:reviews")


@pytest.fixture(scope="module")
def vocabulary(reviews: Any) -> Vocabulary:
    return fit_vocabulary(reviews, [reviews.subject(one.text) for one in made_up(120)])


@pytest.fixture(scope="module")
def table(vocabulary: Vocabulary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vocabulary") / "words.parquet"
    vocabulary.to_parquet(path)
    return path


def test_it_foretells_documents_it_was_not_fitted_to(vocabulary: Vocabulary) -> None:
    assert vocabulary.about["r2"] > 0.7
    effect = dict(zip(vocabulary.words, vocabulary.effect, strict=True))
    assert effect["awful"] < -0.2 < 0.2 < effect["wonderful"]
    assert abs(effect["the"]) < 0.2
    assert vocabulary.folded


def test_it_counts_documents(vocabulary: Vocabulary) -> None:
    texts = [one.text.lower() for one in made_up(120)]
    place = vocabulary.words.index("wonderful")
    assert vocabulary.documents[place] == sum(
        "wonderful " in text.replace(".", " ").replace(",", " ") for text in texts
    )


def test_it_is_read_as_it_was_written(vocabulary: Vocabulary, table: Path) -> None:
    again = Vocabulary.read(table)
    assert again.words == vocabulary.words
    assert again.about == json.loads(json.dumps(dict(vocabulary.about)))
    np.testing.assert_array_equal(again.slalom.values, vocabulary.slalom.values)
    np.testing.assert_array_equal(again.effect, vocabulary.effect)
    assert again.slalom.link == vocabulary.slalom.link


def test_a_text_is_explained_with_hardly_a_question(reviews: Any, table: Path) -> None:
    text = "A wonderful film. The music is superb, but the villain is awful."
    e = piste.explain(reviews, text, method="vocabulary", table=str(table), held_out=0)
    assert e.calls == 1
    assert e.units[int(np.argmax(e.scores["linear"]))].text in ("wonderful", "superb")
    assert np.isnan(e.fidelity.r2)
    judged = piste.explain(reviews, text, method="vocabulary", table=str(table), held_out=40)
    assert judged.fidelity.questions == 40
    assert judged.fidelity.r2 > 0
    np.testing.assert_array_equal(judged.scores["value"], e.scores["value"])


def test_both_classes_are_two_sides(reviews: Any, table: Path) -> None:
    text = made_up(1)[0].text
    how: dict[str, Any] = {"method": "vocabulary", "table": str(table)}
    yes, no = (piste.explain(reviews, text, target=label, **how) for label in (1, 0))
    np.testing.assert_allclose(yes.scores["value"], -no.scores["value"])
    assert yes.predict([0, 2]) == pytest.approx(-no.predict([0, 2]))


def test_refining_helps(reviews: Any, table: Path) -> None:
    texts = [one.text for one in made_up(8, seed=77)]
    how: dict[str, Any] = {"method": "vocabulary", "table": str(table), "held_out": 60}
    rough, fine = (
        np.median([e.fidelity.r2 for e in piste.explain(reviews, texts, refine=n, **how)])
        for n in (0, 12)
    )
    assert fine > rough
    assert fine > 0.8


def test_words_nobody_knows_change_nothing(reviews: Any, table: Path) -> None:
    e = piste.explain(
        reviews, "Zyxwv qwrtp wonderful", method="vocabulary", table=str(table), held_out=0
    )
    assert e.settings["unknown"] == 2
    assert e.scores["value"][0] == pytest.approx(e.surrogate.base)
    assert np.isinf(e.errors["value"][0])


def test_a_corpus_run_begins_with_a_vocabulary(table: Path, tmp_path: Path) -> None:
    path = tmp_path / "few.jsonl"
    path.write_text("\n".join(json.dumps({"text": one.text}) for one in made_up(6, seed=5)))
    options: dict[str, Any] = {"method": "vocabulary", "table": str(table), "progress": False}
    counts = corpus.run(path, "piste:reviews", tmp_path / "out", refine=4, **options)
    assert counts.documents == 6
    assert counts.calls < 6 * 20
    assert left(tmp_path / "out")["documents"][0]["r2"] is not None


def test_what_does_not_fit_is_refused(reviews: Any, table: Path, tmp_path: Path) -> None:
    with pytest.raises(PisteError, match="needs a table"):
        piste.explain(reviews, "A film.", method="vocabulary")
    with pytest.raises(PisteError, match="There is no vocabulary"):
        piste.explain(reviews, "A film.", method="vocabulary", table=str(tmp_path / "no"))
    (tmp_path / "other.parquet").write_bytes(b"no")
    with pytest.raises(PisteError, match="is no vocabulary"):
        Vocabulary.read(tmp_path / "other.parquet")
    with pytest.raises(PisteError, match="not the every class above their mean"):
        piste.explain(reviews, "A film.", method="vocabulary", table=str(table), target="all")
    loud = piste.load(lambda texts: [text.count("!") for text in texts], outputs="logits")
    with pytest.raises(PisteError, match="a model with the classes negative, positive"):
        piste.explain(loud, "A film!", method="vocabulary", table=str(table))
    with pytest.raises(PisteError, match="only 1 came"):
        fit_vocabulary(reviews, [reviews.subject("A film.")])


def test_the_command(tmp_path: Path, monkeypatch, capsys) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text("\n".join(json.dumps({"text": one.text}) for one in made_up(40)))
    out = tmp_path / "words.parquet"
    code, shown, _ = run(
        monkeypatch, capsys, "vocabulary", path, "--out", out, "--documents", "30", "--json"
    )
    assert code == 0
    found = json.loads(shown)
    assert found["documents"] == 30
    assert found["for"][0]["effect"] > 0 > found["against"][0]["effect"]
    assert len(Vocabulary.read(out)) == found["words"]
    code, _, err = run(monkeypatch, capsys, "vocabulary", path, "--out", tmp_path / "no" / "w")
    assert code == 2
    assert "is not there" in err
