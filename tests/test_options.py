"""The options that all ways of asking share are declared once."""

from __future__ import annotations

import inspect
from typing import Any, get_args, get_type_hints

import pytest

import piste
from piste.cli import options
from piste.errors import PisteError
from piste.options import DEFAULTS, HELP, Options, separated
from piste.serve.schemas import ExplanationRequest
from piste.validation import check_seed


def test_every_option_has_a_default_and_a_sentence() -> None:
    assert set(DEFAULTS) == set(HELP) == set(Options.__annotations__)


def test_explain_has_them_with_these_defaults() -> None:
    parameters = inspect.signature(piste.explain).parameters
    assert {name: parameters[name].default for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize("name", sorted(DEFAULTS))
def test_the_command_line_says_the_same(name: str) -> None:
    declared: Any = getattr(options, name.capitalize())
    assert get_args(declared)[1].help == HELP[name]


@pytest.mark.parametrize("name", ["units", "phrases", "target", "seed", "long", "removal"])
def test_the_page_says_the_same(name: str) -> None:
    assert ExplanationRequest.model_fields[name].description == HELP[name]


def test_options_of_methods_are_told_apart() -> None:
    assert separated({"seed": 1, "steps": 5}) == ({"seed": 1}, {"steps": 5})


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None, True])
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    with pytest.raises(PisteError, match="a whole number of at least 0"):
        check_seed(seed)


def test_hints_of_the_options_can_be_read() -> None:
    import piste.engine
    import piste.subject
    import piste.target

    known = {**vars(piste.engine), **vars(piste.subject), **vars(piste.target)}
    assert set(get_type_hints(Options, localns=known)) == set(DEFAULTS)
