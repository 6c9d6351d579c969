"""The former place of :mod:`piste.classifiers.introspection.tracing`."""

import warnings

from piste.classifiers.introspection.tracing import trace

__all__ = ["trace"]

warnings.warn(
    "piste.classifiers.tracing is piste.classifiers.introspection.tracing now.",
    DeprecationWarning,
    stacklevel=2,
)
