"""The peers' own libraries, called as their users call them, all about the same log-odds.

The model stands behind plain code: batches of 32 as they come, padded to their longest text.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from piste.subject import Subject
from piste.target import Target
from piste.types import Flags, Floats, Ints
from studies.cases import Case
from studies.peers import BATCH, PlainModel, silent


@dataclass(frozen=True)
class Answer:
    """What an explainer found: a prediction for any removal, and scores to rank units by."""

    predict: Callable[[Flags], Floats]
    ranking: Floats
    calls: int


class Libraries:
    """Explainers that need nothing but a model, a tokenizer and a text."""

    def __init__(self, subject: Subject, target: Target, whole: float) -> None:
        classifier: Any = subject.classifier
        text = str(subject.input)[: subject.units[-1].end]
        case = Case(classifier.name, classifier.model, classifier.tokenizer, [text])
        case.subject = subject
        self.subject, self.target, self.whole = subject, target, whole
        self.model, self.tokenizer, self.text = case.model, case.tokenizer, text
        self.plain = PlainModel(case)

    def additive(self, scores: Floats, calls: int) -> Answer:
        """A sum of scores: the whole text's log-odds minus what was taken away."""
        return Answer(lambda masks: self.whole - (~masks) @ scores, scores, calls)

    def published(self, calls: int, sampler: str, least_squares: bool = False) -> Answer:
        """The authors' package: tokens, and words by all their tokens."""
        from benchmarks.published import Package

        found, rows = Package(sampler, least_squares).scores(self.subject, self.target, calls)
        value, importance, linear = found
        unit = self._unit_of_token()

        def predict(masks: Flags) -> Floats:
            weights = masks[:, unit] * np.exp(importance - importance.max())
            return (weights @ value) / weights.sum(axis=1)

        return Answer(predict, np.bincount(unit, weights=linear).astype(np.float64), rows)

    def lime(self, calls: int) -> Answer:
        """A weight for every kind of word."""
        weights, intercept = self.plain.lime(calls)
        words = self.plain.words
        kinds = {word: [k for k, own in enumerate(words) if own == word] for word in weights}

        def predict(masks: Flags) -> Floats:
            answer = np.full(len(masks), intercept)
            for word, places in kinds.items():
                if places:
                    answer += weights[word] * masks[:, places].any(axis=1)
            return answer

        ranking = np.array([weights.get(word, 0.0) for word in words])
        return Answer(predict, ranking, len(self.plain.lengths))

    def kernel_shap(self, calls: int) -> Answer:
        """Shapley values by regression."""
        return self.additive(self.plain.kernel_shap(calls), len(self.plain.lengths))

    def permutation_shap(self, calls: int) -> Answer:
        """Shapley values by walks; one walk at least."""
        import shap

        n = len(self.subject)
        self.plain.lengths = []
        with silent():
            masker = shap.maskers.Independent(np.zeros((1, n)))
            explainer = shap.explainers.Permutation(self.plain.of_masks, masker, seed=0)
            found = explainer(np.ones((1, n)), max_evals=max(calls, 2 * n + 1), silent=True)
        return self.additive(np.asarray(found.values).reshape(n), len(self.plain.lengths))

    def partition_shap(self, calls: int) -> Answer:
        """Owen values, what shap does with a text."""
        import shap

        self.plain.lengths = []
        with silent():
            masker = shap.maskers.Text(self.tokenizer)
            explainer = shap.Explainer(self.plain.log_odds, masker, algorithm="partition")
            found = explainer([self.text], max_evals=calls, silent=True)
        scores = self.by_place([str(piece) for piece in found.data[0]], np.ravel(found.values[0]))
        return self.additive(scores, len(self.plain.lengths))

    def interpreto(self, calls: int, kind: str) -> Answer:
        """A perturbation method of interpreto, on words."""
        import interpreto

        model, tokenizer = _copy(self.model, self.tokenizer)
        with silent():
            explainer = getattr(interpreto, kind)(
                model,
                tokenizer,
                batch_size=BATCH,
                n_perturbations=calls,
                granularity=interpreto.Granularity.WORD,
                inference_mode=self._odds_of_every_class,
            )
            (own,) = self.target.indices
            found = explainer(self.text, targets=torch.tensor([own]))[0]
        values = found.attributions.reshape(-1).double().numpy()
        return self.additive(self.by_place([str(one) for one in found.elements], values), calls)

    def captum(self, calls: int, kind: str) -> Answer:
        """Gradients at or towards the embeddings, or Kernel SHAP on words that are padded out."""
        from captum import attr

        inputs = self.tokenizer(self.text, return_tensors="pt")
        ids, more = inputs["input_ids"], inputs["attention_mask"]
        unit = self._unit_of_token()
        first = len(self.subject._frame[0])  # type: ignore[attr-defined]
        inside = slice(first, first + len(unit))
        reference = ids.clone()
        reference[:, inside] = self.tokenizer.pad_token_id

        def forward(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return self.target.of_tensor(self.model(input_ids=ids, attention_mask=mask).logits)

        layer = self.model.get_input_embeddings()
        if kind == "KernelShap":
            words = torch.full_like(ids, len(self.subject))
            words[0, inside] = torch.from_numpy(unit)
            with silent(), torch.no_grad(), torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                found = attr.KernelShap(forward).attribute(
                    ids, reference, additional_forward_args=(more,), feature_mask=words,
                    n_samples=calls, perturbations_per_eval=BATCH,
                )  # fmt: skip
            places = first + np.unique(unit, return_index=True)[1]
            return self.additive(found[0, places].double().numpy(), calls)
        if kind == "IntegratedGradients":
            found = attr.LayerIntegratedGradients(forward, layer).attribute(
                ids, reference, additional_forward_args=(more,), n_steps=calls,
                internal_batch_size=10,
            )  # fmt: skip
        else:
            found = attr.LayerGradientXActivation(forward, layer).attribute(
                ids, additional_forward_args=(more,)
            )
        tokens = found.sum(dim=-1)[0].detach().double().numpy()[inside]
        return self.additive(np.bincount(unit, weights=tokens).astype(np.float64), calls)

    def by_place(self, pieces: Sequence[str], values: Floats) -> Floats:
        """Scores of units from those of pieces that cover the text in order.

        A piece over several units is shared by them; one that the text does not have, as a
        special token, is left out.
        """
        text, position = self.text.lower(), 0
        starts = np.array([unit.start for unit in self.subject.units])
        scores = np.zeros(len(starts))
        for piece, value in zip(pieces, values, strict=True):
            shown = piece.strip().lower()
            place = text.find(shown, position) if shown else -1
            if place < 0 or place - position > 40:  # found, but somewhere else
                continue
            position = place + len(shown)
            low = max(int(np.searchsorted(starts, place, side="right")) - 1, 0)
            high = max(int(np.searchsorted(starts, position - 1, side="right")), low + 1)
            scores[low:high] += value / (high - low)
        return scores

    def _unit_of_token(self) -> Ints:
        sizes = [len(piece) for piece in self.subject._ids]  # type: ignore[attr-defined]
        return np.repeat(np.arange(len(sizes)), sizes)

    @staticmethod
    def _odds_of_every_class(logits: torch.Tensor) -> torch.Tensor:
        own = [Target("class", "", (label,)) for label in range(logits.shape[-1])]
        flat = logits.reshape(-1, logits.shape[-1])
        return torch.stack([one.of_tensor(flat) for one in own], dim=-1).reshape(logits.shape)


@functools.lru_cache(maxsize=1)
def _copy(model: Any, tokenizer: Any) -> tuple[Any, Any]:
    """For interpreto, which adds a token and resizes the embeddings."""
    return copy.deepcopy(model), copy.deepcopy(tokenizer)
