"""Explanations to look at: in a terminal, as figures, as a page."""
