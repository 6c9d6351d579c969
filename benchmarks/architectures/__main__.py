"""A table of the architectures that were tried, and what became of each.

    python -m benchmarks.architectures [--only NAME …] [--out FILE] [--traces]

Every model is small, has random weights and is made here: nothing is downloaded.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import transformers

from benchmarks.architectures.checks import INSIDE, Outcome, check
from benchmarks.architectures.models import architectures

COMMAND = "python -m benchmarks.architectures --out docs/results/architectures.md"
KINDS = {
    "text": "Texts",
    "image": "Images",
    "prompt": "Language models with a prompt and labels",
    "answer": "Language models, answers in free text",
}


def main() -> None:
    """Check the architectures and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", help="names, as in the table")
    parser.add_argument("--out", type=Path, help="write the page to this file")
    parser.add_argument("--traces", action="store_true", help="print tracebacks of failures")
    given = parser.parse_args()
    chosen = [one for one in architectures() if not given.only or one.name in given.only]
    if not chosen:
        parser.error(f"expected names of the table, got {', '.join(given.only)}")
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    outcomes = []
    for one in chosen:
        outcome = check(one)
        outcomes.append(outcome)
        print(f"{one.name}: {outcome.status} {outcome.words}", file=sys.stderr)
        if given.traces and outcome.trace:
            print(outcome.trace, file=sys.stderr)
    text = page(outcomes)
    if given.out:
        given.out.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


def page(outcomes: Sequence[Outcome]) -> str:
    """The whole page in Markdown."""
    count = {
        status: sum(one.status == status for one in outcomes)
        for status in ("works", "refused", "fails")
    }
    lines = [
        "# Architectures",
        "",
        f"Small random models of transformers {transformers.__version__}, tried by `{COMMAND}`. "
        f"{count['works']} work, {count['refused']} are refused with a sentence, "
        f"{count['fails']} fail.",
        "",
        "*Works* means: one input was explained; asking for all units gave exactly the model's own "
        "output (to rounding for images and prompts; not checked for free answers); "
        "a batch of many gave the answers of batches of one; weights, config, modules, "
        "training modes, hooks and gradients came back as they were. Models have random weights, "
        "so this says nothing about how faithful an explanation is: see "
        "[fidelity](../fidelity.md). *Batches* is how questions are put together, which is found "
        "out by trying; of images, *removed parts* are taken out of the model or painted over. "
        "The last columns say whether methods work that look into the model: "
        + ", ".join(f"{column} (`{method}`)" for column, method in INSIDE.items())
        + ".",
    ]
    notes: list[str] = []
    for kind, title in KINDS.items():
        chosen = [one for one in outcomes if one.kind == kind and one.status != "refused"]
        if chosen:
            how = "removed parts" if kind == "image" else "batches"
            lines += ["", f"## {title}", "", *_table(chosen, how, notes)]
    refused = [one for one in outcomes if one.status == "refused"]
    if refused:
        lines += ["", "## Refused", "", "| model | class | sentence |", "|---|---|---|"]
        lines += [f"| {one.name} | `{one.model_class}` | {_cell(one.words)} |" for one in refused]
    if notes:
        lines += ["", "## Why not", ""]
        lines += [f"{number}. {_cell(words)}" for number, words in enumerate(notes, 1)]
    return "\n".join(lines) + "\n"


def _table(outcomes: Sequence[Outcome], how: str, notes: list[str]) -> list[str]:
    lines = [
        f"| model | class | result | {how} | {' | '.join(INSIDE)} |",
        "|---" * (4 + len(INSIDE)) + "|",
    ]
    for one in outcomes:
        cells = [_inside(one, words, notes) for _, words in one.inside] or [""] * len(INSIDE)
        result = f"{one.status}: {one.words}" if one.words else one.status
        row = (one.name, f"`{one.model_class}`", _cell(result), one.how, *cells)
        lines.append(f"| {' | '.join(row)} |")
    return lines


def _inside(one: Outcome, words: str, notes: list[str]) -> str:
    """A word for the cell; sentences are collected and numbered."""
    if words == "works":
        return "yes"
    words = words.strip().splitlines()[-1].replace(one.model_class, "The model")
    words = words.replace("AnswerReader", "The model").replace(" in The model", " in the model")
    if words not in notes:
        notes.append(words)
    return f"no ({notes.index(words) + 1})"


def _cell(words: str) -> str:
    return words.replace("<", "&lt;").replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    main()
