"""The one result: frozen, complete, checkable, storable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from piste.answer import Answer, SpanChoice
from piste.errors import PisteError, shorten
from piste.slalom.pairs import PairEffect, strongest_pairs
from piste.subject import Input, Unit
from piste.surrogates import Mixing, Surrogate, as_counts
from piste.target import Target
from piste.types import Floats
from piste.views import VIEWS

if TYPE_CHECKING:
    import pandas
    import shap
    from matplotlib.figure import Figure
    from rich.console import RenderableType


UNDIRECTED = ("importance", "sensitivity")
"""Scores that say how much a unit counts, but not which way."""

FORMAT = 2
"""Version of the stored form; raised when a reader of older files needs to know."""


@dataclass(frozen=True)
class Output:
    """What the model itself said of the whole input."""

    logits: tuple[float, ...]
    probabilities: tuple[float, ...] | None
    labels: tuple[str, ...]
    value: float | tuple[float, ...]
    """The explained number (one per class if all classes are explained)."""

    @property
    def label(self) -> str:
        """The predicted class, or the only output."""
        return self.labels[int(np.argmax(self.logits))]

    @property
    def probability(self) -> float | None:
        """Probability of :attr:`label`; None for a regression."""
        return None if self.probabilities is None else float(max(self.probabilities))


@dataclass(frozen=True)
class Fidelity:
    """How well the explanation predicts the model on held-out questions.

    It is that of a fit without their answers; SLALOM's last fit, whose scores are told, has them.

    ``r2`` = 1 − Σ(y − ŷ)² / Σ(y − ȳ)²: 1 is perfect, 0 no better than a constant. NaN where
    too few questions were left to tell. The ranges are 95 % bootstrap intervals over the
    questions.
    """

    r2: float
    mse: float
    questions: int
    r2_range: tuple[float, float] = (float("nan"), float("nan"))
    mse_range: tuple[float, float] = (float("nan"), float("nan"))
    single: float = float("nan")
    """R² on units alone: of what the fit without that question predicts."""
    few: float = float("nan")
    """R² on questions of 2 to 6 units."""
    many: float = float("nan")
    """R² on questions of more than 6 units."""
    spread: float = float("nan")
    """Standard deviation of all answers of the model; 0 if they are equal."""
    negligible: float = 0.0
    """An error that makes no difference on the target's scale: 0.1 of log-odds."""

    @property
    def words(self) -> str:
        """The verdict for a reader, by the lower end of R² and the size of the error.

        "very good", "good", "fair", "poor" or "unusable"; "uncertain" where the interval of R²
        holds both useless and useful ones; "close" where R² is low because answers hardly differ;
        "constant" where they do not differ at all.
        """
        if self.spread == 0:
            return "constant"
        if not np.isfinite(self.r2):
            return "not measured"
        low = self.r2_range[0] if np.isfinite(self.r2_range[0]) else self.r2
        if low < 0.75 and self.mse <= self.negligible**2:
            return "close"
        high = self.r2_range[1]
        if low < 0.5 <= high and (self.r2 >= 0.75 or high - low > 0.5):
            return "uncertain"
        return graded(min(low, self.r2))


def r_squared(expected: Floats, answered: Floats) -> float:
    """1 − Σ(y − ŷ)² / Σ(y − ȳ)²; of equal answers 1 if they are predicted exactly, else NaN."""
    if len(answered) < 2:
        return float("nan")
    residual = float(((expected - answered) ** 2).sum())
    spread = float(((answered - answered.mean(axis=0)) ** 2).sum())
    noise = 1e-24 * float((answered**2).sum())  # what rounding alone makes of equal numbers
    if spread <= noise:
        return 1.0 if residual <= max(noise, 1e-18) else float("nan")
    return 1.0 - residual / spread


GRADES = ((0.9, "very good"), (0.75, "good"), (0.5, "fair"), (0.0, "poor"))
"""Verdicts with the least R² they need; below all is "unusable"."""


def graded(r2: float) -> str:
    """An R² in words.

    >>> graded(0.8), graded(-1.0)
    ('good', 'unusable')
    """
    return next((word for least, word in GRADES if r2 >= least), "unusable")


