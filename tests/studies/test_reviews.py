"""Made-up reviews have what their label says; models learn from labelled texts and are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from piste import PisteError, zoo
from piste.evaluation import Interval
from studies.base import Work
from studies.finetuning import accuracy, fine_tune
from studies.judged import lead, readers, table, verdict
from studies.non_transformer import train_network
from studies.reviews import balanced, made_up


def test_made_up_reviews_are_marked_where_they_judge() -> None:
    examples = made_up(40, seed=3)
    assert [one.label for one in examples] == [0, 1] * 20
    for one in examples:
        words, marks = one.rationale.words, one.rationale.marks
        assert " ".join(words) == one.text
        assert 0 < sum(marks) < len(marks) / 2
    assert made_up(40, seed=3) == examples
    assert made_up(40, seed=4) != examples


def test_balanced_texts_come_once(tmp_path: Path) -> None:
    path = tmp_path / "few.parquet"
    texts = [*"aabcdefgh", "i"]
    labels = [0] * 7 + [1] * 3
    table = pd.DataFrame({"text": texts, "label": labels, "split": ["train"] * 9 + ["test"]})
    table.to_parquet(path)
    chosen = balanced(path, "train", 4, seed=0)
    assert sorted(one.label for one in chosen) == [0, 0, 1, 1]
    assert len(balanced(path, "train", None, seed=0)) == 8
    with pytest.raises(PisteError, match="no split 'validation': expected one of test, train"):
        balanced(path, "validation", 4, seed=0)


@pytest.mark.slow
def test_a_fine_tuned_model_learned_and_is_kept(tmp_path: Path) -> None:
    """Three classes instead of two, so that nothing is right before it was learned."""
    examples = [type(one)(one.id, one.text, label=2 - 2 * one.label) for one in made_up(320)]
    names = ("positive", "neither", "negative")
    settings = {"rate": 1e-3, "size": 16, "epochs": 2.0}
    start, own = zoo.folder("piste:reviews"), tmp_path / "three"
    made = fine_tune(start, examples, names, own, **settings)
    assert made.labels == names
    assert accuracy(made, examples) > 0.9
    before = (own / "model.safetensors").stat().st_mtime_ns
    again = fine_tune(start, examples, names, own, **settings)
    assert (own / "model.safetensors").stat().st_mtime_ns == before
    assert accuracy(again, examples) == accuracy(made, examples)


def test_the_network_of_word_weights_learns() -> None:
    classifier, right = train_network(made_up(400), made_up(100, seed=9), seed=0)
    assert right > 0.9
    answers = classifier.subject("A magnificent film.").ask([range(4)])
    assert answers[0, 1] > answers[0, 0]


def test_leads_are_paired() -> None:
    row = {"a": {"x": [0.9, 0.5, None]}, "b": {"x": [0.8, 0.4, 0.1]}}
    found = lead({"one": row, "two": row}, "a", "b", "x")
    assert found.examples == 4
    np.testing.assert_allclose([found.centre, found.low, found.high], 0.1)
    shown = table("t", {"one": row}, "x", ["a", "b"], {"theirs": ("0.7", "0.6")}).markdown()
    assert "| one | 0.70 (0.50 to 0.90) | 0.43 (0.10 to 0.80) |" in shown
    assert "| *paper: theirs* | 0.7 | 0.6 |" in shown


def test_verdicts() -> None:
    clear, unclear, behind = (Interval(c, c - 0.1, c + 0.1, 9) for c in (0.2, 0.05, -0.2))
    assert verdict([clear, clear]) == "holds"
    assert verdict([clear, unclear]) == "holds in part"
    assert verdict([clear, behind]) == "holds in part"
    assert verdict([behind, behind]) == "does not hold"


def test_full_runs_say_which_data_they_need(tmp_path: Path) -> None:
    work = Work(tmp_path, tmp_path, False, 0, {}, None)  # type: ignore[arg-type]
    with pytest.raises(PisteError, match=r"needs imdb\.parquet in the folder that --data names"):
        readers(work, "imdb")
    work.data = tmp_path
    with pytest.raises(PisteError, match=r"has no imdb\.parquet: name the folder, or add --quick"):
        readers(work, "imdb")
