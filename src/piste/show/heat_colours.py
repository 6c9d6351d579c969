"""Scores of an image's parts as colours: scale, key, pixels, and the parts' outlines."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from piste.errors import PisteError
from piste.explanation import UNDIRECTED, Explanation
from piste.image import ImageInput
from piste.show import colours, score_terms, wording
from piste.types import Floats

Pixels = NDArray[np.uint8]

PALE = 0.38
"""How much of its contrast an image keeps under the colours, so that both can be read."""
SMALL = 128
"""Images narrower than this are enlarged without smoothing: their pixels are what was seen."""
LARGEST = 1024
"""Larger images are shown smaller: a page would hold megabytes that no screen can show."""
_LUMA = np.array([0.299, 0.587, 0.114])


@dataclass(frozen=True)
class Scale:
    """Where the colours of a score end, and whether its sign has a colour of its own."""

    low: float
    high: float
    directed: bool
    beyond: tuple[bool, bool] = (False, False)
    """Whether some scores lie below the low end, above the high one."""

    @staticmethod
    def of(name: str, scores: Floats) -> Scale:
        """As for texts where a score has a direction; else from the least to the most.

        >>> Scale.of("value", np.array([1.0, -2.0]))
        Scale(low=-2.0, high=2.0, directed=True, beyond=(False, False))
        >>> Scale.of("sensitivity", np.array([1.0, 3.0])).low
        0.0
        """
        known = scores[np.isfinite(scores)]
        if not known.size:
            known = np.zeros(1)
        least, most = float(known.min()), float(known.max())
        directed = name not in UNDIRECTED
        if directed:
            high = colours.scale(known)
            low = -high
        else:
            low, high = 0.0, most
            if least < 0:
                low = float(np.quantile(known, 1 - colours.CLIP, method="lower"))
                high = float(np.quantile(known, colours.CLIP, method="higher"))
        return Scale(low, high, directed, (least < low, most > high))

    def strengths(self, scores: Floats) -> Floats:
        """Scores as strengths, −1 … 1 or 0 … 1; unknown ones are 0."""
        numbers = np.nan_to_num(np.asarray(scores, dtype=np.float64))
        if self.directed:
            return np.clip(numbers / self.high, -1.0, 1.0)
        if self.high <= self.low:
            return np.zeros(numbers.shape)  # all alike: none stands out
        return np.clip((numbers - self.low) / (self.high - self.low), 0.0, 1.0)

    def marks(self, places: int) -> list[tuple[float, str]]:
        """Numbers for a key, each with its place between the two ends (0 … 1)."""
        if self.high <= self.low:
            return [(0.5, f"all {wording.number(self.low, places)}")]
        below, above = (sign if over else "" for sign, over in zip("≤≥", self.beyond, strict=True))
        ends = [
            (0.0, f"{below} {wording.number(self.low, places)}".strip()),
            (1.0, f"{above} {wording.number(self.high, places)}".strip()),
        ]
        zero = -self.low / (self.high - self.low)
        # A zero that stands too near to an end would be written over it.
        return [ends[0], (zero, "0"), ends[1]] if 0.2 < zero < 0.8 else ends

    def ramp(self, steps: int = 96) -> Pixels:
        """The scale's colours from end to end on the palest ground, steps × 3."""
        shares = np.linspace(-1.0 if self.directed else 0.0, 1.0, steps)
        white = np.full((1, steps, 3), 255, dtype=np.uint8)
        return tinted(white, shares[None, :], self.directed)[0]


@dataclass(frozen=True)
class Heat:
    """One score of all parts of an image, ready to be painted."""

    name: str
    scores: Floats
    strengths: Floats
    scale: Scale
    ends: tuple[str, str]
    """What the high and the low end of the scale mean."""
    places: int

    @staticmethod
    def of(e: Explanation, name: str | None = None, label: str | int | None = None) -> Heat:
        """A score (default: the one that ranks), of one class where each has its own."""
        chosen = name or e.ranking
        scores = e.score(chosen, label)
        scale = Scale.of(chosen, scores)
        return Heat(
            name=chosen,
            scores=scores,
            strengths=scale.strengths(scores),
            scale=scale,
            ends=score_terms.scale_ends(e, chosen, label),
            places=wording.digits(scores),
        )

    @property
    def marks(self) -> list[tuple[float, str]]:
        return self.scale.marks(self.places)

    def css(self, unit: int) -> str:
        """A unit's translucent colour."""
        return colours.css(float(self.strengths[unit]), self.scale.directed)


def image_of(e: Explanation) -> ImageInput:
    """The image an explanation is of, cut into units, and no larger than a screen shows."""
    image = e.input
    if not isinstance(image, ImageInput) or image.areas is None:
        raise PisteError("A heat map needs an image that was explained, but a text was.")
    factor = -(-max(image.width, image.height) // LARGEST)
    if factor < 2:
        return image
    pixels = np.asarray(image.to_pil().reduce(factor))
    return replace(image, pixels=pixels, areas=image.areas[::factor, ::factor])


def named(e: Explanation) -> str:
    """The image's name and its full size in words."""
    image = e.input
    assert isinstance(image, ImageInput)  # :func:`image_of` refused others
    return f"{image.name}, {image.width} × {image.height} pixels as the model sees it"


def areas_of(image: ImageInput) -> NDArray[np.int32]:
    """The unit of every pixel."""
    assert image.areas is not None  # :func:`image_of` refused others
    return image.areas


def paled(image: ImageInput) -> Pixels:
    """The image in light greys (height × width), on which colours can be laid."""
    greys = image.pixels @ _LUMA
    return np.round(255 - PALE * (255 - greys)).astype(np.uint8)


def tinted(ground: Pixels, strengths: Floats, directed: bool) -> Pixels:
    """Colours of strengths (height × width) laid over a ground (… × 3); NaN leaves it bare."""
    known = np.nan_to_num(strengths)
    share = np.minimum(colours.STRONGEST * np.abs(known), 1.0)[..., None]
    up, down = (np.array(colours.hue(sign, directed)) for sign in (1.0, -1.0))
    hues = np.where(known[..., None] >= 0, up, down)
    return np.round(share * hues + (1 - share) * ground).astype(np.uint8)


def painted(e: Explanation, heat: Heat) -> Pixels:
    """The heat map itself: height × width × 3."""
    image = image_of(e)
    ground = np.repeat(paled(image)[:, :, None], 3, axis=2)
    return tinted(ground, image.painted(heat.strengths), heat.scale.directed)


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
