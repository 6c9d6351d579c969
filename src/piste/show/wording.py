"""An explanation put into words and pieces, shared by terminal, figures and pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from piste.errors import PisteError
from piste.explanation import Explanation
from piste.image import ImageInput
from piste.prompt_text import PromptText
from piste.show.prompt_parts import Block, Piece, by_part
from piste.subject import PROMPT_UNITS, Unit
from piste.surrogates import MeanSurrogate
from piste.types import Flags, Floats

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def of_image(e: Explanation) -> bool:
    """Whether an image was explained, not a text."""
    return isinstance(e.input, ImageInput)


def what(e: Explanation) -> str:
    """What was explained, as a noun."""
    if of_image(e):
        return "image"
    return "prompt" if isinstance(e.input, PromptText) else "text"


def of_answer(e: Explanation) -> bool:
    """Whether an answer of a language model was explained, or a span of it."""
    return e.target.kind == "answer" and e.answer is not None


def answer_name(e: Explanation, limit: int = 60) -> str:
    """The explained answer or span in quotes, with what it is told apart from."""
    assert e.answer is not None
    if not e.target.minus:
        return f"“{short(e.target.labels[0], limit)}”"
    one, other = (short(text or "", limit // 2) for text in (e.target.labels[0], e.answer.against))
    return f"“{one}” over “{other}”"


def of_whole_answer(e: Explanation) -> bool:
    """Whether all of the answer is explained, not a span."""
    return e.answer is not None and len(e.target.indices) == len(e.answer.spans)


def part(e: Explanation) -> str:
    """A unit as a noun: an image has parts, a text words, tokens, sentences … or units."""
    if of_image(e):
        return "part"
    parts = [unit.part for unit in e.units]
    if None not in parts and len({*parts}) == len(parts) > 1:
        return "part"
    named = "words" if e.settings.get("phrases") else input_notes(e).get("units")
    return str(named)[:-1] if named in PROMPT_UNITS else "unit"


@dataclass(frozen=True)
class Kind:
    """Units with the same text and the same scores, shown as one."""

    name: str
    units: tuple[int, ...]

    @property
    def first(self) -> int:
        return self.units[0]

    @property
    def title(self) -> str:
        return f"{self.name} ×{len(self.units)}" if len(self.units) > 1 else self.name


def kinds(e: Explanation) -> list[Kind]:
    """Units grouped by text (upper or lower case) and scores, in order of appearance."""
    return grouped(e.units, list(e.scores.values()))


def grouped(all_units: Sequence[Unit], scores: Sequence[Floats]) -> list[Kind]:
    """Units of the same text and the same scores as one kind; ``scores`` may be of any method.

    Where a word has several kinds, each is numbered by its place among the word's occurrences.
    """
    columns = [np.reshape(array, (len(all_units), -1)) for array in scores]
    rows = np.round(np.concatenate(columns, axis=1), 9) + 0.0  # −0 and 0 are one
    groups: dict[tuple[str, bytes], list[int]] = {}
    for index, unit in enumerate(all_units):
        groups.setdefault((unit.text.strip().casefold(), rows[index].tobytes()), []).append(index)
    several = Counter(word for word, _ in groups)
    places: Counter[str] = Counter()
    numbers = []
    for unit in all_units:
        word = unit.text.strip().casefold()
        places[word] += 1
        numbers.append(f" #{places[word]}" if several[word] > 1 else "")
    return [
        Kind(_commonest([all_units[i].text for i in units]) + numbers[units[0]], tuple(units))
        for units in groups.values()
    ]


def _commonest(forms: list[str]) -> str:
    return short(max(forms, key=forms.count))


def short(text: str, limit: int = 28) -> str:
    """A unit's text as a name: on one line, shortened, never empty."""
    line = " ".join(text.split()) or repr(text).strip("'")
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def by_size(scores: Floats) -> list[int]:
    """Indices from the largest |score| to the smallest, unknown ones last."""
    sizes = np.where(np.isfinite(scores), np.abs(scores), -1.0)
    return [int(index) for index in np.argsort(-sizes, kind="stable")]


