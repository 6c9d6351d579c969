"""The drawn garments are taken for what they are."""

from __future__ import annotations

import numpy as np
import pytest

import piste
from piste import PisteError
from piste.zoo.clothes import CLOTHES, draw_clothes


@pytest.mark.parametrize(
    ("kind", "label"),
    [("trousers", "Trouser"), ("dress", "Dress"), ("boot", "Ankle boot"), ("bag", "Bag")],
)
def test_the_bundled_model_knows_them(kind: str, label: str) -> None:
    assert kind in CLOTHES
    classifier = piste.load("piste:fashion")
    subject = classifier.subject(draw_clothes(kind))
    answer = int(np.argmax(subject.ask([subject.whole])[0]))
    assert classifier.labels[answer] == label


def test_others_are_refused() -> None:
    with pytest.raises(PisteError, match="expected one of trousers, dress, boot, bag"):
        draw_clothes("hat")
