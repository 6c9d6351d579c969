"""What runs the arithmetic of a model: torch itself, or a faster runtime checked against it."""

from piste.classifiers.backends.backend import RUNTIMES, Runtime, start

__all__ = ["RUNTIMES", "Runtime", "start"]
