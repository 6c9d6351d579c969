"""Planted models, learned once."""

from __future__ import annotations

from typing import Any

import pytest

from piste.concepts import ConceptReport, score
from tests.concepts import planted


@pytest.fixture(scope="session", params=["bert", "gpt2"])
def reader_of_texts(request: pytest.FixtureRequest) -> Any:
    return planted.text_classifier(request.param)


@pytest.fixture(scope="session")
def encoder() -> Any:
    return planted.text_classifier("bert")


@pytest.fixture(scope="session")
def reader_of_images() -> Any:
    return planted.image_classifier()


def concepts_of_texts() -> dict[str, list[str]]:
    return {
        "good": planted.texts(planted.GOOD, 30, 11),
        "bad": planted.texts(planted.BAD, 30, 12),
        "idle": planted.texts(planted.IDLE, 30, 13),
    }


@pytest.fixture(scope="session")
def report(encoder: Any) -> ConceptReport:
    """Of the planted encoder, small but complete."""
    return score(
        encoder,
        planted.texts(planted.IDLE, 20, 3),
        concepts_of_texts(),
        target=["yes", "no"],
        layers=[1, 2],
        repeats=8,
    )
