"""Things that are found by name: our own, those of installed packages, and those of a program.

There is one registry for each kind: methods, metrics, classifiers and views. An installed package
adds to it by an entry point of the registry's group, a program by :meth:`Registry.register`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from piste.errors import PisteError, shorten

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Names and what they stand for; nothing is imported before it is used.

    >>> functions = Registry[object]("function", "example.functions", {"root": "math:sqrt"})
    >>> functions["root"](9.0), list(functions)
    (3.0, ['root'])
    >>> functions.register("twice", lambda x: 2 * x)(4), list(functions)
    (8, ['root', 'twice'])
    """

    def __init__(self, kind: str, group: str, own: Mapping[str, str]) -> None:
        self.kind, self.group = kind, group
        self._own = dict(own)
        self._loaded: dict[str, T] = {}
        self._installed: dict[str, EntryPoint] | None = None

    def register(self, name: str, thing: T) -> T:
        """Add something under a name that is not taken; returns it."""
        if not isinstance(name, str) or not name.isidentifier():
            raise PisteError(f"The {self.kind} {name!r} needs a name of letters, digits and _.")
        if name in self and self[name] is not thing:
            raise PisteError(
                f"A {self.kind} called {name!r} is there already: choose another name."
            )
        self._loaded[name] = thing
        return thing

    def remove(self, name: str) -> None:
        """Take away what :meth:`register` added."""
        self._loaded.pop(name, None)

    def __getitem__(self, name: str) -> T:
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def get(self, name: str, default: Any = None) -> Any:
        """What a name stands for, or the default."""
        if name not in self:
            return default
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._loaded or name in self._entry_points()

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._own, *self._entry_points(), *self._loaded]))

    def added_first(self) -> list[str]:
        """All names, those that were added to our own first."""
        return [*(name for name in self if name not in self._own), *self._own]

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _entry_points(self) -> dict[str, EntryPoint]:
        if self._installed is None:
            self._installed = {point.name: point for point in entry_points(group=self.group)}
        return self._installed

    def _load(self, name: str) -> T:
        found: T
        if name in self._own:
            module, _, attribute = self._own[name].partition(":")
            found = getattr(import_module(module), attribute)
            return found
        point = self._entry_points().get(name) if isinstance(name, str) else None
        if point is None:
            raise PisteError(
                f"Unknown {self.kind} {shorten(name)}: expected one of {', '.join(self)}."
            )
        try:
            found = point.load()
        except Exception as problem:  # of a package that is not ours: anything may happen
            raise PisteError(
                f"The {self.kind} {name!r} of the installed package "
                f"{point.dist.name if point.dist else point.value!r} could not be loaded: {problem}"
            ) from problem
        return found
