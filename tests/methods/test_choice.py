"""A method may be a name, a class, an instance, or something a program registered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import piste
from piste.errors import PisteError
from piste.methods import METHODS, SlalomMethod, Solution, Task
from piste.methods.additive import CheckedMethod

TEXT = "Stop it now !"


@pytest.fixture(scope="module")
def loud() -> Any:
    return piste.load(lambda texts: [text.count("!") for text in texts])


@dataclass(frozen=True)
class Lengths(CheckedMethod):
    """A score by the number of letters."""

    factor: float = 1.0
    name: ClassVar[str] = "lengths"
    about: ClassVar[str] = "how long words are"

    def solve(self, task: Task) -> Solution:
        sizes = [self.factor * len(unit.text) for unit in task.subject.units]
        return self.solution(task, self.around_whole_input(task, np.array(sizes, dtype=float)))


def test_a_class_and_an_instance_explain(loud: Any) -> None:
    by_class = piste.explain(loud, TEXT, method=Lengths, factor=2.0)
    by_instance = piste.explain(loud, TEXT, method=Lengths(factor=2.0))
    assert by_class.score().tolist() == by_instance.score().tolist() == [8.0, 4.0, 6.0, 2.0]
    assert by_class.method == "lengths"
    assert piste.explain(loud, TEXT, method=Lengths(factor=2.0), factor=3.0).score()[0] == 12.0


def test_an_instance_takes_the_shared_options(loud: Any) -> None:
    e = piste.explain(loud, TEXT, method=SlalomMethod(form="paper"), samples=40)
    assert (e.settings["form"], e.settings["samples"]) == ("paper", 40)


def test_a_registered_method_has_a_name_like_any_other(loud: Any) -> None:
    METHODS.register("lengths", Lengths)
    try:
        assert piste.explain(loud, TEXT, method="lengths").score()[0] == 4.0
        both = piste.compare(loud, TEXT, ["lengths[factor=2]", "occlusion"])
        assert list(both.explanations) == ["lengths[factor=2]", "occlusion"]
        with pytest.raises(PisteError, match="'lengths' is there already"):
            METHODS.register("lengths", SlalomMethod)
    finally:
        METHODS.remove("lengths")
    with pytest.raises(PisteError, match=r"method: expected one of slalom, .*, got 'lengths'"):
        piste.explain(loud, TEXT, method="lengths")


@pytest.mark.parametrize("wrong", [5, None, dict, lambda: None])
def test_what_is_no_method_is_refused(loud: Any, wrong: Any) -> None:
    with pytest.raises(PisteError, match="method: expected one of slalom"):
        piste.explain(loud, TEXT, method=wrong)


@pytest.mark.parametrize("name", ["occlusion", "random", "gradient"])
def test_samples_and_seed_are_taken_by_methods_that_do_not_use_them(name: str) -> None:
    e = piste.explain("piste:reviews", "A good film.", method=name, samples=30, seed=3)
    assert e.settings["samples"].startswith("not used")
    assert e.settings["seed"] == 3
