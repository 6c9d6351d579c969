"""Fit the family to counts and outputs, and choose its form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from threadpoolctl import ThreadpoolController

from piste.errors import PisteError
from piste.slalom.classes import fit_classes
from piste.slalom.family import Form, Questions, is_large
from piste.slalom.sgd import solve_sgd
from piste.slalom.solver import MIXING_SPREAD, USUAL_MIXING, Posterior, solve
from piste.slalom.surrogate import Noise, Slalom
from piste.types import Flags, Floats

FormChoice = Literal["auto", "paper", "additive", "mixed", "softmax"]
FORMS: dict[str, Form] = {
    "paper": Form(1.0),
    "additive": Form(0.0, saturation=True),
    "softmax": Form(1.0, saturation=True),
    "mixed": Form(None, saturation=True),
}
"""Forms by name. "auto" chooses among all but "paper", each with and without saturation; of few
answers among those with saturation, and half-way between them."""

_OUT = 0.25
"""Of log marginal likelihood a question: what is so far behind is not followed any further."""
_NEAR = 0.12
"""A mixing as near to an end is compared with the end itself."""
_CLOSE = 1.1
"""Reach of a link, in the largest distance of an answer from its middle, that shows in the answers:
tanh is two fifths of the way short of a straight line there."""
_MARGIN = 3.0
"""By how much the log marginal likelihood must be higher to prefer a form that has more."""
_FEW_ANSWERS = 12
"""Below, answers show neither bounds nor a form."""
_PER_TYPE, _ENOUGH_ANSWERS = 1.5, 300
"""Answers for every type of unit, and in all, below which no mixing is learned: its prior's mean is
taken."""
_MOST_DIRECTIONS = 4
"""Principal directions of several outputs that shared weights are found from."""
# Numbers in the largest matrix; below, waking threads (and fighting torch's over the cores) takes
# several times longer than the arithmetic.
_WORTH_THREADS = 2_000_000
_EXACT = 1e-8  # of the variance: an error below is as good as none


@dataclass(frozen=True)
class Fit:
    """A fitted surrogate with the precision of its parameters."""

    slalom: Slalom
    form: Form
    loss: float
    """Mean squared error on the questions it was fitted to."""
    active: Flags
    """Types that occur in some question, or all if there was a guide; of the others nothing is
    known."""
    posterior: Posterior | None
    """None after gradient descent, which has no errors."""
    iterations: int
    converged: bool
    left_out: Floats
    """Leave-one-out residuals of the questions; the residuals themselves where there are none."""
    compared: tuple[tuple[str, float], ...] = ()
    """Forms that were tried, with their log marginal likelihoods."""

    def predict(self, counts: ArrayLike | Any, together: Floats | None = None) -> Floats:
        """Expected answers to rows of counts, and of which pairs are there if it has pairs."""
        more = 0.0 if together is None else together @ self.pairs
        return self.slalom.predict(counts, more)

    @property
    def pairs(self) -> Floats:
        """What each pair adds to the evidence."""
        if self.posterior is None:
            return np.zeros(0)
        return self.posterior.theta[self.posterior.layout.pairs]

    @property
    def pair_errors(self) -> Floats:
        """Standard errors of what pairs add."""
        if self.posterior is None:
            return np.zeros(0)
        return np.linalg.norm(self.posterior.factor[self.posterior.layout.pairs], axis=1)

    @property
    def mixing_error(self) -> float:
        """Standard error of γ: 0 where the form fixes it, its prior's if too little was asked."""
        if self.posterior is None or self.posterior.layout.mixing is None:
            assumed = self.compared and self.form.mixing == USUAL_MIXING
            return MIXING_SPREAD if assumed else 0.0
        return float(np.linalg.norm(self.posterior.factor[self.posterior.layout.mixing]))


