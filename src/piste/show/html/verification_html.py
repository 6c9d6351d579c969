"""The panel "Who was right?": removals, the model's real answers, and what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from piste.explanation import Explanation
from piste.show import wording
from piste.verification import Check


def section(explanations: Sequence[Explanation], checks: Sequence[Check]) -> str:
    """The panel, which a script fills."""
    e = explanations[0]
    what = f"{wording.part(e)}s" if wording.of_image(e) else "words"
    many = "every explanation" if len(explanations) > 1 else "the explanation"
    return f"""<section class="piste-check">
<h2>Who was right?</h2>
<p class="piste-faint">Removed {what} are really taken from the model's input, and {many} must have
said beforehand what it answers then: {escape(e.target.name)}.
{escape(_summary(explanations, checks))}</p>
<p class="piste-now" aria-live="polite"></p>
<p class="piste-buttons"></p>
<div class="piste-scroll" tabindex="0"><table class="piste-checks"></table></div>
</section>"""


def data(
    explanations: Sequence[Explanation],
    checks: Sequence[Check],
    kinds: Sequence[wording.Kind],
    *,
    live: bool = False,
) -> dict[str, Any]:
    """What the script needs; ``live`` if a model can be asked."""
    e = explanations[0]
    click = "Click a part of the image" if wording.of_image(e) else "Click a word"
    number = e.output.value
    column = int(np.argmax(e.output.logits))
    return {
        "methods": [one.method for one in explanations],
        "units": [wording.short(unit.text) for unit in e.units],
        "kinds": [list(kind.units) for kind in kinds],
        "strongest": wording.by_size(e.score()),
        "before": {
            "answer": number[column] if isinstance(number, tuple) else number,
            "label": e.output.label,
            "probability": e.output.probability,
        },
        "number": "log-probability" if wording.of_answer(e) else None,
        "tried": [as_dict(one) for one in checks],
        "invitation": f"{click} to remove it, and click it again to put it back.",
        "live": live,
    }


def as_dict(one: Check) -> dict[str, Any]:
    """A check for a script: what was expected is in the order of the methods."""
    return {
        "removed": list(one.removed),
        "answer": one.answer,
        "label": one.label,
        "probability": one.probability,
        "expected": [value if np.isfinite(value) else None for value in one.expected.values()],
    }


def _summary(explanations: Sequence[Explanation], checks: Sequence[Check]) -> str:
    if not checks:
        return ""
    several = [one for one in checks if len(one.removed) > 1]
    groups = {"one": [one for one in checks if len(one.removed) == 1], "several": several}
    return " ".join(
        f"With {name} removed ({len(some)} times), on average: {_errors(explanations, some)}."
        for name, some in groups.items()
        if some
    )


def _errors(explanations: Sequence[Explanation], checks: Sequence[Check]) -> str:
    wrong = [
        (float(np.mean([abs(one.expected[e.method] - one.answer) for one in checks])), e.method)
        for e in explanations
    ]
    return ", ".join(f"{method} is off by {error:.2f}" for error, method in sorted(wrong))
