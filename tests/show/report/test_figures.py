from __future__ import annotations

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from piste.errors import PisteError
from piste.evaluation.bootstrap import interval
from piste.evaluation.results import Interval, Results, Row
from piste.show.labels import family, styles
from piste.show.report import metric_figures
from piste.show.report.dot_figures import Scale
from piste.show.report.metric_figures import spread, spreads
from tests.evaluation.invented import METHODS, invented

NAMES = ["intervals", "removal", "fidelity", "cost"]


@pytest.fixture(scope="module")
def results() -> Results:
    return invented()


@pytest.fixture(scope="module")
def small() -> Results:
    return invented(("slalom", "lime", "random"), 8)


def words(figure: Figure) -> str:
    texts = figure.findobj(lambda artist: hasattr(artist, "get_text"))
    return "\n".join(text.get_text() for text in texts)


def boxes(figure: Figure, axes: int, dpi: float = 160) -> np.ndarray:
    figure.set_dpi(dpi)
    renderer = FigureCanvasAgg(figure).get_renderer()
    found = [text for text in figure.axes[axes].texts if text.get_gid() == "label"]
    return np.array([text.get_window_extent(renderer).extents for text in found])


def overlaps(found: np.ndarray) -> int:
    a, b = found[:, None], found[None]
    apart = (a[..., 2:] <= b[..., :2]) | (b[..., 2:] <= a[..., :2])
    return int(np.triu(~apart.any(axis=2), 1).sum())


def test_all_figures_are_written(small, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        written = metric_figures.write_figures(small, tmp_path / "new" / "folder")
    assert [path.stem for path in written] == NAMES
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)
    with pytest.raises(PisteError, match=r"\.png, \.svg, \.pdf"):
        metric_figures.write_figures(small, tmp_path, ".gif")
    (tmp_path / "file").write_text("")
    with pytest.raises(PisteError, match="can't be made"):
        metric_figures.write_figures(small, tmp_path / "file")


def test_what_the_results_lack_is_skipped(small):
    rows = tuple(replace(row, curves={}) for row in small.rows)
    assert list(metric_figures.draw(replace(small, rows=rows))) == ["intervals", "cost"]
    few = tuple(replace(row, figures={}) for row in small.rows)
    assert list(metric_figures.draw(replace(small, rows=few))) == ["removal", "fidelity"]
    refused = tuple(Row(row.example, row.method, {}, problem="no") for row in small.rows)
    assert metric_figures.draw(replace(small, rows=refused)) == {}
    assert metric_figures.draw(replace(small, rows=())) == {}


@pytest.mark.parametrize(("methods", "examples"), [(("lime",), 1), (tuple(METHODS), 2)])
def test_few_examples_and_methods_draw_quietly(methods, examples):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = metric_figures.draw(invented(methods, examples))
        for figure in drawn.values():
            figure.draw_without_rendering()
    assert list(drawn) == NAMES


def test_many_methods_are_told_apart_family_by_family(results):
    figure = metric_figures.removal(results)
    assert figure is not None
    assert len(figure.axes) == 4
    lines = [line for line in figure.axes[0].lines if not line.get_label().startswith("_")]
    looks = {(line.get_color(), line.get_marker(), str(line.get_linestyle())) for line in lines}
    assert {line.get_label() for line in lines} >= {"slalom", "lime", "random"}
    assert len(looks) == len(lines) == 9
    thick = max(lines, key=lambda line: line.get_linewidth())
    assert thick.get_label() == "slalom"
    one = metric_figures.removal(invented(("slalom", "lime", "gradient", "random")))
    assert one is not None
    assert len(one.axes) == 2


def test_curves_are_the_means_over_examples(results):
    figure = metric_figures.removal(results)
    assert figure is not None
    line = next(line for line in figure.axes[0].lines if line.get_label() == "lime")
    rows = [row.curves["deletion"] for row in results.rows if row.method == "lime"]
    np.testing.assert_allclose(line.get_ydata(), np.mean(rows, axis=0))
    assert line.get_xdata()[[0, -1]].tolist() == [0, 1]
    errors = metric_figures.fidelity(results)
    assert errors is not None
    assert errors.axes[0].get_yscale() == "log"
    assert errors.axes[0].lines[0].get_xdata().tolist() == list(range(1, 11))


