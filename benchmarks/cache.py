"""What a stored answer costs: microseconds per row found, not found and written.

    python -m benchmarks.cache [--rows 1000 10000 100000] [--batch 500] [--outputs 2]

Rows are written and read in batches, as an engine does; times are medians over batches. The last
line is how fast a model's weights are read for its fingerprint.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch

from piste.classifiers.fingerprint import fingerprint_model
from piste.engine.cache import AnswerCache

MODEL = "0" * 64


def microseconds(
    batches: Sequence[Sequence[bytes]], work: Callable[[Sequence[bytes]], object]
) -> float:
    """The median time per row."""
    times = []
    for batch in batches:
        start = time.perf_counter()
        work(batch)
        times.append((time.perf_counter() - start) / len(batch))
    return float(np.median(times)) * 1e6


def measure(rows: int, batch: int, outputs: int) -> str:
    """One line of the table."""
    rng = np.random.default_rng(0)
    keys = [rng.integers(0, 30_000, 40, dtype=np.int32).tobytes() for _ in range(rows)]
    answer = rng.normal(size=outputs)
    there = [keys[start : start + batch] for start in range(0, rows, batch)]
    shuffled = [keys[k] for k in rng.permutation(rows)]
    mixed = [shuffled[start : start + batch] for start in range(0, rows, batch)]
    absent = [[key + b"?" for key in part] for part in there]
    with tempfile.TemporaryDirectory() as folder, AnswerCache(folder) as cache:
        write = microseconds(there, lambda part: cache.write(MODEL, dict.fromkeys(part, answer)))
        hit = microseconds(mixed, lambda part: cache.read(MODEL, part))
        miss = microseconds(absent, lambda part: cache.read(MODEL, part))
        if (cache.hits, cache.misses) != (rows, rows):
            raise SystemExit("The cache lost rows: these times mean nothing.")
        cache.close()
        return f"| {rows:,} | {hit:.1f} | {miss:.1f} | {write:.1f} | {cache.size / rows:.0f} |"


def hashing_speed(megabytes: int = 256) -> float:
    """Megabytes of weights per second."""
    model = torch.nn.ModuleList([torch.nn.Linear(1024, 1024) for _ in range(megabytes // 4)])
    size = sum(p.numel() * p.element_size() for p in model.parameters()) / 1e6
    times = []
    for _ in range(3):
        start = time.perf_counter()
        fingerprint_model(model, {})
        times.append(time.perf_counter() - start)
    return size / float(np.median(times))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--outputs", type=int, default=2)
    chosen = parser.parse_args()
    print("| rows | µs per hit | µs per miss | µs per write | bytes per row |")
    print("|---:|---:|---:|---:|---:|")
    for rows in chosen.rows:
        print(measure(rows, chosen.batch, chosen.outputs))
    print(f"\nFingerprint: {hashing_speed():,.0f} MB of weights per second.")


if __name__ == "__main__":
    main()
