"""Does it pay that questions share the work of their common beginnings? Both ways, measured.

    python -m benchmarks.prefixes [--questions 1000] [--large 100] [--threads 1]

Three ways take turns in one run, so other load meets all of them; times are processor seconds:
batches by length alone, plain batches that end where padding costs more than a call, and shared
beginnings (planning included). Saved tokens: in theory (every distinct beginning once) and as
planned, with padding, both against plain. Sharing is forced here wherever there is anything to
share; the last column says whether ``share`` would have chosen it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, zip_longest
from pathlib import Path

import numpy as np
import torch
from transformers import GPT2Config, GPT2ForSequenceClassification

import piste
from piste.classifiers.text.classifier import TextClassifier
from piste.classifiers.text.prefix_plan import Group, share
from piste.classifiers.text.prefix_sharing import PrefixRunner
from piste.slalom import sampling
from piste.subject import Question
from piste.types import Floats, Ints

Step = tuple[Ints, Callable[[], Floats]]


def runner_of(classifier: TextClassifier) -> PrefixRunner:
    """A runner for the model of a text classifier."""
    names = getattr(classifier.tokenizer, "model_input_names", ())
    return PrefixRunner(classifier.model, types="token_type_ids" in names)


def question_sets(n: int, count: int) -> dict[str, list[Ints]]:
    """What explanations ask about n units, by name."""
    rng = np.random.default_rng(0)
    whole = np.arange(n)
    sets = {name: sampling.draw(name, n, count, rng) for name in sampling.SAMPLERS}
    left_out = whole[:: -(-n // count)]
    sets["leave one out"] = [whole, *(np.delete(whole, unit) for unit in left_out)]
    order = rng.permutation(n)
    steps = np.unique(np.linspace(0, n - 1, 20).astype(int))
    sets["deletion curve"] = [np.sort(order[step:]) for step in steps]
    return sets


def by_length(questions: list[Question], budget: int) -> list[list[Question]]:
    """Longest first, every batch as full as the budget allows, however much is padding."""
    waiting = sorted(questions, key=lambda question: -question.length)
    full = []
    while waiting:
        end = max(budget // waiting[0].length, 1)
        full.append(waiting[:end])
        waiting = waiting[end:]
    return full


@dataclass
class Measured:
    """One set of questions asked three ways: processor seconds and tokens of each."""

    seconds: Floats
    tokens: Ints
    planning: float
    difference: float


def measure(
    classifier: TextClassifier, questions: list[Question], budget: int, call: int
) -> Measured:
    """Batches by length alone, batches with little padding, shared beginnings: in turns."""
    rows = [question.payload[0] for question in questions]
    runner = runner_of(classifier)
    place = {question.key: number for number, question in enumerate(questions)}
    ways: list[list[Step]] = [[], [], []]
    with classifier.session():
        if not runner.usable(rows):
            raise SystemExit(f"Nothing to measure: {runner.reason}.")
        start = time.process_time()
        groups = share(rows, budget, pad=runner.pad, least=0.0, call=call)
        planning = time.process_time() - start
        full = by_length(questions, budget)
        padless = share(rows, budget, least=2.0, call=call)
        tight = [[questions[number] for number in group.rows] for group in padless]
        for steps, plain in zip(ways, (full, tight), strict=False):
            for batch in plain:
                numbers = np.array([place[question.key] for question in batch])
                steps.append((numbers, partial(classifier.answer, batch)))
        for group in groups:
            ways[2].append((group.rows, partial(_shared, runner, group, rows)))
        seconds = np.zeros(3)
        answers = np.zeros((3, len(rows), len(classifier.labels)))
        for turn in zip_longest(*ways):
            for way, step in enumerate(turn):
                if step is not None:
                    numbers, ask = step
                    start = time.process_time()
                    answers[way, numbers] = ask()
                    seconds[way] += time.process_time() - start
    computed = [len(batch) * batch[0].length for batch in full]
    sums = [sum(computed), *(sum(g.tokens for g in plan) for plan in (padless, groups))]
    difference = float(np.abs(answers[1:] - answers[0]).max())
    return Measured(seconds, np.array(sums), planning, difference)


def _shared(runner: PrefixRunner, group: Group, rows: list[Ints]) -> Floats:
    return runner.answer(group, rows).double().numpy()


def theory(rows: list[Ints]) -> float:
    """The share of tokens that stand in a beginning which another row has too."""
    ordered = sorted(row.tolist() for row in rows)
    known = 0
    for one, other in pairwise(ordered):
        alike = [a == b for a, b in zip(one, other, strict=False)]
        known += alike.index(False) if False in alike else len(alike)
    return known / sum(len(row) for row in rows)


def large(classifier: TextClassifier) -> TextClassifier:
    """A decoder of usual size with random weights, reading the small one's tokens."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = GPT2Config(
            vocab_size=30522, n_embd=768, n_layer=6, n_head=12, n_positions=512, pad_token_id=0
        )
        config.bos_token_id = config.eos_token_id = None
        model = GPT2ForSequenceClassification(config)
    return TextClassifier(model, classifier.tokenizer, name="GPT-2, 6 layers, 768 wide")


def main() -> None:
    """Every set of questions, both models, one table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--questions", type=int, default=1000, help="for the small model")
    parser.add_argument("--large", type=int, default=100, help="questions for the large model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", type=int, default=2048)
    parser.add_argument("--sets", default="", help="only these, separated by commas")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    text = Path(__file__).with_name("reviews.txt").read_text(encoding="utf-8")
    first, second = text.split("\n\n")[:2]
    small = piste.load("piste:reviews-gpt")
    assert isinstance(small, TextClassifier)
    # The last number: what a call costs besides its tokens, small models feel it most.
    runs = [
        (small, first, options.questions, 128),
        (large(small), f"{first} {second}", options.large, 32),
    ]
    print(
        "| model, questions | plain ÷ shared | by length ÷ plain | seconds: by length | plain "
        "| shared | saved tokens: theory | planned | largest difference | planning | chosen |"
    )
    print("|---" * 11 + "|")
    for classifier, words, count, call in runs:
        subject = classifier.subject(words, units="tokens" if classifier is small else "words")
        n = min(len(subject), 200)
        for name, sequences in question_sets(n, count).items() if count else ():
            if options.sets and name not in options.sets.split(","):
                continue
            found = {q.key: q for s in sequences for q, _ in subject.encode(s)}
            questions = list(found.values())
            found_out = measure(classifier, questions, options.budget, call)
            rows = [question.payload[0] for question in questions]
            plan = share(rows, options.budget, call=call)
            chosen = any(group.paths.size for group in plan)
            full, plain, shared = found_out.seconds
            whole = shared + found_out.planning
            saving = 1 - found_out.tokens[2] / found_out.tokens[1]
            print(
                f"| {classifier.name}, {len(rows)} {name}, up to {max(map(len, rows))} tokens "
                f"| {plain / whole:.2f} | {full / plain:.2f} | {full:.2f} | {plain:.2f} "
                f"| {whole:.2f} | {theory(rows):.0%} | {saving:.0%} "
                f"| {found_out.difference:.0e} | {found_out.planning / whole:.1%} "
                f"| {'yes' if chosen else 'no'} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
