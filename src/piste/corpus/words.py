"""What the words of a corpus do, put together over its documents, by class and by slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from piste.corpus.sql import connected, query_rows
from piste.errors import PisteError
from piste.validation import check_count

if TYPE_CHECKING:
    from piste.vocabulary import Vocabulary

LEAST = 5
"""A word in fewer documents says little about the corpus."""


@dataclass(frozen=True)
class Word:
    """One word in one slice: averages over the documents it stands in."""

    word: str
    target: str
    """What it speaks for or against."""
    slice: str | None
    documents: int
    effect: float
    """Its mean score in the target's own numbers: for SLALOM its Shapley value."""
    error: float
    """Standard error of the effect, over documents."""
    value: float | None = None
    importance: float | None = None
    """None where weights are not determined: the mixing does not stand out from 0."""
    freedom: int | None = None
    """Degrees of freedom of the error; None: one less than there are documents."""

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval."""
        return self.effect - _reach(self.degrees) * self.error

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval."""
        return self.effect + _reach(self.degrees) * self.error

    @property
    def degrees(self) -> int:
        """How many numbers the error comes from, but one."""
        return max(self.documents - 1 if self.freedom is None else self.freedom, 1)


@cache
def _reach(degrees: int) -> float:
    """How many standard errors a 95 % interval reaches to either side."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.975))


def words(
    folder: str | Path, *, by: str | None = None, score: str | None = None, least: int = LEAST
) -> list[Word]:
    """Every word of a corpus run that stands in at least so many documents.

    Of two classes, what speaks for the second is counted for it whichever was explained. With
    ``by``, a column that was kept (or ``predicted``), there is a row for each of its values.
    """
    check_count("least", least)
    with connected(folder) as connection:
        columns = {one[0] for one in connection.execute("DESCRIBE units").fetchall()}
        kept = {one[0] for one in connection.execute("DESCRIBE documents").fetchall()}
        if by is not None and by not in kept:
            raise PisteError(
                f"The results have no column {by!r} to slice by: keep it in the run by --keep, or "
                f"choose one of {', '.join(sorted(kept - {'about', 'text', 'pair'}))}."
            )
        chosen = score or _usual_score(connection, columns)
        if chosen not in columns:
            raise PisteError(f"The results have no score {chosen!r} of a single number.")
        rows = query_rows(connection, _sql(chosen, by, columns), [least])
    found = [Word(*row[:4], *map(_steady, row[4:])) for row in rows]
    return sorted(
        found, key=lambda one: (one.target, one.slice is None, one.slice, -one.effect, one.word)
    )


def _steady(number: float | None) -> float | None:
    """Nine digits: the last ones of a sum depend on which thread was first."""
    return None if number is None else float(f"{number:.9g}")


def _usual_score(connection: Any, columns: set[str]) -> str:
    """A score in the target's own numbers, or else the one that ranks."""
    if "shapley" in columns:
        return "shapley"
    row = connection.execute("SELECT about ->> 'ranking' FROM documents LIMIT 1").fetchone()
    return "contribution" if row is None else str(row[0])


_WEIGHED = """
    CAST(about -> 'surrogate' -> 'mixing' ->> 'value' AS DOUBLE)
    > greatest(2 * CAST(about -> 'surrogate' -> 'mixing' ->> 'error' AS DOUBLE), 0.02)
"""
"""Whether a document's weights are determined, as :class:`piste.surrogates.Mixing` has it; results
of earlier versions have no mixing."""


def _sql(score: str, by: str | None, columns: set[str]) -> str:
    """One row per word, target and slice; every document counts once."""
    slice_of = "NULL" if by is None else f'CAST("{by}" AS VARCHAR)'
    both = {"value", "importance"} <= columns
    extra = "NULL AS v, NULL AS s"
    if both:
        extra = "avg(sign * units.value) AS v, avg(importance) FILTER (weighed) AS s"
    return f"""
        WITH told AS (
            SELECT document, {slice_of} AS slice,
                   (about -> 'output' -> 'labels') AS labels,
                   CAST(about -> 'target' -> 'indices' ->> 0 AS INTEGER) AS index,
                   about -> 'target' ->> 'kind' AS kind, target,
                   kind = 'class' AND json_array_length(labels) = 2 AS two,
                   CASE WHEN two AND index = 0 THEN -1 ELSE 1 END AS sign,
                   coalesce({_WEIGHED}, true) AS weighed,
                   CASE WHEN two THEN 'log-odds of ''' || (labels ->> 1) || '''' ELSE target END
                       AS aim
            FROM documents
        ), apiece AS (
            SELECT document, slice, aim, lower(units.text) AS word,
                   avg(sign * units."{score}") AS effect, {extra}
            FROM units JOIN told USING (document)
            WHERE regexp_matches(units.text, '\\w')
            GROUP BY document, slice, aim, word
        )
        SELECT word, aim, slice, count(*) AS documents, avg(effect),
               coalesce(stddev_samp(effect) / sqrt(count(*)), 0), avg(v), avg(s)
        FROM apiece GROUP BY word, aim, slice HAVING count(*) >= ?
    """


