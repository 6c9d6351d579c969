"""The authors' published package (slalom-explanations), called as its users call it.

It explains tokens. It has two samplers, "short" (three random tokens, its default) and "deletion"
(the text without 1 to 5 tokens), and by default fits with Adam. What it calls SLALOM-fidel,
"deletion" by least squares, fails in version 0.1.2 for an argument too many; here it goes without
that one. ``python -m benchmarks.frontier`` compares it with others.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.special import softmax
from slalom_explanations import SLALOMLocalExplanantions, slalom_explainer

import piste
from piste.slalom import Slalom
from piste.surrogates import SlalomSurrogate
from piste.target import Target
from piste.types import Floats
from studies.peers import silent

USUAL = 500  # the package's own default


def _without_batch(fit: Any) -> Any:
    """The package's least squares without the argument that they do not take."""

    def fitted(*args: Any, batch_size: int, **options: Any) -> Any:
        return fit(*args, **options)

    return fitted


slalom_explainer.fit_iter_rand = _without_batch(slalom_explainer.fit_iter_rand)


@dataclass(frozen=True)
class Package:
    """One way to call the published package."""

    sampler: str
    least_squares: bool = False

    @property
    def name(self) -> str:
        return f"published, {self.sampler}{', least squares' * self.least_squares}"

    def scores(self, subject: Any, target: Target, calls: int) -> tuple[Floats, int]:
        """Values, importances and linear scores of the tokens, and how many rows it asked."""
        framed = Framed(subject, target)
        tokens = [int(token) + Framed.SHIFT for piece in subject._ids for token in piece]
        explainer = SLALOMLocalExplanantions(
            framed,
            None,
            n_samples=calls,
            device="cpu",
            modes=["value", "imp", "lin"],
            sampling_strategy=self.sampler,
            fit_sgd=not self.least_squares,
        )
        with silent(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            found = explainer.get_signed_importance_for_tokens(tokens)
        return np.asarray(found, dtype=np.float64), framed.rows

    def explain(self, classifier: Any, like: piste.Explanation, calls: int) -> piste.Explanation:
        """Its scores for the tokens and the class of an explanation of Piste's."""
        subject = classifier.subject(like.input, units="tokens", long="truncate")
        begun = time.process_time()
        found, rows = self.scores(subject, like.target, calls)
        seconds = time.process_time() - begun
        scores = dict(zip(("value", "importance", "linear"), found, strict=True))
        slalom = Slalom(scores["value"], scores["importance"])
        return replace(
            like,
            method=self.name,
            scores=scores | {"contribution": softmax(slalom.importances) * slalom.evidence},
            errors={},
            surrogate=SlalomSurrogate.of(slalom, np.arange(len(found[0]))),
            calls=rows,
            seconds=seconds,
            ranking="linear",
        )


class Framed(torch.nn.Module):
    """A model behind BERT's ids: the published package frames every text with 101 and 102."""

    SHIFT = 1000

    def __init__(self, subject: Any, target: Target) -> None:
        super().__init__()
        self.model = subject.classifier.model
        self.target = target
        self.rows = 0
        (self.first, self.last) = subject._frame[0].tolist(), subject._frame[-1].tolist()

    def forward(self, ids: torch.Tensor, attention_mask: torch.Tensor) -> dict[str, torch.Tensor]:
        self.rows += len(ids)
        pad = int(self.model.config.pad_token_id)
        rows = torch.where(ids >= self.SHIFT, ids - self.SHIFT, torch.full_like(ids, pad))
        for shown, own in ((101, self.first), (102, self.last)):
            if own:
                rows[ids == shown] = own[0]
        if not self.first and not self.last:  # a decoder without a frame: take it off again
            keep = (ids >= self.SHIFT).long()
            order = torch.argsort(-keep, dim=1, stable=True)
            rows, attention_mask = rows.gather(1, order), keep.gather(1, order)
        odds = self.target.of_tensor(
            self.model(input_ids=rows, attention_mask=attention_mask).logits
        )
        return {"logits": torch.stack([torch.zeros_like(odds), odds], dim=1)}
