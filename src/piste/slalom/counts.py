"""How often each type occurs in each question: dense or sparse, with the products the fit needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]

# A row of k units costs k²/2 scattered additions, or n² dense ones that are some fifty times
# cheaper each; the absolute bound keeps the list of pairs within a few times the nonzeros.
_SHORT_SHARE = 1 / 7
_SHORT = 16
# Below this share of nonzeros, products with vectors are cheaper by list than by table.
_SPARSE = 0.1
_CHUNK = 1 << 18  # numbers of a dense block held at once: what fits into a core's cache


class Counts:
    """Questions × types, without its rows' zeros wherever there are many of them."""

    def __init__(self, matrix: Floats | Any) -> None:
        """Take a dense array or any scipy.sparse matrix of finite numbers ≥ 0."""
        self.shape: tuple[int, int] = matrix.shape
        questions, types = self.shape
        if sparse.issparse(matrix):
            listed = sparse.csr_array(matrix, dtype=np.float64)
            listed.sum_duplicates()
            listed.eliminate_zeros()
            lengths = np.diff(listed.indptr)
            dense = int(lengths.sum()) > _SPARSE * questions * types
        else:
            lengths = np.count_nonzero(matrix, axis=1)
            dense = int(lengths.sum()) > _SPARSE * questions * types
            listed = None if dense else sparse.csr_array(matrix)
        self._table: Floats | None = None
        if dense:
            self._table = listed.toarray() if listed is not None else np.asarray(matrix)
            self._columns: Any = self._table.T
        else:
            # Both orders, for a product with the transpose runs by columns.
            self._listed = listed
            self._columns = listed.T.tocsr()
        self._lengths = lengths
        self._pairs: _Pairs | None = None
        self._long: Any = None

    @property
    def is_sparse(self) -> bool:
        return self._table is None

    @property
    def _rows(self) -> Any:
        return self._listed if self._table is None else self._table

    def times(self, right: Floats) -> Floats:
        """Counts @ right."""
        return self._rows @ right

    def transposed_times(self, right: Floats) -> Floats:
        """Countsᵀ @ right."""
        return self._columns @ right

    def scaled(self, rows: Floats, columns: Floats) -> Any:
        """The sparse matrix rows_m · counts_mi · columns_i."""
        listed = sparse.csr_array(self._rows).copy()
        listed.data *= np.repeat(rows, np.diff(listed.indptr)) * columns[listed.indices]
        return listed

    def squared_transposed_times(self, right: Floats) -> Floats:
        """(counts²)ᵀ @ right, the squares taken number by number."""
        if self._table is not None:
            return np.square(self._table).T @ right
        squared = self._columns.copy()
        squared.data = squared.data**2
        return squared @ right

    def take(self, rows: NDArray[np.int64]) -> Counts:
        """Some of the questions."""
        return Counts(self._rows[rows])

    def grams(self, weights: Floats) -> Floats:
        """Σ_m weights_km c_m c_mᵀ for every row k of ``weights`` (≥ 0): k × types × types.

        Short questions are added pair by pair, long ones by dense products of blocks of rows: at
        no time there is a dense questions × types.
        """
        if self._pairs is None:
            self._split()
        assert self._pairs is not None
        result = self._pairs.grams(weights)
        rows, table = self._long
        size = max(_CHUNK // max(self.shape[1], 1), 64)
        for start in range(0, len(rows), size):
            chosen = rows[start : start + size]
            block = table[start : start + size]
            block = block.toarray() if sparse.issparse(block) else block
            for gram, root in zip(result, np.sqrt(weights[:, chosen]), strict=True):
                scaled = block * root[:, None]
                gram += scaled.T @ scaled
        return result

    def _split(self) -> None:
        """Tell short questions from long ones; done once, for only direct solvers want grams."""
        short = self._lengths <= min(_SHORT, _SHORT_SHARE * self.shape[1])
        listed = self._rows[short]
        listed = listed if sparse.issparse(listed) else sparse.csr_array(listed)
        self._pairs = _Pairs(listed, np.flatnonzero(short))
        long = np.flatnonzero(~short)
        table = self._rows if len(long) == self.shape[0] else self._rows[long]
        self._long = long, table


class _Pairs:
    """All pairs of units that share a short question."""

    def __init__(self, listed: Any, numbers: NDArray[np.int64]) -> None:
        self._types = listed.shape[1]
        lengths = np.diff(listed.indptr)
        places, products, rows = [], [], []
        for length in np.unique(lengths[lengths > 0]):
            chosen = np.flatnonzero(lengths == length)
            at = listed.indptr[chosen][:, None] + np.arange(length)
            columns, counts = listed.indices[at].astype(np.int64), listed.data[at]
            first, second = np.triu_indices(int(length))
            low = np.minimum(columns[:, first], columns[:, second])
            high = np.maximum(columns[:, first], columns[:, second])
            places.append((low * self._types + high).ravel())
            # Adding the transpose at the end doubles the diagonal, so half of it is enough here.
            share = np.where(first == second, 0.5, 1.0)
            products.append((counts[:, first] * counts[:, second] * share).ravel())
            rows.append(np.repeat(numbers[chosen], len(first)))
        self._places = np.concatenate(places) if places else np.zeros(0, dtype=np.int64)
        self._products = np.concatenate(products) if products else np.zeros(0)
        self._rows = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)

    def grams(self, weights: Floats) -> Floats:
        types = self._types
        result = np.zeros((len(weights), types, types))
        if not len(self._places):
            return result
        for gram, own in zip(result, weights, strict=True):
            upper = np.bincount(self._places, self._products * own[self._rows], types * types)
            upper = upper.reshape(types, types)
            np.add(upper, upper.T, out=gram)
        return result
