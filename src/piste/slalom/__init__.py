"""The mathematics of SLALOM: arrays in, arrays out, no model."""

from piste.slalom.analytic import AnalyticFit, fit_analytic
from piste.slalom.fitting import fit
from piste.slalom.results import Fit
from piste.slalom.shapley import interactions, shapley
from piste.slalom.surrogate import Slalom

__all__ = ["AnalyticFit", "Fit", "Slalom", "fit", "fit_analytic", "interactions", "shapley"]
