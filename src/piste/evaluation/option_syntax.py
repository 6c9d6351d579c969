"""Names with options behind them, as a command line has them: ``eraser[bins=eggen]``."""

from __future__ import annotations

import json
import re
from typing import Any

from piste.errors import PisteError

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
