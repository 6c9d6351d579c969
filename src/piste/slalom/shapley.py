"""Exact Shapley values and pairwise interactions of the paper's SLALOM, in polynomial time.

The game is F(S) = (u_0 + Σ_{i∈S} w_i v_i) / (w_0 + Σ_{i∈S} w_i), w = e^s. Its multilinear extension
gives φ_i = ∫_0^1 E_{S∼Bernoulli(q), i∉S}[F(S∪i) − F(S)] dq, and 1/x = ∫_0^∞ e^{−tx} dt turns the
expectation into products over independent players: with E_k = e^{−t w_k}, g_k = 1 − q + q E_k,
h_k = q E_k / g_k, b = w v, R = e^{−t w_0} Π_k g_k and H = Σ_k b_k h_k,

    φ_i = ∫∫ (R/g_i) [E_i (b_i + u_0) − u_0 + (E_i − 1)(H − b_i h_i)] dt dq.

Two one-dimensional quadratures remain: Gauss–Legendre in q, trapezoid in log t.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from piste.errors import PisteError
from piste.types import Floats

# Trapezoid step in log t: the integrand is analytic in a strip of half-width π/2, so the error
# falls like exp(−π²/step); 0.33 leaves about 1e-13.
_STEP = 0.33
_COARSE_STEP = 0.7
_MANY = 1000  # players beyond which five digits are enough: exactness would take seconds
_MOST_Q_NODES = 200
_CHUNK = 60_000  # numbers per array at once: what fits into a core's cache
_NOTHING = 1e-25  # a node's weight, against what the largest may be, that is left out


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Integrand pieces at a chunk of quadrature nodes (nodes × players)."""

    weight: Floats  # quadrature weight × R, nodes
    t: Floats
    q: Floats
    absent: Floats  # (E − 1)/g
    present: Floats  # E/g; h = q E/g


