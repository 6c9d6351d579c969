"""The models and texts that everyone in the table has to explain, and what judges them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import piste
from piste.slalom import sampling
from piste.types import Flags, Floats, Ints
from studies import cases

Masks = Flags


@dataclass
class JudgedCase(cases.Case):
    """A case with the questions explanations are judged by."""

    unseen: int = 100

    @cached_property
    def target(self) -> piste.Target:
        return piste.explain(self.classifier, self.texts[0], samples=20, form="paper").target

    def log_odds(self, masks: Masks) -> Floats:
        """The model's own answers, the truth."""
        return np.asarray(self.target(self.subject.ask([np.nonzero(mask)[0] for mask in masks])))

    @cached_property
    def removals(self) -> tuple[Masks, Floats]:
        """Removals of every size that nobody was fitted to, and what the model says to them."""
        rng = np.random.default_rng(12345)
        return self._asked(sampling.draw("subsets", len(self.subject), self.unseen, rng))

    @cached_property
    def few(self) -> tuple[Masks, Floats]:
        """Three units each, what the published package fits to."""
        rng = np.random.default_rng(54321)
        n = len(self.subject)
        return self._asked([np.sort(rng.choice(n, 3, replace=False)) for _ in range(200)])

    def _asked(self, kept: list[Ints]) -> tuple[Masks, Floats]:
        masks = np.zeros((len(kept), len(self.subject)), dtype=bool)
        for row, units in zip(masks, kept, strict=True):
            row[units] = True
        return masks, self.log_odds(masks)


def encoder(tokens: int = 200, layers: int = 6) -> JudgedCase:
    """A BERT, 768 wide, with random weights."""
    return JudgedCase(**vars(cases.encoder(tokens, layers)))


def decoder(tokens: int = 200, layers: int = 6) -> JudgedCase:
    """A GPT-2, 768 wide, with random weights."""
    return JudgedCase(**vars(cases.decoder(tokens, layers)))


def bundled(name: str, texts: list[str]) -> JudgedCase:
    """One of Piste's own trained models on real reviews."""
    loaded: Any = piste.load(name)
    return JudgedCase(name, loaded.model, loaded.tokenizer, texts, unseen=200)
