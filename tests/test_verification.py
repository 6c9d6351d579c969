from __future__ import annotations

import numpy as np
import pytest

import piste
from piste.comparison import removals
from piste.errors import PisteError


@pytest.fixture(scope="module")
def loud():
    """An additive model, which occlusion describes exactly."""
    return piste.load(lambda texts: [2.0 * text.count("!") - text.count("?") for text in texts])


@pytest.fixture(scope="module")
def told(loud):
    return piste.explain(loud, "Stop it ! Now ! Why ?", method="occlusion")


def test_the_answer_is_the_models_own(loud, told):
    marks = [place for place, unit in enumerate(told.units) if unit.text == "!"]
    one, both, other = piste.check(loud, told, [marks[:1], marks, [len(told) - 1]])
    assert [one.answer, both.answer, other.answer] == [1.0, -1.0, 4.0]
    assert [c.expected["occlusion"] for c in (one, both, other)] == pytest.approx([1.0, -1.0, 4.0])
    assert both.removed == tuple(marks)
    assert one.probability is None


def test_the_class_may_change():
    classifier = piste.load("piste:reviews")
    text = "A slow start, but a wonderful ending."
    e = piste.explain(classifier, text, samples=60)
    everything = piste.explain(classifier, text, samples=60, target="all")
    [found] = piste.check(classifier, e, [[6]])
    whole = piste.explain(classifier, "A slow start, but a ending.", method="zero").output
    # The same token ids as those of the shorter text, and so the same answer.
    assert (found.label, found.probability) == (whole.label, pytest.approx(whole.probability))
    assert e.output.label != found.label
    [of_all] = piste.check(classifier, everything, [[6]])
    assert of_all.answer == pytest.approx(found.answer / 2)  # centred logits of two classes


@pytest.mark.parametrize("removed", [[9], [-1], ["0"], [0.5]])
def test_units_that_are_not_there(loud, told, removed):
    with pytest.raises(PisteError, match="There is no unit"):
        piste.check(loud, told, [removed])


def test_only_explanations_of_the_same(loud, told):
    other = piste.explain(loud, "Stop !", method="occlusion")
    with pytest.raises(PisteError, match="only explanations of the same"):
        piste.check(loud, [told, other], [[0]])
    with pytest.raises(PisteError, match="nothing to check"):
        piste.check(loud, [], [[0]])
    assert piste.check(loud, told, []) == []


def test_what_is_removed_begins_with_the_strongest_and_holds_no_set_twice(told):
    sets = removals(told)
    strongest = int(np.argmax(np.abs(told.score())))
    assert sets[0] == [strongest]
    assert len({tuple(one) for one in sets}) == len(sets)
    assert {one[0] for one in sets if len(one) == 1} == set(range(len(told)))
    assert all(len(one) < len(told) for one in sets)
    assert removals(told) == sets
    assert len([one for one in removals(told, alone=1) if len(one) == 1]) == 1


def test_a_comparison_checks_all_its_methods(loud):
    found = piste.compare(loud, "Stop it ! Now ! Why ?", ["occlusion", "zero"])
    assert [len(one.expected) for one in found.checks] == [2] * len(found.checks)
    errors = {
        name: max(abs(one.expected[name] - one.answer) for one in found.checks)
        for name in found.explanations
    }
    assert errors["occlusion"] == pytest.approx(0, abs=1e-9)
    assert errors["zero"] > 1
    assert '"checks"' in found.to_json()
    page = found.to_html()
    assert "<h2>Who was right?</h2>" in page
    assert "occlusion is off by 0.00, zero is off by" in page


def test_a_text_of_one_word(loud):
    found = piste.compare(loud, "Stop", ["occlusion"])
    assert found.checks == ()
    assert "<h2>Who was right?</h2>" not in found.to_html()