def _nodes(
    weights: Floats, counts: Floats, background: float, coarse: bool = False
) -> Iterator[_Nodes]:
    """Chunks of the tensor grid over t and q, without nodes that carry no weight."""
    players = len(weights)
    total = background + float(weights @ counts)
    # Where subsets may be as light as the background or the lightest player, t must reach far.
    least = min(background, weights.min()) if background > 0 else weights.min()
    low, high = np.log((1e-8 if coarse else 1e-13) / total), np.log(45.0 / max(least, 1e-300))
    step = _COARSE_STEP if coarse else _STEP
    log_t = np.arange(low, high + step, step)
    # The integrand changes over widths of 1/n at the ends of 0 … 1, where Gauss nodes lie as
    # densely as 1/m²: a few times √n of them are enough, n/2 + 1 are exact.
    everyone = int(counts.sum())
    count = min(everyone // 2 + 2, 16 + int(2.5 * np.sqrt(everyone)), _MOST_Q_NODES)
    count = min(count, 10 + int(1.2 * np.sqrt(everyone))) if coarse else count
    x, q_weights = _gauss(count)
    q, q_weights = (x + 1) / 2, q_weights / 2
    several = np.flatnonzero(counts > 1)
    # The integral over t is of the order 1/least, so this weight against it is rounding.
    nothing = _NOTHING / max(total, 1e-300)
    rows = max(1, _CHUNK // (players * count))
    for start in range(0, len(log_t), rows):
        t = np.exp(log_t[start : start + rows])
        # expm1 keeps E − 1 exact for small t, where the whole integrand lives off it
        lost = np.expm1(-np.outer(t, weights))
        decay = np.exp(-np.outer(t, weights))
        g = q[None, :, None] * lost[:, None, :]
        g += 1.0
        product = g.prod(axis=2)
        if len(several):
            product *= (g[:, :, several] ** (counts[several] - 1)).prod(axis=2)
        product *= np.exp(-t * background)[:, None] * q_weights[None, :] * (t * step)[:, None]
        at_t, at_q = np.nonzero(product > nothing)
        if not len(at_t):
            continue
        inverse = 1.0 / g[at_t, at_q]
        yield _Nodes(
            weight=product[at_t, at_q],
            t=t[at_t],
            q=q[at_q],
            absent=lost[at_t] * inverse,
            present=decay[at_t] * inverse,
        )


@cache
def _gauss(count: int) -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(count)


def _game(
    values: ArrayLike,
    importances: ArrayLike,
    background: tuple[float, float],
    counts: ArrayLike | None = None,
) -> tuple[Floats, Floats, float, float, Floats]:
    v, s = np.asarray(values, dtype=np.float64), np.asarray(importances, dtype=np.float64)
    if v.ndim != 1 or v.shape != s.shape or len(v) == 0:
        raise PisteError(
            f"Values and importances must be flat arrays of one length, but have the shapes "
            f"{v.shape} and {s.shape}."
        )
    if not (np.isfinite(v).all() and np.isfinite(s).all()):
        raise PisteError("Values and importances must be finite numbers.")
    weight, value = background
    if not weight >= 0 or not np.isfinite(value):
        raise PisteError(
            f"background: expected a weight ≥ 0 and a finite value, got {background!r}."
        )
    # A common factor of all weights changes nothing; this keeps e^s in range.
    shift = s.max()
    copies = np.ones(len(v)) if counts is None else np.asarray(counts, dtype=np.float64)
    if copies.shape != v.shape or (copies < 1).any():
        raise PisteError("counts must give every player a number of copies, at least 1.")
    return np.exp(s - shift), v, float(weight) * float(np.exp(-shift)), float(value), copies


def shapley(
    values: ArrayLike,
    importances: ArrayLike,
    *,
    background: tuple[float, float] = (0.0, 0.0),
    empty: float = 0.0,
    counts: ArrayLike | None = None,
) -> Floats:
    """Shapley value of every player; their sum is F(all) − F(∅).

    ``background`` is (weight e^{s_0}, value v_0) of what is always present. Without one, F(∅) is
    undefined and taken to be ``empty``. ``counts`` says how many identical copies of each player
    take part (the value is that of one copy). Good to ten digits, beyond 1,000 players to five.

    >>> phi = shapley([1.0, -1.0, 0.5], [0.0, 1.0, -1.0])
    >>> w = np.exp([0.0, 1.0, -1.0])
    >>> bool(np.isclose(phi.sum(), w @ [1.0, -1.0, 0.5] / w.sum()))
    True
    """
    w, v, w0, v0, copies = _game(values, importances, background, counts)
    b, u0 = w * v, w0 * v0
    phi = np.zeros(len(w))
    for node in _nodes(w, copies, w0, coarse=len(w) > _MANY):
        total = node.q * (node.present @ (b * copies))
        phi += b * (node.weight @ node.present)
        phi += (node.weight * (u0 + total)) @ node.absent
        phi -= b * ((node.weight * node.q) @ (node.present * node.absent))
    return phi if w0 > 0 else phi - empty / copies.sum()


def interactions(
    values: ArrayLike,
    importances: ArrayLike,
    *,
    background: tuple[float, float] = (0.0, 0.0),
    empty: float = 0.0,
) -> Floats:
    """Pairwise Shapley interaction index, players × players, zero on the diagonal.

    I_ij = ∫_0^1 E_{S∼Bernoulli(q), i,j∉S}[F(S∪ij) − F(S∪i) − F(S∪j) + F(S)] dq: positive where two
    units say more together than apart.

    >>> bool(np.allclose(interactions([1.0, 2.0], [0.0, 0.0]), [[0, -1.5], [-1.5, 0]]))
    True
    """
    w, v, w0, v0, copies = _game(values, importances, background)
    b, u0 = w * v, w0 * v0
    pairs = np.zeros((len(w), len(w)))
    for node in _nodes(w, copies, w0):
        x, y = node.absent, node.present * b
        z = b * (node.q[:, None] * node.present)
        mass = (u0 + z.sum(axis=1)) * node.weight
        half = (node.weight[:, None] * x).T @ (y - x * z)
        pairs += (x * mass[:, None]).T @ x + half + half.T
    if w0 == 0 and len(w) > 1:
        pairs += empty / (len(w) - 1)
    np.fill_diagonal(pairs, 0.0)
    return pairs
