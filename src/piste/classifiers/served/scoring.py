"""Ways to get the log-probabilities of labels from a server, from the best to the least."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from piste.classifiers.prompted.labels import LabelTokens
from piste.classifiers.served.endpoint import Endpoint, PromptOption, Turns
from piste.types import Flags, Floats

_NOTHING = -1e6  # the log-probability of what is left out of account
_LEAST_REST = 1e-9  # what a list may leave open after rounding


@dataclass(frozen=True)
class Scored:
    """Log-probabilities of the labels; ``bounded`` says that some are upper bounds."""

    labels: Floats
    bounded: bool = False


class Scoring(Protocol):
    """One way to score the labels."""

    @property
    def paths(self) -> Paths:
        """The wordings and their tokens."""

    @property
    def requests(self) -> int:
        """The most requests one question takes."""

    def score(self, turns: Turns) -> Scored:
        """The labels behind one prompt."""

    def describe(self) -> str:
        """The way in one sentence, for results."""

    def identity(self) -> object:
        """What answers depend on besides server, model, prompt and labels."""


@dataclass(frozen=True)
class Paths:
    """The wordings of all labels and the tokens they are made of."""

    tokens: LabelTokens
    texts: tuple[str, ...]
    """The wordings, one for each of ``tokens.wordings``."""
    pieces: tuple[tuple[bytes, ...], ...]
    """Their tokens."""

    @classmethod
    def of(
        cls, wordings: Sequence[tuple[str, Sequence[str]]], pieces: dict[str, tuple[bytes, ...]]
    ) -> Paths:
        """From names with wordings, and the tokens of every wording."""
        numbers: dict[bytes, int] = {}
        for path in pieces.values():
            for piece in path:
                numbers.setdefault(piece, len(numbers))
        coded = [
            [tuple(numbers[piece] for piece in pieces[wording]) for wording in own]
            for _, own in wordings
        ]
        tokens = LabelTokens.of([name for name, _ in wordings], coded)
        known = {
            (label, code): wording
            for label, (codes, (_, own)) in reversed(
                list(enumerate(zip(coded, wordings, strict=True)))
            )
            for code, wording in reversed(list(zip(codes, own, strict=True)))
        }
        texts = tuple(known[one] for one in tokens.wordings)
        return cls(tokens, texts, tuple(pieces[text] for text in texts))

    @property
    def single(self) -> bool:
        """Whether every wording is one token."""
        return all(len(path) == 1 for path in self.pieces)


@dataclass(frozen=True)
class PromptScoring:
    """Log-probabilities of a prompt's own tokens: exact, one request for each wording."""

    endpoint: Endpoint
    paths: Paths
    option: PromptOption

    @property
    def requests(self) -> int:
        return len(self.paths.texts)

    def score(self, turns: Turns) -> Scored:
        found = [self._wording(turns, wording) for wording in self.paths.texts]
        return Scored(self.paths.tokens.combined(np.array(found)))

    def _wording(self, turns: Turns, wording: str) -> float:
        answer = self.endpoint.continued(turns, wording)
        return math.fsum(
            token.logprob or 0.0 for token in self.endpoint.answered(turns, answer, self.option)
        )

    def describe(self) -> str:
        return f"exact, from {self.option} of the {self.endpoint.name} endpoint"

    def identity(self) -> object:
        return [self.option, self.endpoint.name]


@dataclass(frozen=True)
class TokenIdScoring:
    """Log-probabilities of named tokens, in one request: for labels of one token each, exact."""

    endpoint: Endpoint
    paths: Paths
    ids: tuple[int, ...]
    """The token of every wording."""

    requests = 1

    def score(self, turns: Turns) -> Scored:
        found = self.endpoint.named(turns, self.ids)
        return Scored(self.paths.tokens.combined(np.array(found)))

    def describe(self) -> str:
        return f"exact, from logprob_token_ids of the {self.endpoint.name} endpoint"

    def identity(self) -> object:
        return ["logprob_token_ids", self.endpoint.name, list(self.ids)]


@dataclass(frozen=True)
class TopScoring:
    """The list of the likeliest next tokens; what is not in it is bounded from above.

    A token outside the list is at most as likely as the least likely in it, and at most as likely
    as all tokens outside together. Where ``continues``, the tokens of a longer wording are asked
    for one after the other, behind those before them; else only first tokens count.
    """

    endpoint: Endpoint
    paths: Paths
    top: int
    continues: bool
    whole: bool = True
    """Whether the paths are the whole wordings, not their first tokens."""

    @property
    def requests(self) -> int:
        return len({path[:size] for path in self.paths.pieces for size in range(len(path))})

    def score(self, turns: Turns) -> Scored:
        begun: dict[tuple[bytes, ...], tuple[float, bool]] = {(): (0.0, False)}
        lists: dict[tuple[bytes, ...], dict[bytes, float]] = {}
        for path in self.paths.pieces:
            for size, piece in enumerate(path):
                before, here = path[:size], path[: size + 1]
                if here in begun:
                    continue
                known, bounded = begun[before]
                if bounded:  # what begins with something unlikely is no likelier
                    begun[here] = known, True
                    continue
                if before not in lists:
                    lists[before] = self._list(turns, b"".join(before).decode())
                value, bounded = found_or_bounded(lists[before], piece)
                begun[here] = known + value, bounded
        found = [begun[path] for path in self.paths.pieces]
        values = np.array([value for value, _ in found])
        beyond = np.array([bounded for _, bounded in found])
        return Scored(combine_bounded(self.paths.tokens, values, beyond), bool(beyond.any()))

    def _list(self, turns: Turns, begun: str) -> dict[bytes, float]:
        return self.endpoint.likeliest(turns, begun, top=self.top)

    def describe(self) -> str:
        said = f"from the {self.top} likeliest tokens of the {self.endpoint.name} endpoint"
        if self.whole:
            return said
        return f"{said}; labels by their first token, for no answer can be continued there"

    def identity(self) -> object:
        first = [[piece.hex() for piece in path] for path in self.paths.pieces]
        return ["top_logprobs", self.endpoint.name, self.top, first]


def combine_bounded(tokens: LabelTokens, values: Floats, bounded: Flags) -> Floats:
    """Labels from wordings of which some are upper bounds; so are the labels, then.

    A label that begins another one counts without that one, and from an upper bound only a
    known number may be taken away.

    >>> tokens = LabelTokens.of(["good", "good enough"], [[[5]], [[5, 7]]])
    >>> found = combine_bounded(tokens, np.log([0.5, 0.2]), np.array([False, True]))
    >>> np.exp(found).round(3).tolist()
    [0.5, 0.2]
    """
    if not bounded.any():
        return tokens.combined(values)
    owners = np.array([label for label, _ in tokens.wordings])
    found = [
        tokens.combined(np.where(bounded & (owners != label), _NOTHING, values))[label]
        for label in range(len(tokens.names))
    ]
    return np.array(found)


def found_or_bounded(likeliest: dict[bytes, float], token: bytes) -> tuple[float, bool]:
    """The token's log-probability, or the most it can be, and whether it is that.

    >>> value, bounded = found_or_bounded({b"yes": math.log(0.6), b"no": math.log(0.3)}, b"maybe")
    >>> round(math.exp(value), 6), bounded
    (0.1, True)
    """
    if token in likeliest:
        return likeliest[token], False
    rest = 1.0 - math.fsum(math.exp(value) for value in likeliest.values())
    return min(min(likeliest.values()), math.log(max(rest, _LEAST_REST))), True
