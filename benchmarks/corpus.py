"""Corpus runs: seconds per document, memory by rows, what kills cost, and workers on Ray.

    python -m benchmarks.corpus --data imdb.parquet [--model piste:reviews] [--documents 1000]
        [--explained 100] [--parts speed,memory,…]

`speed`: `--explained` reviews by one run, and some one by one. `published`: a few by the authors'
published package (its default of 500 calls). `vocabulary`: the same reviews from vocabularies of
100 and of `--documents` others, with and without refining. All three with the median R² on removals
nobody was fitted to. `curve`: what a document costs in one run over `--documents` reviews as the
run goes on and later ones learn from earlier ones, with the median of each document's own R², and
where the time of the last ones goes.
`memory`: peak of runs of their own over 1,000, 10,000 and 50,000 short rows. `kills`: a run in a
process of its own, killed at random moments and resumed until it is done, compared row by row with
one that was not. `ray`: `--documents` reviews by one worker and two, and by as many processes
without Ray; what two short rows take is told apart as starting.
Seconds are of the processor where one process works, and of the clock for Ray, which needs a
machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import piste
from benchmarks.parts import parts
from piste import corpus
from piste.evaluation import Example, Fidelity, judge, read_data

JUDGED = 20
FEW = 100
ALONE = 50
PUBLISHED = 10
PARTS = ("speed", "published", "vocabulary", "curve", "memory", "kills", "ray")
HEADER = "\n| | ms per document | questions each | R² |\n|---|---|---|---|"
QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def write(path: Path, examples: list[Example]) -> Path:
    """Examples as a corpus."""
    lines = (json.dumps({"text": one.text, "label": one.label}) for one in examples)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def measured(name: str, model: str, run: Callable[[], list[piste.Explanation]]) -> None:
    """One line of a table: time of the processor, questions, and R² over removals of all sizes."""
    start = time.process_time()
    explanations = run()
    spent = 1000 * (time.process_time() - start) / len(explanations)
    calls = np.mean([e.calls for e in explanations])
    rows = judge(piste.load(model), explanations[:JUDGED], [Fidelity()])
    r2 = float(np.median([row.figures["r2_all"] for row in rows]))
    print(f"| {name}, {len(explanations)} | {spent:.0f} | {calls:.0f} | {r2:.3f} |", flush=True)


def in_one_run(path: Path, model: str, **how: Any) -> list[piste.Explanation]:
    """A corpus run in a folder of its own, and what it explained."""
    out = Path(tempfile.mkdtemp(dir=path.parent)) / "run"
    corpus.run(path, model, out, progress=False, **how)
    return list(corpus.explanations(out))


def speed(examples: list[Example], model: str, base: Path) -> None:
    """Milliseconds per document, in one run and one by one."""
    print(HEADER, flush=True)
    classifier = piste.load(model)
    path = write(base / "explained.jsonl", examples)
    piste.explain(classifier, examples[0].text, long="truncate")  # warm up
    some = [example.text for example in examples[:ALONE]]
    alone = lambda: [piste.explain(classifier, text, long="truncate") for text in some]  # noqa: E731
    measured("one by one", model, alone)
    measured("one run", model, lambda: in_one_run(path, model))


def published(examples: list[Example], model: str) -> None:
    """Milliseconds per document by the authors' published package."""
    try:
        from benchmarks.published import USUAL, Package
    except ImportError as problem:
        print(f"\nwithout the published package: {problem}", flush=True)
        return
    print(HEADER, flush=True)
    classifier = piste.load(model)
    like = [
        piste.explain(classifier, one.text, units="tokens", samples=30, long="truncate")
        for one in examples[:PUBLISHED]
    ]
    theirs = lambda: [Package("short").explain(classifier, one, USUAL) for one in like]  # noqa: E731
    measured("published package", model, theirs)


