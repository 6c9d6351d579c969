"""The plane of value and importance as inline SVG, coloured by the page's style sheet."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from piste.explanation import Explanation
from piste.show import colours, labels, reading

Floats = NDArray[np.float64]

_FONT = 12.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 10.0, 10.0, 44.0


@dataclass(frozen=True)
class _Frame:
    """Data coordinates to picture coordinates, y downwards."""

    width: float
    height: float
    low: Floats
    high: Floats

    @staticmethod
    def around(points: Floats, width: float, height: float) -> _Frame:
        low = np.minimum(points.min(axis=0), 0.0)
        high = np.maximum(points.max(axis=0), 0.0)
        room = np.where(high > low, 0.1 * (high - low), 1.0)
        return _Frame(width, height, low - room, high + room)

    @property
    def box(self) -> labels.Box:
        return _LEFT, _TOP, self.width - _RIGHT, self.height - _BOTTOM

    def x(self, value: float) -> float:
        left, _, right, _ = self.box
        share = (value - self.low[0]) / (self.high[0] - self.low[0])
        return float(left + share * (right - left))

    def y(self, value: float) -> float:
        _, top, _, bottom = self.box
        share = (value - self.low[1]) / (self.high[1] - self.low[1])
        return float(bottom - share * (bottom - top))


def plane(
    e: Explanation, kinds: list[reading.Kind], *, width: float = 860, height: float = 520
) -> str:
    """One ``<g data-k>`` per kind of unit (dot, errors, label); "" without value and importance."""
    if not {"value", "importance"} <= set(e.scores):
        return ""
    value, importance = e.score("value"), e.score("importance")
    firsts = [kind.first for kind in kinds]
    points = np.stack([value[firsts], importance[firsts]], axis=1)
    known = np.asarray(np.isfinite(points).all(axis=1))
    if not known.any():
        return ""
    frame = _Frame.around(points[known], width, height)
    dots = np.array([(frame.x(x), frame.y(y)) for x, y in np.nan_to_num(points)])
    radii = 3.6 * np.array([len(kind.units) for kind in kinds]) ** 0.3
    sizes = np.array([(text_width(kind.title) + 4, _FONT + 3) for kind in kinds])
    order = [index for index in reading.telling(e, kinds) if known[index]]
    order = order[: reading.most_labels(e)]
    places = labels.place(dots, radii + 1, sizes, order, frame.box)
    strengths = colours.strengths(value)[firsts]
    errors = np.stack([e.error("value")[firsts], e.error("importance")[firsts]], axis=1)
    parts = [_axes(e, frame)]
    for index in np.flatnonzero(known):
        parts.append(f'<g data-k="{index}" class="piste-dot">')
        parts.append(_whiskers(frame, points[index], errors[index]))
        parts.append(_dot(dots[index], float(radii[index]), float(strengths[index])))
        parts.append(_label(kinds[index], places[index], dots[index]))
        parts.append("</g>")
    return (
        f'<svg class="piste-plane" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="Value against importance of every unit">{"".join(parts)}</svg>'
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


def _axes(e: Explanation, frame: _Frame) -> str:
    left, top, right, bottom = frame.box
    above, below = reading.sides(e)
    zero_x, zero_y = frame.x(0), frame.y(0)
    parts = [
        f'<path class="piste-zero" d="M{zero_x:.1f} {top}V{bottom}M{left} {zero_y:.1f}H{right}"/>',
        f'<path class="piste-axis" d="M{left} {top}V{bottom}H{right}"/>',
    ]
    across = ticks(float(frame.low[0]), float(frame.high[0]), int(frame.width / 75))
    upward = ticks(float(frame.low[1]), float(frame.high[1]))
    parts += [_tick(frame.x(number), bottom + 15, number, "middle") for number in across]
    parts += [_tick(left - 6, frame.y(number) + 4, number, "end") for number in upward]
    middle = (top + bottom) / 2
    x_title, y_title = "value (log-odds)", "importance (log-weight)"
    if frame.width > 2 * text_width(below + above):
        x_title = f"← {below}  ·  {x_title}  ·  {above} →"
        y_title = f"← lighter  ·  {y_title}  ·  heavier →"
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


def _label(kind: reading.Kind, place: labels.Label | None, dot: Floats) -> str:
    if place is None:
        return ""
    x, y = place.centre
    words = (
        f'<text class="piste-label" x="{x:.1f}" y="{y + 4:.1f}" '
        f'text-anchor="middle">{escape(kind.title)}</text>'
    )
    if place.leader is None:
        return words
    end = f"L{place.leader[0]:.1f} {place.leader[1]:.1f}"
    return f'<path class="piste-leader" d="M{dot[0]:.1f} {dot[1]:.1f}{end}"/>{words}'