def fit(
    counts: ArrayLike | Any,
    outputs: ArrayLike,
    *,
    form: FormChoice | Form = "auto",
    solver: Literal["newton", "sgd"] = "newton",
    start: Fit | None = None,
    together: Floats | None = None,
    guide: Floats | None = None,
    **options: Any,
) -> Fit:
    """Fit F(c) to outputs.

    ``counts`` is questions × types (how often each type occurs), dense or any scipy.sparse;
    ``outputs`` has one number per question, or one per class (then weights are shared, C.1, and
    nothing saturates). ``form`` "paper" is SLALOM as published; "auto" compares additive, mixed
    and softmax forms, with and without saturation, by their marginal likelihood: a form is
    preferred to a simpler one, and one without saturation to one with it, only if its logarithm
    is higher by 3. From fewer than 300 answers, and than one and a half for every type, no mixing
    is learned: they are fitted half-way (γ = ½), or with γ = 0 or 1 if that is likelier by 3 and
    closer to answers that are left out, or likelier by a quarter for every answer. ``start`` is an
    earlier fit to begin at, whose form is kept. ``together`` (questions × pairs) is 1 where both
    units of a pair are there: each pair then has evidence of its own. ``guide`` has a number for
    every type, such as a gradient, that its evidence is expected to follow up to a factor, which is
    fitted, too (one output only): few answers then say more. ``solver="sgd"`` is the paper's
    algorithm 1 (options: epochs, learning_rate, batch, seed).

    >>> rng = np.random.default_rng(0)
    >>> truth = Slalom(np.array([1.0, -1.0, 2.0]), np.array([0.5, -0.5, 0.0]))
    >>> counts = rng.integers(0, 3, (40, 3)) + np.eye(3)[rng.integers(0, 3, 40)]
    >>> found = fit(counts, truth.predict(counts))
    >>> found.slalom.mixing, bool(np.allclose(found.slalom.values, truth.values, atol=1e-4))
    (1.0, True)
    """
    matrix, answers = _check(counts, outputs)
    chosen = _form(form)
    if guide is not None and (guide.shape != (matrix.shape[1],) or answers.ndim != 1):
        raise PisteError(
            f"guide: expected a number for each of {matrix.shape[1]} types and one output, got the "
            f"shape {guide.shape} and outputs of the shape {answers.shape}."
        )
    active = np.asarray((matrix > 0).sum(axis=0) > 0).ravel() | (guide is not None)
    used = matrix if active.all() else matrix[:, active]
    columns = answers[:, None] if answers.ndim == 1 else answers
    if solver == "sgd":
        return _by_descent(used, active, answers, options)
    if solver != "newton":
        raise PisteError(f"solver: expected 'newton' or 'sgd', got {solver!r}.")
    if options:
        raise PisteError(f"Expected no options for solver='newton', got {next(iter(options))!r}.")
    asked = Questions(used, together, guide)
    reduced, basis = _leading(columns)
    flat = answers.ndim == 1
    with threads_for(asked.count * asked.types * reduced.shape[1]):
        if start is not None and start.posterior is not None and start.form is not None:
            same = start.posterior if np.array_equal(start.active, active) else None
            posterior, compared = solve(asked, reduced, start.form, start=same), start.compared
        elif chosen is not None:
            posterior, compared = _best_of(asked, reduced, _allowed(chosen, flat)), ()
        else:
            posterior, compared = _choose(asked, reduced, flat)
        slalom = posterior.layout.slalom(posterior.theta, flat)
        left_out = posterior.left_out
        if basis is not None:
            slalom, posterior, left_out = fit_classes(asked, columns, posterior, basis)
    found = Fit(
        _with_unseen(slalom, active),
        posterior.layout.form,
        float("nan"),
        active,
        posterior,
        posterior.iterations,
        posterior.converged,
        left_out[:, 0] if flat else left_out,
        compared,
    )
    return replace(found, loss=float(((found.predict(matrix, together) - answers) ** 2).mean()))


def fit_with_prior(
    counts: Any,
    outputs: Floats,
    form: Form,
    prior: tuple[Floats, Floats],
    noise: Noise | None = None,
    start: Fit | None = None,
    guide: Floats | None = None,
) -> Fit:
    """Fit a form of which something is known before, see :func:`~piste.slalom.solver.solve`.

    Types that no question holds are as the prior has them. ``start`` is an earlier fit of the same
    form to begin at; ``guide`` is that of :func:`fit`.
    """
    asked = Questions(counts, guide=guide)
    with threads_for(asked.count * asked.types):
        begun = None if start is None else start.posterior
        posterior = solve(asked, outputs[:, None], form, prior=prior, noise=noise, start=begun)
    slalom = posterior.layout.slalom(posterior.theta, True)
    return Fit(
        slalom,
        form,
        float(((slalom.predict(counts) - outputs) ** 2).mean()),
        np.ones(asked.types, dtype=np.bool_),
        posterior,
        posterior.iterations,
        posterior.converged,
        posterior.left_out[:, 0],
    )


def _form(form: FormChoice | Form) -> Form | None:
    if isinstance(form, Form):
        return form
    if form != "auto" and form not in FORMS:
        raise PisteError(f"form: expected one of auto, {', '.join(FORMS)}, got {form!r}.")
    return None if form == "auto" else FORMS[form]


def _allowed(form: Form, flat: bool) -> Form:
    """Several outputs share their weights and do not saturate."""
    return form if flat else Form(form.mixing, False, form.background)


