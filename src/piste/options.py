"""How an input is asked about: the options that explain, compare, evaluate, corpus and page share.

They are declared here once: their types, their defaults, what is said of them, and their checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from piste.errors import PisteError

if TYPE_CHECKING:
    from piste.engine import CacheOption
    from piste.subject import LongChoice, Removal, UnitChoice
    from piste.target import TargetChoice

Samples: TypeAlias = int | Literal["auto"] | None


class Options(TypedDict, total=False):
    """The shared options of :func:`piste.explain`, to be handed on."""

    units: UnitChoice
    long: LongChoice
    removal: Removal
    target: TargetChoice
    samples: Samples
    seed: int
    cache: CacheOption


DEFAULTS: Options = {
    "units": None,
    "long": "error",
    "removal": "delete",
    "target": None,
    "samples": None,
    "seed": 0,
    "cache": None,
}

HELP: Mapping[str, str] = {
    "units": "What the input is cut into. Of a text: words (default), tokens or sentences. Of an "
    "image: patches, grid:K or superpixels:K (default: patches, or grid:7 if there are many).",
    "long": "A text longer than the model reads: error, truncate or windows.",
    "removal": "What removed units leave. Of a text: delete, mask, pad or attention. Of an image: "
    "delete, attention, mean, blur or noise.",
    "target": 'A class by name or number, "a vs b", or all. Default: the predicted class.',
    "samples": "How many questions to ask, or auto. Default: the method's own number.",
    "seed": "The same seed gives the same result.",
    "cache": "Keep answers in this folder for later runs.",
}
"""One sentence each, for the command line and the page."""


def separated(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Shared options, and those that are a method's own.

    >>> separated({"units": "tokens", "form": "paper"})
    ({'units': 'tokens'}, {'form': 'paper'})
    """
    shared = {name: value for name, value in given.items() if name in DEFAULTS}
    return shared, {name: value for name, value in given.items() if name not in DEFAULTS}


def checked(given: Options, what: str) -> Options:
    """Shared options as they are; others are refused. ``what`` was given them."""
    for name in given:
        if name not in DEFAULTS:
            raise PisteError(f"{what} has no option {name!r}: it has {', '.join(DEFAULTS)}.")
    check_seed(given.get("seed", 0))
    return given


def check_seed(seed: object) -> None:
    """Refuse what is no seed."""
    whole = hasattr(seed, "__index__") and not isinstance(seed, bool)
    if not whole or int(seed) < 0:  # type: ignore[call-overload]  # it has an index
        raise PisteError(f"seed: expected a whole number of at least 0, got {seed!r}.")
