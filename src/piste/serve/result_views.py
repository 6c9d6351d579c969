"""What the page shows of a result: the same views as in files and notebooks."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from piste.comparison import Comparison
from piste.serve.schemas import ViewAnswer
from piste.show.alignment import SideBySide
from piste.show.html import comparison_html, explanation_html, page_shell


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
