"""The pointing game, and what is marked in images."""

from __future__ import annotations

import io
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import piste
from piste import PisteError
from piste.data.rationales import Region, read_region
from piste.evaluation import class_f1, evaluate
from piste.evaluation.metrics.pointing_game import Pointing
from piste.image import ImageInput
from tests.evaluation.cases import adding, case_of, explained, measure, yes_or_no

YES = yes_or_no(adding({"a": 2.0, "b": 1.0, "c": -1.0}))


@pytest.mark.parametrize(
    ("scores", "marked", "pointing", "mass"),
    [
        ([2.0, 1.0, -1.0], [1, 0, 0], 1.0, 2 / 3),
        ([2.0, 1.0, -1.0], [0, 1, 1], 0.0, 1 / 3),
        ([2.0, 2.0, -1.0], [0, 1, 0], 0.5, 0.5),
        ([-2.0, -1.0, -3.0], [0, 1, 0], 1.0, math.nan),
        ([1.0, 1.0, 1.0], [1, 1, 1], math.nan, math.nan),
    ],
)
def test_pointing_by_hand(
    scores: list[float], marked: list[int], pointing: float, mass: float
) -> None:
    rationale = np.array(marked, dtype=bool)
    case = case_of(YES, explained(YES, "a b c", scores), rationale=rationale)
    found = measure(Pointing(), case).figures
    assert found["pointing"] == pytest.approx(pointing, nan_ok=True)
    assert found["mass_inside"] == pytest.approx(mass, nan_ok=True)
    unmarked = measure(Pointing(), case_of(YES, explained(YES, "a b c", scores))).figures
    assert math.isnan(unmarked["pointing"])


def test_a_region_marks_units_by_half_of_their_pixels() -> None:
    areas = np.repeat(np.repeat([[0, 1], [2, -1]], 4, axis=0), 4, axis=1).astype(np.int32)
    image = ImageInput(np.zeros((8, 8, 3), dtype=np.uint8), prepared=True, areas=areas)
    cut: Any = SimpleNamespace(input=image, units=(0, 1, 2))
    mask = np.zeros((16, 16), dtype=bool)  # at another resolution
    mask[:8, :8] = True  # all of unit 0
    mask[:4, 8:] = True  # half of unit 1
    mask[8:, :2] = True  # a quarter of unit 2
    assert Region(mask).units(cut).tolist() == [True, True, False]
    assert Region(mask).units(cut, least=0.2).tolist() == [True, True, True]
    assert repr(Region(mask)) != repr(Region(~mask))
    with pytest.raises(PisteError, match="Expected an image"):
        Region(mask).units(YES.subject("a b c"))


def test_masks_are_read_from_bytes_and_rows() -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.array([[0, 7], [0, 0]], dtype=np.uint8)).save(buffer, "PNG")
    expected = [[False, True], [False, False]]
    for cell in (buffer.getvalue(), [[0, 1], [0, 0]], np.array([[0, 1], [0, 0]])):
        region = read_region(cell, "Row 3")
        assert region is not None
        assert region.mask.tolist() == expected
    assert read_region(None, "Row 3") is None
    for wrong in (b"no image", "words", [1, 2], 5):
        with pytest.raises(PisteError, match="Row 3"):
            read_region(wrong, "Row 3")


def test_f1_of_the_classes_that_are_left() -> None:
    texts = ["a a c", "b c c", "c c a", "a b b"]
    found = evaluate(YES, texts, methods=["occlusion"], metrics=["alone[share=0.4]"], seed=1)
    scores = class_f1(found, "occlusion")
    assert set(scores) == {"macro", "weighted"}
    assert 0 <= scores["macro"] <= 1
    whole = {row.example: int(row.curves["classes"][0]) for row in found.rows}
    assert class_f1(found, "occlusion", whole) == {"macro": 1.0, "weighted": 1.0}
    with pytest.raises(PisteError, match="alone"):
        class_f1(evaluate(YES, texts, methods=["zero"], metrics=["deletion"]), "zero")


def test_the_centre_scores_highest() -> None:
    e = piste.explain(YES, "a b c a b", method="centre")
    assert int(np.argmax(e.score())) == 2
    assert e.score()[0] == e.score()[4]