def _leading(outputs: Floats) -> tuple[Floats, Floats | None]:
    """Outputs in at most four principal directions; None if they are as they were."""
    if outputs.shape[1] == 1:
        return outputs, None
    centred = outputs - outputs.mean(axis=0)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    kept = max(int((sizes > 1e-9 * max(float(sizes[0]), 1e-300)).sum()), 1)
    basis = directions[: min(kept, _MOST_DIRECTIONS)]
    return outputs @ basis.T, basis


# -- which form --------------------------------------------------------------------------------


def _best_of(asked: Questions, outputs: Floats, form: Form) -> Posterior:
    """A form's fit; a free mixing is begun at the best of several fixed ones."""
    if form.mixing is not None:
        return solve(asked, outputs, form)
    fixed = _additive(asked, outputs, form.saturation)[-1:]
    for mixing in (USUAL_MIXING, 1.0):
        fixed.append(solve(asked, outputs, replace(form, mixing=mixing), roughly=True))
    return solve(asked, outputs, form, start=max(fixed, key=_evidence))


_Choice = tuple[Posterior, tuple[tuple[str, float], ...]]
"""A fit, and the forms that were tried, with their log marginal likelihoods."""


def _choose(asked: Questions, outputs: Floats, flat: bool) -> _Choice:
    """The likeliest form, the simplest of equals."""
    saturating = flat and asked.count >= _FEW_ANSWERS
    exact = _EXACT * max(float(outputs.var(axis=0).mean()), 1e-300)
    few = asked.types > 1 and asked.count < min(_PER_TYPE * asked.types, _ENOUGH_ANSWERS)
    if few and not _is_sum(asked, outputs, exact):
        return _choose_by_few(asked, outputs, saturating)
    found = _additive(asked, outputs, saturating)
    best = max(found, key=_evidence)
    half = solve(asked, outputs, Form(USUAL_MIXING, saturating), start=found[-1], roughly=True)
    large = is_large(asked.types, outputs.shape[1])  # then a rough fit is too rough to be given up
    if large or _evidence(half) > _evidence(best) - _OUT * asked.count:
        starts = [best, half]
        if half is max(starts, key=_evidence):
            found.append(solve(asked, outputs, Form(1.0, saturating), roughly=True))
            starts.append(found[-1])
        found += _free_mixing(asked, outputs, max(starts, key=_evidence))
    best = max(found, key=_evidence)
    straight = replace(best.layout.form, saturation=False)
    if all(one.layout.form != straight for one in found) and not _bends(best, outputs):
        found.append(solve(asked, outputs, straight, start=best, roughly=True))
    chosen = _preferred(found, exact)
    return solve(asked, outputs, chosen.layout.form, start=chosen), _tried(found)


def _is_sum(asked: Questions, outputs: Floats, exact: float) -> bool:
    """Whether a sum meets the answers exactly, and they are more than it has parts."""
    if asked.count <= asked.types:
        return False
    straight = solve(asked, outputs, Form(0.0), roughly=True)
    return _left_out_error(straight) < exact


def _choose_by_few(asked: Questions, outputs: Floats, saturating: bool) -> _Choice:
    """Half-way between additive and softmax, unless everything speaks for one of them.

    So few answers can be fitted by any form, and what is said of long questions then differs most:
    in an additive form all errors add up, half-way they grow with the root of the size.
    """
    forms = [Form(mixing, saturating) for mixing in (USUAL_MIXING, 0.0, 1.0)]
    half, *ends = found = [solve(asked, outputs, form, roughly=True) for form in forms]
    chosen = half
    for end in ends if asked.count >= _FEW_ANSWERS else ():
        ahead = _evidence(end) - _evidence(half)
        closer = _left_out_error(end) < _left_out_error(half)
        clear = ahead > (_MARGIN if closer else _OUT * asked.count)
        if clear and _evidence(end) > _evidence(chosen):
            chosen = end
    return solve(asked, outputs, chosen.layout.form, start=chosen), _tried(found)


def _tried(found: list[Posterior]) -> tuple[tuple[str, float], ...]:
    return tuple((one.layout.form.name, _evidence(one)) for one in found)


def _preferred(found: list[Posterior], exact: float) -> Posterior:
    """The simplest form that is exact, or else the simplest of those that are about as likely.

    Answers have bounds unless they say otherwise: without any, a few answers to short questions
    would be carried on to numbers that the model never gives.
    """

    def simplest_first(one: Posterior) -> tuple[int, bool]:
        return one.layout.form.complexity, not one.layout.form.saturation

    right = [one for one in found if _left_out_error(one) < exact]
    if right:
        return min(right, key=lambda one: (one.layout.form.complexity, one.layout.form.saturation))
    chosen, *others = sorted(found, key=simplest_first)
    for one in others:
        if _evidence(one) > _evidence(chosen) + _MARGIN:
            chosen = one
    return chosen


