"""How an input is asked about: the options that explain, compare, evaluate, corpus and page share.

They are declared here once: their types, their defaults, what is said of them, and their checks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from piste.errors import PisteError
from piste.validation import check_seed

if TYPE_CHECKING:
    from piste.engine import CacheOption
    from piste.subject import LongChoice, Removal, UnitChoice
    from piste.target import TargetChoice


Samples: TypeAlias = int | Literal["auto"] | None
Phrases: TypeAlias = str | Sequence[str | Sequence[int]] | None
"""Words that are joined into one unit: phrases of the text or their spans; "auto" joins pairs that
act together."""


class Options(TypedDict, total=False):
    """The shared options of :func:`piste.explain`, to be handed on."""

    units: UnitChoice
    phrases: Phrases
    long: LongChoice
    removal: Removal
    target: TargetChoice
    samples: Samples
    seed: int
    cache: CacheOption


DEFAULTS: Options = {
    "units": None,
    "phrases": None,
    "long": "error",
    "removal": "delete",
    "target": None,
    "samples": None,
    "seed": 0,
    "cache": None,
}

HELP: Mapping[str, str] = {
    "units": "What the input is cut into. Of a text: words (default), tokens, sentences or "
    "paragraphs; several from coarse to fine, as paragraphs,sentences,words; or spans, as "
    "0-12,13-40 (of a pair 0:0-12,1:3-9). Of an image: patches, grid:K or superpixels:K (default: "
    "patches, or grid:7 if there are many).",
    "phrases": "Words to explain as one: a phrase of the text, or auto to join words that act "
    "together. May be given more than once.",
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


_COMMA = re.compile(r",(?![^\[]*\])")  # not within brackets
_NAMED = re.compile(r"(?P<name>\w+)(?:\[(?P<options>[^\[\]]*)\])?")


def split_names(text: str) -> list[str]:
    """Names with commas between them, which may also stand within brackets.

    >>> split_names("slalom[form=paper,samples=100]:value, lime")
    ['slalom[form=paper,samples=100]:value', 'lime']
    """
    return [name.strip() for name in _COMMA.split(text) if name.strip()]


def named_options(text: str) -> tuple[str, dict[str, Any]] | None:
    """A name and its options; None if the text has another form.

    >>> named_options("eraser[bins=eggen]")
    ('eraser', {'bins': 'eggen'})
    """
    found = _NAMED.fullmatch(text)
    return None if found is None else (found["name"], read_options(found["options"] or "", text))


def read_options(text: str, name: str) -> dict[str, Any]:
    """``option=value,option=value``; ``name`` is where it stands, for errors."""
    chosen = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        option, equals, value = part.partition("=")
        if not equals:
            raise PisteError(f"{name!r} has {part!r} in its brackets: write option=value.")
        chosen[option.strip()] = _value(value.strip())
    return chosen


def written(value: Any) -> str:
    """A value as it is written within brackets."""
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def _value(text: str) -> Any:
    """A number, true, false or none where it is one, else the text itself."""
    try:
        return json.loads({"none": "null"}.get(text.lower(), text.lower()))
    except json.JSONDecodeError:
        return text
