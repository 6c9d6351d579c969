"""Several methods on one input, side by side, each with how faithful it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from piste.classifiers import load
from piste.engine import CacheOption, ProgressOption
from piste.errors import PisteError
from piste.evaluation.benchmark.entries import make_entries
from piste.evaluation.judging import judge
from piste.evaluation.metrics import figures_of, make
from piste.explanation import Explanation
from piste.methods import METHODS
from piste.pipeline import explain
from piste.subject import Given, LongChoice, Removal, UnitChoice
from piste.target import TargetChoice
from piste.views import VIEWS

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from piste.verification import Check

METRICS = ("fidelity", "deletion")
VERDICTS = {
    name: figure
    for name, figure in figures_of(make(METRICS)).items()
    if figure.role in ("main", "cost")
}
"""What is said of every method: the main figures of these metrics, and what it cost."""
MOST_ALONE, MOST_TOGETHER = 60, 10
"""Units that are removed one by one, and sets of them, to see who predicts it."""


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
    checks: Sequence[Check] = ()
    """Removals the model was really asked about, beside what every method expected."""

    def to_json(self, path: str | Path | None = None) -> str:
        """All explanations and verdicts as JSON, also written to ``path`` if given."""
        from piste.data import storage

        data = {
            "verdicts": {
                name: {figure: storage.numbers(value) for figure, value in verdict.items()}
                for name, verdict in self.verdicts.items()
            },
            "skipped": dict(self.skipped),
            "checks": [asdict(replace(one, expected=dict(one.expected))) for one in self.checks],
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
        return VIEWS["comparison_html"](self, path)

    def _repr_html_(self) -> str:
        return VIEWS["comparison_notebook"](self)

    def plot(self, path: str | Path | None = None) -> Figure:
        """A matplotlib figure: the text or picture once per method, and the strongest units."""
        return VIEWS["comparison_plot"](self, path)

    def __rich__(self) -> RenderableType:
        return VIEWS["comparison_terminal"](self)


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
    progress: ProgressOption = None,
    cache: CacheOption = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Comparison:
    """Explain one input by several methods with the same budget, judged by the same questions.

    A method is a name, ``name:score`` or ``name[option=value]``. ``samples`` goes to every method
    that has such an option; ``options`` holds further ones by method. Without ``methods`` some
    usual ones are taken, and those that can't explain this classifier are skipped; a method that
    was asked for and can't is an error.
    """
    loaded = load(classifier)
    asking: dict[str, Any] = {"progress": progress, "cache": cache}
    how: dict[str, Any] = {"units": units, "long": long, "removal": removal}
    found: dict[str, Explanation] = {}
    skipped: dict[str, str] = {}
    for name, one in explanations(
        loaded, input, methods, target=target, samples=samples, seed=seed, options=options,
        **how, **asking,
    ):  # fmt: skip
        if isinstance(one, Explanation):
            found[name] = one
        else:
            skipped[name] = str(one)
    return compared(loaded, found, skipped, seed=seed, **asking)


def explanations(
    classifier: Any,
    input: Given,
    methods: Sequence[str] | None,
    *,
    samples: int | None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    **how: Any,
) -> Iterator[tuple[str, Explanation | PisteError]]:
    """One explanation after the other, or why there is none; see :func:`compare`."""
    if isinstance(methods, str):
        raise PisteError(f"methods={methods!r} must be a list of names, such as [{methods!r}].")
    told: dict[str, Explanation] = {}
    for entry in make_entries(methods or usual_methods(), samples, options):
        try:
            if entry.variant not in told:
                told[entry.variant] = explain(
                    classifier, input, method=entry.method, **how, **entry.options
                )
            one = told[entry.variant]
            one.score(entry.score)  # refuses a score that isn't there
            yield entry.label, replace(one, method=entry.label, ranking=entry.score or one.ranking)
        except PisteError as problem:
            if methods is not None or METHODS[entry.method].needs == "answers":
                raise
            yield entry.label, problem


def usual_methods() -> list[str]:
    """What is compared if no methods are named."""
    return [name for name, method in METHODS.items() if method.compared]


def compared(
    classifier: Any,
    found: Mapping[str, Explanation],
    skipped: Mapping[str, str],
    *,
    seed: int = 0,
    progress: ProgressOption = None,
    cache: CacheOption = None,
) -> Comparison:
    """Judge explanations of one input by the same questions, and remove its units one by one."""
    from piste.verification import check

    asking: dict[str, Any] = {"progress": progress, "cache": cache}
    told = list(found.values())
    rows = judge(classifier, told, METRICS, seed=seed + 1, **asking)
    verdicts = {
        name: MappingProxyType({figure: row.figures[figure] for figure in VERDICTS})
        for name, row in zip(found, rows, strict=True)
    }
    checks = check(classifier, told, removals(told[0], seed), **asking)
    return Comparison(
        MappingProxyType(dict(found)), MappingProxyType(verdicts), skipped, tuple(checks)
    )


def removals(e: Explanation, seed: int = 0, *, alone: int = MOST_ALONE) -> list[list[int]]:
    """Some units to remove: the strongest first, together, at random, and then one by one."""
    strongest = [int(unit) for unit in np.argsort(-np.nan_to_num(e.size()), kind="stable")]
    n, rng = len(strongest), np.random.default_rng(seed)
    sets = [strongest[:size] for size in (1, 2, 3, 5) if size < n]
    sizes = np.linspace(n / 2, 2, MOST_TOGETHER - 3).round().astype(int)
    sets += [rng.permutation(n)[:size].tolist() for size in sizes if n > 3]
    sets += [[unit] for unit in strongest[1:alone] if n > 1]
    return [list(one) for one in {tuple(sorted(one)): None for one in sets}]