def vocabulary(examples: list[Example], model: str, base: Path, explained: int) -> None:
    """Milliseconds per document from a vocabulary of others."""
    print(HEADER, flush=True)
    fitted, others = examples[:-explained], examples[-explained:]
    path = write(base / "explained.jsonl", others)
    for count in sorted({min(FEW, len(fitted)), len(fitted)}):
        source = write(base / f"{count}.jsonl", fitted[:count])
        begun = time.process_time()
        words = corpus.vocabulary(source, model, documents=count, progress=False)
        spent = 1000 * (time.process_time() - begun) / count
        words.to_parquet(base / f"{count}.parquet")
        each = words.about["questions"] / count
        print(f"| fitting a vocabulary, {count} | {spent:.0f} | {each:.0f} | |", flush=True)
        table: dict[str, Any] = {"method": "vocabulary", "table": str(base / f"{count}.parquet")}
        for refine in (0, 16, 48):
            how = table | {"refine": refine, "held_out": 0}
            name = f"from that of {count}, refined by {refine}"
            measured(name, model, lambda: in_one_run(path, model, **how))  # noqa: B023


def curve(examples: list[Example], model: str, base: Path, picture: Path | None) -> None:
    """Cost and fidelity per document as the corpus grows, stage by stage."""
    path, out = write(base / "curve.jsonl", examples), base / "curve"
    classifier = piste.load(model)
    piste.explain(classifier, examples[0].text, long="truncate")  # warm up
    ticks: list[tuple[int, float]] = []
    spent_at: dict[int, dict[str, float]] = {}
    with parts(classifier) as found:

        def tick(done: int, _: Any) -> None:
            ticks.append((done, time.process_time()))
            spent_at[done] = dict(found.seconds)

        corpus.run(path, model, out, progress=tick)
    manifest, table = corpus.read_manifest(out), corpus.frame(out, "documents")
    edges = sorted({0, len(examples), *map(int, manifest.get("priors", {}))})
    print("\n| documents | ms per document | questions each | R² | share |\n|---|---|---|---|---|")
    for start, end in pairwise(edges):
        own = table[(table.document >= start) & (table.document < end)]
        spent = _at(ticks, end) - _at(ticks, start)
        known = manifest.get("priors", {}).get(str(start), {"targets": {}})["targets"]
        share = ", ".join(
            f"{one['share']:.3f} up to {one['largest']:.2f} of the text" for one in known.values()
        )
        print(
            f"| {start + 1:,} to {end:,} | {1000 * spent / (end - start):.0f} "
            f"| {own.calls.mean():.0f} | {own.r2.median():.3f} | {share or 'in full'} |",
            flush=True,
        )
    whole = _at(ticks, len(examples)) - _at(ticks, 0)
    print(
        f"| all {len(examples):,} | {1000 * whole / len(examples):.0f} | {table.calls.mean():.0f} "
        f"| {table.r2.median():.3f} | |",
        flush=True,
    )
    start, end = edges[-2:]
    print(f"\n| ms per document, {start + 1:,} to {end:,} | |\n|---|---|")
    for name, spent in found.milliseconds(spent_at[start], end - start).items():
        print(f"| {name} | {spent:.1f} |", flush=True)
    if picture is not None:
        _draw(ticks, picture)


def _at(ticks: list[tuple[int, float]], rows: int) -> float:
    """Seconds when so many rows were done, the last time that it was said."""
    return max(seconds for done, seconds in ticks if done == rows)


def _draw(ticks: list[tuple[int, float]], picture: Path) -> None:
    from piste.show.figures.canvas import canvas

    figure, axes = canvas((6.5, 3.2))
    last = dict(ticks)
    steps = [
        (end, 1000 * (last[end] - last[start]) / (end - start)) for start, end in pairwise(last)
    ]
    axes.step([end for end, _ in steps], [cost for _, cost in steps], where="pre")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("documents explained")
    axes.set_ylabel("ms of processor per document")
    figure.savefig(picture, bbox_inches="tight")


def command(path: Path, out: Path, *more: str) -> list[str]:
    """A corpus run in a process of its own."""
    return [sys.executable, "-m", "piste.cli", "corpus", str(path), "--out", str(out), *more]


def memory(examples: list[Example], base: Path) -> None:
    """Peak memory of runs over few and many rows."""
    print("\n| rows | peak MB |\n|---|---|", flush=True)
    words = sorted({word for one in examples[:200] for word in one.text.split()})
    for count in (1000, 10_000, 50_000):
        path, rng = base / f"rows{count}.jsonl", random.Random(0)
        with path.open("w", encoding="utf-8") as file:
            for _ in range(count):
                file.write(json.dumps({"text": " ".join(rng.choices(words, k=12))}) + "\n")
        child = subprocess.Popen(
            command(path, base / f"rows{count}", "--json"),
            **QUIET,
        )
        _, status, used = os.wait4(child.pid, 0)
        if status:
            raise SystemExit(f"the run over {count} rows failed")
        print(f"| {count:,} | {used.ru_maxrss / 1024:.0f} |", flush=True)


