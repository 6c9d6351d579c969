"""Which runtime is quickest, on short and on long questions, and how near its answers are.

    python -m benchmarks.runtimes [--cases encoder,decoder,piste:reviews]

All in one run, in turn, the quickest of several passes; ratios are to torch in float32.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import time
import warnings
from typing import Any

import numpy as np
import torch

import piste
from piste.classifiers.backends import RUNTIMES, Runtime, start
from piste.classifiers.backends.backend import Inputs
from studies.cases import Case, decoder, encoder

LENGTHS = (5, 50, 200)
TOKENS = (1024, 2048)
PASSES = 3


def _inputs(
    rng: np.random.Generator, names: list[str], rows: int, length: int, model: Any
) -> dict[str, Any]:
    ids = rng.integers(200, model.config.vocab_size, (rows, length))
    whole = {
        "input_ids": ids,
        "attention_mask": np.ones_like(ids),
        "token_type_ids": np.zeros_like(ids),
    }
    return {name: whole[name] for name in names}


def _started(name: str, model: Any, example: Inputs) -> tuple[Runtime | None, float, str]:
    begun = time.perf_counter()
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            runtime = start(name, model, example)
            runtime.run(example)
    except Exception as problem:  # what does not run here is a line of the table
        return None, 0.0, str(problem).splitlines()[0][:60]
    return runtime, time.perf_counter() - begun, ""


def compare(case: Case) -> None:
    """One table: seconds per 1,000 questions of each length at the best batch size."""
    rng = np.random.default_rng(0)
    names = ["input_ids", "attention_mask"]
    if "token_type_ids" in case.tokenizer.model_input_names:
        names.append("token_type_ids")
    example = _inputs(rng, names, 3, 7, case.model)
    check = _inputs(rng, names, 16, 30, case.model)
    lengths = [length for length in LENGTHS if length <= case.model.config.max_position_embeddings]
    batches = {
        length: [_inputs(rng, names, max(size // length, 1), length, case.model) for size in TOKENS]
        for length in lengths
    }
    head = " | ".join(f"{length} tokens" for length in lengths)
    print(f"\n### {case.name}\n\n| runtime | start, s | {head} | max difference ÷ spread |")
    print("|---|---|" + "---|" * len(lengths) + "---|", flush=True)
    base: dict[int, float] = {}
    truth = None
    for name in RUNTIMES:
        runtime, begun, trouble = _started(name, case.model, example)
        if runtime is None:
            print(f"| {name} | {trouble} |", flush=True)
            continue
        cells = []
        with torch.no_grad():
            answers = runtime.run(check).double().numpy()
            truth = answers if truth is None else truth
            for length in lengths:
                cost = _cost(runtime, batches[length][0])
                if cost > 3 * base.get(length, np.inf):
                    cells += [f"{base[length] / cost:.2f} × ({1000 * cost:.2f} s)"]
                    break  # what is several times slower need not be tried on everything
                cost = min(cost, *(_cost(runtime, inputs) for inputs in batches[length][1:]))
                base.setdefault(length, cost)
                cells.append(f"{base[length] / cost:.2f} × ({1000 * cost:.2f} s)")
        cells += ["not tried"] * (len(lengths) - len(cells))
        difference = np.abs(answers - truth).max() / np.ptp(truth, axis=0).max()
        print(f"| {name} | {begun:.1f} | {' | '.join(cells)} | {difference:.1e} |", flush=True)


def _cost(runtime: Runtime, inputs: Inputs) -> float:
    """Seconds per question."""
    times = []
    for _ in range(PASSES + 1):  # the first is often slower, the quickest counts
        begun = time.perf_counter()
        runtime.run(inputs)
        times.append(time.perf_counter() - begun)
    return min(times) / len(inputs["input_ids"])


def bundled(name: str) -> Case:
    """A model of Piste's own."""
    loaded: Any = piste.load(name)
    return Case(name, loaded.model, loaded.tokenizer, [])


def main() -> None:
    """Compare on the large and on the bundled models."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", default="encoder,decoder,piste:reviews,piste:reviews-gpt")
    options = parser.parse_args()
    print("Speed in multiples of torch in float32 (seconds for 1,000 questions).")
    for name in options.cases.split(","):
        made = {"encoder": encoder, "decoder": decoder}.get(name)
        compare(made() if made else bundled(name))


if __name__ == "__main__":
    main()
