"""What the words of a corpus say and weigh: one surrogate for all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from piste.data import files
from piste.data.parquet_files import read_parquet
from piste.errors import READING_ERRORS, PisteError, need, one_line
from piste.slalom.surrogate import Background, Saturation, Slalom
from piste.subject import Subject
from piste.surrogates import Mixing
from piste.types import Floats, Ints

FORMAT = 2
"""1 was a weighted mean of values beside a background, with errors by a jackknife."""
_META = b"piste"
_ERRORS = ("value", "importance", "evidence", "effect")
_GROUPS = 5
"""Of documents, in the jackknife of format 1."""


def keys(subject: Subject, folded: bool) -> list[str]:
    """The words of a subject's units as a vocabulary has them."""
    return [unit.text.lower() if folded else unit.text for unit in subject.units]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """What the words of a corpus say and weigh, to one classifier and one target."""

    words: tuple[str, ...]
    slalom: Slalom
    errors: Mapping[str, Floats]
    """Standard errors of ``value``, ``importance``, ``evidence`` and ``effect``."""
    documents: Ints
    """In how many documents a word was asked about."""
    folded: bool
    """Whether capitals are as small letters to the classifier."""
    about: Mapping[str, Any]
    """Target, model, settings, and the R² on documents it was not fitted to."""
    mixing_error: float = 0.0
    """Standard error of the mixing: 0 where the form fixes it."""

    def __len__(self) -> int:
        return len(self.words)

    @property
    def mixing(self) -> Mixing:
        """γ with its error."""
        return Mixing(float(self.slalom.mixing), self.mixing_error)

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the errors."""
        return int(self.about.get("groups", self.about["documents"])) - 1

    def numbers(self, subject: Subject) -> Ints:
        """For every unit its place among the words, −1 if it is none of them."""
        texts = keys(subject, self.folded)
        return np.array([self._places.get(text, -1) for text in texts], dtype=np.int64)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    def local(self, subject: Subject) -> Slalom:
        """The surrogate of a text's types of units, with a mean importance of 0.

        Words that are not known have no evidence and the mean weight of the vocabulary.
        """
        first = np.unique(subject.types, return_index=True)[1]
        places = self.numbers(subject)[first]
        evidence = np.where(places >= 0, self.slalom.evidence[places], 0.0)
        importances = np.where(places >= 0, self.slalom.importances[places], 0.0)
        shift = float(importances.mean())
        background = self.slalom.background
        if background is not None:
            background = replace(background, importance=background.importance - shift)
        return replace(
            self.slalom,
            evidence=evidence,
            importances=importances - shift,
            background=background,
        )

    def weight(self, subject: Subject) -> float:
        """The total weight of a text, the background's included."""
        places = self.numbers(subject)
        total = np.exp(np.where(places >= 0, self.slalom.importances[places], 0.0)).sum()
        background = self.slalom.background
        return float(total + (0.0 if background is None else np.exp(background.importance)))

    @cached_property
    def value(self) -> Floats:
        """What is expected of a text of this one word."""
        return self.slalom.values

    @property
    def effect(self) -> Floats:
        """What a word adds to a neutral text of usual length, before saturation: (w / W)^γ e."""
        share = self.slalom.importances - np.log(self.about["usual_weight"])
        return np.asarray(np.exp(self.slalom.mixing * share) * self.slalom.evidence)

    def table(self) -> dict[str, list[Any]]:
        """One row per word."""
        columns = {
            "documents": self.documents,
            "effect": self.effect,
            "effect_error": self.errors["effect"],
            "value": self.value,
            "value_error": self.errors["value"],
            "importance": self.slalom.importances,
            "importance_error": self.errors["importance"],
            "evidence": self.slalom.evidence,
            "evidence_error": self.errors["evidence"],
        }
        return {"word": list(self.words)} | {name: one.tolist() for name, one in columns.items()}

    def to_parquet(self, path: str | Path) -> None:
        """A table that any reader takes; everything else rides along in its metadata."""
        arrow: Any = need("pyarrow", "tables", "A vocabulary")
        parquet: Any = need("pyarrow.parquet", "tables", "A vocabulary")
        table = arrow.table(self.table())
        table = table.replace_schema_metadata({_META: json.dumps(self._meta(), default=str)})
        sink = arrow.BufferOutputStream()
        parquet.write_table(table, sink, compression="zstd")
        files.write_bytes(path, sink.getvalue().to_pybytes())

    def _meta(self) -> dict[str, Any]:
        link, background = self.slalom.link, self.slalom.background
        return {
            "piste_vocabulary": FORMAT,
            "mixing": float(self.slalom.mixing),
            "mixing_error": self.mixing_error,
            "base": float(self.slalom.base),
            "background": background and [background.importance, float(background.evidence)],
            "link": link and [link.middle, link.reach],
            "folded": self.folded,
            "about": dict(self.about),
        }

    @staticmethod
    def read(path: str | Path) -> Vocabulary:
        """The vocabulary that :meth:`to_parquet` wrote, of this version or an earlier one."""
        if not Path(path).is_file():
            raise PisteError(f"There is no vocabulary {str(path)!r}: make one by piste vocabulary.")
        try:
            table = read_parquet(path)
            meta = json.loads((table.schema.metadata or {})[_META])
            rows = table.to_pydict()
            written = meta["piste_vocabulary"]
            build = _first_format if written == 1 else _second_format
            found = build(rows, meta)
        except READING_ERRORS as problem:
            raise PisteError(
                f"{str(path)!r} is no vocabulary of Piste's ({one_line(problem)})."
            ) from problem
        if written > FORMAT:
            raise PisteError(
                f"{str(path)!r} has the format {written}, this version of Piste reads 1 to "
                f"{FORMAT}: update Piste, or fit it again."
            )
        return found


