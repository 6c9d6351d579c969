"""Several methods on one input, side by side, each with how faithful it is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from piste.classifiers import load
from piste.engine import CacheOption
from piste.errors import PisteError
from piste.explaining import explain
from piste.explanation import Explanation
from piste.methods import METHODS
from piste.subject import Given, LongChoice, Removal, UnitChoice
from piste.target import TargetChoice

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from piste.show.side_by_side import SideBySide

DEFAULT_METHODS = ("slalom", "lime", "kernel_shap", "partition_shap", "integrated_gradients")
VERDICTS = ("r2_all", "mse_few", "aopc", "seconds", "calls")
"""What is said of every method: R² over removals of all sizes, error for one to five removed
units, deletion AOPC, and what it cost."""


@dataclass(frozen=True)
class Comparison:
    """Explanations of one input by several methods, and a verdict on each.

    >>> import piste
    >>> clf = piste.load("piste:reviews")
    >>> c = piste.compare(clf, "A slow start, but a wonderful ending.", ["slalom", "occlusion"])
    >>> list(c.explanations), c.verdicts["slalom"]["r2_all"] > 0.9
    (['slalom', 'occlusion'], True)
    """

    explanations: Mapping[str, Explanation]
    verdicts: Mapping[str, Mapping[str, float]]
    skipped: Mapping[str, str]
    """Methods that could not explain this classifier, with the reason."""

    def to_json(self, path: str | Path | None = None) -> str:
        """All explanations and verdicts as JSON, also written to ``path`` if given."""
        from piste import storage

        data = {
            "verdicts": {
                name: {figure: storage.numbers(value) for figure, value in verdict.items()}
                for name, verdict in self.verdicts.items()
            },
            "skipped": dict(self.skipped),
            "explanations": {
                name: json.loads(e.to_json()) for name, e in self.explanations.items()
            },
        }
        text = json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False)
        if path is not None:
            storage.write_text(path, text)
        return text

    def to_html(self, path: str | Path | None = None) -> str:
        """A standalone page, also written to ``path`` if given; works offline."""
        from piste.show import comparing_html

        return comparing_html.page(self._sides(), path)

    def plot(self, path: str | Path | None = None) -> Figure:
        """A matplotlib figure: the text or picture once per method, and the strongest units."""
        from piste.show import comparing

        return comparing.plot(self._sides(), path)

    def __rich__(self) -> RenderableType:
        from piste.show import comparing

        return comparing.render(self._sides())

    def _sides(self) -> SideBySide:
        from piste.show.side_by_side import SideBySide

        return SideBySide.of(list(self.explanations.values()), self.verdicts, self.skipped)


def compare(
    classifier: Any,
    input: Given,
    methods: Sequence[str] | None = None,
    *,
    target: TargetChoice = None,
    units: UnitChoice = None,
    samples: int | None = None,
    seed: int = 0,
    long: LongChoice = "error",
    removal: Removal = "delete",
    cache: CacheOption = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Comparison:
    """Explain one input by several methods with the same budget, judged by the same questions.

    A method is a name, ``name:score`` or ``name[option=value]``. ``samples`` goes to every method
    that has such an option; ``options`` holds further ones by method. Without ``methods`` some
    usual ones are taken, and those that can't explain this classifier are skipped; a method that
    was asked for and can't is an error.
    """
    from piste.evaluation import judge
    from piste.evaluation.benchmark.entries import make_entries

    if isinstance(methods, str):
        raise PisteError(f"methods={methods!r} must be a list of names, such as [{methods!r}].")
    loaded = load(classifier)
    how: dict[str, Any] = {"units": units, "long": long, "removal": removal, "cache": cache}
    told: dict[str, Explanation] = {}
    found: dict[str, Explanation] = {}
    skipped: dict[str, str] = {}
    for entry in make_entries(methods or DEFAULT_METHODS, samples, options):
        try:
            if entry.telling not in told:
                told[entry.telling] = explain(
                    loaded,
                    input,
                    method=entry.method,
                    target=target,
                    seed=seed,
                    **how,
                    **entry.options,
                )
            one = told[entry.telling]
            one.score(entry.score)  # refuses a score that isn't there
            ranking = entry.score or one.ranking
            found[entry.label] = replace(one, method=entry.label, ranking=ranking)
        except PisteError as problem:
            if methods is not None or METHODS[entry.method].needs == "answers":
                raise
            skipped[entry.label] = str(problem)
    rows = judge(loaded, list(found.values()), ["deletion", "fidelity"], seed=seed + 1, cache=cache)
    verdicts = {
        name: MappingProxyType({figure: row.figures[figure] for figure in VERDICTS})
        for name, row in zip(found, rows, strict=True)
    }
    return Comparison(MappingProxyType(found), MappingProxyType(verdicts), skipped)
