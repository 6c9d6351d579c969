"""Which sentence made it say this? Contexts with a planted fact, and methods that look for it.

    python -m benchmarks.language.contexts --model FOLDER [--questions 20]
        [--rows FILE] [--out FILE]

Every context has eight sentences: one holds the fact that the question asks for, the others tell
similar things of other people, or nothing of the kind. The answer that is explained is the planted
one, in the model's own words where it finds it. A method finds the sentence if that has its
largest score. ``drop`` is how much the log-probability of the answer falls without the method's
top 1 and top 3 sentences; R² is on 40 removals that no method has seen, each sentence kept with
probability ½. Piste has half of the questions of each peer, or fewer. What is
in ROWS is not measured again, so a run that was stopped goes on; two may share the work.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import piste
from piste.engine import Engine
from piste.explanation import r_squared
from piste.types import Floats

NAMES = (
    "Mira Holm", "Tobias Renn", "Ada Quist", "Ivo Sand", "Lena Park", "Omar Fell", "Petra Voss",
    "Jonas Wick", "Nadia Brook", "Rafael Stone", "Greta Lund", "Hugo Marsh",
)  # fmt: skip
TOWNS = ("Tarvik", "Elmstead", "Port Anwick", "Sallow Bay", "Norrby", "Castle Dray", "Winmoor")
TRADES = ("beekeeper", "glass blower", "pilot", "baker", "violin maker", "dentist", "sailor")
YEARS = ("1931", "1947", "1958", "1964", "1979", "1986", "1992")
COLOURS = ("green", "purple", "orange", "silver", "brown", "yellow", "pink")
FACTS = (
    ("{name} lives in {value}.", "Where does {name} live?", TOWNS),
    ("{name} earns a living as a {value}.", "What is the job of {name}?", TRADES),
    ("{name} was born in {value}.", "In which year was {name} born?", YEARS),
    ("{name} drives a {value} car.", "What colour is the car of {name}?", COLOURS),
)
OTHER = (
    "The weather was mild that week.",
    "A small market opens every Saturday morning.",
    "Trains run every hour until midnight.",
    "The old library was painted last spring.",
    "Most shops close early on Sundays.",
    "The river freezes in very cold winters.",
    "Children play football behind the school.",
    "A new bridge is planned for next year.",
)
PROMPT = [
    {
        "role": "user",
        "content": "Read the notes and answer in one short sentence.\n\n{notes}\n\n{question}",
    }
]
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "Piste, 32": ("slalom", {"samples": 32}),
    "ContextCite, 64": ("contextcite", {"samples": 64}),
    "C-LIME, 64": ("clime", {"samples": 64}),
    "leave one out, 8": ("occlusion", {}),
    "ProxySPEX, 64": ("proxyspex", {"samples": 64}),
}


def problem(number: int) -> tuple[list[str], str, str, int]:
    """Notes, a question, the planted value and the place of the sentence that holds it."""
    rng = random.Random(number)
    fact, question, values = FACTS[number % len(FACTS)]
    names = rng.sample(NAMES, 6)
    told = rng.sample(values, 3)
    notes = [fact.format(name=name, value=value) for name, value in zip(names, told, strict=False)]
    planted = notes[0]
    for name in names[:2]:
        other, _, theirs = FACTS[(number + 1 + rng.randrange(3)) % len(FACTS)]
        notes.append(other.format(name=name, value=rng.choice(theirs)))
    notes += rng.sample(OTHER, 8 - len(notes))
    rng.shuffle(notes)
    return notes, question.format(name=names[0]), told[0], notes.index(planted)


def measured(
    model: Any, number: int, held_out: int, cache: piste.AnswerCache
) -> list[dict[str, Any]]:
    """One row for each method on one context; all 255 removals are asked once, for all methods."""
    notes, question, value, place = problem(number)
    values = {"notes": notes, "question": question}
    classifier, prompt = model.answering(values, longest=16)
    told = value in classifier.known.text
    if not told:
        classifier, prompt = model.answering(values, answer=value)
    subject = classifier.subject(prompt, units="parts")
    keep = np.random.default_rng(number).random((held_out, len(subject))) < 0.5
    keep = keep[keep.any(axis=1)]
    target = classifier.known.target()
    engine = Engine(classifier, cache=cache)

    def asked(questions: Sequence[Any]) -> Floats:
        return np.asarray(target(engine.ask([(subject, questions)])[0]))

    subsets = itertools.product((False, True), repeat=len(subject))
    asked([np.flatnonzero(row) for row in subsets if any(row)])
    truth = asked([np.flatnonzero(row) for row in keep])
    whole = float(asked([subject.whole])[0])
    rows = []
    for name, (method, options) in METHODS.items():
        e = piste.explain(
            classifier, prompt, method=method, units="parts", progress=False, cache=cache,
            **options,
        )  # fmt: skip
        order = np.argsort(-e.score())
        drops = whole - asked([np.sort(order[k:]) for k in (1, 3)])
        rows.append(
            {
                "number": number,
                "method": name,
                "answer": classifier.known.text,
                "told": told,
                "top": bool(order[0] == place),
                "drop 1": float(drops[0]),
                "drop 3": float(drops[1]),
                "r2": r_squared(np.asarray(e.predict(keep)), truth),
                "calls": e.calls,
            }
        )
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """What was measured, one line for each method."""
    told = {row["number"]: row["told"] for row in rows}
    lines = [
        f"{len(told)} contexts of eight sentences; the model finds the fact by itself in "
        f"{sum(told.values())}.",
        "",
        "| method | finds the sentence | drop, top 1 | drop, top 3 | R² (median) | questions |",
        "|---|---|---|---|---|---|",
    ]
    for name in METHODS:
        own = [row for row in rows if row["method"] == name]
        if own:
            mean = {key: float(np.mean([row[key] for row in own])) for key in ("drop 1", "drop 3")}
            r2, calls = (float(np.median([row[key] for row in own])) for key in ("r2", "calls"))
            lines.append(
                f"| {name} | {sum(row['top'] for row in own)} of {len(own)} | "
                f"{mean['drop 1']:.2f} | {mean['drop 3']:.2f} | {r2:.2f} | {calls:.0f} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="folder or GGUF file of a language model")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the number of the first context")
    parser.add_argument("--held-out", type=int, default=40)
    parser.add_argument("--rows", type=Path, help="a file in which rows are kept")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = _read(given.rows)
    model: Any = None
    for number in range(given.first, given.questions):
        if number in {row["number"] for row in rows}:
            continue
        model = model or piste.load(given.model, prompt=PROMPT, pinned=["question"])
        with tempfile.TemporaryDirectory() as folder, piste.AnswerCache(folder) as cache:
            new = measured(model, number, given.held_out, cache)
        rows += new
        if given.rows is not None:
            with given.rows.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in new)
        print(f"{number} {new[0]['answer']!r}", flush=True)
    text = table(rows)
    print(text)
    if given.out is not None:
        given.out.write_text(text, encoding="utf-8")


def _read(file: Path | None) -> list[dict[str, Any]]:
    if file is None or not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
