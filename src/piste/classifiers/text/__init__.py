"""Classifiers of texts."""
