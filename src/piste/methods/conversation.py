"""A library that wants to call the model itself, turned into one that plans and is answered.

Libraries such as lime and shap take a function and call it whenever they like. Here they run in a
thread of their own that stops at every call until the engine has answered, so the questions of
many inputs can be pooled, and no library notices. Only one side runs at a time.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeAlias

import numpy as np

from piste.types import Flags, Floats

Masks: TypeAlias = Flags
Game: TypeAlias = Callable[[Masks], Floats]
"""From which units are kept (questions × units) to the explained numbers."""


class _ClosedError(BaseException):
    """Raised inside the library when nobody is going to answer any more."""


class Conversation:
    """Runs ``work(game)`` up to each call of ``game``.

    >>> talk = Conversation(lambda game: game(np.eye(2, dtype=bool)).sum(), seed=0)
    >>> talk.step().tolist()
    [[True, False], [False, True]]
    >>> talk.step(np.array([1.0, 2.0])) is None, float(talk.result)
    (True, 3.0)
    """

    def __init__(self, work: Callable[[Game], Any], seed: int) -> None:
        self.result: Any = None
        self._said: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._heard: SimpleQueue[Any] = SimpleQueue()
        self._random = np.random.RandomState(seed).get_state()
        self._thread = threading.Thread(
            target=_serve, args=(work, self._said, self._heard), daemon=True
        )
        # The thread must end when this object is dropped: it holds the queues, not the object.
        weakref.finalize(self, self._heard.put, _ClosedError)

    def step(self, answers: Floats | None = None) -> Masks | None:
        """Give the answers to the last questions; the next questions, or None at the end."""
        outside = np.random.get_state()
        np.random.set_state(self._random)  # some libraries draw from numpy's global state
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if answers is None:
                    self._thread.start()
                else:
                    self._heard.put(answers)
                kind, content = self._said.get()
        finally:
            self._random = np.random.get_state()
            np.random.set_state(outside)
        if kind == "failed":
            raise content
        if kind == "done":
            self.result = content
            return None
        masks: Masks = content
        return masks


def _serve(
    work: Callable[[Game], Any], said: SimpleQueue[tuple[str, Any]], heard: SimpleQueue[Any]
) -> None:
    def game(masks: Masks) -> Floats:
        said.put(("asks", np.atleast_2d(np.asarray(masks)).astype(bool)))
        answers = heard.get()
        if answers is _ClosedError:
            raise _ClosedError
        return answers

    try:
        said.put(("done", work(game)))
    except _ClosedError:
        pass
    except BaseException as problem:  # told on the other side
        said.put(("failed", problem))