def disagreeing(rows: Sequence[Word], count: int = 10) -> list[Word]:
    """Words that say much and weigh little, or weigh much and say little, of their slice.

    They are those whose ranks by |value| and by importance lie furthest apart: what one score per
    word can't show.

    >>> rows = [Word(w, "t", None, 9, 0.0, 0.0, v, s) for w, v, s in
    ...         (("the", 3.0, -2.0), ("fine", 1.0, 0.0), ("plot", 0.1, 2.0))]
    >>> [row.word for row in disagreeing(rows, 2)]
    ['plot', 'the']
    """
    known = [row for row in rows if row.value is not None and row.importance is not None]
    gaps: dict[int, float] = {}
    for target, part in {(row.target, row.slice) for row in known}:
        own = [
            place for place, row in enumerate(known) if (row.target, row.slice) == (target, part)
        ]
        by_value = _ranks(own, {place: abs(known[place].value or 0.0) for place in own})
        by_weight = _ranks(own, {place: known[place].importance or 0.0 for place in own})
        gaps |= {place: abs(by_value[place] - by_weight[place]) for place in own}
    order = sorted(gaps, key=lambda place: (-gaps[place], known[place].word))
    return [known[place] for place in order[:count]]


def _ranks(places: Sequence[int], numbers: Mapping[int, float]) -> dict[int, int]:
    ordered = sorted(places, key=lambda place: numbers[place])
    return {place: rank for rank, place in enumerate(ordered)}


@dataclass(frozen=True)
class Change:
    """A word that is in both of two corpora, or known to both of two models."""

    word: str
    target: str
    before: Word
    after: Word

    @property
    def difference(self) -> float:
        """How much more it speaks for the target in the second."""
        return self.after.effect - self.before.effect

    @property
    def error(self) -> float:
        """Standard error of the difference."""
        return float((self.before.error**2 + self.after.error**2) ** 0.5)

    @property
    def chance(self) -> float:
        """How often a difference as large comes about by chance."""
        from scipy.special import stdtr

        if self.error == 0:
            return 1.0
        fewest = min(self.before.degrees, self.after.degrees)
        return 2 * float(stdtr(fewest, -abs(self.difference) / self.error))


def diff(
    before: str | Path, after: str | Path, *, score: str | None = None, least: int = LEAST
) -> list[Change]:
    """What words do in one and in another: two corpus runs, or two vocabularies.

    The clearest come first; :func:`clear` says which are more than so many words show by chance.
    """
    check_count("least", least)
    one, other = (_known(path, score, least) for path in (before, after))
    shared = [key for key in one if key in other]
    if not shared:
        raise PisteError(
            f"{str(before)!r} and {str(after)!r} have no word in common that is in {least} "
            "documents of both and about the same target."
        )
    changes = [
        Change(word, target, one[word, target], other[word, target]) for word, target in shared
    ]
    return sorted(changes, key=lambda change: (change.chance, change.word))


def clear(changes: Sequence[Change], share: float = 0.05) -> list[Change]:
    """Those of which at most a ``share`` is there by chance (Benjamini and Hochberg, 1995)."""
    ordered = sorted(changes, key=lambda change: change.chance)
    ranked = enumerate((change.chance for change in ordered), start=1)
    passed = [rank for rank, chance in ranked if chance <= share * rank / len(ordered)]
    return ordered[: max(passed, default=0)]


def _known(path: str | Path, score: str | None, least: int) -> dict[tuple[str, str], Word]:
    if Path(path).is_dir():
        found = words(path, score=score, least=least)
    else:
        from piste.vocabulary import Vocabulary

        found = from_vocabulary(Vocabulary.read(path), least)
    return {(one.word, one.target): one for one in found}


def from_vocabulary(vocabulary: Vocabulary, least: int = LEAST) -> list[Word]:
    """The words of a vocabulary as those of a corpus run, in its order."""
    table = vocabulary.table()
    columns = ("word", "documents", "effect", "effect_error", "value", "importance")
    rows = zip(*(table[name] for name in columns), strict=True)
    target, weighed = str(vocabulary.about["target"]), vocabulary.mixing.told
    return [
        Word(
            word,
            target,
            None,
            documents,
            effect,
            error,
            value,
            importance if weighed else None,
            vocabulary.freedom,
        )
        for word, documents, effect, error, value, importance in rows
        if documents >= least
    ]
