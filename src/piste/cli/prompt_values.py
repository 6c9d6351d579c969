"""What options of a prompt stand for: texts or files with them, names or JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from piste.errors import PisteError, shorten


def read_prompt(given: str) -> Any:
    """A prompt from a file or as it stands; JSON is a list of messages."""
    text = _or_file(given)
    if not text.lstrip().startswith("["):
        return text.removesuffix("\n") if text is not given else text
    try:
        return json.loads(text)
    except json.JSONDecodeError as problem:
        raise PisteError(
            f"--prompt: expected a text or JSON with messages, got {shorten(text)} ({problem})."
        ) from problem


def read_examples(given: str) -> Any:
    """Inputs with their labels, from JSON or a file with it.

    >>> read_examples('[["Superb.", "positive"]]')
    [['Superb.', 'positive']]
    """
    text = _or_file(given)
    try:
        found = json.loads(text)
    except json.JSONDecodeError as problem:
        found = problem
    if not isinstance(found, list):
        raise PisteError(
            f'--few-shot: expected JSON such as [["Superb.", "positive"]], got {shorten(text)}.'
        )
    return found


def _or_file(given: str) -> str:
    """What the file holds, if it names one."""
    try:
        path = Path(given).expanduser()
        return path.read_text(encoding="utf-8") if path.is_file() else given
    except (OSError, ValueError):
        return given  # a long text is no name of a file


def read_label_option(given: str) -> Any:
    """Names with commas, or JSON.

    >>> read_label_option("good, bad"), read_label_option('{"good": ["great"], "bad": "bad"}')
    (['good', 'bad'], {'good': ['great'], 'bad': 'bad'})
    """
    if not given.lstrip().startswith(("{", "[")):
        return [name.strip() for name in given.split(",")]
    try:
        return json.loads(given)
    except json.JSONDecodeError as problem:
        raise PisteError(
            f"--labels: expected names with commas or JSON, got {shorten(given)} ({problem})."
        ) from problem
