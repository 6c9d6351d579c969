"""The methods that the page and its interface have, by name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from piste.classifiers import Classifier
from piste.methods import METHODS

PAPER = "slalom[form=paper]"


def _all() -> Mapping[str, str]:
    found = {}
    for name, method in METHODS.items():
        found[name] = method.about
        if name == "slalom":
            found[PAPER] = "SLALOM as published: value and importance of units that compete"
    return found


METHOD_DESCRIPTIONS: Mapping[str, str] = _all()
"""All methods with what they are; SLALOM also in the form of the paper."""


def methods_for(classifier: Classifier) -> list[str]:
    """Methods that may be asked for: none that reads files, none whose library is missing."""
    known = {name: METHODS[name.partition("[")[0]] for name in METHOD_DESCRIPTIONS}
    return [
        name
        for name, method in known.items()
        if method.needs != "a table"
        and (name != "centre" or classifier.reads == "images")
        and (not method.library or find_spec(method.library) is not None)
    ]
