"""Seeds of their own for parts of a run: the same however many there are and in which order."""

from __future__ import annotations

from hashlib import blake2b


def derive(seed: int, *parts: object) -> int:
    """A seed made of a seed and names.

    >>> derive(0, "17") == derive(0, "17") != derive(0, "18")
    True
    """
    text = repr((int(seed), *map(str, parts)))
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big")
