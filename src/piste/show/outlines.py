"""The outlines of an image's parts, traced along the edges of their pixels."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

Point = tuple[int, int]
Loop = list[Point]
"""Corners of a closed line (x, y), clockwise; each side is horizontal or vertical."""


def outlines(areas: NDArray[np.int32], units: int) -> list[list[Loop]]:
    """For every unit the loops around its pixels: one, more if it has holes or several pieces.

    >>> outlines(np.array([[0, 0], [1, 1]], dtype=np.int32), 2)
    [[[(0, 0), (2, 0), (2, 1), (0, 1)]], [[(0, 1), (2, 1), (2, 2), (0, 2)]]]
    """
    edges: list[dict[Point, list[Point]]] = [defaultdict(list) for _ in range(units)]
    framed = np.pad(areas, 1, constant_values=-1)
    inner = framed[1:-1, 1:-1]
    # Each side of a pixel whose neighbour is another unit's: (neighbour, start, end).
    sides = (
        (framed[:-2, 1:-1], (0, 0), (1, 0)),
        (framed[1:-1, 2:], (1, 0), (1, 1)),
        (framed[2:, 1:-1], (1, 1), (0, 1)),
        (framed[1:-1, :-2], (0, 1), (0, 0)),
    )
    for neighbour, start, end in sides:
        rows, columns = np.nonzero((inner != neighbour) & (inner >= 0))
        owners = inner[rows, columns].tolist()
        for unit, x, y in zip(owners, columns.tolist(), rows.tolist(), strict=True):
            edges[unit][x + start[0], y + start[1]].append((x + end[0], y + end[1]))
    return [_loops(steps) for steps in edges]


def _loops(steps: dict[Point, list[Point]]) -> list[Loop]:
    """Edges joined end to start until each line is closed, with straight stretches as one."""
    loops = []
    for start in sorted(steps, key=lambda point: (point[1], point[0])):
        while steps[start]:
            loop, at = [start], steps[start].pop()
            while at != start:
                loop.append(at)
                at = steps[at].pop()
            loops.append(_corners(loop))
    return loops


def _corners(loop: Loop) -> Loop:
    before, after = [loop[-1], *loop[:-1]], [*loop[1:], loop[0]]
    return [
        here
        for here, (x0, y0), (x1, y1) in zip(loop, before, after, strict=True)
        if x0 != x1 and y0 != y1
    ]


def svg_path(loops: list[Loop]) -> str:
    """Loops as the data of an SVG path.

    >>> svg_path([[(0, 0), (2, 0), (2, 1), (0, 1)]])
    'M0 0H2V1H0Z'
    """
    parts = []
    for loop in loops:
        (x, y), *rest = loop
        parts.append(f"M{x} {y}")
        for next_x, next_y in rest:
            parts.append(f"H{next_x}" if next_y == y else f"V{next_y}")
            x, y = next_x, next_y
        parts.append("Z")
    return "".join(parts)
