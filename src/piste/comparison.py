"""Several methods on one input, side by side, each with how faithful it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from piste.classifiers import Classifier, load
from piste.classifiers.prompted.generating import LanguageModel
from piste.classifiers.text.word_models import WordModel
from piste.data import files, storage
from piste.engine import CacheOption, Progress, ProgressOption
from piste.errors import PisteError, ServiceError, shorten
from piste.evaluation.benchmark.explainers import Entry, make_entries
from piste.evaluation.judging import judge
from piste.evaluation.metrics import figures_of, make
from piste.explanation import Explanation
from piste.methods import METHODS
from piste.options import Options, Samples, checked
from piste.pipeline import explain
from piste.subject import RawInput, listed_inputs
from piste.verification import Check, check
from piste.views import VIEWS

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure
    from rich.console import RenderableType
    from typing_extensions import Unpack

FORMAT = 1
"""Version of the stored form; raised when a reader of older files needs to know."""
_MARK = "piste_comparison"
METRICS = ("fidelity", "deletion")
VERDICTS = {
    name: figure
    for name, figure in figures_of(make(METRICS)).items()
    if figure.role in ("main", "cost") or name == "mse_all"
}
"""What is said of every method: its faithfulness by these metrics, and what it cost."""
MOST_ALONE, FEW_ALONE, MOST_TOGETHER = 60, 3, 10
"""Units that are removed one by one (few where nothing is judged), and sets of them."""


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
        data = {
            _MARK: FORMAT,
            "verdicts": {
                name: {figure: storage.numbers(value) for figure, value in verdict.items()}
                for name, verdict in self.verdicts.items()
            },
            "skipped": dict(self.skipped),
            "checks": [one.to_dict() for one in self.checks],
            "explanations": {
                name: json.loads(e.to_json()) for name, e in self.explanations.items()
            },
        }
        text = json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False)
        if path is not None:
            files.write_text(path, text)
        return text

    @staticmethod
    def from_json(text: str) -> Comparison:
        """The comparison that :meth:`to_json` wrote."""
        data = json.loads(text)
        found = data.get(_MARK) if isinstance(data, dict) else None
        if found != FORMAT:
            raise PisteError(
                f"The comparison has the format {found!r}, expected {FORMAT}: update Piste, or "
                "compare again."
            )
        explanations = {name: storage.from_dict(one) for name, one in data["explanations"].items()}
        verdicts = {
            name: MappingProxyType(
                {figure: storage.number(value) for figure, value in verdict.items()}
            )
            for name, verdict in data["verdicts"].items()
        }
        return Comparison(
            MappingProxyType(explanations),
            MappingProxyType(verdicts),
            dict(data["skipped"]),
            tuple(Check.from_dict(one) for one in data["checks"]),
        )

    def to_frame(self) -> pandas.DataFrame:
        """One row per unit, a column with the ranking score of every method; verdicts in ``attrs``.

        >>> import piste
        >>> clf = piste.load("piste:reviews")
        >>> c = piste.compare(clf, "A wonderful ending.", ["slalom", "occlusion"], samples=40)
        >>> list(c.to_frame().columns)
        ['text', 'start', 'end', 'segment', 'tokens', 'slalom', 'occlusion']
        """
        frame = VIEWS["comparison_frame"](self.explanations)
        frame.attrs["verdicts"] = {name: dict(one) for name, one in self.verdicts.items()}
        return frame

    def to_html(self, path: str | Path | None = None) -> str:
        """A standalone page, also written to ``path`` if given; works offline."""
        return VIEWS["comparison_html"](self, path)

    def _repr_html_(self) -> str:
        return VIEWS["comparison_notebook"](self)

    def plot(self, path: str | Path | None = None) -> Figure:
        """A matplotlib figure: the text or image once per method, and the strongest units."""
        return VIEWS["comparison_plot"](self, path)

    def __rich__(self) -> RenderableType:
        return VIEWS["comparison_terminal"](self)


def compare(
    classifier: Any,
    input: RawInput,
    methods: Sequence[str] | None = None,
    *,
    progress: ProgressOption = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    answer: str | None = None,
    against: str | None = None,
    **shared: Unpack[Options],
) -> Comparison:
    """Explain one input by several methods with the same budget, judged by the same questions.

    A method is a name, ``name:score`` or ``name[option=value]``. ``samples`` goes to every method
    that has such an option, and so do the other options of :func:`piste.explain` (``units``,
    ``target``, ``seed`` …); ``options`` holds further ones by method. Without ``methods`` some
    usual ones are taken, and those that can't explain this classifier are skipped; a method that
    was asked for and can't is an error. With levels of units the first method splits them, and the
    others explain the units of its last level; so it is with ``phrases="auto"``. Of a language
    model without labels all explain one answer: ``answer`` or its own, over ``against`` if that is
    given.
    """

    def skips(method: str) -> bool:
        return methods is None and METHODS[method].needs != "answers"

    loaded = load(classifier)
    if isinstance(loaded, LanguageModel):
        loaded, input = loaded.answering(input, answer, against)
    elif answer is not None or against is not None:
        raise PisteError("answer and against are for a language model without labels.")
    if isinstance(loaded, WordModel) and loaded.place is None:
        loaded, shared["target"] = loaded.at(input, shared.get("target"))
    return compare_steps(
        loaded,
        input,
        usual_methods() if methods is None else methods,
        skips=skips,
        options=options,
        progress=progress,
        **checked(shared, "compare"),
    )


def usual_methods() -> list[str]:
    """What is compared if no methods are named."""
    return [name for name, method in METHODS.items() if method.compared]


def compare_steps(
    classifier: Classifier,
    input: RawInput,
    methods: Sequence[str],
    *,
    skips: Callable[[str], bool],
    judged: bool = True,
    on_step: Callable[[str, int, int], None] = lambda step, number, steps: None,
    samples: Samples = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 0,
    progress: ProgressOption = None,
    cache: CacheOption = None,
    **how: Any,
) -> Comparison:
    """The steps of :func:`compare` for a loaded classifier, as the page takes them too.

    A method that fails is left out if ``skips(method)``, else its error is raised; so is the first
    error where no method is left. ``on_step`` is called with the name of every step before it, its
    number and how many there are, and stops the work if it raises. Without ``judged`` there are no
    verdicts and only a few checks.
    """
    if isinstance(methods, str):
        raise PisteError(f"methods={methods!r} must be a list of names, such as [{methods!r}].")
    if listed_inputs(input) is not None:
        raise PisteError(
            f"Expected one input to compare methods on, got several ({shorten(input)}): call "
            "compare for each of them."
        )
    entries = make_entries(methods, samples, options)
    steps = [entry.label for entry in entries]
    steps += ["measuring faithfulness"] * judged + ["checking removals"]
    with Progress(progress) as shown:
        names = iter(enumerate(steps))

        def next_step() -> None:
            number, name = next(names)
            on_step(name, number, len(steps))
            shown.part(name, number, len(steps))

        # A function hears of every step by itself, a bar is one for all.
        asking: dict[str, Any] = {"progress": progress if callable(progress) else shown}
        asking["cache"] = cache
        found, skipped = _explained(classifier, input, entries, next_step, skips, seed, asking, how)
        verdicts: Mapping[str, Mapping[str, float]] = {}
        if judged:
            next_step()
            verdicts = judge_all(classifier, found, seed=seed, **asking)
        next_step()
        given = list(found.values())
        removed = removals(given[0], seed, alone=MOST_ALONE if judged else FEW_ALONE)
        checks = check(classifier, given, removed, **asking)
    return Comparison(MappingProxyType(found), MappingProxyType(verdicts), skipped, tuple(checks))


def _explained(
    classifier: Classifier,
    input: RawInput,
    entries: Sequence[Entry],
    next_step: Callable[[], None],
    skips: Callable[[str], bool],
    seed: int,
    asking: Mapping[str, Any],
    how: dict[str, Any],
) -> tuple[dict[str, Explanation], dict[str, str]]:
    """The explanation of every entry, and why some were skipped."""
    found: dict[str, Explanation] = {}
    skipped: dict[str, str] = {}
    explained: dict[str, Explanation] = {}
    for entry in entries:
        next_step()
        try:
            if entry.variant not in explained:
                explained[entry.variant] = explain(
                    classifier, input, method=entry.method, seed=seed, **asking, **how,
                    **entry.options,
                )  # fmt: skip
            one = explained[entry.variant]
            if one.levels or "phrases" in one.settings:  # the others explain what the first has cut
                how |= {"units": one.settings["input"]["units"], "phrases": None}
            one.score(entry.score)  # refuses a score that isn't there
        except ServiceError:
            raise
        except PisteError as problem:
            if not skips(entry.method):
                raise
            skipped[entry.label] = str(problem)
        else:
            ranking = entry.score or one.ranking
            found[entry.label] = replace(one, method=entry.label, ranking=ranking)
    if not found:
        raise PisteError(next(iter(skipped.values()), "No method was named: name at least one."))
    return found, skipped


def judge_all(
    classifier: Classifier,
    explanations: Mapping[str, Explanation],
    *,
    seed: int = 0,
    progress: ProgressOption = None,
    cache: CacheOption = None,
) -> dict[str, Mapping[str, float]]:
    """The verdict on every explanation of one input, by the same questions."""
    given = list(explanations.values())
    rows = judge(classifier, given, METRICS, seed=seed + 1, progress=progress, cache=cache)
    return {
        name: MappingProxyType({figure: row.figures[figure] for figure in VERDICTS})
        for name, row in zip(explanations, rows, strict=True)
    }


def read(path: str | Path) -> Comparison:
    """A stored comparison."""
    return storage.read_text(path, Comparison.from_json, "comparison")


def removals(e: Explanation, seed: int = 0, *, alone: int = MOST_ALONE) -> list[list[int]]:
    """Some units to remove: the strongest first, together, at random, and then one by one."""
    strongest = [int(unit) for unit in np.argsort(-np.nan_to_num(e.size()), kind="stable")]
    n, rng = len(strongest), np.random.default_rng(seed)
    sets = [strongest[:size] for size in (1, 2, 3, 5) if size < n]
    sizes = np.linspace(n / 2, 2, MOST_TOGETHER - 3).round().astype(int)
    sets += [rng.permutation(n)[:size].tolist() for size in sizes if n > 3]
    sets += [[unit] for unit in strongest[1:alone] if n > 1]
    return [list(one) for one in {tuple(sorted(one)): None for one in sets}]
