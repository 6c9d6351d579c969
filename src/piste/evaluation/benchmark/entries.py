"""What is compared: methods, with options and with the score they are judged by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from piste.errors import PisteError
from piste.evaluation.option_syntax import read_options, split_names, written
from piste.methods import make, options_of
from piste.options import Samples
from piste.validation import check_count

_FORM = re.compile(r"(?P<method>\w+)(?:\[(?P<options>[^\[\]]*)\])?(?::(?P<score>\w+))?")


@dataclass(frozen=True)
class Entry:
    """One line of the comparison.

    ``variant`` is the method with its options, as ``slalom[form=paper]``. Entries of the same
    variant share their explanations: they differ in the score only.
    """

    label: str
    method: str
    variant: str
    score: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def make_entries(
    names: str | Iterable[str],
    samples: Samples = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> tuple[Entry, ...]:
    """Entries by name: ``slalom``, ``slalom:value``, ``slalom[form=paper]``, or both.

    Every method that has the option gets the same ``samples``; ``options`` holds more of them by
    method, and those in brackets count before both. Unknown names are refused at once.

    >>> make_entries(["slalom[form=paper]:value"], samples=200)[0].options
    {'samples': 200, 'form': 'paper'}
    """
    if samples not in (None, "auto"):
        check_count("samples", samples)
    listed = split_names(names) if isinstance(names, str) else list(names)
    if not listed:
        raise PisteError("No method was given: name at least one (see `piste methods`).")
    entries = [_entry(name, samples, options or {}) for name in listed]
    check_once(entries)
    _check_options(options or {}, entries)
    return tuple(entries)


def check_once(entries: Sequence[Entry]) -> None:
    """Refuse a label that is given twice: rows are told apart by it."""
    labels = [entry.label for entry in entries]
    for label in labels:
        if labels.count(label) > 1:
            raise PisteError(f"The method {label!r} was given twice: name every method once.")


def _entry(name: str, samples: Samples, options: Mapping[str, Mapping[str, Any]]) -> Entry:
    found = _FORM.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        raise PisteError(
            f"The method {name!r} can't be read: write a name, name:score, "
            "name[option=value,option=value], or name[option=value]:score."
        )
    method, score = found["method"], found["score"]
    own = read_options(found["options"] or "", name)
    chosen: dict[str, Any] = {}
    if samples is not None and "samples" in options_of(method):
        chosen["samples"] = samples
    if "held_out" in options_of(method):
        chosen["held_out"] = 0  # the verdict of a method's own would only cost: all are judged
    chosen |= {**options.get(method, {}), **own}
    make(method, chosen)  # refuses what the method does not know
    listed = ",".join(f"{key}={written(value)}" for key, value in own.items())
    variant = f"{method}[{listed}]" if own else method
    label = variant if score is None else f"{variant}:{score}"
    return Entry(label, method, variant, score, chosen)


def _check_options(options: Mapping[str, Any], entries: Sequence[Entry]) -> None:
    there = dict.fromkeys(entry.method for entry in entries)
    for method in options:
        if method not in there:
            raise PisteError(
                f"Options were given for {method!r}, which is not among the methods: expected one "
                f"of {', '.join(there)}."
            )
