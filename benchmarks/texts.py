"""The reviews that benchmarks explain."""

from __future__ import annotations

from pathlib import Path


def reviews(data: Path | None, count: int) -> list[str]:
    """Reviews of about 120 words, ours or from a Parquet file with columns text and split."""
    if data is None:
        own = Path(__file__).with_name("reviews.txt").read_text(encoding="utf-8")
        return [block.strip() for block in own.split("\n\n") if block.strip()][:count]
    import pandas

    frame = pandas.read_parquet(data)
    frame = frame[frame["split"] == "test"]
    lengths = frame["text"].map(lambda text: len(text.split()))
    chosen = frame[(lengths > 100) & (lengths < 140)].sample(count, random_state=0)
    return [text.replace("<br />", " ") for text in chosen["text"]]
