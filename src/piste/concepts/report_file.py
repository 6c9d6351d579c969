"""Concept reports as JSON, complete and readable again."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from piste.concepts.report import ConceptReport, ConceptScore
from piste.data.storage import write_text
from piste.errors import PisteError
from piste.target import Target
from piste.types import Floats

FORMAT = 1
"""Version of the stored form; raised when a reader of older files needs to know."""
_MARK = "piste_concepts"


def to_json(report: ConceptReport, path: str | Path | None = None) -> str:
    """The whole report as one JSON object; vectors are float32 in base64."""
    data: dict[str, Any] = {_MARK: FORMAT}
    for one in fields(report):
        data[one.name] = _plain(getattr(report, one.name))
    data["scores"] = [asdict(score) for score in report.scores]
    data["vectors"] = {
        concept: {str(layer): _packed(vector) for layer, vector in layers.items()}
        for concept, layers in report.vectors.items()
    }
    data["goals"] = [
        {"kind": goal.kind, "name": goal.name, "indices": goal.indices, "labels": goal.labels}
        for goal in report.goals
    ]
    text = json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False)
    if path is not None:
        write_text(path, text)
    return text


def from_json(text: str) -> ConceptReport:
    """The report that :func:`to_json` wrote."""
    data = json.loads(text)
    found = data.pop(_MARK, None) if isinstance(data, dict) else None
    if found != FORMAT:
        raise PisteError(
            f"This is no stored concept report of format {FORMAT} (it says {found!r}): update "
            "Piste, or score the concepts again."
        )
    data["scores"] = tuple(ConceptScore(**one) for one in data["scores"])
    data["vectors"] = {
        concept: {int(layer): _unpacked(vector) for layer, vector in layers.items()}
        for concept, layers in data["vectors"].items()
    }
    data["goals"] = tuple(
        Target(one["kind"], one["name"], tuple(one["indices"]), tuple(one["labels"]))
        for one in data["goals"]
    )
    data["notes"] = tuple(data["notes"])
    return ConceptReport(**data)


def read(path: str | Path) -> ConceptReport:
    """A stored report."""
    file = Path(path)
    if not file.is_file():
        raise PisteError(f"There is no file {str(path)!r}.")
    try:
        return from_json(file.read_bytes().decode("utf-8-sig"))
    except PisteError as problem:
        raise PisteError(f"{str(path)!r}: {problem}") from problem
    except OSError as problem:
        raise PisteError(f"{str(path)!r} could not be read: {problem.strerror}.") from problem
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise PisteError(
            f"{str(path)!r} is not a stored concept report, or not a whole one ({problem})."
        ) from problem


def _plain(thing: Any) -> Any:
    """What JSON can hold."""
    if isinstance(thing, Mapping):
        return {str(key): _plain(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [_plain(item) for item in thing]
    if isinstance(thing, (str, bool, int, float, type(None))):
        return thing
    return thing.item() if isinstance(thing, np.generic) else str(thing)


def _packed(vector: Floats) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")


def _unpacked(text: str) -> Floats:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float64)
