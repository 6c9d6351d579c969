"""One surrogate for a corpus: it predicts other documents, is stored, applied and refined."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import piste
from piste import PisteError, corpus
from piste.slalom import Background, Slalom
from piste.slalom.surrogate import Saturation
from piste.surrogates import MeanSurrogate
from piste.vocabulary import Vocabulary, fit_vocabulary
from piste.vocabulary.estimation import QUESTIONS
from studies.reviews import made_up
from tests.cli.commands import run
from tests.corpus.corpora import left

WORDS = ("wonderful", "awful", "pathetic", "the", "stage")


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


def test_it_predicts_documents_it_was_not_fitted_to(vocabulary: Vocabulary) -> None:
    assert vocabulary.about["r2"] > 0.85
    effect = dict(zip(vocabulary.words, vocabulary.effect, strict=True))
    assert effect["awful"] < -0.2 < 0.2 < effect["wonderful"]
    assert abs(effect["the"]) < 0.2
    assert vocabulary.folded


def test_values_are_what_the_model_says_of_a_word_alone(
    reviews: Any, vocabulary: Vocabulary
) -> None:
    answers = np.array([np.diff(reviews.subject(word).ask([[0]])[0])[0] for word in WORDS])
    places = [vocabulary.words.index(word) for word in WORDS]
    np.testing.assert_allclose(vocabulary.value[places], answers, atol=0.25)
    apart = np.abs(vocabulary.value[places] - answers)
    assert (apart < 4 * vocabulary.errors["value"][places]).all()


def test_every_word_is_asked_about_alone(vocabulary: Vocabulary) -> None:
    about = vocabulary.about
    assert about["alone"] == len(vocabulary)
    assert about["questions"] <= 120 * QUESTIONS + len(vocabulary)
    assert about["questions"] > 100 * QUESTIONS + len(vocabulary)


def planted(slalom: Slalom, words: list[str]) -> Any:
    """A classifier whose log-odds are those of a surrogate."""
    places = {word: place for place, word in enumerate(words)}

    def logits(texts: list[str]) -> np.ndarray:
        counts = np.zeros((len(texts), len(words)))
        for row, text in enumerate(texts):
            for word in text.split():
                counts[row, places[word]] += 1
        return np.stack([np.zeros(len(texts)), slalom.predict(counts)], axis=1)

    return piste.load(logits, outputs="logits", labels=["no", "yes"])


@pytest.mark.parametrize("mixing", [0.0, 1.0])
def test_a_planted_surrogate_is_found(mixing: float) -> None:
    """Its mixing, the words' numbers, and errors that are as large as what is missed."""
    rng = np.random.default_rng(0)
    words = [f"w{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(40)]
    importances = rng.normal(size=40)
    truth = Slalom(rng.normal(size=40), importances - importances.mean(), mixing, 0.3)
    model = planted(truth, words)
    texts = [" ".join(rng.choice(words, 12)) for _ in range(40)]
    found = fit_vocabulary(model, [model.subject(text) for text in texts])
    order = [words.index(word) for word in found.words]
    assert found.slalom.mixing == pytest.approx(mixing, abs=0.02)
    assert found.mixing.told == (mixing > 0)
    assert found.about["r2"] > 0.999
    np.testing.assert_allclose(found.value, truth.values[order], atol=0.02)
    if mixing:
        shifted = truth.importances[order] - truth.importances[order].mean()
        np.testing.assert_allclose(found.slalom.importances, shifted, atol=0.05)


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
    np.testing.assert_array_equal(again.value, vocabulary.value)
    np.testing.assert_array_equal(again.effect, vocabulary.effect)
    for name, errors in vocabulary.errors.items():
        np.testing.assert_array_equal(again.errors[name], errors)
    assert again.slalom.link == vocabulary.slalom.link
    assert again.mixing == vocabulary.mixing
    assert "alone" not in again.table()


def test_a_background_and_a_mixing_are_stored(vocabulary: Vocabulary, tmp_path: Path) -> None:
    own = Slalom(
        vocabulary.slalom.evidence,
        np.linspace(-1, 1, len(vocabulary)),
        0.4,
        0.1,
        Background(0.5, -0.7),
        Saturation(0.2, 3.0),
    )
    replace(vocabulary, slalom=own, mixing_error=0.03).to_parquet(tmp_path / "own.parquet")
    again = Vocabulary.read(tmp_path / "own.parquet")
    counts = sparse.random(20, len(own.evidence), 0.1, format="csr", rng=0)
    np.testing.assert_array_equal(again.slalom.predict(counts), own.predict(counts))
    assert (again.mixing.value, again.mixing.error) == (0.4, 0.03)


@pytest.mark.parametrize("weight", [0.0, 2.0])
def test_files_of_the_first_format_are_read(weight: float, reviews: Any, tmp_path: Path) -> None:
    """They hold a weighted mean of values beside a background."""
    values, importances = [3.0, -2.0, 0.5], [0.4, 0.1, -0.5]
    meta = {
        "piste_vocabulary": 1,
        "weight": weight,
        "base": 0.5,
        "link": [0.1, 4.0],
        "folded": True,
        "about": {
            "target": "log-odds of 'positive'",
            "class": 1,
            "labels": ["negative", "positive"],
            "documents": 50,
            "questions": 150,
            "usual_weight": 6.0,
            "r2": 0.8,
        },
    }
    table = pa.table(
        {
            "word": ["good", "bad", "film"],
            "documents": [9, 8, 20],
            "effect": [0.6, -0.4, 0.0],
            "effect_error": [0.1, 0.1, 0.1],
            "alone": [1.0, -1.0, 0.5],
            "value": values,
            "value_error": [0.3, 0.3, 0.3],
            "importance": importances,
            "importance_error": [0.2, 0.2, 0.2],
        }
    ).replace_schema_metadata({b"piste": json.dumps(meta)})
    pq.write_table(table, tmp_path / "old.parquet")
    old = Vocabulary.read(tmp_path / "old.parquet")
    counts = np.array([[1, 0, 0], [1, 1, 0], [2, 0, 3]])
    before = MeanSurrogate(weight, 0.5, Saturation(0.1, 4.0))
    scores = {"value": np.array(values), "importance": np.array(importances)}
    np.testing.assert_allclose(old.slalom.predict(counts), before.predict(scores, counts))
    weights = np.exp(importances)
    np.testing.assert_allclose(old.effect, weights * (np.array(values) - 0.5) / 6.0)
    assert old.freedom == 4
    assert old.mixing.told
    assert np.isnan(old.errors["value"]).all()
    e = piste.explain(
        reviews, "good film, bad film", method="vocabulary", table=str(tmp_path / "old.parquet"),
        held_out=0, target=1,
    )  # fmt: skip
    # The comma is no word of it: it has the mean weight and says what nothing says.
    mean = before.predict(
        {"value": np.array([*values, 0.5]), "importance": np.array([*importances, 0.0])},
        np.array([[1, 1, 2, 1]]),
    )
    assert e.predict(np.arange(5)) == pytest.approx(float(mean[0]))


def test_a_text_is_explained_with_hardly_a_question(reviews: Any, table: Path) -> None:
    text = "A wonderful film. The music is superb, but the villain is awful."
    e = piste.explain(reviews, text, method="vocabulary", table=str(table), held_out=0)
    assert e.calls == 1
    assert e.ranking == "contribution"
    assert e.units[int(np.argmax(e.score()))].text in ("wonderful", "superb")
    assert np.isnan(e.fidelity.r2)
    judged = piste.explain(reviews, text, method="vocabulary", table=str(table), held_out=40)
    assert judged.fidelity.questions == 40
    assert judged.fidelity.r2 > 0.5
    np.testing.assert_array_equal(judged.scores["value"], e.scores["value"])


def test_both_classes_are_two_sides(
    reviews: Any, table: Path, vocabulary: Vocabulary, tmp_path: Path
) -> None:
    text = made_up(1)[0].text
    slalom = replace(vocabulary.slalom, mixing=0.5, background=Background(0.5, -0.7))
    replace(vocabulary, slalom=slalom).to_parquet(tmp_path / "mixed.parquet")
    for path in (table, tmp_path / "mixed.parquet"):
        how: dict[str, Any] = {"method": "vocabulary", "table": str(path)}
        yes, no = (piste.explain(reviews, text, target=label, **how) for label in (1, 0))
        for name in ("value", "contribution", "shapley"):
            np.testing.assert_allclose(yes.scores[name], -no.scores[name], atol=1e-9)
        np.testing.assert_allclose(yes.scores["importance"], no.scores["importance"])
        assert yes.predict([0, 2]) == pytest.approx(-no.predict([0, 2]))


@pytest.mark.parametrize("mixing", [0.0, 0.6])
def test_scores_are_those_of_the_table(
    reviews: Any, vocabulary: Vocabulary, tmp_path: Path, mixing: float
) -> None:
    """The stored explanation predicts as the table does, and has its errors."""
    importances = np.random.default_rng(0).normal(size=len(vocabulary))
    own = replace(
        vocabulary, slalom=replace(vocabulary.slalom, importances=importances, mixing=mixing)
    )
    own.to_parquet(tmp_path / "own.parquet")
    text = "The stage and the performers leave, awful and wonderful."
    how: dict[str, Any] = {"method": "vocabulary", "table": str(tmp_path / "own.parquet")}
    e = piste.explain(reviews, text, target=1, held_out=0, **how)
    places = own.numbers(reviews.subject(text))
    assert (places >= 0).all()
    assert e.predict(np.arange(len(e))) == pytest.approx(
        own.slalom.predict(np.bincount(places, minlength=len(own)))[0]
    )
    np.testing.assert_allclose(e.scores["value"], own.value[places])
    np.testing.assert_allclose(e.errors["value"], own.errors["value"][places])
    share = own.effect[places] / own.errors["effect"][places]
    np.testing.assert_allclose(e.scores["contribution"] / e.errors["contribution"], share)


def test_refining_helps(reviews: Any, table: Path) -> None:
    texts = [one.text for one in made_up(8, seed=77)]
    how: dict[str, Any] = {"method": "vocabulary", "table": str(table), "held_out": 60}
    rough, fine = (
        np.median([e.fidelity.r2 for e in piste.explain(reviews, texts, refine=n, **how)])
        for n in (0, 12)
    )
    assert fine > rough
    assert fine > 0.9


def test_words_nobody_knows_change_nothing(reviews: Any, table: Path) -> None:
    e = piste.explain(
        reviews, "Zyxwv qwrtp wonderful", method="vocabulary", table=str(table), held_out=0
    )
    assert e.settings["unknown"] == 2
    assert e.scores["contribution"][:2].tolist() == [0, 0]
    link = e.surrogate.link
    nothing = e.surrogate.base if link is None else link(np.array(e.surrogate.base))
    assert e.scores["value"][0] == pytest.approx(float(nothing))
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
    with pytest.raises(PisteError, match="got 1"):
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