DOUBTFUL = ("uncertain", "poor", "unusable", "not measured")
"""Verdicts after which more questions should be asked, or others."""
_BUDGETS = (200, 500, 1000, 2000, 5000)
"""Numbers of questions that are offered."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """Units, their scores, how sure they are, and how far to trust them.

    Score arrays are in unit order; explaining all classes at once gives units × classes arrays
    where the score depends on the class.

    >>> import piste
    >>> e = piste.explain(piste.load("piste:reviews"), "A slow start, but a wonderful ending.")
    >>> e.units[int(np.argmax(e.scores["contribution"]))].text
    'wonderful'
    """

    method: str
    input: Input
    units: tuple[Unit, ...]
    scores: Mapping[str, Floats]
    errors: Mapping[str, Floats]
    """Standard errors, NaN where the method has none."""
    target: Target
    output: Output
    fidelity: Fidelity
    calls: int
    """Questions the model answered for this explanation, held-out ones included."""
    seconds: float
    settings: Mapping[str, Any]
    surrogate: Surrogate
    classifier: Mapping[str, Any]
    versions: Mapping[str, str]
    ranking: str = "contribution"
    """The score that ranks the units, for highlighting and lists."""
    cost: float = float("nan")
    """What the questions cost in tokens, as a number of passes over the whole input."""
    answer: Answer | None = None
    """The answer that is explained, if a language model gave one, token by token."""
    pairs: tuple[PairEffect, ...] = ()
    """Neighbouring units that add something together that neither says apart, the strongest first:
    evidence, on the scale of the contributions, which hold half of it each where the surrogate
    carries the pairs."""
    levels: tuple[Explanation, ...] = ()
    """Explanations of the coarser levels, the coarsest first, if ``units`` were levels."""

    def __post_init__(self) -> None:
        for name in ("scores", "errors"):
            arrays = {key: _frozen(array) for key, array in getattr(self, name).items()}
            object.__setattr__(self, name, MappingProxyType(arrays))
        for name in ("settings", "classifier", "versions"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __getstate__(self) -> dict[str, Any]:
        """Plain parts, so that results can be pickled and copied, without a target's function."""
        state = {
            name: dict(value) if isinstance(value, MappingProxyType) else value
            for name, value in self.__dict__.items()
        }
        return state | {"target": replace(self.target, function=None)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    def __len__(self) -> int:
        return len(self.units)

    def predict(self, keep: ArrayLike) -> float | Floats:
        """What this explanation expects of the target if only some units are kept.

        ``keep`` is a list of unit indices, a boolean mask, or a matrix of masks (then one number
        per row). Explaining all classes, every answer has one number per class.
        """
        counts, single = as_counts(keep, len(self.units))
        answers = self.surrogate.predict(self.scores, counts)
        if not single:
            return answers
        return float(answers[0]) if answers.ndim == 1 else answers[0]

    def of(self, span: SpanChoice) -> Explanation:
        """The explanation of a span of the answer, from the questions asked for this one.

        ``span`` is a piece of the answer, ``e.of("the year 1969")``, or its start and end.
        """
        if self.answer is None:
            raise PisteError(
                "Only an explanation of a language model's answer has spans to explain, and this "
                f"one is of {self.target.name}."
            )
        return VIEWS["explanation_of_span"](self, span)

    @property
    def more_samples(self) -> int | None:
        """How many questions to ask next, where these were too few to trust the scores.

        None where the verdict is good enough, and where more would hardly help: after 20 questions
        for every unit, of a method that has no such number, and where there are no other questions
        to ask about the input.
        """
        known = self.settings.get("samples", "")
        has_samples = known == "auto" or not isinstance(known, str)
        if self.fidelity.words not in DOUBTFUL or not has_samples:
            return None
        wanted = known if isinstance(known, int) else 0 if known == "auto" else _BUDGETS[0]
        if self.calls >= max(20 * len(self.units), 1000) or self.calls < 0.8 * wanted:
            return None
        return next((count for count in _BUDGETS if count >= 2 * self.calls), None)

    @property
    def mixing(self) -> Mixing | None:
        """γ with its error; None for methods that have none."""
        return getattr(self.surrogate, "mixing", None)

    def interactions(self) -> Floats:
        """Pairwise Shapley interactions of the expected answer, units × units."""
        return self.surrogate.interactions(self.scores)

    def score(self, name: str | None = None, label: str | int | None = None) -> Floats:
        """One flat array of a score; for class-wise scores of one class (the predicted one)."""
        name = name or self.ranking
        if name not in self.scores:
            raise PisteError(
                f"This explanation has no score {name!r}: it has {', '.join(self.scores)}."
            )
        scores = self.scores[name]
        return scores if scores.ndim == 1 else scores[:, self._class(label)]

    def size(self, name: str | None = None, label: str | int | None = None) -> Floats:
        """How much units count by a score, whichever way: |score|.

        Scores without a direction are left as they are: an importance is a log-weight, of which
        a very negative one says that the unit hardly counts.
        """
        scores = self.score(name, label)
        return scores if (name or self.ranking) in UNDIRECTED else np.abs(scores)

    def error(self, name: str | None = None, label: str | int | None = None) -> Floats:
        """The standard errors that belong to :meth:`score`."""
        name = name or self.ranking
        errors = self.errors.get(name)
        if errors is None:
            return np.full(len(self.units), np.nan)
        return errors if errors.ndim == 1 else errors[:, self._class(label)]

    def _class(self, label: str | int | None) -> int:
        if label is None:
            return int(np.argmax(self.output.logits))
        names = self.output.labels
        index = names.index(label) if isinstance(label, str) and label in names else label
        if not isinstance(index, int) or not 0 <= index < len(names):
            raise PisteError(f"There is no class {label!r}: the model has {', '.join(names)}.")
        return index

    # -- stored ------------------------------------------------------------------------------

    def to_json(self, path: str | Path | None = None) -> str:
        """The complete result as JSON, also written to ``path`` if given."""
        return VIEWS["explanation_json"](self, path)

    def to_frame(self) -> pandas.DataFrame:
        """One row per unit; everything else rides along in ``attrs``."""
        return VIEWS["explanation_frame"](self)

    def to_csv(self, path: str | Path) -> None:
        """One row per unit; the rest of the result in the first row's last column."""
        VIEWS["explanation_csv"](self, path)

    def to_parquet(self, path: str | Path) -> None:
        """One row per unit; the rest of the result in the file's metadata."""
        VIEWS["explanation_parquet"](self, path)

    def to_shap(self, score: str | None = None) -> shap.Explanation:
        """The scores as a ``shap.Explanation``, so that shap's plots work on them.

        ``score`` is by default the one whose numbers add up to the answer: "shapley" where there
        is one, else the score that ranks.
        """
        return VIEWS["explanation_shap"](self, score)

    @staticmethod
    def from_frame(frame: pandas.DataFrame) -> Explanation:
        """The explanation that :meth:`to_frame` made a table of."""
        return VIEWS["explanation_from_frame"](frame)

    # -- shown -------------------------------------------------------------------------------

    def plot(
        self, kind: str | None = None, path: str | Path | None = None, **options: Any
    ) -> Figure:
        """A matplotlib figure: ``plane``, ``bars``, ``text`` or ``heat``.

        The plane shows what units say alone against their weight, or their contribution where
        weights are not determined.
        A text has no heat map, an image no text. Without a kind, an image's heat maps, and of a
        text the plane where there are both scores, else bars. ``ax=`` draws a plane or bars into
        axes of a figure of your own.
        """
        return VIEWS["explanation_plot"](self, kind, path, **options)

    def to_html(self, path: str | Path | None = None) -> str:
        """A standalone page, also written to ``path`` if given; works offline."""
        return VIEWS["explanation_html"](self, path)

    def _repr_html_(self) -> str:
        return VIEWS["explanation_notebook"](self)

    def __rich__(self) -> RenderableType:
        return VIEWS["explanation_terminal"](self)

    def __str__(self) -> str:
        """Two lines: what the model says and why, and how far to trust it."""
        return VIEWS["explanation_summary"](self)

    def __repr__(self) -> str:
        scores = self.score()
        top = [self.units[unit].text for unit in np.argsort(-np.abs(scores))[:5]]
        verdict, more = self.fidelity.words, self.more_samples
        doubt = f" ({verdict}{f': ask more with samples={more}' if more else ''})"
        return (
            f"<Explanation of {self.target.name} by {self.method}: {len(self.units)} units, "
            f"strongest {', '.join(top)}{self._together()}; R² {self.fidelity.r2:.2f}"
            f"{doubt if verdict in (*DOUBTFUL, 'constant') else ''}, {self.calls} calls"
            f"{''.join(f'; {note}' for note in self._notes())}>"
        )

    def _together(self) -> str:
        """The strongest pair of units with its effect, and how many others there are."""
        found = strongest_pairs(self.pairs)
        if not found:
            return ""
        pair = found[0]
        one, other = (self.units[unit].text for unit in (pair.first, pair.second))
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        return f", together {one} … {other} {pair.effect:+.2f}{more}"

    def _notes(self) -> Iterator[str]:
        """What was read in another way than the reader may think."""
        if "note" in self.classifier:
            yield str(self.classifier["note"]).rstrip(".")
        given = self.settings.get("input")
        if isinstance(given, Mapping) and given.get("unknown_units"):
            yield f"{given['unknown_units']} units unknown to the tokenizer"


def _frozen(array: ArrayLike) -> Floats:
    copy = np.array(array, dtype=np.float64)
    copy.setflags(write=False)
    return copy


def listed_explanations(given: object) -> list[Explanation]:
    """One explanation or several as a list; anything else is refused."""
    found = [given] if isinstance(given, Explanation) else given
    if not isinstance(found, Iterable) or isinstance(found, (str, Mapping)):
        raise PisteError(f"Expected an explanation or a list of them, got {shorten(given)}.")
    listed = list(found)
    for one in listed:
        if not isinstance(one, Explanation):
            raise PisteError(f"Expected an explanation, got {shorten(one)}: call piste.explain.")
    return listed
