"""Classifiers of images."""
