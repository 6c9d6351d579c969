"""What stands behind a prompt: beginnings of the answers whose probabilities are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from piste.types import Flags, Ints


@dataclass(frozen=True)
class Tail:
    """Answers as a tree: tokens behind the prompt, each of which continues another or the prompt.

    Answers that begin alike share tokens. The last token of an answer is not part of the tail:
    its probability is read where the token before it stands.
    """

    tokens: Ints
    parents: Ints
    """For every token the one it follows, −1 for the prompt."""
    reads: tuple[tuple[tuple[int, int], ...], ...]
    """For every answer and each of its tokens: where its probability is read (the number of a
    tail token, −1 for the end of the prompt), and the token."""

    @classmethod
    def of(cls, answers: Sequence[Sequence[int]]) -> Tail:
        """The tree of some answers, none empty.

        >>> tail = Tail.of([[5, 7], [5, 8], [6]])
        >>> tail.tokens.tolist(), tail.parents.tolist(), tail.reads[1]
        ([5], [-1], ((-1, 5), (0, 8)))
        """
        nodes: dict[tuple[int, ...], int] = {(): -1}
        tokens: list[int] = []
        parents: list[int] = []
        reads = []
        for answer in answers:
            own = []
            for place, token in enumerate(answer):
                before = tuple(answer[:place])
                if before not in nodes:
                    parents.append(nodes[before[:-1]])
                    nodes[before] = len(tokens)
                    tokens.append(before[-1])
                own.append((nodes[before], int(token)))
            reads.append(tuple(own))
        return cls(
            np.array(tokens, dtype=np.int64), np.array(parents, dtype=np.int64), tuple(reads)
        )

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def is_chain(self) -> bool:
        """Whether every token follows the one before it, as a model reads anyway."""
        return bool((self.parents == np.arange(len(self)) - 1).all())

    @property
    def depths(self) -> Ints:
        """How many tail tokens stand before each."""
        depths = np.zeros(len(self), dtype=np.int64)
        for token, parent in enumerate(self.parents):
            depths[token] = 0 if parent < 0 else depths[parent] + 1
        return depths

    @property
    def sees(self) -> Flags:
        """Tail tokens × tail tokens: those that each may attend to, itself included."""
        sees = np.eye(len(self), dtype=bool)
        for token, parent in enumerate(self.parents):
            if parent >= 0:
                sees[token] |= sees[parent]
        return sees
