"""What the page shows of a result: the views of files and notebooks, names instead of paths."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any, Literal

import numpy as np

from piste.comparison import Comparison
from piste.explanation import Explanation
from piste.prompt_text import PromptText
from piste.serve.schemas import ViewAnswer
from piste.show.alignment import SideBySide
from piste.show.html import comparison_html, explanation_html, page_shell

_BEGINS = re.compile(r"(?:[A-Za-z]:)?[\\/]|~|\.{1,2}[\\/]")
_INSIDE = re.compile(r"(?<![\w/\\.:])(?:~|\.{1,2}|[A-Za-z]:)?(?:[\\/][^\s\\/'\"]+){2,}")


def comparison_view(comparison: Comparison, *, live: bool = False) -> page_shell.View:
    """One explanation, or several side by side; ``live`` if removals can be asked about."""
    if len(comparison.explanations) == 1 and not comparison.skipped:
        [e] = comparison.explanations.values()
        return explanation_html.view(e, comparison.checks, live=live)
    return comparison_html.view(SideBySide.of_comparison(comparison), live=live)


def view_answer(view: page_shell.View) -> ViewAnswer:
    """A view as JSON; numbers that JSON doesn't know are null."""
    return ViewAnswer(
        title=view.title, html=view.body, rules=view.rules, data=clean(dict(view.data or {}))
    )


def explain_parameters(e: Explanation) -> dict[str, str] | None:
    """What the page's address says to explain the same again; None if it can't."""
    if not isinstance(e.input, str) and not (
        isinstance(e.input, tuple) and all(isinstance(text, str) for text in e.input)
    ):
        return None
    if isinstance(e.input, PromptText) or e.answer is not None:
        return None
    texts = (e.input,) if isinstance(e.input, str) else e.input
    found = dict(zip(("text", "pair"), texts, strict=False))
    found |= {"model": str(e.classifier.get("name") or ""), "methods": e.method}
    units = e.settings.get("input", {}).get("units")
    if isinstance(units, str) and units != "words":
        found["units"] = units
    label = e.target.kind == "class" and e.output.labels[e.target.indices[0]]
    if label and label != e.output.label:
        found["target"] = label
    return found


def export_file(comparison: Comparison, kind: Literal["html", "png", "json"]) -> tuple[bytes, str]:
    """A file of a result, and its media type."""
    if kind == "json":
        return comparison.to_json().encode("utf-8", "replace"), "application/json"
    if kind == "html":
        return page_shell.document(comparison_view(comparison)).encode(
            "utf-8", "replace"
        ), "text/html; charset=utf-8"
    explained = list(comparison.explanations.values())
    figure = explained[0].plot() if len(explained) == 1 else comparison.plot()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue(), "image/png"


def numbers(values: Iterable[float]) -> list[float | None]:
    """NaN and infinity are null in JSON."""
    return [float(value) if np.isfinite(value) else None for value in values]


def clean(data: Any) -> Any:
    """Data without numbers that JSON doesn't know."""
    if isinstance(data, dict):
        return {key: clean(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [clean(value) for value in data]
    if isinstance(data, float) and not np.isfinite(data):
        return None
    return data


def redact_paths(thing: Any) -> Any:
    """The same with only the last part of every path.

    >>> redact_paths({"model": "/home/me/models/mine", "table": "some/words.parquet"})
    {'model': 'mine', 'table': 'words.parquet'}
    >>> redact_paths(["org/model", "and/or", "1 of 3 rows of '/data/x/a.csv' can't be read"])
    ['org/model', 'and/or', "1 of 3 rows of 'a.csv' can't be read"]
    """
    if isinstance(thing, Mapping):
        return {redact_paths(key): redact_paths(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return type(thing)(redact_paths(item) for item in thing)
    if isinstance(thing, PurePath):
        return thing.name
    if not isinstance(thing, str):
        return thing
    if _is_path(thing):
        return _last(thing)
    return _INSIDE.sub(lambda found: _last(found.group()), thing)


def _is_path(text: str) -> bool:
    """Hub ids look like short relative paths: those that lead nowhere are none."""
    if "\n" in text or not re.search(r"[\\/]", text):
        return False
    if re.search(r"\s", text):
        return _BEGINS.match(text) is not None
    if _BEGINS.match(text) or len(re.findall(r"[\\/]", text)) > 1 or PurePath(text).suffix:
        return True
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def _last(path: str) -> str:
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1] or path[:1]
