"""Three ways through the same equations, against plain inverses."""

import numpy as np
import pytest
from scipy import sparse

from piste.slalom.solver import equations
from piste.types import Floats

WAYS = {"by parameters": (30, 8), "by questions": (8, 30), "by products": (30, 8)}


class Problem:
    def __init__(self, questions: int, parameters: int) -> None:
        rng = np.random.default_rng(0)
        self.jacobian = rng.normal(size=(questions, parameters))
        self.precision = rng.uniform(0.5, 4.0, questions)
        self.emphasis = rng.choice([1.0, 7.0], questions)
        self.prior = rng.uniform(0.2, 2.0, parameters)
        self.gradient = rng.normal(size=parameters)
        told = self.jacobian.T * self.precision
        self.matrix: Floats = told @ self.jacobian + np.diag(self.prior)
        self.inverse = np.linalg.inv(self.matrix)
        scatter = (told * self.emphasis) @ self.jacobian + np.diag(self.prior)
        self.covariance: Floats = self.inverse @ scatter @ self.inverse

    @property
    def leverages(self) -> Floats:
        own = np.einsum("ij,jk,ik->i", self.jacobian, self.inverse, self.jacobian)
        return np.asarray(own * self.precision)


@pytest.mark.parametrize("way", WAYS)
def test_all_ways_are_the_same_equations(way: str) -> None:
    problem = Problem(*WAYS[way])
    sampled = way == "by products"
    jacobian = sparse.csr_array(problem.jacobian) if sampled else problem.jacobian
    found = equations(jacobian, problem.precision, problem.emphasis, problem.prior)
    close = 0.15 if sampled else 1e-9  # two thousand samples are good to a part in thirty
    for damping in (0.0, 0.3):
        damped = problem.matrix + damping * np.diag(np.diag(problem.matrix))
        step = found.step(problem.gradient, damping)
        wanted = np.linalg.solve(damped, problem.gradient)
        np.testing.assert_allclose(step, wanted, atol=1e-3 if sampled else 1e-9)
    variances, leverages = found.spread(2000)
    np.testing.assert_allclose(variances, np.diag(problem.inverse), rtol=close)
    np.testing.assert_allclose(leverages, problem.leverages, rtol=close)
    weighted = problem.jacobian * problem.precision[:, None]
    left = np.diag(problem.precision) - weighted @ problem.inverse @ weighted.T
    changes = np.random.default_rng(1).normal(size=(len(left), 3))
    np.testing.assert_allclose(found.unexplained(changes), left @ changes, atol=close)
    factor = found.factor(2000)
    covariance = factor @ factor.T
    np.testing.assert_allclose(np.diag(covariance), np.diag(problem.covariance), rtol=close)
    if sampled:
        assert np.isnan(found.log_determinant)
    else:
        np.testing.assert_allclose(covariance, problem.covariance, atol=1e-9)
        assert found.log_determinant == pytest.approx(np.linalg.slogdet(problem.matrix)[1])