def test_errors_that_are_zero_by_design_do_not_squeeze_the_rest(small):
    rows = tuple(
        replace(row, curves={"mse_by_removed": [1e-30, *row.curves["mse_by_removed"][1:]]})
        if row.method == "lime"
        else row
        for row in small.rows
    )
    figure = metric_figures.fidelity(replace(small, rows=rows))
    assert figure is not None
    assert figure.axes[0].get_ylim()[0] > 1e-6


def test_bands_agree_with_the_bootstrap_of_a_mean():
    curves = np.random.default_rng(1).normal(size=(60, 4))
    band, one = spread(curves), interval(curves[:, 2])
    assert band.centre[2] == pytest.approx(one.centre)
    assert band.low[2] == pytest.approx(one.low, abs=0.04)
    assert band.high[2] == pytest.approx(one.high, abs=0.04)


def test_unknown_places_of_a_curve_do_not_count(small):
    short = tuple(
        replace(row, curves={"mse_by_removed": [*row.curves["mse_by_removed"][:9], np.nan]})
        for row in small.rows
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = spreads(replace(small, rows=short), "mse_by_removed")
    assert np.isnan(found["lime"].centre[9])
    assert np.isfinite(found["lime"].centre[:9]).all()


def test_labels_beside_the_dots_do_not_overlap(results):
    figure = metric_figures.cost(results)
    assert figure is not None
    for axes in range(2):
        assert len(boxes(figure, axes)) == len(METHODS)
        assert overlaps(boxes(figure, axes)) == 0
    assert re.search(r"kernel_shap \(−5\.\d\d\)", words(figure))


def test_filled_dots_are_those_no_clear_difference_was_found_to(results):
    figure = metric_figures.intervals(results)
    assert figure is not None
    dots = figure.axes[0].collections
    filled = {
        int(dot.get_offsets()[0][1])
        for dot in dots
        if len(dot.get_offsets()) and dot.get_facecolors()[0][:3].tolist() != [1, 1, 1]
    }
    ticks = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert ticks[0] == "slalom"
    assert filled == {0}
    same = tuple(replace(row, figures=row.figures | {"aopc": 0.5}) for row in results.rows)
    level = metric_figures.intervals(replace(results, rows=same))
    assert level is not None
    faces = [dot.get_facecolors()[0][:3].tolist() for dot in level.axes[0].collections]
    assert [1, 1, 1] not in faces


def test_one_far_value_does_not_squeeze_the_others():
    near = [Interval(value, value - 0.01, value + 0.01, 9) for value in (0.7, 0.72, 0.75, 0.8)]
    scale = Scale.of([*near, Interval(-40.0, -50.0, -30.0, 9)])
    assert scale.low > 0.5
    assert scale.beyond(-40.0) == -1
    assert scale.at(-40.0) == scale.low
    sizes = [Interval(value, value / 2, value * 2, 9) for value in (0.01, 0.1, 5.0)]
    assert Scale.of(sizes, "seconds").log
    assert not Scale.of(sizes, "aopc").log
    alone = Scale.of([Interval(0.5, np.nan, np.nan, 1)])
    assert alone.low < 0.5 < alone.high
    floor = Scale.of([Interval(0.5, 0.4, 0.6, 9), Interval(-3.0, -4.0, -2.0, 9)], "r2_all")
    assert floor.low > -1.5


def test_hostile_names_are_drawn_as_they_are():
    rows = invented(("lime",), 3).rows
    name = "lime:$x_{<b>&"
    renamed = tuple(replace(row, method=name) for row in rows)
    results = replace(invented(("lime",), 3), methods=(name,), rows=renamed)
    for figure in metric_figures.draw(results).values():
        figure.draw_without_rendering()
        assert name in words(figure)


def test_every_method_has_a_family_and_a_look_of_its_own():
    kinds = {method: family(method) for method in METHODS}
    assert [m for m, kind in kinds.items() if kind == "slalom"] == ["slalom"]
    assert [m for m, kind in kinds.items() if kind == "control"] == ["random", "zero"]
    assert sum(kind == "white-box" for kind in kinds.values()) == 4
    looks = styles(tuple(METHODS)).values()
    assert len({(one.colour, one.marker, str(one.dashes)) for one in looks}) == len(METHODS)
