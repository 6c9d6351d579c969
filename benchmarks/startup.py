"""What a command costs before and beside its work.

python -m benchmarks.startup [--rounds 3]

Seconds are of the processor (user and system), the least of some rounds, each in a process of its
own: other work on the machine counts little. The ratio is to importing torch and transformers.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

REFERENCE = "import torch, transformers"
MODEL_CLASS = f"{REFERENCE}; from transformers import BertForSequenceClassification"
TEXT = "A slow start, but a wonderful ending."
REVIEWS = Path(__file__).with_name("reviews.txt")


def seconds(*arguments: str) -> float:
    """Of the processor, for one run of Python with these arguments."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(folder: str) -> dict[str, tuple[str, ...]]:
    """What is measured, by the name it has in the table."""
    piste = ("-m", "piste.cli")
    return {
        f'python -c "{REFERENCE}"': ("-c", REFERENCE),
        "the same and a class of models": ("-c", MODEL_CLASS),
        "import piste": ("-c", "import piste"),
        "piste --help": (*piste, "--help"),
        "piste models": (*piste, "models"),
        "piste methods": (*piste, "methods"),
        "piste metrics": (*piste, "metrics"),
        "piste concepts --list": (*piste, "concepts", "--list"),
        "piste query --list": (*piste, "query", "--list"),
        "piste query FOLDER labels": (*piste, "query", folder, "labels"),
        "piste words FOLDER": (*piste, "words", folder, "--least", "1"),
        "piste explain TEXT": (*piste, "explain", TEXT),
    }


def make_corpus(folder: Path) -> None:
    """A few reviews, explained."""
    table = folder.with_suffix(".jsonl")
    lines = [line.replace('"', "'") for line in REVIEWS.read_text(encoding="utf-8").splitlines()]
    table.write_text("".join(f'{{"text": "{line}"}}\n' for line in lines[:5]), encoding="utf-8")
    seconds("-m", "piste.cli", "corpus", str(table), "-o", str(folder), "--method", "occlusion")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        make_corpus(folder)
        reference = None
        print("| what | seconds of the processor | ratio |\n|---|---|---|")
        for name, arguments in commands(str(folder)).items():
            found = min(seconds(*arguments) for _ in range(rounds))
            reference = reference or found
            shown = f"`{name}`" if "the same" not in name else name
            print(f"| {shown} | {found:.2f} | {found / reference:.2f} |", flush=True)


if __name__ == "__main__":
    main()
