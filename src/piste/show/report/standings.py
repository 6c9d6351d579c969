"""Who is best at what, in words: never more than the paired intervals show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from piste.evaluation.bootstrap import differences
from piste.evaluation.results import Difference, Interval, Results
from piste.show import labels
from piste.show.labels import family

Summary = dict[tuple[str, str], Interval]

_RANKS = {"main": 0, "other": 1, "cost": 2}
_MOST_MAIN = 4


@dataclass(frozen=True)
class Standing:
    """One figure: the method with the best average, and the others by their difference to it.

    A method that refused some examples has an average over the others only: it is not called
    best where another is clearly better on the examples both have.
    """

    figure: str
    best: str
    level: tuple[str, ...]
    """No clear difference to the best."""
    behind: tuple[str, ...]
    """Clearly worse than the best: the paired interval leaves zero out."""


def table_figures(results: Results) -> list[str]:
    """The figures that deserve a column, the main ones first and the costs last."""
    roles = {name: figure.role for name, figure in results.figures.items()}
    shown = [name for name, role in roles.items() if role != "detail"]
    return sorted(shown, key=lambda name: _RANKS[roles[name]])


def main_figures(results: Results, found: Summary) -> list[str]:
    """The figures a verdict is made of: the usual ones, or else the first that have a direction."""
    there = {figure for _, figure in found}
    roles = {n: results.figures[n].role for n in table_figures(results) if n in there}
    main = [name for name, role in roles.items() if role == "main"]
    other = [name for name, role in roles.items() if role == "other" and sign(results, name)]
    return main or other[:_MOST_MAIN]


def sign(results: Results, figure: str) -> int:
    """1 where higher is better, −1 where lower is, 0 where neither."""
    return {"higher": 1, "lower": -1, "neither": 0}[results.figures[figure].better]


def ranked(results: Results, found: Summary, figure: str) -> list[str]:
    """Methods that have a figure, the best first (the highest, if neither way is good)."""
    way = sign(results, figure) or 1
    there = [
        method
        for method in results.methods
        if (method, figure) in found and not math.isnan(found[method, figure].centre)
    ]
    return sorted(there, key=lambda method: -way * found[method, figure].centre)


def standing(results: Results, found: Summary, figure: str) -> Standing | None:
    """How the methods stand in a figure; None without numbers or a good direction."""
    order = ranked(results, found, figure)
    if not order or not sign(results, figure):
        return None
    best = next((method for method in order if not _beaten(results, figure, method)), order[0])
    order.remove(best)
    behind = {
        one.method for one in differences(results, figure, best) if verdict(results, one) == "worse"
    }
    return Standing(
        figure,
        best,
        tuple(method for method in order if method not in behind),
        tuple(method for method in order if method in behind),
    )


def _beaten(results: Results, figure: str, method: str) -> bool:
    against = differences(results, figure, method)
    return any(verdict(results, one) == "better" for one in against)


def verdict(results: Results, one: Difference) -> str:
    """Whether the method is better or worse than the other, or there is no clear difference."""
    way = sign(results, one.figure)
    if not one.clear or not way:
        return "no clear difference"
    return "better" if way * one.interval.centre > 0 else "worse"


def reference(results: Results) -> str | None:
    """The method others are compared to: the one in the settings, SLALOM, or the first."""
    wanted = results.settings.get("reference")
    slaloms = [method for method in results.methods if family(method) == "slalom"]
    choices = [wanted, "slalom", *slaloms, *results.methods]
    return next((method for method in choices if method in results.methods), None)


def headline(standings: Sequence[Standing]) -> str:
    """The verdict in one line."""
    compared = [one for one in standings if one.level or one.behind]
    if not standings:
        return "Nothing could be measured"
    if not compared:
        return f"{standings[0].best} was measured alone"
    winners = {one.best for one in compared if not one.level}
    alone = [one for one in compared if not one.level]
    if len(winners) == 1 and len(alone) == len(compared):
        return f"{compared[0].best} is clearly the most faithful"
    ahead = [{one.best, *one.level} for one in compared]
    always = [
        method
        for method in (compared[0].best, *compared[0].level)
        if all(method in a for a in ahead)
    ]
    if len(always) == 1:
        return f"{always[0]} leads, or is level with the leader, in all {len(compared)} figures"
    if always:
        return f"No clear winner: {listing(always)} share the lead"
    return "No method is best at everything"


def sentences(results: Results, found: Summary, standings: Sequence[Standing]) -> list[str]:
    """One sentence per figure, and a warning about methods no better than a control."""
    lines = []
    for one in standings:
        interval = found[one.best, one.figure]
        number = number_with_bounds(interval, places(found, one.figure))
        skill, name = results.figures[one.figure].skill, results.figures[one.figure].title
        if not one.level and not one.behind:
            lines.append(f"{one.best} has a {name} of {number}; nothing to compare it with.")
        elif not one.level:
            lines.append(f"{one.best} is clearly best at {skill}: {name} {number}.")
        elif len(one.level) > 4 and not one.behind:
            lines.append(
                f"No clear differences in {skill}; {one.best} has the best average, {name} "
                f"{number}."
            )
        else:
            lines.append(
                f"{one.best} has the best average at {skill}, {name} {number}, without a clear "
                f"difference to {listing(one.level)}."
            )
    return [*lines, *_no_better_than_controls(results, found, standings)]


def _no_better_than_controls(
    results: Results, found: Summary, standings: Sequence[Standing]
) -> list[str]:
    """Methods that some control is level with, or better than, figure by figure."""
    lines = []
    controls = [method for method in results.methods if family(method) == "control"]
    others = [method for method in results.methods if method not in controls]
    for one in standings:
        weak: set[str] = set()
        for control in controls:
            if (control, one.figure) in found:
                against = differences(results, one.figure, control)
                weak |= {each.method for each in against if verdict(results, each) != "better"}
        named = [method for method in others if method in weak and (method, one.figure) in found]
        if named:
            does = "doesn't" if len(named) == 1 else "don't"
            lines.append(
                f"By {results.figures[one.figure].title}, {listing(named)} {does} clearly beat the "
                f"control{'s' if len(controls) > 1 else ''} {listing(controls)}."
            )
    return lines


def listing(names: Sequence[str], most: int = 6) -> str:
    """Names as in a sentence.

    >>> listing(["a", "b", "c"]), listing(["a"])
    ('a, b and c', 'a')
    """
    shown = [*names[:most], f"{len(names) - most} others"] if len(names) > most + 1 else list(names)
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


def bounds(interval: Interval, rule: labels.Places) -> str:
    """``0.85 to 0.90``; nothing where the bounds are unknown."""
    if math.isnan(interval.low) or math.isnan(interval.high):
        return ""
    return f"{labels.shown(interval.low, rule)} to {labels.shown(interval.high, rule)}"


def number_with_bounds(interval: Interval, rule: labels.Places) -> str:
    """``0.88 (0.85 to 0.90)``; the number alone where the bounds are unknown."""
    centre, spread = labels.shown(interval.centre, rule), bounds(interval, rule)
    return f"{centre} ({spread})" if spread else centre


def places(found: Summary, figure: str) -> labels.Places:
    """How the averages of a figure are written, so that they can be told apart."""
    return labels.places(figure, [one.centre for (_, name), one in found.items() if name == figure])
