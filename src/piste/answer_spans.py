"""Spans of a language model's answer, explained from what was asked for the whole answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from piste.answer import SpanChoice
from piste.classifiers.prompted.recorded import RecordedAnswers
from piste.explanation import Explanation
from piste.methods.slalom import SlalomMethod
from piste.pipeline import explain
from piste.slalom.fitting import Fit, fit
from piste.types import Floats


def explain_span(e: Explanation, span: SpanChoice) -> Explanation:
    """The explanation of a span of an answer, from what was asked for ``e``; see its ``of``."""
    assert e.answer is not None
    return _explained(e, e.answer.method, span, e.answer.options)


def explain_spans(e: Explanation, spans: Sequence[SpanChoice]) -> list[Explanation]:
    """Explanations of several spans, in a fraction of the time where SLALOM explains them.

    The form with a free mixing and saturation holds for all spans, the fit of each begins at that
    of the whole answer, and there are neither pairs nor Shapley values. Where another method or a
    form was chosen, each span is explained as ``e.of`` does.
    """
    assert e.answer is not None
    options = e.answer.options
    free = options.get("form", "auto") == "auto" and options.get("solver") == "newton"
    if e.answer.method != SlalomMethod.name or not free:
        return [e.of(span) for span in spans]
    method = _SlalomFromStart(
        **{**options, "form": "mixed", "pairs": False, "guide": False, "shapley": False}
    )
    _explained(e, method, None, {})
    return [replace(_explained(e, method, span, {}), answer=e.answer) for span in spans]


@dataclass(frozen=True)
class _SlalomFromStart(SlalomMethod):
    """SLALOM whose fits begin at the first one that was made."""

    fits: list[Fit] = field(default_factory=list, compare=False, repr=False)

    def fitted(self, counts: Any, numbers: Floats, guide: Floats | None = None) -> Fit:
        if self.fits:
            return fit(counts, numbers, start=self.fits[0])
        self.fits.append(super().fitted(counts, numbers))
        return self.fits[0]


def _explained(e: Explanation, method: Any, target: Any, options: Mapping[str, Any]) -> Explanation:
    assert e.answer is not None
    recorded: Any = RecordedAnswers(e, e.answer)
    found = explain(
        recorded,
        e.input,
        method=method,
        target=target,
        seed=int(e.settings.get("seed", 0)),
        progress=False,
        **options,
    )
    return replace(found, calls=e.calls, cost=e.cost, method=e.method, ranking=e.ranking)
