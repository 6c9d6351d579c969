"""What the words of a corpus say and weigh: one value and one importance for each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from piste import storage
from piste.errors import PisteError, need
from piste.slalom.link import Saturation
from piste.slalom.surrogate import Slalom
from piste.subject import Subject

Floats = NDArray[np.float64]

FORMAT = 1
_META = b"piste"
_ERRORS = ("value", "importance", "effect")


def keys(subject: Subject, folded: bool) -> list[str]:
    """The words of a subject's units as a vocabulary has them."""
    return [unit.text.lower() if folded else unit.text for unit in subject.units]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """What the words of a corpus say and weigh, to one classifier and one target."""

    words: tuple[str, ...]
    slalom: Slalom
    errors: Mapping[str, Floats]
    """Standard errors of ``value``, ``importance`` and ``effect``."""
    documents: NDArray[np.int64]
    """In how many documents a word was asked about."""
    folded: bool
    """Whether capitals are as small letters to the classifier."""
    about: Mapping[str, Any]
    """Target, model, settings, and the R² on documents it was not fitted to."""

    def __len__(self) -> int:
        return len(self.words)

    def numbers(self, subject: Subject) -> NDArray[np.int64]:
        """For every unit its place among the words, −1 if it is none of them."""
        texts = keys(subject, self.folded)
        return np.array([self._places.get(text, -1) for text in texts], dtype=np.int64)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    def local(self, subject: Subject) -> Slalom:
        """The SLALOM of a text's units; words that are not known change nothing."""
        places = self.numbers(subject)
        known = places >= 0
        values = np.full(len(places), float(self.slalom.base))
        importances = np.zeros(len(places))
        values[known] = self.slalom.values[places[known]]
        importances[known] = self.slalom.importances[places[known]]
        return Slalom(values, importances, self.slalom.weight, self.slalom.base, self.slalom.link)

    @property
    def alone(self) -> Floats:
        """What is foretold for a text of this one word."""
        return self.slalom.predict(sparse.eye_array(len(self), format="csr"))

    @property
    def effect(self) -> Floats:
        """What a word adds to a neutral text of usual length: e^s (v − base) / total weight."""
        apart = self.slalom.values - self.slalom.base
        return np.asarray(np.exp(self.slalom.importances) * apart / self.about["usual_weight"])

    def table(self) -> dict[str, list[Any]]:
        """One row per word."""
        columns = {
            "documents": self.documents,
            "effect": self.effect,
            "effect_error": self.errors["effect"],
            "alone": self.alone,
            "value": self.slalom.values,
            "value_error": self.errors["value"],
            "importance": self.slalom.importances,
            "importance_error": self.errors["importance"],
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
        storage.write_bytes(path, sink.getvalue().to_pybytes())

    def _meta(self) -> dict[str, Any]:
        link = self.slalom.link
        return {
            "piste_vocabulary": FORMAT,
            "weight": self.slalom.weight,
            "base": float(self.slalom.base),
            "link": None if link is None else [link.middle, link.reach],
            "folded": self.folded,
            "about": dict(self.about),
        }

    @staticmethod
    def read(path: str | Path) -> Vocabulary:
        """The vocabulary that :meth:`to_parquet` wrote."""
        parquet: Any = need("pyarrow.parquet", "tables", "A vocabulary")
        if not Path(path).is_file():
            raise PisteError(f"There is no vocabulary {str(path)!r}: make one by piste vocabulary.")
        try:
            table = parquet.read_table(path)
            meta = json.loads(table.schema.metadata[_META])
            rows = table.to_pydict()
            link = None if meta["link"] is None else Saturation(*meta["link"])
            values, importances = np.array(rows["value"]), np.array(rows["importance"])
            return Vocabulary(
                tuple(rows["word"]),
                Slalom(values, importances, meta["weight"], meta["base"], link),
                {name: np.array(rows[f"{name}_error"]) for name in _ERRORS},
                np.array(rows["documents"]),
                meta["folded"],
                meta["about"],
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise PisteError(f"{str(path)!r} is no vocabulary of Piste's ({problem}).") from problem