def digits(scores: Floats) -> int:
    """Decimal places that tell the scores of a column apart: small scores need more.

    >>> digits(np.array([3.0, -0.1])), digits(np.array([0.03, 0.01]))
    (2, 3)
    """
    sizes = np.abs(scores[np.isfinite(scores)])
    most = float(sizes.max(initial=0))
    if most == 0:
        return 2
    return int(np.clip(2 - np.floor(np.log10(most / 0.3)), 0 if most >= 1000 else 2, 9))


def number(value: float, places: int = 2) -> str:
    """A signed number with a real minus; an unknown one is a dash."""
    if not np.isfinite(value):
        return "–" if np.isnan(value) else ("∞" if value > 0 else "−∞")
    shown = f"{value:+.{places}f}"
    return shown.replace("-", "−") if float(shown) else f"{0:.{places}f}"


def plain(value: float, places: int = 2) -> str:
    """A number without the sign of positive ones."""
    return number(value, places).lstrip("+")


def with_error(value: float, error: float, places: int = 2) -> str:
    """``+1.20 ± 0.10``; nothing after the number where the method has no error."""
    if np.isnan(error):
        return number(value, places)
    return f"{number(value, places)} ± {plain(error, places)}"


def percent(probability: float) -> str:
    """A probability as a reader wants it, never rounded to a certainty it isn't."""
    if 0.9995 <= probability < 1:
        return "> 99.9 %"
    if 0 < probability < 0.0005:
        return "< 0.1 %"
    return f"{100 * probability:.1f} %"


def shown_class(e: Explanation, label: str | int | None = None) -> str | None:
    """The class whose scores are shown if every class has its own, else None."""
    if all(array.ndim == 1 for array in e.scores.values()):
        if label is not None:
            raise PisteError(
                f"label={label!r} was given, but this explanation has one set of scores, for "
                f"{e.target.name}: leave label out, or explain with target='all'."
            )
        return None
    if label is None:
        return e.output.label
    e.score(label=label)  # refuses a class that isn't there
    return e.output.labels[label] if isinstance(label, int) else label


def sides(e: Explanation, label: str | int | None = None) -> tuple[str, str]:
    """What positive and negative scores mean, for legends."""
    target, labels = e.target, e.output.labels
    if of_answer(e):
        return _answer_sides(e)
    if target.kind == "margin" and len(target.indices) == 2:
        a, b = (labels[index] for index in target.indices)
        return f"speaks for {a}", f"speaks for {b}"
    known = shown_class(e, label)
    if known is None and target.kind == "class":
        known = labels[target.indices[0]]
    if known is None and target.kind == "output" and e.output.probabilities is not None:
        known = labels[target.indices[0]]
    if known is not None:
        return f"speaks for {known}", f"speaks against {known}"
    return f"raises {target.name}", f"lowers {target.name}"


def _answer_sides(e: Explanation) -> tuple[str, str]:
    assert e.answer is not None
    if e.target.minus:
        one, other = (short(text or "", 40) for text in (e.target.labels[0], e.answer.against))
        return f"speaks for “{one}”", f"speaks for “{other}”"
    name = "the answer" if of_whole_answer(e) else answer_name(e, 40)
    return f"makes {name} likelier", f"makes {name} less likely"


def prediction(e: Explanation) -> str:
    """The model's answer: a class with its probability, a text, or the number of a regression."""
    if of_answer(e):
        scale = "difference of log-probabilities" if e.target.minus else "log-probability"
        return f"{answer_name(e)} ({scale} {number(float(e.output.logits[0]))})"
    chance = e.output.probability
    if chance is not None:
        return f"{e.output.label} ({percent(chance)})"
    return ", ".join(
        f"{label} = {number(value)}"
        for label, value in zip(e.output.labels, e.output.logits, strict=True)
    )


def explained(e: Explanation) -> str:
    """The target with the model's number for the whole input."""
    value = e.output.value
    if isinstance(value, tuple):
        return f"{e.target.name}; scores shown for {shown_class(e) or e.output.label}"
    return f"{e.target.name} = {number(value)}"


def input_notes(e: Explanation) -> dict[str, object]:
    """What was done to the input, as the classifier noted it."""
    notes = e.settings.get("input")
    return dict(notes) if isinstance(notes, dict) else {}


