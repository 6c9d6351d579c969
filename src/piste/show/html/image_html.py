"""The image with its heat maps and their keys, as parts of a page.

Every part is a path that holds one colour per score as a style variable, and which of them is
shown follows from the chosen radio buttons by style rules alone: no script is needed.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape

from PIL import Image

from piste.explanation import Explanation
from piste.image import ImageInput
from piste.show import colours, score_terms, wording
from piste.show.heat_colours import (
    SMALL,
    Heat,
    Pixels,
    areas_of,
    image_of,
    named,
    outlines,
    paled,
    svg_path,
)
from piste.show.score_terms import Column


def section(
    e: Explanation, kinds: Sequence[wording.Kind], found: Sequence[Column], tips: Sequence[str]
) -> str:
    """The image beside its heat map, with a choice of scores and, if need be, of classes."""
    paths = unit_paths(e)
    heats = [Heat.of(e, column.name, column.label) for column in found]
    keys = "".join(
        f'<div class="piste-key piste-key{place}">{scale(heat)}'
        f'<p class="piste-faint">{escape(column.meaning)}</p></div>'
        for place, (heat, column) in enumerate(zip(heats, found, strict=True))
    )
    return f"""<section class="piste-view">
<div class="piste-bar"><h2>The image</h2>{_choices(found)}</div>
<div class="piste-images">
<figure>{bare(e, kinds, paths)}<figcaption class="piste-faint">{escape(named(e))}</figcaption>
</figure>
<figure>{heat_map(e, kinds, heats, paths, tips)}{keys}</figure>
</div>
</section>"""


def summary_row(e: Explanation, kinds: Sequence[wording.Kind], tips: Sequence[str]) -> str:
    """The image and its main scores in a row, without a choice."""
    image, paths = image_of(e), unit_paths(e)
    figures = [
        f"<figure>{_image(image, image.pixels, named(e))}"
        f'<figcaption class="piste-faint">{escape(named(e))}</figcaption></figure>'
    ]
    for name in score_terms.main_scores(e):
        heat = Heat.of(e, name)
        drawn = heat_map(e, kinds, [heat], paths, tips)
        figures.append(
            f"<figure>{drawn}<figcaption>{escape(name)}</figcaption>{scale(heat)}</figure>"
        )
    return f'<div class="piste-images piste-row">{"".join(figures)}</div>'


def unit_paths(e: Explanation) -> list[str]:
    """The outline of every unit, as the data of an SVG path."""
    return [svg_path(loops) for loops in outlines(areas_of(image_of(e)), len(e.units))]


def bare(e: Explanation, kinds: Sequence[wording.Kind], paths: Sequence[str]) -> str:
    """The image itself, whose parts light up with those of the heat map."""
    image = image_of(e)
    parts = "".join(
        f'<path class="piste-area" data-k="{number}" data-u="{unit}" d="{paths[unit]}"/>'
        for number, kind in enumerate(kinds)
        for unit in kind.units
    )
    return _image(image, image.pixels, named(e), parts, "piste-bare")


def heat_map(
    e: Explanation,
    kinds: Sequence[wording.Kind],
    heats: Sequence[Heat],
    paths: Sequence[str],
    tips: Sequence[str],
) -> str:
    """The image in light greys under its parts, each with its colours of all these scores."""
    image = image_of(e)
    parts = []
    for number, kind in enumerate(kinds):
        for unit in kind.units:
            shades = ";".join(f"--h{place}:{heat.css(unit)}" for place, heat in enumerate(heats))
            parts.append(
                f'<path class="piste-area piste-unit" role="img" data-k="{number}" data-u="{unit}" '
                f'd="{paths[unit]}" style="{shades}">'
                f"<title>{escape(kind.title)}: {escape(tips[number])}</title></path>"
            )
    about = f"heat map of {image.name}"
    return _image(image, paled(image), about, "".join(parts), "piste-marked")


def scale(heat: Heat) -> str:
    """A score's colours from end to end, with their numbers and what they mean."""
    stops = ",".join(colours.to_hex((r, g, b)) for r, g, b in heat.scale.ramp(9).tolist())
    marks = "".join(
        f'<span style="left:{100 * place:.0f}%">{escape(number)}</span>'
        for place, number in heat.marks
    )
    above, below = heat.ends
    return (
        f'<div class="piste-scale"><i style="background:linear-gradient(to right,{stops})"></i>'
        f'<div class="piste-marks">{marks}</div><div class="piste-ends">'
        f"<span>{escape(below)}</span><span>{escape(above)}</span></div></div>"
    )


def rules(found: Sequence[Column]) -> str:
    """Style rules that show the colours and the key of the chosen score and class."""
    names, labels = _names(found), _labels(found)
    parts = []
    for place, column in enumerate(found):
        chosen = f".piste-view:has(.piste-s{names.index(column.name)}:checked)"
        if column.label is not None:
            chosen += f":has(.piste-c{labels.index(column.label)}:checked)"
        parts.append(
            f"{chosen} .piste-unit{{fill:var(--h{place})}}"
            f"{chosen} .piste-key{{display:none}}{chosen} .piste-key{place}{{display:block}}"
        )
    return "".join(parts)


def _choices(found: Sequence[Column]) -> str:
    parts = []
    for title, letter, options in (
        ("coloured by", "s", _names(found)),
        ("for the class", "c", _labels(found)),
    ):
        if len(options) < 2:
            # Rules ask for a chosen button, also where there is nothing to choose.
            parts += [
                f'<input type="radio" hidden checked class="piste-{letter}0">' for _ in options
            ]
            continue
        buttons = "".join(
            f'<label><input type="radio" name="piste-{letter}" class="piste-{letter}{place}"'
            f"{'' if place else ' checked'}>{escape(option)}</label>"
            for place, option in enumerate(options)
        )
        parts.append(
            f'<fieldset class="piste-choices"><legend>{title}</legend>{buttons}</fieldset>'
        )
    return "".join(parts)


def _names(found: Sequence[Column]) -> list[str]:
    return list(dict.fromkeys(column.name for column in found))


def _labels(found: Sequence[Column]) -> list[str]:
    return list(dict.fromkeys(column.label for column in found if column.label is not None))


def _image(
    image: ImageInput, pixels: Pixels, about: str, parts: str = "", kind: str = "piste-bare"
) -> str:
    """Pixels as an SVG in which parts are addressed in the image's own pixels."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", optimize=True)
    content = base64.b64encode(buffer.getvalue()).decode("ascii")
    sharp = ' class="piste-pixels"' if max(image.width, image.height) < SMALL else ""
    size = f'width="{image.width}" height="{image.height}"'
    return (
        f'<svg class="piste-image {kind}" viewBox="0 0 {image.width} {image.height}" '
        f'role="group" aria-label="{escape(about)}"><image{sharp} {size} '
        f'preserveAspectRatio="none" href="data:image/png;base64,{content}"/>{parts}</svg>'
    )
