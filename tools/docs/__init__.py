"""Builds the documentation site: ``python -m tools.docs``, or ``make docs``."""
