"""Explanations as JSON, complete and readable again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from piste.answer import Answer
from piste.data.files import write_text
from piste.errors import READING_ERRORS, PisteError, one_line
from piste.explanation import FORMAT, Explanation, Fidelity, Output
from piste.image import ImageInput
from piste.prompt_text import Part, PromptText
from piste.slalom.pairs import PairEffect
from piste.subject import Input, Unit
from piste.surrogates import surrogate_from
from piste.target import Target
from piste.validation import MOST_UNITS, check_size

UNIT_COLUMNS = ("text", "start", "end", "segment", "tokens")
"""What is stored of every unit."""

Stored = TypeVar("Stored")


def numbers(array: Any) -> Any:
    """Nested lists; JSON has no number for NaN (None) and infinity ("inf")."""
    if isinstance(array, (np.ndarray, list, tuple)):
        return [numbers(item) for item in array]
    if isinstance(array, (float, np.floating)):
        if np.isinf(array):
            return "inf" if array > 0 else "-inf"
        return None if np.isnan(array) else float(array)
    return array.item() if isinstance(array, np.generic) else array


def _plain(thing: Any) -> Any:
    """Settings as JSON can hold them."""
    if isinstance(thing, Mapping):
        return {str(key): _plain(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple, np.ndarray)):
        return [_plain(item) for item in thing]
    if isinstance(thing, (str, bool, int, type(None))):
        return thing
    return numbers(thing) if isinstance(thing, (float, np.generic)) else str(thing)


def describe(e: Explanation) -> dict[str, Any]:
    """Everything that is not one number per unit, as JSON can hold it."""
    about: dict[str, Any] = {
        "piste": FORMAT,
        "method": e.method,
        "input": _given(e.input),
        "target": {
            "kind": e.target.kind,
            "name": e.target.name,
            "indices": list(e.target.indices),
            "labels": list(e.target.labels),
        }
        | ({"minus": list(e.target.minus)} if e.target.minus else {}),
        "output": {
            "logits": list(e.output.logits),
            "probabilities": numbers(e.output.probabilities),
            "labels": list(e.output.labels),
            "value": numbers(e.output.value),
        },
        "fidelity": {
            "r2": numbers(e.fidelity.r2),
            "mse": numbers(e.fidelity.mse),
            "questions": e.fidelity.questions,
            "r2_range": numbers(e.fidelity.r2_range),
            "mse_range": numbers(e.fidelity.mse_range),
            "single": numbers(e.fidelity.single),
            "few": numbers(e.fidelity.few),
            "many": numbers(e.fidelity.many),
            "spread": numbers(e.fidelity.spread),
            "negligible": numbers(e.fidelity.negligible),
            "verdict": e.fidelity.words,
        },
        "calls": e.calls,
        "cost": numbers(e.cost),
        "seconds": e.seconds,
        "settings": _plain(e.settings),
        "surrogate": e.surrogate.to_dict(),
        "classifier": _plain(e.classifier),
        "versions": dict(e.versions),
        "ranking": e.ranking,
    }
    for name, field in _RARE.items():
        column = [getattr(unit, field) for unit in e.units]
        if any(one is not None for one in column):
            about[name] = column
    if e.pairs:
        about["pairs"] = [[pair.first, pair.second, pair.effect, pair.error] for pair in e.pairs]
    if e.levels:
        about["levels"] = [
            {name: part for name, part in _complete(one).items() if name not in _SHARED}
            for one in e.levels
        ]
    if e.answer is not None:
        about["answer"] = e.answer.to_dict()
    return about


_SHARED = ("input", "classifier", "versions")
"""What all levels of an explanation have in common, stored once."""
_RARE = {"boxes": "box", "parts": "part"}
"""What few units have: lists by the name of the field, only where there is any."""


def _given(input: Input) -> Any:
    if isinstance(input, ImageInput):
        return input.to_dict()
    if isinstance(input, PromptText):
        parts = [[part.name, part.start, part.end, part.removable] for part in input.parts]
        messages = {"messages": list(map(list, input.messages))} if input.messages else {}
        return {"prompt": str(input), "parts": parts, "is_chat": input.is_chat, **messages}
    return input if isinstance(input, str) else list(input)


def _input(data: Any) -> Input:
    if isinstance(data, Mapping) and "prompt" in data:
        parts = [Part(*part) for part in data["parts"]]
        messages = [
            (str(role), int(start), int(end)) for role, start, end in data.get("messages", ())
        ]
        return PromptText(data["prompt"], parts, data["is_chat"], messages)
    if isinstance(data, Mapping):
        return ImageInput.from_dict(dict(data))
    return data if isinstance(data, str) else tuple(data)


def to_json(e: Explanation, path: str | Path | None = None) -> str:
    """The whole explanation as one JSON object."""
    text = json.dumps(_complete(e), ensure_ascii=False, indent=1, allow_nan=False)
    if path is not None:
        write_text(path, text)
    return text


def _complete(e: Explanation) -> dict[str, Any]:
    data = describe(e)
    data["units"] = [{name: getattr(unit, name) for name in UNIT_COLUMNS} for unit in e.units]
    data["scores"] = {name: numbers(array) for name, array in e.scores.items()}
    data["errors"] = {name: numbers(array) for name, array in e.errors.items()}
    return data


def _fidelity(data: Any) -> Fidelity:
    unknown = (None, None)  # results of earlier versions have no ranges

    def pair(name: str) -> tuple[float, float]:
        low, high = data.get(name, unknown)
        return number(low), number(high)

    return Fidelity(
        number(data["r2"]),
        number(data["mse"]),
        int(data["questions"]),
        pair("r2_range"),
        pair("mse_range"),
        **{name: number(data.get(name)) for name in ("single", "few", "many", "spread")},
        negligible=number(data.get("negligible", 0.0)),
    )


def number(value: Any) -> float:
    """The number that :func:`numbers` wrote."""
    return float("nan") if value is None else float(value)


def _array(values: Any) -> np.ndarray:
    return np.array(values, dtype=np.float64)  # None becomes NaN, "inf" infinity


def build(
    meta: Mapping[str, Any], units: list[Unit], scores: Mapping[str, Any], errors: Mapping[str, Any]
) -> Explanation:
    """The explanation from its parts, as :func:`describe` tells them, or a refusal."""
    if meta.get("piste") not in range(1, FORMAT + 1):
        raise PisteError(
            f"The file has the format {meta.get('piste')!r}, this version of Piste reads "
            f"1 to {FORMAT}: update Piste, or explain again."
        )
    check_size("The explanation", len(units), MOST_UNITS, "units", "it is not one of Piste's")
    for name, values in (*scores.items(), *errors.items()):
        if len(values) != len(units):
            raise PisteError(
                f"The score {name!r} has {len(values)} numbers for {len(units)} units."
            )
    boxes = meta.get("boxes")
    if boxes is not None:
        units = [
            replace(unit, box=None if box is None else tuple(box))
            for unit, box in zip(units, boxes, strict=True)
        ]
    if (parts := meta.get("parts")) is not None:
        units = [replace(unit, part=part) for unit, part in zip(units, parts, strict=True)]
    target, output, fidelity = meta["target"], meta["output"], meta["fidelity"]
    value, chances = output["value"], output["probabilities"]
    return Explanation(
        method=meta["method"],
        input=_input(meta["input"]),
        units=tuple(units),
        scores={name: _array(values) for name, values in scores.items()},
        errors={name: _array(values) for name, values in errors.items()},
        target=Target(
            target["kind"],
            target["name"],
            tuple(target["indices"]),
            tuple(target["labels"]),
            minus=tuple(target.get("minus", ())),
        ),
        output=Output(
            tuple(output["logits"]),
            None if chances is None else tuple(chances),
            tuple(output["labels"]),
            tuple(value) if isinstance(value, list) else value,
        ),
        fidelity=_fidelity(fidelity),
        calls=int(meta["calls"]),
        seconds=number(meta["seconds"]),
        settings=meta["settings"],
        surrogate=surrogate_from(meta["surrogate"]),
        classifier=meta["classifier"],
        versions=meta["versions"],
        ranking=meta["ranking"],
        cost=number(meta.get("cost")),
        answer=Answer.from_dict(meta["answer"]) if "answer" in meta else None,
        pairs=tuple(PairEffect(*pair) for pair in meta.get("pairs", ())),
        levels=tuple(
            from_dict({name: meta[name] for name in _SHARED} | level)
            for level in meta.get("levels", ())
        ),
    )


def from_json(text: str) -> Explanation:
    """The explanation that :func:`to_json` wrote."""
    return from_dict(json.loads(text))


def from_dict(data: Mapping[str, Any]) -> Explanation:
    """The explanation from its JSON object."""
    units = [Unit(**unit) for unit in data["units"]]
    return build(data, units, data["scores"], data["errors"])


def read_text(path: str | Path, build: Callable[[str], Stored], what: str) -> Stored:
    """What ``build`` makes of a file's text; a file that holds no stored ``what`` is refused."""
    file = Path(path)
    if not file.is_file():
        raise PisteError(f"There is no file {str(path)!r}.")
    try:
        return build(file.read_bytes().decode("utf-8-sig"))
    except PisteError as problem:
        raise PisteError(f"{str(path)!r}: {problem}") from problem
    except UnicodeDecodeError as problem:
        raise PisteError(f"{str(path)!r} is not UTF-8 text.") from problem
    except OSError as problem:
        raise PisteError(f"{str(path)!r} could not be read: {problem.strerror}.") from problem
    except READING_ERRORS as problem:
        raise PisteError(
            f"{str(path)!r} is not a stored {what}, or not a whole one ({one_line(problem)})."
        ) from problem
