"""What runs the arithmetic of a model: torch itself, or a faster stand-in held against it."""

from piste.classifiers.backends.base import RUNTIMES, Runtime, start

__all__ = ["RUNTIMES", "Runtime", "start"]
