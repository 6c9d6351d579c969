"""Tables and claims of the study ``case-study``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from piste.evaluation import interval
from studies.base import Findings, Table, graded
from studies.case_figures import changes, draw_planes, draw_removal
from studies.planting import CONTROL, METHODS, PAPER, SHORTCUT, WORDS, Case

Found = Mapping[Case, Any]


def report(found: Found, name: str, title: str, command: str) -> Findings:
    """The findings; claims are about the models that have a clean twin and a plant of 80 / 5."""
    main = [case for case in found if (case.positive, case.negative) == (0.8, 0.05)]
    shown = main[0]
    return Findings(
        name,
        title,
        command,
        [
            _plane_table(found),
            *(_corpus_table(found, case) for case in (shown, shown.clean)),
            _removal_table(found),
            _predicted_table(found, main),
            _first_table(found),
        ],
        [_exposed(found, main), _not_exposed(found, main), _predicts(found, main)],
        {
            "plane": partial(draw_planes, found[shown.clean], found[shown], shown),
            "removal": partial(draw_removal, found[shown]),
        },
    )


def _corner(one: Any, word: str) -> float:
    return float(np.mean([place["corner"] for place in one["plane"][word]]))


def _ranks(one: Any) -> str:
    """Values of words that hardly weigh are loose, so the rank by value alone says less."""
    places = one["plane"][SHORTCUT]
    high, right, words = (
        np.median([place[name] for place in places]) for name in ("high", "right", "words")
    )
    return f"number {high:g} by importance and {right:g} by value, of {words:g}"


def _place_in_corpus(one: Any, word: str) -> int:
    return 1 + [row["word"] for row in one["corpus"]].index(word)


def _exposed(found: Found, main: Sequence[Case]) -> tuple[str, str, str]:
    shares = [_corner(found[case], SHORTCUT) for case in main]
    places = [_place_in_corpus(found[case], SHORTCUT) for case in main]
    said = [
        f"{case.model}: {share:.0%} of texts (in the median text {_ranks(found[case])}; first by "
        f"both in one number in {np.mean(found[case]['first'][PAPER][SHORTCUT]):.0%}), number "
        f"{place} of {len(found[case]['corpus'])} words over all texts"
        for case, share, place in zip(main, shares, places, strict=True)
    ]
    return (
        "(ours) the plane exposes a shortcut: it lies among the top fifth of a text's words by "
        "value and by importance, and first over all texts, though it means nothing",
        "; ".join(said),
        graded(min(shares) >= 0.75 and max(places) <= 3, min(shares) >= 0.25 or min(places) <= 3),
    )


def _not_exposed(found: Found, main: Sequence[Case]) -> tuple[str, str, str]:
    control = [_corner(found[case], CONTROL) for case in main]
    clean = [_corner(found[case.clean], SHORTCUT) for case in main]
    most = max(*control, *clean)
    said = [
        f"{case.model}: {one:.0%} and {other:.0%} of texts"
        for case, one, other in zip(main, control, clean, strict=True)
    ]
    return (
        "(ours) neither a control word nor the same word in a clean model lies there "
        "(by chance: 4 %)",
        "; ".join(said),
        graded(most <= 0.1, most <= 0.25),
    )


def _predicts(found: Found, main: Sequence[Case]) -> tuple[str, str, str]:
    errors, said = [], []
    for case in main:
        one = found[case]
        real, predicted = changes(one, SHORTCUT), np.array(one["predicted"]["slalom"][SHORTCUT])
        errors.append(float(np.abs(predicted - real).mean() / np.abs(real).mean()))
        said.append(
            f"{case.model}: {predicted.mean():.2f} predicted, {real.mean():.2f} real, mean error "
            f"{errors[-1]:.0%} of the change, correlation {np.corrcoef(predicted, real)[0, 1]:.2f}"
        )
    return (
        "(ours) without the shortcut the log-odds fall as Piste's default predicts",
        "; ".join(said),
        graded(max(errors) <= 0.25, max(errors) <= 0.5),
    )


def _average(values: Any, form: str = ".2f", average: Literal["mean", "median"] = "mean") -> str:
    """With its interval."""
    one = interval(np.asarray(values, dtype=float), average=average)
    return f"{one.centre:{form}} ({one.low:{form}} to {one.high:{form}})"


def _plane_table(found: Found) -> Table:
    rows = []
    for case, one in found.items():
        for word in WORDS:
            places = one["plane"][word]
            rows.append(
                (
                    case.model,
                    case.planted,
                    word,
                    _average([place["value"] for place in places], average="median"),
                    _average([place["importance"] for place in places], average="median"),
                    *(f"{np.median([place[name] for place in places]):g}"
                      for name in ("right", "high", "words")),
                    _average([place["corner"] for place in places], ".0%"),
                    f"{_place_in_corpus(one, word)} of {len(one['corpus'])}",
                )
            )  # fmt: skip
    return Table(
        f'Where "{SHORTCUT}" (the shortcut) and "{CONTROL}" (the control) lie in the plane',
        (
            "model",
            "shortcut in positive / negative",
            "word",
            "median value",
            "median importance",
            "median rank by value",
            "by importance",
            "of words",
            "top fifth by both",
            "place over all texts",
        ),
        rows,
    )


def _corpus_table(found: Found, case: Case) -> Table:
    rows = [
        (
            str(place),
            row["word"],
            f"{row['linear']['centre']:.2f}",
            f"{row['value']['centre']:.2f}",
            f"{row['importance']['centre']:.2f}",
            str(row["texts"]),
        )
        for place, row in enumerate(found[case]["corpus"][:10], start=1)
    ]
    return Table(
        f"Strongest words over all texts: {case.model}, shortcut {case.planted}",
        ("", "word", "median value × e^importance", "value", "importance", "texts"),
        rows,
    )


def _removal_table(found: Found) -> Table:
    rows = []
    for case, one in found.items():
        positive = np.array(one["labels"]) == 1
        before, after = np.array(one["with"]), np.array(one["without"][SHORTCUT])
        control = np.array(one["without"][CONTROL])
        rows.append(
            (
                case.model,
                case.planted,
                _average((after > 0) == positive, ".0%"),
                _average(before[~positive] < 0, ".0%"),
                _average(after[~positive] < 0, ".0%"),
                _average(before[~positive & (after < 0)] > 0, ".0%"),
                _average((before > 0) != (after > 0), ".0%"),
                _average((before > 0) != (control > 0), ".0%"),
                _average(before - after),
                _average(before - control),
            )
        )
    return Table(
        f'What removing "{SHORTCUT}" really does',
        (
            "model",
            "shortcut in positive / negative",
            "accuracy without it",
            "of negative texts with it",
            "without it",
            "negatives it turns",
            "answers its removal turns",
            "removal of the control",
            "fall of the log-odds",
            "of the control",
        ),
        rows,
    )


def _predicted_table(found: Found, cases: Sequence[Case]) -> Table:
    rows = []
    for case in cases:
        real = changes(found[case], SHORTCUT)
        rows.append((case.model, "really", _average(real), "", ""))
        for method in METHODS:
            predicted = np.array(found[case]["predicted"][method][SHORTCUT])
            control = np.array(found[case]["predicted"][method][CONTROL])
            rows.append(
                (
                    case.model,
                    method,
                    _average(predicted),
                    _average(np.abs(predicted - real)),
                    _average(np.abs(control - changes(found[case], CONTROL))),
                )
            )
    return Table(
        f'Fall of the log-odds without "{SHORTCUT}", predicted (occlusion asks for it)',
        ("model", "by", "mean fall", "mean error", "mean error for the control"),
        rows,
    )


def _first_table(found: Found) -> Table:
    rows = [
        (case.model, case.planted, *(_average(one["first"][m][SHORTCUT], ".0%") for m in METHODS))
        for case, one in found.items()
    ]
    return Table(
        f'Texts in which "{SHORTCUT}" ranks first',
        ("model", "shortcut in positive / negative", *METHODS),
        rows,
    )
