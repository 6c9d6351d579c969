"""The peers, called as their users call them, all about the same log-odds."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.speed.cases import JudgedCase, Masks
from benchmarks.speed.measuring import Answer
from piste.types import Floats
from studies.cases import SPECIALS, Case
from studies.peers import BATCH, PlainModel, silent


class Peers:
    """All explainers that need nothing but a model, a tokenizer and a text."""

    def __init__(self, case: JudgedCase) -> None:
        self.case = case
        self.plain = PlainModel(case)
        self.words, self.text, self.target = self.plain.words, self.plain.text, self.plain.target

    @staticmethod
    def import_all() -> None:
        """So that no one's time includes loading its library."""
        for name in ("slalom_explanations", "lime.lime_text", "shap", "captum.attr", "interpreto"):
            with contextlib.suppress(ImportError), silent():
                importlib.import_module(name)

    def named(self) -> dict[str, Callable[[int], Answer]]:
        return {
            "slalom-explanations, short": lambda calls: self.published("short", calls),
            "slalom-explanations, deletion": lambda calls: self.published("deletion", calls),
            "lime": self.lime,
            "shap, Kernel": self.kernel_shap,
            "shap, Permutation": self.permutation_shap,
            "shap, Partition": self.partition_shap,
            "interpreto, KernelShap": lambda calls: self.interpreto("KernelShap", calls),
        }

    def gradients(self) -> dict[str, Callable[[int], Answer]]:
        return {
            "captum, integrated gradients (50 steps)": lambda _: self.captum(50),
            "captum, gradient × input": lambda _: self.captum(0),
        }

    def _additive(self, scores: Floats, calls: int) -> Answer:
        """A sum of scores: the whole text's log-odds minus what was taken away."""
        whole = self.case.log_odds(np.ones((1, len(scores)), dtype=bool))[0]
        return Answer(lambda masks: whole - (~masks) @ scores, scores, calls)

    # -- the peers -----------------------------------------------------------------------------

    def published(self, strategy: str, calls: int) -> Answer:
        from slalom_explanations import SLALOMLocalExplanantions

        subject: Any = self.case.subject
        ids = [int(token) for piece in subject._ids for token in piece]
        framed, shown = _Framed(self.case, self.target), [token + _Framed.SHIFT for token in ids]
        explainer = SLALOMLocalExplanantions(
            framed,
            None,
            n_samples=calls,
            device="cpu",
            modes=["value", "imp", "lin"],
            sampling_strategy=strategy,
        )
        with silent():
            value, importance, linear = explainer.get_signed_importance_for_tokens(shown)
        sizes = [len(piece) for piece in subject._ids]
        unit = np.repeat(np.arange(len(sizes)), sizes)

        def predict(masks: Masks) -> Floats:
            weights = masks[:, unit] * np.exp(importance - importance.max())
            return (weights @ value) / weights.sum(axis=1)

        return Answer(predict, np.bincount(unit, weights=linear).astype(np.float64), framed.rows)

    def lime(self, calls: int) -> Answer:
        weights, intercept = self.plain.lime(calls)
        kinds = {word: [k for k, own in enumerate(self.words) if own == word] for word in weights}

        def predict(masks: Masks) -> Floats:
            answer = np.full(len(masks), intercept)
            for word, places in kinds.items():
                if places:
                    answer += weights[word] * masks[:, places].any(axis=1)
            return answer

        ranking = np.array([weights.get(word, 0.0) for word in self.words])
        return Answer(predict, ranking, len(self.plain.lengths))

    def kernel_shap(self, calls: int) -> Answer:
        return self._additive(self.plain.kernel_shap(calls), len(self.plain.lengths))

    def permutation_shap(self, calls: int) -> Answer:
        import shap

        n = len(self.words)
        self.plain.lengths = []
        with silent():
            masker = shap.maskers.Independent(np.zeros((1, n)))
            explainer = shap.explainers.Permutation(self.plain.of_masks, masker, seed=0)
            found = explainer(np.ones((1, n)), max_evals=max(calls, 2 * n + 1), silent=True)
        return self._additive(np.asarray(found.values).reshape(n), len(self.plain.lengths))

    def partition_shap(self, calls: int) -> Answer:
        import shap

        self.plain.lengths = []
        with silent():
            masker = shap.maskers.Text(self.case.tokenizer)
            explainer = shap.Explainer(self.plain.log_odds, masker, algorithm="partition")
            found = explainer([self.text], max_evals=calls, silent=True)
        scores, position = np.zeros(len(self.words)), 0
        starts = np.array([unit.start for unit in self.case.subject.units])
        for piece, value in zip(found.data[0], np.ravel(found.values[0]), strict=True):
            place = position + len(piece) - len(piece.lstrip())
            if piece.strip():
                scores[max(int(np.searchsorted(starts, place, side="right")) - 1, 0)] += value
            position += len(piece)
        return self._additive(scores, len(self.plain.lengths))

    def interpreto(self, kind: str, calls: int) -> Answer:
        import interpreto

        with silent():
            explainer = getattr(interpreto, kind)(
                self.case.model,
                self.case.tokenizer,
                batch_size=BATCH,
                n_perturbations=calls,
                granularity=interpreto.Granularity.WORD,
            )
            found = explainer(self.text, targets=torch.tensor([self.target]))[0]
        values = found.attributions.reshape(-1).double().numpy()
        pieces = [str(element).strip() for element in found.elements]
        if len(values) != len(self.words) and pieces[0] in SPECIALS:
            values = values[1:-1]
        if len(values) != len(self.words):
            return Answer(None, None, calls)
        return Answer(None, values, calls)

    def captum(self, steps: int) -> Answer:
        from captum.attr import LayerGradientXActivation, LayerIntegratedGradients

        model, tokenizer = self.case.model, self.case.tokenizer
        inputs = tokenizer(self.text, return_tensors="pt")

        def forward(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = model(input_ids=ids, attention_mask=mask).logits
            return logits[:, self.target] - logits[:, 1 - self.target]

        layer, more = model.get_input_embeddings(), inputs["attention_mask"]
        ids = inputs["input_ids"]
        sizes = [unit.tokens for unit in self.case.subject.units]
        first = 1 if ids.shape[1] > sum(sizes) else 0
        unit = np.repeat(np.arange(len(sizes)), sizes)
        if steps:
            reference = ids.clone()
            reference[:, first : first + len(unit)] = tokenizer.pad_token_id
            attributed = LayerIntegratedGradients(forward, layer).attribute(
                ids,
                reference,
                additional_forward_args=(more,),
                n_steps=steps,
                internal_batch_size=10,
            )
        else:
            attributed = LayerGradientXActivation(forward, layer).attribute(
                ids, additional_forward_args=(more,)
            )
        tokens = attributed.sum(dim=-1)[0].detach().double().numpy()
        scores = np.bincount(unit, weights=tokens[first : first + len(unit)]).astype(np.float64)
        return self._additive(scores, max(steps, 1))


class _Framed(torch.nn.Module):
    """A model behind BERT's ids: the published package frames every text with 101 and 102."""

    SHIFT = 1000

    def __init__(self, case: Case, target: int) -> None:
        super().__init__()
        self.model = case.model
        self.target = target
        self.rows = 0
        subject: Any = case.subject
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
        logits = self.model(input_ids=rows, attention_mask=attention_mask).logits
        return {"logits": torch.stack([logits[:, 1 - self.target], logits[:, self.target]], dim=1)}
