"""Several outputs with shared weights (paper C.1): the weights from the leading directions.

Importances and mixing are found from at most four principal directions of the outputs; given
them the surrogate is linear in the evidence, so that of every class follows by ridge regression
with a strength from its own marginal likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from piste.slalom.family import Form, Layout, Point, Questions
from piste.slalom.solver import Posterior
from piste.slalom.surrogate import Slalom
from piste.types import Floats

_ROUNDS = 12


@dataclass(frozen=True)
class ClassPosterior(Posterior):
    """The shared weights' posterior, and that of every class's evidence given them."""

    directions: Floats
    """Rotated covariance factor of (evidence, base) at noise 1, before each class's ridge."""
    strengths: Floats
    """Singular values of the linear problem."""
    ridges: Floats
    noises: Floats

    def of_class(self, class_: int) -> tuple[Layout, Floats, Floats]:
        """Layout, parameters and covariance factor of one class, as of a single output."""
        own = self.layout
        layout = Layout(own.types, 1, Form(own.form.mixing, False, False))
        theta = np.zeros(layout.size)
        scale = np.sqrt(self.noises[class_] / (self.strengths**2 + self.ridges[class_]))
        linear, shared = self.directions * scale, self.factor.shape[1]
        factor = np.zeros((layout.size, shared + linear.shape[1]))
        theta[layout.importances] = self.theta[own.importances]
        factor[layout.importances, :shared] = self.factor[own.importances]
        if own.mixing is not None and layout.mixing is not None:
            theta[layout.mixing] = self.theta[own.mixing]
            factor[layout.mixing, :shared] = self.factor[own.mixing]
        factor[layout.evidence, shared:] = linear
        return layout, theta, factor


def fit_classes(
    asked: Questions, outputs: Floats, shared: Posterior, basis: Floats
) -> tuple[Slalom, ClassPosterior, Floats]:
    """Evidence of every class, given the shared weights; residuals with each answer left out."""
    layout = Layout(asked.types, 1, Form(shared.layout.gamma(shared.theta)))
    theta = np.zeros(layout.size)
    if layout.weighted:
        theta[layout.importances] = shared.layout.log_weights(shared.theta)
    jacobian = Point(asked, layout, theta).jacobian()
    design = jacobian[:, layout.evidence]
    design = design if isinstance(design, np.ndarray) else design.toarray()
    log_sizes = np.log(np.maximum(asked.sizes, 1.0))
    noise = replace(shared.noise, scale=np.ones(1), leak=np.inf)
    root = 1.0 / np.sqrt(noise.variances(log_sizes, np.ones((asked.count, 1))))
    weights = root**2 / float((root**2).sum())
    centre, means = (weights * design).sum(axis=0), (weights * outputs).sum(axis=0)
    left, strengths, right = np.linalg.svd(root * (design - centre), full_matrices=False)
    wanted = root * (outputs - means)
    turned = left.T @ wanted
    total = (wanted**2).sum(axis=0)
    ridges, noises = _by_likelihood(turned, strengths, total, asked.count, asked.types)
    shrunk = strengths[:, None] ** 2 / (strengths[:, None] ** 2 + ridges)
    evidence = right.T @ (shrunk * turned / np.maximum(strengths, 1e-300)[:, None])
    base = means - centre @ evidence
    leverages = (left**2) @ shrunk + weights
    residuals = outputs - (design @ evidence + base)
    slalom = Slalom(
        evidence,
        shared.layout.slalom(shared.theta, False).importances,
        shared.layout.gamma(shared.theta),
        base,
    )
    posterior = ClassPosterior(
        **{name: getattr(shared, name) for name in Posterior.__dataclass_fields__},
        directions=right.T,
        strengths=strengths,
        ridges=ridges,
        noises=noises,
    )
    return slalom, posterior, residuals / np.clip(1.0 - leverages, 0.02, None)


def _by_likelihood(
    turned: Floats, strengths: Floats, total: Floats, count: int, types: int
) -> tuple[Floats, Floats]:
    """Ridge and noise of every class by MacKay's updates."""
    classes = turned.shape[1]
    squares = strengths[:, None] ** 2
    floor = 1e-10 * np.maximum(total / max(count, 1), 1e-300)
    noises, widths = 0.25 * total / max(count, 1) + floor, np.full(classes, 1.0)
    ridges = np.ones(classes)
    for _ in range(_ROUNDS):
        shrunk = squares / (squares + ridges)
        evidence = shrunk * turned / np.maximum(strengths, 1e-300)[:, None]
        missed = total - (turned**2 * (1 - (1 - shrunk) ** 2)).sum(axis=0)
        noises = np.maximum(missed / np.maximum(count - shrunk.sum(axis=0), 1.0), floor)
        spread = (noises / (squares + ridges)).sum(axis=0) + max(types - len(strengths), 0) * widths
        widths = np.maximum(((evidence**2).sum(axis=0) + spread) / types, 1e-300)
        ridges = np.maximum(noises / widths, 1e-14 * float(squares.max(initial=1e-300)))
    return ridges, noises
