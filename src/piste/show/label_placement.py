"""Places for labels beside their dots, so that nothing overlaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from piste.types import Flags, Floats

Box = tuple[float, float, float, float]
"""Left, top, right, bottom in any flat coordinates (y may grow either way)."""

_DISTANCES = (1.5, 5.0, 10.0, 17.0, 26.0, 38.0, 52.0, 70.0)
# Diagonals first: error bars run along the axes.
_ANGLES = np.deg2rad([25, 335, 155, 205, 50, 310, 130, 230, 0, 180, 90, 270])
_LEADER_FROM = 8.0
"""Labels farther than this from their dot's edge need a line to it."""


@dataclass(frozen=True)
class Label:
    """A label's box, and the end of a leader line to it where it stands apart."""

    box: Box
    leader: tuple[float, float] | None

    @property
    def centre(self) -> tuple[float, float]:
        left, top, right, bottom = self.box
        return (left + right) / 2, (top + bottom) / 2


def place(
    dots: Floats,
    radii: Floats,
    sizes: Floats,
    order: Sequence[int],
    bounds: Box,
    blocked: Sequence[Box] = (),
) -> list[Label | None]:
    """A place for every label, or None where there truly is no room.

    ``dots`` and ``sizes`` (width, height) are n × 2, in the same coordinates as ``bounds`` and the
    boxes that must stay free of labels.
    Labels are placed one after the other in ``order``, the most telling first, each at the nearest
    free place around its dot; rather at one whose leader line meets no other dot.
    """
    placed: list[Label | None] = [None] * len(dots)
    taken = np.array(blocked, dtype=np.float64).reshape(-1, 4)
    lines = np.empty((0, 2))
    for index in order:
        boxes, distances = _candidates(dots[index], float(radii[index]), sizes[index])
        free = _inside(boxes, bounds) & ~_touch(boxes, taken)
        near = _reached(boxes, dots, float(radii.max()))
        free[free] = ~_cover(boxes[free], dots[near], radii[near])
        near = _reached(boxes, lines, 1.0)
        free[free] = ~_cover(boxes[free], lines[near], np.ones(int(near.sum())))
        chosen: tuple[Floats, Floats, Floats] | None = None
        for choice in np.flatnonzero(free):
            box, far = boxes[choice], distances[choice] > _LEADER_FROM
            end = np.clip(dots[index], box[:2], box[2:])
            path = _path(dots[index], end) if far else np.empty((0, 2))
            if far and _holds(taken, path):
                continue  # the line would run through another label
            if far and _meets(path, dots, radii, index):
                chosen = chosen or (box, end, path)
                continue
            chosen = box, end, path
            break
        if chosen is not None:
            box, end, path = chosen
            left, top, right, bottom = (float(edge) for edge in box)
            leader = (float(end[0]), float(end[1])) if len(path) else None
            placed[index] = Label((left, top, right, bottom), leader)
            taken, lines = np.vstack([taken, box]), np.vstack([lines, path])
    return placed


def _candidates(dot: Floats, radius: float, size: Floats) -> tuple[Floats, Floats]:
    """Boxes around a dot, nearest first, with the distance of each from the dot's edge."""
    distances = np.repeat(_DISTANCES, len(_ANGLES))
    angles = np.tile(_ANGLES, len(_DISTANCES))
    direction = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    touch = dot + direction * (radius + distances)[:, None]
    # The box hangs on the point so that it extends away from the dot.
    centre = touch + np.clip(1.6 * direction, -1, 1) * size / 2
    return np.concatenate([centre - size / 2, centre + size / 2], axis=1), distances


def _reached(boxes: Floats, points: Floats, margin: float) -> Flags:
    """Which points any of the boxes might touch: the rest need no closer look."""
    low, high = boxes[:, :2].min(axis=0) - margin, boxes[:, 2:].max(axis=0) + margin
    return np.asarray(((points >= low) & (points <= high)).all(axis=1))


def _inside(boxes: Floats, bounds: Box) -> Flags:
    low, high = np.array(bounds[:2]), np.array(bounds[2:])
    return np.asarray(((boxes[:, :2] >= low) & (boxes[:, 2:] <= high)).all(axis=1))


def _touch(boxes: Floats, others: Floats) -> Flags:
    """Which boxes overlap any of the others."""
    a, b = boxes[:, None, :], others[None, :, :]
    apart = (a[..., 2:] <= b[..., :2]) | (b[..., 2:] <= a[..., :2])
    return np.asarray(np.any(~np.asarray(apart.any(axis=2)), axis=1))


def _cover(boxes: Floats, points: Floats, radii: Floats) -> Flags:
    """Which boxes come nearer to a point than its radius."""
    nearest = np.clip(points[None, :, :], boxes[:, None, :2], boxes[:, None, 2:])
    distance = np.linalg.norm(nearest - points[None, :, :], axis=2)
    return np.asarray(np.any(distance < radii[None, :], axis=1))


def _path(start: Floats, end: Floats) -> Floats:
    """Points along a line, dense enough that no label fits between two."""
    steps = max(int(np.linalg.norm(end - start) / 3), 2)
    return start + np.linspace(0, 1, steps)[:, None] * (end - start)


def _meets(path: Floats, dots: Floats, radii: Floats, own: int) -> bool:
    """Whether a line runs over a dot that isn't its own; dots in the same place are its own."""
    apart = np.linalg.norm(dots - dots[own], axis=1) > radii
    distance = np.linalg.norm(path[:, None] - dots[None, apart], axis=2)
    return bool((distance < radii[apart]).any())


def _holds(boxes: Floats, points: Floats) -> bool:
    """Whether any box holds any point."""
    if not len(boxes):
        return False
    inside = (points[:, None] > boxes[None, :, :2]) & (points[:, None] < boxes[None, :, 2:])
    return bool(inside.all(axis=2).any())


def axis_range(numbers: Floats) -> tuple[float, float]:
    """From the least to the largest number, with 0 unless all are far from it.

    >>> axis_range(np.array([1.0, 2.0])), axis_range(np.array([-61.0, -58.0]))
    ((0.0, 2.0), (-61.0, -58.0))
    """
    low, high = float(numbers.min()), float(numbers.max())
    if high > low and min(abs(low), abs(high)) > 3 * (high - low):
        return low, high
    return min(low, 0.0), max(high, 0.0)
