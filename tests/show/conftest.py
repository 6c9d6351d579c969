"""Explanations made by hand, so that showing is tested without a model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from piste.data import storage
from piste.explanation import Explanation, Fidelity, Output
from piste.slalom.surrogate import Saturation
from piste.subject import Unit
from piste.surrogates import AdditiveSurrogate, MeanSurrogate, Mixing, SlalomSurrogate
from piste.target import Target

REVIEW = (
    "I didn't expect much from this film, and the slow, clumsy start didn't help. But then the "
    "story finds its feet: the acting is wonderful, the music is superb, and the ending is one of "
    "the most moving I've seen in years. It isn't perfect, some jokes are awful and the villain "
    "is dull, yet I'd happily watch it again."
)
TELLING = {
    "wonderful": (3.1, 0.9), "superb": (2.8, 0.7), "moving": (1.9, 0.4), "happily": (1.6, 0.2),
    "perfect": (2.4, 0.3), "awful": (-3.3, 1.1), "dull": (-2.5, 0.8), "clumsy": (-1.8, 0.5),
    "slow": (-1.1, 0.1), "didn't": (-0.9, 0.3), "isn't": (-0.7, 0.6), "again": (0.8, 0.0),
    "help": (-0.3, -0.2), "but": (-0.2, 0.5), "yet": (0.3, 0.4),
}  # fmt: skip


MIXED, ADDED = Mixing(0.4, 0.05), Mixing(0.03, 0.04)
"""A mixing that stands out from 0, and one that doesn't."""


def cut(text: str, segment: int = 0) -> list[Unit]:
    """Words with their contractions, as a word tokenizer gives them."""
    return [
        Unit(found.group(), found.start(), found.end(), segment)
        for found in re.finditer(r"\w+(?:'\w+)*", text)
    ]


def explanation(
    text: str | tuple[str, str],
    units: list[Unit] | None = None,
    *,
    classes: int = 0,
    seed: int = 0,
    mixing: Mixing = MIXED,
    **changes: Any,
) -> Explanation:
    """A SLALOM-like result with scores drawn per word type; ``changes`` replace any field."""
    if units is None:
        parts = (text,) if isinstance(text, str) else text
        units = [unit for segment, part in enumerate(parts) for unit in cut(part, segment)]
    rng = np.random.default_rng(seed)
    drawn: dict[str, tuple[float, float]] = {}
    for unit in units:
        word = unit.text.lower()
        drawn.setdefault(word, TELLING.get(word) or (rng.normal(0, 0.35), rng.normal(-0.3, 0.4)))
    value = np.array([drawn[unit.text.lower()][0] for unit in units])
    importance = np.array([drawn[unit.text.lower()][1] for unit in units])
    labels: tuple[str, ...] = ("negative", "positive")
    logits: tuple[float, ...] = (-1.6, 1.9)
    target = Target("class", "log-odds of 'positive'", (1,), labels)
    answer: float | tuple[float, ...] = 3.5
    base: float | tuple[float, ...] = 0.1
    if classes:
        labels = tuple(f"class {k}" for k in range(classes))
        logits = tuple(np.linspace(-1, 2, classes))
        target = Target("all", "every class above their mean", tuple(range(classes)), labels)
        answer, base = logits, (0.0,) * classes
        value = np.stack([value * (k + 1) for k in range(classes)], axis=1)
    weight = np.exp(importance) if value.ndim == 1 else np.exp(importance)[:, None]
    share = weight / np.exp(importance).sum()
    scores = {
        "value": value,
        "importance": importance,
        "contribution": value * share**mixing.value,
        "removal": share * (value - 0.5) / np.maximum(1 - share, 1e-9),
        "shapley": share * value,
    }
    chances = np.exp(logits) / np.exp(logits).sum()
    fields: dict[str, Any] = {
        "method": "slalom",
        "input": text,
        "units": tuple(units),
        "scores": scores,
        "errors": {name: 0.05 + 0.08 * np.abs(array) for name, array in scores.items()},
        "target": target,
        "output": Output(logits, tuple(float(c) for c in chances), labels, answer),
        "fidelity": Fidelity(0.934, 0.02, 100, single=0.91, few=0.94, many=0.9),
        "calls": 1000,
        "seconds": 2.34,
        "settings": {
            "seed": 0,
            "form": "mixed",
            "sampler": "log",
            "compared": {"additive": -3.0, "mixed": -1.0},
            "input": {"tokens": 80, "long": "fits", "units": "words"},
        },
        "surrogate": SlalomSurrogate(mixing, base, float(np.log(np.exp(importance).sum()))),
        "classifier": {"name": "piste:reviews"},
        "versions": {"piste": "0.1.0", "torch": "2.13.0"},
        "cost": 121.4,
    }
    return Explanation(**(fields | changes))


