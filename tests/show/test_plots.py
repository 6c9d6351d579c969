from __future__ import annotations

import warnings

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from piste.errors import PisteError
from piste.show.figures import explanation_figure, text_figure
from piste.show.label_placement import place

KINDS = ("plane", "text", "bars")
HEADS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


def labels(figure: Figure, dpi: float) -> tuple[list[str], np.ndarray]:
    """The unit labels of a plane with their boxes, measured at a resolution."""
    figure.set_dpi(dpi)
    renderer = FigureCanvasAgg(figure).get_renderer()
    texts = [text for text in figure.axes[0].texts if text.get_gid() == "label"]
    return (
        [text.get_text() for text in texts],
        np.array([text.get_window_extent(renderer).extents for text in texts]),
    )


def overlaps(boxes: np.ndarray) -> int:
    a, b = boxes[:, None], boxes[None]
    apart = (a[..., 2:] <= b[..., :2]) | (b[..., 2:] <= a[..., :2])
    return int(np.triu(~apart.any(axis=2), 1).sum())


def words(figure: Figure) -> set[str]:
    texts = figure.findobj(lambda artist: hasattr(artist, "get_text"))
    return {text.get_text() for text in texts}


@pytest.mark.parametrize("dpi", [100, 160])
def test_labels_on_the_plane_do_not_overlap(review, dpi):
    names, boxes = labels(explanation_figure.plane(review), dpi)
    assert 15 <= len(names) <= 28
    assert overlaps(boxes) == 0


def test_labels_do_not_cover_dots(review):
    figure = explanation_figure.plane(review)
    _, boxes = labels(figure, 100)
    axes = figure.axes[0]
    dots = axes.transData.transform(axes.collections[-1].get_offsets())
    inside = (dots[:, None] > boxes[None, :, :2]) & (dots[:, None] < boxes[None, :, 2:])
    assert inside.all(axis=2).sum() <= 1


def test_telling_words_get_their_labels_and_the_rest_is_counted(long):
    figure = explanation_figure.plane(long)
    names, boxes = labels(figure, 100)
    assert {"dull", "wonderful ×3", "awful ×3"} <= set(names)
    assert overlaps(boxes) <= 3
    assert len(names) <= 28
    assert any("that say little" in text for text in words(figure))


def test_place_drops_labels_without_room():
    dots, sizes = np.full((3, 2), 50.0), np.full((3, 2), 60.0)
    assert place(dots, np.ones(3), sizes, range(3), (0, 0, 100, 100)) == [None] * 3
    blocked = [(0.0, 0.0, 500.0, 500.0)]
    free = place(dots[:1], np.ones(1), sizes[:1], [0], (0, 0, 500, 500), blocked)
    assert free == [None]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", ["review", "three", "pair", "classwise", "unsure", "markup", "foreign", "long"]
)
def test_every_kind_of_input_draws_quietly(request, kind, name):
    e = request.getfixturevalue(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = explanation_figure.plot(e, kind)
        figure.draw_without_rendering()
    assert isinstance(figure, Figure)
    assert any("positive, 97.1 %" in text or "class 3" in text for text in words(figure))


@pytest.mark.parametrize("suffix", HEADS)
def test_saved_by_suffix(three, tmp_path, suffix):
    path = tmp_path / f"figure{suffix}"
    figure = explanation_figure.plot(three, "bars", path)
    assert path.read_bytes().startswith(HEADS[suffix])
    assert figure._repr_png_().startswith(HEADS[".png"])


def test_what_cannot_be_drawn_or_saved_is_told_in_one_sentence(review, additive, tmp_path):
    with pytest.raises(PisteError, match=r"\.png, \.svg, \.pdf"):
        explanation_figure.plot(review, "plane", tmp_path / "figure.gif")
    with pytest.raises(PisteError, match="could not be written"):
        explanation_figure.plot(review, "bars", tmp_path / "no" / "folder.png")
    with pytest.raises(PisteError, match="choose plane, text, bars"):
        explanation_figure.plot(review, "pie")
    with pytest.raises(PisteError, match="it has score, top, label"):
        explanation_figure.plot(review, "bars", colour="red")
    with pytest.raises(PisteError, match="no score 'value': it has attribution"):
        explanation_figure.plot(additive, "plane")
    with pytest.raises(PisteError, match="whole number above 0"):
        explanation_figure.plot(review, "bars", top=0)
    with pytest.raises(PisteError, match="one set of scores"):
        explanation_figure.plot(review, "plane", label="positive")


def test_bars_rank_any_score(review, additive):
    figure = explanation_figure.bars(review, score="value", top=3)
    ticks = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert ticks == ["awful", "wonderful", "superb"]
    assert any("attribution" in text for text in words(explanation_figure.bars(additive)))


@pytest.mark.parametrize("kind", ["plane", "bars"])
def test_axes_of_a_figure_of_ones_own(review, kind):
    mine = Figure(figsize=(12, 5))
    left, right = mine.subplots(1, 2)
    assert review.plot(kind, ax=right) is mine
    assert right.get_xlabel()
    assert right.get_title(loc="left")
    assert not left.get_xlabel()
    assert not mine.texts
    with pytest.raises(PisteError, match="expected axes of a matplotlib figure, got 3"):
        review.plot(kind, ax=3)


def test_classes_can_be_chosen(classwise):
    lengths = [
        explanation_figure.bars(classwise, label=label, top=1).axes[0].patches[0].get_width()
        for label in ("class 0", 3)
    ]
    assert lengths[1] == pytest.approx(4 * lengths[0])
    with pytest.raises(PisteError, match="no class 'class 9'"):
        explanation_figure.plane(classwise, label="class 9")


def test_the_text_keeps_all_words_and_is_wrapped(review, make):
    figure = text_figure.text(review)
    assert {"wonderful", "didn't", "I'd", ":"} <= words(figure)
    across = figure.get_size_inches()[0] * 100
    renderer = FigureCanvasAgg(figure).get_renderer()
    assert all(text.get_window_extent(renderer).x1 < across for text in figure.texts)
    endless = text_figure.text(make("x" * 2000))
    assert "".join(t.get_text() for t in endless.texts if set(t.get_text()) == {"x"}) == "x" * 2000


def test_a_book_is_cut_with_a_note(make):
    figure = text_figure.text(make(" ".join(["line\n\n"] * 200)))
    assert any("more words not shown" in text for text in words(figure))