def read(path: str | Path) -> Vocabulary:
    """A stored vocabulary."""
    return Vocabulary.read(path)


def _second_format(rows: Mapping[str, Any], meta: Mapping[str, Any]) -> Vocabulary:
    background = None if meta["background"] is None else Background(*meta["background"])
    slalom = Slalom(
        np.array(rows["evidence"]),
        np.array(rows["importance"]),
        meta["mixing"],
        meta["base"],
        background,
        _link(meta),
    )
    errors = {name: np.array(rows[f"{name}_error"], dtype=np.float64) for name in _ERRORS}
    return _built(rows, meta, slalom, errors, meta["about"], meta["mixing_error"])


def _first_format(rows: Mapping[str, Any], meta: Mapping[str, Any]) -> Vocabulary:
    """A weighted mean of values: the base is what the background says, evidence goes beyond it.

    Its errors are of values that were no answers to a word alone: of those, none is known.
    """
    base, weight = float(meta["base"]), float(meta["weight"])
    background = Background(float(np.log(weight)), 0.0) if weight > 0 else None
    evidence = np.array(rows["value"]) - base
    slalom = Slalom(evidence, np.array(rows["importance"]), 1.0, base, background, _link(meta))
    errors = {name: np.array(rows[f"{name}_error"]) for name in ("importance", "effect")}
    errors["evidence"] = np.array(rows["value_error"])
    errors["value"] = np.full(len(evidence), np.nan)
    return _built(rows, meta, slalom, errors, {**meta["about"], "groups": _GROUPS}, 0.0)


def _link(meta: Mapping[str, Any]) -> Saturation | None:
    return None if meta["link"] is None else Saturation(*meta["link"])


def _built(
    rows: Mapping[str, Any],
    meta: Mapping[str, Any],
    slalom: Slalom,
    errors: Mapping[str, Floats],
    about: Mapping[str, Any],
    mixing_error: float,
) -> Vocabulary:
    return Vocabulary(
        tuple(rows["word"]),
        slalom,
        errors,
        np.array(rows["documents"]),
        meta["folded"],
        about,
        mixing_error,
    )