def _additive(asked: Questions, outputs: Floats, saturating: bool) -> list[Posterior]:
    """Additive fits, first without saturation."""
    found = [solve(asked, outputs, Form(0.0), roughly=True)]
    if saturating:
        found.append(solve(asked, outputs, Form(0.0, True), start=found[0], roughly=True))
    return found


def _free_mixing(asked: Questions, outputs: Floats, start: Posterior) -> list[Posterior]:
    """A fit of the mixing, and one with the mixing at 0 or 1 if it ends close to it."""
    free = replace(start.layout.form, mixing=None)
    found = [solve(asked, outputs, free, start=start, roughly=True)]
    reached = found[0].layout.gamma(found[0].theta)
    if min(reached, 1.0 - reached) < _NEAR:
        end = replace(free, mixing=float(round(reached)))
        found.append(solve(asked, outputs, end, start=found[0], roughly=True))
    return found


def _bends(posterior: Posterior, outputs: Floats) -> bool:
    """Whether answers come so close to the bounds of the link that none can do without it."""
    link = posterior.layout.slalom(posterior.theta, True).link
    return link is not None and link.reach < _CLOSE * float(np.abs(outputs - link.middle).max())


def _evidence(posterior: Posterior) -> float:
    """Log marginal likelihood; the likelihood of what is left out, where a form would be so large
    that it has no other: all forms of a text are compared on one scale.
    """
    if not is_large(posterior.layout.types, posterior.layout.outputs):
        return posterior.log_evidence
    return -0.5 * posterior.left_out.size * float(np.log(_left_out_error(posterior)))


def _left_out_error(posterior: Posterior) -> float:
    """Mean squared error of answers that are left out."""
    return float((posterior.left_out**2).mean())


# -- the ends ----------------------------------------------------------------------------------


def _by_descent(used: Any, active: Flags, answers: Floats, options: dict[str, Any]) -> Fit:
    dense = used.toarray() if sparse.issparse(used) else used
    columns = answers[:, None] if answers.ndim == 1 else answers
    importances, values = solve_sgd(dense, columns, **options)
    slalom = Slalom(values[:, 0] if answers.ndim == 1 else values, importances)
    misses = answers - slalom.predict(used)
    slalom = _with_unseen(slalom, active)
    steps = int(options.get("epochs", 60))
    loss = float((misses**2).mean())
    return Fit(slalom, FORMS["paper"], loss, active, None, steps, False, misses)


def _with_unseen(slalom: Slalom, active: Flags) -> Slalom:
    """All types: those that no question held get no evidence and the mean weight."""
    if active.all():
        return slalom
    importances = np.zeros(len(active))
    importances[active] = slalom.importances
    evidence = np.zeros((len(active), *slalom.evidence.shape[1:]))
    evidence[active] = slalom.evidence
    return Slalom(evidence, importances, slalom.mixing, slalom.base, slalom.background, slalom.link)


def _check(counts: ArrayLike | Any, outputs: ArrayLike) -> tuple[Any, Floats]:
    make: Any = sparse.csr_array if sparse.issparse(counts) else np.asarray
    matrix: Any = make(counts, dtype=np.float64)
    answers = np.asarray(outputs, dtype=np.float64)
    if matrix.ndim != 2 or answers.ndim not in (1, 2) or len(answers) != matrix.shape[0]:
        raise PisteError(
            f"Expected counts (questions × types) and one output per question, got the shapes "
            f"{matrix.shape} and {answers.shape}."
        )
    if not len(answers) or not matrix.shape[1]:
        raise PisteError("Nothing was asked: a fit needs at least one question about one type.")
    numbers = matrix.data if sparse.issparse(matrix) else matrix
    if not np.isfinite(answers).all() or not np.isfinite(numbers).all() or (numbers < 0).any():
        raise PisteError("Counts must be finite and not negative, outputs finite.")
    return matrix, answers


# -- threads -----------------------------------------------------------------------------------


def threads_for(size: int) -> AbstractContextManager[None]:
    """Limit BLAS to one thread while a problem of this size is solved, and restore it."""
    return nullcontext() if size >= _WORTH_THREADS else _single()


class _Limited:
    """The limit holds for the whole process: the first to need it sets it, the last lifts it.

    Only one thread can set it, so whoever solves in several threads sets it around them.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.users = 0
        self.limit: Any = None
        self.controller: ThreadpoolController | None = None

    def enter(self) -> None:
        with self.lock:
            self.users += 1
            if self.users == 1:
                self.controller = self.controller or ThreadpoolController()
                self.limit = self.controller.limit(limits=1, user_api="blas")

    def leave(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                self.limit.__exit__(None, None, None)


_LIMITED = _Limited()


@contextmanager
def _single() -> Iterator[None]:
    _LIMITED.enter()
    try:
        yield
    finally:
        _LIMITED.leave()
