"""The plane of two scores as inline SVG, coloured by the page's style sheet."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np

from piste.explanation import Explanation
from piste.show import colours, label_placement, score_terms, wording
from piste.types import Flags, Floats

_FONT = 12.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 10.0, 10.0, 44.0


@dataclass(frozen=True)
class _Frame:
    """Data coordinates to figure coordinates, y downwards."""

    width: float
    height: float
    low: Floats
    high: Floats

    @staticmethod
    def around(points: Floats, width: float, height: float) -> _Frame:
        low, high = np.transpose([label_placement.axis_range(numbers) for numbers in points.T])
        room = np.where(high > low, 0.1 * (high - low), 1.0)
        return _Frame(width, height, low - room, high + room)

    @property
    def box(self) -> label_placement.Box:
        return _LEFT, _TOP, self.width - _RIGHT, self.height - _BOTTOM

    def x(self, value: float) -> float:
        left, _, right, _ = self.box
        share = (value - self.low[0]) / (self.high[0] - self.low[0])
        return float(left + share * (right - left))

    def y(self, value: float) -> float:
        _, top, _, bottom = self.box
        share = (value - self.low[1]) / (self.high[1] - self.low[1])
        return float(bottom - share * (bottom - top))


@dataclass(frozen=True)
class Points:
    """What a plane shows: named points, value to the right and mostly importance upward."""

    names: Sequence[str]
    places: Floats
    """The two scores, n × 2; points that are not known are left out."""
    errors: Floats
    """Their standard errors, NaN where there is none."""
    radii: Floats
    strengths: Floats
    """From −1 to 1, for the colours."""
    order: Sequence[int]
    """Points that may have a label, the most telling first."""
    loose: Flags
    """Points that say too little to count: small and pale, or pale only if they have a name."""
    sides: tuple[str, str]
    """What positive and negative values mean."""
    about: str
    """What a reader hears who can't see it."""
    first: int = 0
    """The number of the first point: several planes of a page count on."""
    also: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Further points that a point stands for, at the same place; they are not drawn."""
    titles: tuple[str, str] = ("value (log-odds)", "importance (log-weight)")
    """Of the two axes."""
    upward: tuple[str, str] = ("heavier", "lighter")
    """What high and low mean on the upward axis."""
    bare: bool = False
    """Whether points without a place in ``order`` have no error bars."""


def plane(
    e: Explanation, kinds: list[wording.Kind], *, width: float = 860, height: float = 520
) -> str:
    """The plane of an explanation's units; "" without two scores for it."""
    both = score_terms.plane_scores(e)
    if both is None:
        return ""
    firsts = [kind.first for kind in kinds]
    places = np.stack([e.score(name)[firsts] for name in both], axis=1)
    also = _together(e, kinds, places)
    hidden = {index for others in also.values() for index in others}
    copies = [
        sum(len(kinds[one].units) for one in (index, *also.get(index, ())))
        for index in range(len(kinds))
    ]
    names = [
        f"{wording.short(e.units[kind.first].text)} ×{copies[index]}"
        if index in also
        else kind.title
        for index, kind in enumerate(kinds)
    ]
    order = [index for index in score_terms.named(e, kinds) if index not in hidden]
    quiet = np.ones(len(kinds), dtype=bool)
    quiet[order] = False
    weighed = both[1] == "importance"
    points = Points(
        names=names,
        places=places,
        errors=np.stack([e.error(name)[firsts] for name in both], axis=1),
        radii=3.6 * np.array(copies) ** 0.3 * np.where(quiet, 0.6, 1.0),
        strengths=colours.strengths(e.score())[firsts],
        order=order,
        loose=quiet,
        sides=score_terms.sides(e, "value") if wording.of_answer(e) else wording.sides(e),
        about=f"Value against {both[1]} of every {wording.part(e)}",
        also=also,
        titles=(axis_title(e, both[0]), axis_title(e, both[1])),
        upward=("heavier", "lighter") if weighed else ("for it", "against it"),
        bare=True,
    )
    return draw(points, width=width, height=height, most=score_terms.most_names(e))


def axis_title(e: Explanation, name: str) -> str:
    """A score on an axis, with what it means."""
    unit = score_terms.scale(e, name)
    brief = score_terms.BRIEF[name]
    return f"{name}: {brief}" + ("" if unit in brief else f" ({wording.short(unit, 24)})")


def _together(
    e: Explanation, kinds: list[wording.Kind], places: Floats
) -> dict[int, tuple[int, ...]]:
    """Kinds that only other methods tell apart lie at one place: the first stands for all."""
    shared: dict[tuple[str, bytes], list[int]] = {}
    for index, kind in enumerate(kinds):
        word = e.units[kind.first].text.strip().casefold()
        shared.setdefault((word, np.round(places[index], 9).tobytes()), []).append(index)
    return {first: tuple(others) for first, *others in shared.values() if others}


