"""Things by name: our own, of installed packages, and registered ones."""

from __future__ import annotations

import math
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from piste.classifiers.loading import CLASSIFIERS
from piste.errors import PisteError
from piste.evaluation.metrics import METRICS
from piste.methods import METHODS
from piste.registry import Registry
from piste.views import VIEWS


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> Registry[Any]:
    points = [
        EntryPoint("sine", "math:sin", "test.functions"),
        EntryPoint("broken", "no_such_module:f", "test.functions"),
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    return Registry("function", "test.functions", {"root": "math:sqrt"})


def test_own_installed_and_registered_things(functions: Registry[Any]) -> None:
    functions.register("twice", lambda x: 2 * x)
    assert list(functions) == ["root", "sine", "broken", "twice"]
    assert functions["sine"] is math.sin
    assert functions["twice"](2) == 4
    functions.remove("twice")
    assert "twice" not in functions


def test_what_is_not_there_or_broken_is_said(functions: Registry[Any]) -> None:
    with pytest.raises(PisteError, match="Unknown function 'cosine': expected one of root, sine"):
        functions["cosine"]
    with pytest.raises(PisteError, match=r"The function 'broken' .* could not be loaded"):
        functions["broken"]
    with pytest.raises(PisteError, match="needs a name of letters"):
        functions.register("two words", math.cos)
    with pytest.raises(PisteError, match="'root' is there already"):
        functions.register("root", math.cos)


@pytest.mark.parametrize("registry", [METHODS, METRICS, CLASSIFIERS, VIEWS], ids=lambda r: r.kind)
def test_everything_that_is_listed_is_there(registry: Registry[Any]) -> None:
    for name in registry:
        assert callable(registry[name]), name
