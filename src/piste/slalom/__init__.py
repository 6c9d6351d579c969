"""The mathematics of SLALOM: arrays in, arrays out, no model."""

from piste.slalom.analytic import AnalyticFit, fit_analytic
from piste.slalom.fitting import Fit, fit
from piste.slalom.shapley import interactions, shapley
from piste.slalom.surrogate import Background, Slalom

__all__ = [
    "AnalyticFit",
    "Background",
    "Fit",
    "Slalom",
    "fit",
    "fit_analytic",
    "interactions",
    "shapley",
]