def draw(points: Points, *, width: float = 860, height: float = 520, most: int = 90) -> str:
    """One ``<g data-k>`` per point (dot, errors, label, at ``most`` so many); "" without any."""
    known = np.asarray(np.isfinite(points.places).all(axis=1))
    known[[index for others in points.also.values() for index in others]] = False
    if not known.any():
        return ""
    frame = _Frame.around(points.places[known], width, height)
    dots = np.array([(frame.x(x), frame.y(y)) for x, y in np.nan_to_num(points.places)])
    sizes = np.array([(text_width(name) + 4, _FONT + 3) for name in points.names])
    order = [index for index in points.order if known[index]][:most]
    places = label_placement.place(dots, points.radii + 1, sizes, order, frame.box)
    barred = set(order) if points.bare else set(range(len(points.names)))
    parts = [_axes(points, frame)]
    named = set(order)
    # Named points are drawn last: they lie above the small ones, and can be pointed at.
    for index in sorted(np.flatnonzero(known).tolist(), key=named.__contains__):
        place, error = points.places[index], points.errors[index]
        look = "piste-dot piste-loose" if points.loose[index] else "piste-dot"
        others = " ".join(str(points.first + one) for one in points.also.get(index, ()))
        more = f' data-also="{others}" data-name="{escape(points.names[index])}"' if others else ""
        parts.append(f'<g data-k="{points.first + index}"{more} class="{look}">')
        parts.append(_whiskers(frame, place, error) if index in barred else "")
        radius, strength = float(points.radii[index]), float(points.strengths[index])
        parts.append(_dot(dots[index], radius, strength))
        parts.append(_label(points.names[index], places[index], dots[index]))
        parts.append("</g>")
    return (
        f'<svg class="piste-plane" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(points.about)}">{"".join(parts)}</svg>'
    )


def text_width(text: str, size: float = _FONT) -> float:
    """The width a browser will about need: no font can be asked here."""
    units = 0.0
    for sign in text:
        if unicodedata.east_asian_width(sign) in "WF":
            units += 1.05
        elif sign in "iljtfrI.,:;'|!()[] ":
            units += 0.36
        else:
            units += 0.86 if sign in "mwMW@%" else (0.7 if sign.isupper() else 0.58)
    return units * size


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers between two bounds.

    >>> ticks(-1.0, 1.0, about=4)
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """
    raw = (high - low) / about
    size = 10.0 ** np.floor(np.log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw * 0.999)
    numbers = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
    return [float(round(number, 10)) + 0.0 for number in numbers]


def _axes(points: Points, frame: _Frame) -> str:
    left, top, right, bottom = frame.box
    above, below = points.sides
    lines = [f"M{frame.x(0):.1f} {top}V{bottom}", f"M{left} {frame.y(0):.1f}H{right}"]
    zeros = "".join(np.compress((frame.low <= 0) & (frame.high >= 0), lines))
    parts = [
        f'<path class="piste-zero" d="{zeros}"/>',
        f'<path class="piste-axis" d="M{left} {top}V{bottom}H{right}"/>',
    ]
    across = ticks(float(frame.low[0]), float(frame.high[0]), int(frame.width / 75))
    upward = ticks(float(frame.low[1]), float(frame.high[1]))
    parts += [_tick(frame.x(number), bottom + 15, number, "middle") for number in across]
    parts += [_tick(left - 6, frame.y(number) + 4, number, "end") for number in upward]
    middle = (top + bottom) / 2
    x_title, y_title = points.titles
    if frame.width - left > text_width(f"{below}{x_title}{above}") + 120:
        x_title = f"← {below}  ·  {x_title}  ·  {above} →"
        y_title = f"← {points.upward[1]}  ·  {y_title}  ·  {points.upward[0]} →"
    parts.append(
        f'<text class="piste-title" x="{(left + right) / 2:.1f}" y="{frame.height - 8:g}" '
        f'text-anchor="middle">{escape(x_title)}</text>'
        f'<text class="piste-title" transform="translate(12 {middle:.1f}) rotate(-90)" '
        f'text-anchor="middle">{escape(y_title)}</text>'
    )
    return "".join(parts)


def _tick(x: float, y: float, number: float, anchor: str) -> str:
    shown = f"{number:g}".replace("-", "−")
    return f'<text class="piste-tick" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{shown}</text>'


def _whiskers(frame: _Frame, point: Floats, error: Floats) -> str:
    """Standard errors both ways, cut at the frame; none where unknown or without bound."""
    path = ""
    low, high = np.maximum(point - error, frame.low), np.minimum(point + error, frame.high)
    if np.isfinite(error[0]):
        path += f"M{frame.x(low[0]):.1f} {frame.y(point[1]):.1f}H{frame.x(high[0]):.1f}"
    if np.isfinite(error[1]):
        path += f"M{frame.x(point[0]):.1f} {frame.y(low[1]):.1f}V{frame.y(high[1]):.1f}"
    return f'<path class="piste-whisker" d="{path}"/>' if path else ""


def _dot(dot: Floats, radius: float, strength: float) -> str:
    red, green, blue = colours.hue(strength)
    return (
        f'<circle cx="{dot[0]:.1f}" cy="{dot[1]:.1f}" r="{radius:.1f}" '
        f'fill="rgb({red},{green},{blue})" fill-opacity="{0.55 + 0.45 * abs(strength):.2f}"/>'
    )


def _label(name: str, place: label_placement.Label | None, dot: Floats) -> str:
    if place is None:
        return ""
    x, y = place.centre
    words = (
        f'<text class="piste-label" x="{x:.1f}" y="{y + 4:.1f}" '
        f'text-anchor="middle">{escape(name)}</text>'
    )
    if place.leader is None:
        return words
    end = f"L{place.leader[0]:.1f} {place.leader[1]:.1f}"
    return f'<path class="piste-leader" d="M{dot[0]:.1f} {dot[1]:.1f}{end}"/>{words}'