@pytest.fixture
def make() -> Callable[..., Explanation]:
    return explanation


@pytest.fixture
def review() -> Explanation:
    return explanation(REVIEW)


@pytest.fixture
def adding() -> Explanation:
    """Words add up, so weights are not determined."""
    return explanation(REVIEW, mixing=ADDED)


@pytest.fixture
def paper() -> Explanation:
    """SLALOM as published, which ranks by value × e^importance."""
    found = explanation(REVIEW, mixing=Mixing(1.0, 0.0))
    linear = found.scores["value"] * np.exp(found.scores["importance"])
    return explanation(
        REVIEW,
        mixing=Mixing(1.0, 0.0),
        scores=dict(found.scores) | {"linear": linear},
        errors=dict(found.errors) | {"linear": 0.05 + 0.08 * np.abs(linear)},
        ranking="linear",
        settings={"form": "paper", "sampler": "short", "input": {"units": "words"}},
    )


@pytest.fixture
def old(paper: Explanation) -> Explanation:
    """As stored in format 1: a weighted mean of evidence beside a background, read back."""
    kept = ("value", "importance", "linear", "removal")
    made = explanation(
        REVIEW,
        scores={name: paper.scores[name] for name in kept},
        errors={name: paper.errors[name] for name in kept},
        ranking="linear",
        surrogate=MeanSurrogate(0.2, 0.1, Saturation(0.2, 3.0)),
        settings={"input": {"tokens": 80, "long": "fits"}},
    )
    data = json.loads(made.to_json())
    assert data["surrogate"]["kind"] == "slalom"
    data["piste"] = 1
    del data["cost"]
    for part in ("single", "few", "many"):
        data["fidelity"].pop(part, None)
    return storage.from_json(json.dumps(data))


@pytest.fixture
def three() -> Explanation:
    return explanation("A wonderful film")


@pytest.fixture
def pair() -> Explanation:
    return explanation(("A man plays a superb guitar.", "The man is dull."))


@pytest.fixture
def classwise() -> Explanation:
    return explanation(REVIEW, classes=4)


@pytest.fixture
def unsure() -> Explanation:
    plain = explanation(REVIEW)
    unknown = {name: np.full(len(plain), np.nan) for name in plain.scores}
    fidelity = Fidelity(np.nan, np.nan, 1)
    return explanation(REVIEW, mixing=Mixing(0.4, 0.0), errors=unknown, fidelity=fidelity)


@pytest.fixture
def additive() -> Explanation:
    scores = explanation(REVIEW).scores["contribution"]
    return explanation(
        REVIEW,
        method="lime",
        scores={"attribution": scores},
        errors={},
        ranking="attribution",
        settings={"input": {"units": "words"}},
        surrogate=AdditiveSurrogate(0.0, "attribution"),
    )


@pytest.fixture
def markup() -> Explanation:
    text = (
        """<script>alert(1)</script> [bold]"wonderful"[/bold] & 'dull' </style> <!-- $x$ --> \\d"""
    )
    units = [Unit(f.group(), f.start(), f.end()) for f in re.finditer(r"\S+", text)]
    return explanation(text, units, classifier={"name": "<img src=x onerror=alert(2)>"})


@pytest.fixture
def long() -> Explanation:
    rng = np.random.default_rng(1)
    words = [f"word{k}" for k in range(400)] + list(TELLING)
    return explanation(
        " ".join(rng.choice(words, 700)),
        settings={"input": {"tokens": 900, "long": "truncate", "truncated_tokens": 388}},
    )


@pytest.fixture
def foreign() -> Explanation:
    text = "Ein Film 🎬 über\n\nLiebe ❤️ und 戦争。 素晴らしい！\tمرحبا"
    units = [Unit(f.group(), f.start(), f.end()) for f in re.finditer(r"\S+", text)]
    return explanation(text, units)