def input_warnings(e: Explanation) -> Iterator[str]:
    """What was done to the input that the reader didn't ask for: the same for every method."""
    notes = input_notes(e)
    if e.classifier.get("note"):
        yield str(e.classifier["note"])
    if e.classifier.get("bounded"):
        yield f"{e.classifier['bounded']}. Ask for the labels in the prompt, or add wordings."
    unread, units = notes.get("unknown_units"), len(e.units)
    if unread:
        known = f"none of the {units}" if unread == units else f"not {unread} of the {units}"
        yield (
            f"The tokenizer knows {known} {part(e)}s: the model reads each of these as the same "
            "unknown token."
        )
    if notes.get("instead"):
        said = str(notes["instead"])
        yield f"{said[:1].upper()}{said[1:]}."
    if notes.get("long") == "truncate":
        count = notes.get("truncated_tokens")
        lost = f"its last {count} tokens were" if count else "its end was"
        yield f"The text was too long for the model: {lost} cut off, neither read nor explained."
    elif notes.get("long") == "windows":
        yield "The text was too long for the model: it was read in windows, answers are averaged."
    for name, said in _SPAN_NOTES.items():
        if isinstance(spans := notes.get(name), list):
            few = ", ".join(str(tuple(span)) for span in spans[:3])
            yield f"{said}: {few}{' …' if len(spans) > 3 else ''}."


_SPAN_NOTES = {
    "widened_spans": "Spans that end within a token of the model were widened to the whole token",
    "lost_spans": "Spans in the part of the text that was cut off are not explained",
}


def warnings(e: Explanation) -> Iterator[str]:
    """Sentences a reader must not miss: what was cut, what wasn't asked, what can't be trusted."""
    yield from input_warnings(e)
    asked = e.errors.get(e.ranking)
    unknown = 0 if asked is None else int(np.isinf(asked.reshape(len(e.units), -1)).any(1).sum())
    if unknown:
        every = f"{len(e.units)} {part(e)}s"
        yield f"Nothing was asked about {unknown} of {every}: give more samples."
    yield from _doubt(e)
    if isinstance(e.surrogate, MeanSurrogate):
        yield (
            "An older version of Piste made this result: its values are not on the scale of the "
            "answers. Explain again for those that are."
        )


def _doubt(e: Explanation) -> Iterator[str]:
    """Why the scores can't be trusted, and what to do next."""
    verdict, more = e.fidelity.words, e.more_samples
    if verdict in ("poor", "unusable"):
        step = f"ask more questions, samples={more}" if more else "compare other methods or units"
        yield f"The explanation predicts the model badly: do not rely on its scores, {step}."
    elif verdict == "uncertain":
        step = f" Ask more, samples={more}." if more else ""
        yield f"Too few questions were left to tell how well the model is predicted.{step}"


def clear(scores: Floats, errors: Floats) -> Flags:
    """Scores that differ from 0 by two standard errors, as far as errors are known."""
    known = np.where(np.isnan(errors), 0.0, errors)
    return np.asarray(np.isfinite(scores) & (np.abs(scores) > 2 * known))


def texts(e: Explanation) -> list[list[Piece]]:
    """The input cut into pieces, one list per text of a pair; joined, they are the input."""
    if isinstance(e.input, ImageInput):
        return []
    given = (e.input,) if isinstance(e.input, str) else e.input
    cut = input_notes(e).get("long") == "truncate"
    result = []
    for segment, text in enumerate(given):
        spans = sorted(
            (unit.start, unit.end, index)
            for index, unit in enumerate(e.units)
            if unit.segment == segment and unit.end > unit.start
        )
        pieces, at = [], 0
        for start, end, index in spans:
            if end <= at:
                continue  # byte-level tokens may share one character
            if start > at:
                pieces.append(Piece(text[at:start], None))
            pieces.append(Piece(text[max(start, at) : end], index))
            at = end
        if at < len(text):
            rest = text[at:]
            pieces.append(Piece(rest, None, unread=cut and bool(rest.strip())))
        result.append(pieces)
    return result


def blocks(e: Explanation) -> list[Block]:
    """The input in blocks: a text, the two texts of a pair, or the parts of a prompt."""
    cut = texts(e)
    if isinstance(e.input, PromptText):
        return by_part(cut[0], e.input.parts)
    if isinstance(e.input, str):
        return [Block(cut[0])]
    return [Block(pieces, f"Text {number}") for number, pieces in enumerate(cut, start=1)]


def printable(text: str) -> str:
    """Without control characters and direction overrides: a text must not steer the terminal."""
    return _STEERING.sub("�", text)
