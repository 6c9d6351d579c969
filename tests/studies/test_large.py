"""What was not measured is computed from a line, and a Mamba is asked like any other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import piste
from studies.base import Work
from studies.cases import AS_PUBLISHED, made_up_text, word_tokenizer
from studies.growth import cost, on_a_line
from studies.large import STUDY, _given, _own
from studies.sequential import KINDS, Shape


def test_the_line_finds_what_larger_ones_take_and_how_sure_that_is() -> None:
    sizes = np.array([0.01, 0.05, 0.2, 1.0])
    truth = 0.002 + 0.03 * sizes
    exact, slope = on_a_line(sizes, truth, 6.0)
    assert exact.centre == pytest.approx(0.182)
    assert exact.high - exact.low < 1e-9
    assert slope == pytest.approx(0.03)
    noisy, _ = on_a_line(sizes, truth * [1.1, 0.9, 1.1, 0.9], 6.0)
    assert noisy.low < 0.182 < noisy.high
    assert noisy.high - noisy.low > 0.02


def test_a_mamba_is_read_in_order_and_padding_changes_nothing() -> None:
    model = Shape("mamba", 2, 32).drawn()
    classifier = piste.load(model, word_tokenizer(framed=False))
    subject = classifier.subject(made_up_text(9))
    (whole, few, turned) = subject.ask([range(9), [0, 3], [3, 0]])
    ids = torch.tensor([[int(unit.text[1:]) for unit in subject.units]])
    with torch.no_grad():
        np.testing.assert_allclose(model(input_ids=ids).logits[0], whole, atol=1e-5)
        np.testing.assert_allclose(model(input_ids=ids[:, [0, 3]]).logits[0], few, atol=1e-5)
    assert not np.allclose(few, turned, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_values_and_importances(kind: str) -> None:
    classifier = piste.load(Shape(kind, 1, 32).drawn(), word_tokenizer(framed=False))
    found = piste.explain(classifier, made_up_text(9), samples=60, **AS_PUBLISHED)
    assert np.ptp(found.scores["value"]) > 0
    assert np.isfinite(found.scores["importance"]).all()


def test_parameters_are_counted_without_being_there() -> None:
    shape = Shape("llama", 2, 32, 50)
    drawn = sum(one.numel() for one in shape.drawn().parameters())
    assert shape.parameters() == (drawn, drawn - 50 * 32)


def test_costs_have_all_that_the_line_needs() -> None:
    classifier = piste.load(Shape("bloom", 1, 32).drawn(), word_tokenizer(framed=False))
    found = cost(classifier, made_up_text(9), seed=0)
    assert found["kind"] == "bloom"
    assert found["calls"] <= found["tokens"]
    assert min(found["seconds"]) > 0
    assert found["weights"] == pytest.approx(4e-6 * Shape("bloom", 1, 32).parameters()[0])


def test_weights_of_the_user_are_found_and_explained(tmp_path: Path) -> None:
    folder = tmp_path / "weights" / "my-mamba"
    Shape("mamba", 1, 32).drawn().save_pretrained(folder)
    word_tokenizer(framed=False).save_pretrained(folder)
    (tmp_path / "weights" / "other").mkdir()
    (tmp_path / "weights" / "other" / "config.json").write_text('{"model_type": "bert"}')
    options = {"quick": True, "seed": 0, "progress": False, "weights": tmp_path / "weights"}
    with Work.on(tmp_path, STUDY, **options) as work:
        assert _given(work) == [folder]
        found = _own(folder, work)
    assert found["kind"] == "mamba"
    assert found["marked"] is None  # there is nothing that people marked
