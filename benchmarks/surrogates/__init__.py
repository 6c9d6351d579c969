"""Richer surrogates than a saturating SLALOM, compared on the same answers and slopes."""
