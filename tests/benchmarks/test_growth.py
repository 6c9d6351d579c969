import math

import pytest

from benchmarks.growth import AXES, Line, case, draw, large_model, power_law


def test_one_power():
    law = power_law([1, 10, 100, 1000, 10_000, 100_000], [2, 20, 200, 2000, 20_000, 200_000])
    assert (law.factor, law.exponent) == (pytest.approx(2.0), pytest.approx(1.0))
    assert math.isinf(law.knee)


def test_a_bend_is_found():
    sizes = [10, 30, 100, 300, 1000, 3000]
    law = power_law(sizes, [1.0 if size <= 100 else (size / 100) ** 2 for size in sizes])
    assert law.knee == pytest.approx(100)
    assert law.exponent == pytest.approx(0.0, abs=0.02)
    assert law.after == pytest.approx(2.0, abs=0.02)
    assert law(10) == pytest.approx(1.0, rel=0.05)
    assert law(1000) == pytest.approx(100.0, rel=0.05)


@pytest.mark.parametrize(("axis", "size"), [("reviews", 12), ("classes", 5), ("documents", 2)])
def test_a_line_of_a_table(axis, size):
    line = case(axis, size, None)
    assert line.size == size
    assert 0 < line.fitting < line.seconds
    assert line.tokens > line.questions > 100
    assert str(line).count("|") == 9


def test_the_cost_of_a_large_model_follows_the_tokens():
    lines = [Line(words, 1.0, 0.5, 300, 10_000 * words, 1, 1.0, 0.9) for words in (1, 2)]
    *_, one, two = large_model(lines).splitlines()
    assert one == "| 1 | 10,000 | 0.14 | 1.1 | 0.5 |"
    assert two == "| 2 | 20,000 | 0.28 | 2.2 | 0.5 |"


def test_the_figure_has_a_panel_for_each_axis():
    lines = [Line(size, float(size), 0.1, 300, 1000, 1, 1.0, 0.9) for size in (1, 2, 3)]
    assert len([one for one in draw(dict.fromkeys(AXES, lines)).axes if one.axison]) == len(AXES)
