"""Things that are found by name: our own, those of installed packages, and those of a program.

There is one registry for each kind: methods, metrics, classifiers and views. An installed package
adds to it by an entry point of the registry's group, a program by :meth:`Registry.register`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from piste.errors import PisteError, shorten

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


def lazy_names(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose names are imported when first used.

    ``homes`` are modules and the names that come from each; those of the package itself are its
    submodules.
    """
    places = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if places[name] == package:
            return import_module(f"{package}.{name}")
        found = getattr(import_module(places[name]), name)
        setattr(import_module(package), name, found)  # found without this the next time
        return found

    def names() -> list[str]:
        return sorted(import_module(package).__all__)

    return get, names


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

    def text(self, name: str, attribute: str) -> str:
        """A text that a class has as an attribute; one of our own is read without importing it."""
        if name in self._own and name not in self._loaded:
            found = _text_in_source(self._own[name], attribute)
            if found is not None:
                return found
        return str(getattr(self[name], attribute))

    def _entry_points(self) -> dict[str, EntryPoint]:
        if self._installed is None:
            from importlib.metadata import entry_points

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


def _text_in_source(home: str, attribute: str) -> str | None:
    """What a class, or a base of it, sets an attribute to; None if its source does not show it."""
    module, _, name = home.partition(":")
    classes, origins = _classes(module)
    if name not in classes:
        return None
    for node in classes[name].body:
        targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and attribute in map(ast.unparse, targets):
            return ast.literal_eval(node.value) if isinstance(node.value, ast.Constant) else None
    for base in map(ast.unparse, classes[name].bases):
        above = f"{module}:{base}" if base in classes else origins.get(base, "")
        if (found := _text_in_source(above, attribute)) is not None:
            return found
    return None


@cache
def _classes(module: str) -> tuple[dict[str, ast.ClassDef], dict[str, str]]:
    """The classes in a module's source, and where the names come from that it imports."""
    spec = find_spec(module) if module.startswith("piste.") else None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return {}, {}
    tree = ast.parse(Path(spec.origin).read_bytes())
    origins = {
        alias.asname or alias.name: f"{node.module}:{alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}, origins