def kills(examples: list[Example], base: Path, wanted: int) -> None:
    """Killed at random moments until it is done."""
    path = write(base / "kills.jsonl", examples[:200])
    how = ("--block", "4", "--samples", "30")
    subprocess.run(command(path, base / "whole", *how), check=True, capture_output=True)
    chance, killed, out = random.Random(0), 0, base / "killed"
    while True:
        child = subprocess.Popen(command(path, out, *how), **QUIET)
        try:
            # Most of a run's beginning is loading; later moments must be met, too.
            child.wait(chance.uniform(1.0, 11.0) if killed < wanted else None)
            break
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
            killed += 1
    other = f"read_parquet('{out}/units/*.parquet')"
    ways = (f"FROM units EXCEPT ALL FROM {other}", f"FROM {other} EXCEPT ALL FROM units")
    apart = sum(
        corpus.query(base / "whole", f"SELECT count(*) FROM ({way})").rows[0][0] for way in ways
    )
    rows = corpus.read_manifest(out)["counts"]["rows"]
    print(
        f"\n{killed} kills, {rows} rows of 200, {apart} units that are missing, doubled or differ",
        flush=True,
    )


def elapsed(shares: list[list[Example]], base: Path, *engine: str) -> float:
    """Seconds until the runs of all shares are done, which go on at the same time."""
    folder = Path(tempfile.mkdtemp(dir=base))
    paths = [write(folder / f"{n}.jsonl", share) for n, share in enumerate(shares)]
    start = time.perf_counter()
    children = [
        subprocess.Popen(command(path, path.with_suffix(""), *engine), **QUIET) for path in paths
    ]
    if sum(child.wait() for child in children):
        raise SystemExit(f"a run failed ({' '.join(engine) or 'without Ray'})")
    return time.perf_counter() - start


def on_ray(texts: list[Example], base: Path) -> None:
    """Seconds by one worker and by two, and by as many processes that know nothing of Ray."""
    print("\n| | starting | in all | documents per minute |\n|---|---|---|---|", flush=True)
    short = [Example(str(number), "Good.") for number in range(2)]
    for workers in (1, 2):
        ray = ("--engine", "ray", "--workers", str(workers))
        alone = [texts[number::workers] for number in range(workers)]
        for name, start, whole in (
            (f"Ray, {workers}", elapsed([short], base, *ray), elapsed([texts], base, *ray)),
            (f"without, {workers}", elapsed([short] * workers, base), elapsed(alone, base)),
        ):
            rate = 60 * len(texts) / (whole - start)
            print(f"| {name} | {start:.1f} | {whole:.1f} | {rate:.1f} |", flush=True)


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="piste:reviews", help="of the first four parts")
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--explained", type=int, default=100)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--picture", type=Path, help="where the curve is drawn")
    parser.add_argument("--parts", default=",".join(PARTS))
    options = parser.parse_args()
    wanted = options.documents + options.explained
    examples = read_data(options.data, split="test", examples=wanted)
    base = Path(tempfile.mkdtemp())
    try:
        for part in options.parts.split(","):
            print(f"\n## {part}", flush=True)
            if part == "kills":
                kills(examples, base, options.kills)
            elif part == "speed":
                speed(examples[-options.explained :], options.model, base)
            elif part == "published":
                published(examples[-options.explained :], options.model)
            elif part == "vocabulary":
                vocabulary(examples, options.model, base, options.explained)
            elif part == "curve":
                curve(examples[: options.documents], options.model, base, options.picture)
            elif part == "memory":
                memory(examples, base)
            elif part == "ray":
                on_ray(examples[: options.documents], base)
            else:
                raise SystemExit(f"expected parts among {', '.join(PARTS)}, got {part!r}")
    finally:
        shutil.rmtree(base)


if __name__ == "__main__":
    main()
