from __future__ import annotations

import numpy as np
import pytest

from piste.errors import PisteError
from piste.show import colours, heat_colours
from piste.show.heat_colours import outlines, svg_path
from tests.show.conftest import explanation
from tests.show.images import explained_image, grid, shards


def area(loops: list) -> float:
    """What closed lines enclose; holes run the other way round and count against it."""
    total = 0.0
    for loop in loops:
        points = np.array([*loop, loop[0]], dtype=np.float64)
        total += (points[:-1, 0] * points[1:, 1] - points[1:, 0] * points[:-1, 1]).sum() / 2
    return total


# -- scales --------------------------------------------------------------------------------------


def test_signed_scores_are_scaled_around_zero():
    scale = heat_colours.Scale.of("value", np.array([4.0, -1.0, np.nan]))
    assert (scale.low, scale.high, scale.directed) == (-4.0, 4.0, True)
    assert scale.strengths(np.array([4.0, -1.0, np.nan])).tolist() == [1.0, -0.25, 0.0]
    assert [words for _, words in scale.marks(2)] == ["−4.00", "0", "+4.00"]


def test_weights_run_from_the_least_to_the_most_and_have_one_colour():
    scale = heat_colours.Scale.of("importance", np.array([-1.0, 0.0, 3.0]))
    assert scale.strengths(np.array([-1.0, 0.0, 3.0])).tolist() == [0.0, 0.25, 1.0]
    assert scale.marks(1) == [(0.0, "−1.0"), (0.25, "0"), (1.0, "+3.0")]
    assert heat_colours.Scale.of("sensitivity", np.array([1.0, 4.0])).strengths(np.ones(1)) == 0.25
    ramp = scale.ramp(5)
    assert (ramp[0] == 255).all()
    assert (np.diff(ramp.astype(int), axis=0) <= 0).all()
    assert colours.css(0.5, directed=False).startswith("rgba(120,28,129,0.35")


def test_one_extreme_part_does_not_bleach_the_others():
    scores = np.append(np.linspace(-1, 1, 99), 1000.0)
    scale = heat_colours.Scale.of("value", scores)
    assert scale.high == pytest.approx(1.0, abs=0.1)
    assert scale.beyond == (False, True)
    assert scale.marks(1)[-1] == (1.0, "≥ +1.0")


@pytest.mark.parametrize("name", ["value", "importance", "sensitivity"])
@pytest.mark.parametrize("scores", [np.zeros(3), np.full(3, np.nan)])
def test_where_all_are_alike_none_stands_out(name, scores):
    scale = heat_colours.Scale.of(name, scores)
    assert not scale.strengths(scores).any()
    assert scale.marks(2)


# -- pixels --------------------------------------------------------------------------------------


def test_every_pixel_has_its_parts_colour_over_the_pale_image():
    e = explained_image()
    shown = heat_colours.Heat.of(e)
    pixels = heat_colours.painted(e, shown).astype(int)
    best, worst = int(np.argmax(shown.scores)), int(np.argmin(shown.scores))
    for unit in (best, worst):
        place = np.argwhere(e.input.areas == unit)[0]
        ground = (int(heat_colours.paled(e.input)[tuple(place)]),) * 3
        strength = float(shown.strengths[unit])
        assert tuple(pixels[tuple(place)]) == colours.tint(strength, ground)
    # Bluer for what speaks for the answer, redder for what speaks against it.
    blueness = pixels[..., 2] - pixels[..., 0]
    assert blueness[e.input.areas == best].min() > 50
    assert blueness[e.input.areas == worst].max() < 0


def test_pixels_of_no_part_stay_bare():
    areas, units = grid(28, 28, 7, 7)
    areas[:, -1] = -1
    e = explained_image((areas, units))
    pixels = heat_colours.painted(e, heat_colours.Heat.of(e))
    assert (pixels[:, -1] == heat_colours.paled(e.input)[:, -1:]).all()


def test_the_image_stays_readable_under_the_strongest_colour():
    black, white = np.zeros((1, 1, 3), np.uint8), np.full((1, 1, 3), 255, np.uint8)
    grounds = [255 - heat_colours.PALE * (255 - ground.astype(float)) for ground in (black, white)]
    painted = [heat_colours.tinted(g.astype(np.uint8), np.ones((1, 1)), True) for g in grounds]
    assert painted[1].astype(int).min() - painted[0].astype(int).min() >= 20


def test_a_text_has_no_heat_map():
    with pytest.raises(PisteError, match="needs an image"):
        heat_colours.image_of(explanation("A wonderful film"))


# -- outlines ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [grid(20, 12, 5, 3), shards(40, 30, 17)])
def test_outlines_enclose_just_their_parts(cut):
    areas, units = cut
    loops = outlines(areas, len(units))
    assert [area(one) for one in loops] == np.bincount(areas.ravel()).tolist()


def test_holes_pieces_and_nothing():
    areas = np.array([[0, 0, 0, 2], [0, 1, 0, -1], [0, 0, 0, 2]], dtype=np.int32)
    ring, hole, pieces, none = outlines(areas, 4)
    assert (len(ring), len(hole), len(pieces), none) == (2, 1, 2, [])
    assert (area(ring), area(hole), area(pieces)) == (8, 1, 2)
    assert svg_path(hole) == "M1 1H2V2H1Z"
    corners = outlines(np.array([[0, 1], [1, 0]], dtype=np.int32), 2)
    assert [area(loops) for loops in corners] == [2, 2]


def test_large_images_are_shown_smaller_but_named_by_their_size():
    e = explained_image(grid(2500, 1100, 5, 3))
    shown = heat_colours.image_of(e)
    assert (shown.width, shown.height) == (834, 367)
    assert shown.areas is not None
    assert shown.areas.shape == (367, 834)
    assert set(np.unique(shown.areas)) == set(range(15))
    assert "2500 × 1100 pixels" in heat_colours.named(e)
    assert heat_colours.painted(e, heat_colours.Heat.of(e)).shape == (367, 834, 3)
