"""LIME and Kernel SHAP as their users call them: the real packages, around plain code."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from piste.errors import need
from piste.types import Floats
from studies.cases import Case

BATCH = 32  # what people write when they feed a model in a loop
_PURPOSE = "Timing other explainers"


class PlainModel:
    """The model as a function of texts, and who explains it with nothing else.

    Everyone is asked about the log-odds of the class that the model gives the case's first text.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.text = case.texts[0]
        self.words = [unit.text for unit in case.subject.units]
        self.target = int(np.argmax(case.subject.ask([case.subject.whole])[0]))
        self.lengths: list[int] = []
        """Tokens of every text the model was asked about."""

    def log_odds(self, texts: Any) -> Floats:
        """Plain code around a model: batches as they come, padded to their longest text."""
        parts = []
        for start in range(0, len(texts), BATCH):
            chunk = [str(text) for text in texts[start : start + BATCH]]
            inputs = self.case.tokenizer(chunk, return_tensors="pt", padding=True)
            if inputs["input_ids"].shape[1] == 0:  # nothing left of any text
                pad = torch.zeros(len(chunk), 1, dtype=torch.long)
                inputs = {"input_ids": pad, "attention_mask": torch.ones_like(pad)}
            with torch.no_grad():
                parts.append(self.case.model(**inputs).logits)
            self.lengths += inputs["attention_mask"].sum(dim=1).tolist()
        logits = torch.cat(parts)
        rest = torch.cat([logits[:, : self.target], logits[:, self.target + 1 :]], dim=1)
        return (logits[:, self.target] - rest.logsumexp(dim=1)).double().numpy()

    def of_masks(self, masks: Any) -> Floats:
        """Log-odds of the words that are kept."""
        words = np.array(self.words)
        rows = np.asarray(masks).astype(bool)
        return self.log_odds([" ".join(words[row]) for row in rows])

    def lime(self, samples: int) -> tuple[dict[str, float], float]:
        """A weight for every word, and the intercept."""
        text: Any = need("lime.lime_text", "peers", _PURPOSE)

        def both(texts: list[str]) -> Floats:
            odds = self.log_odds(texts)
            return np.stack([-odds, odds], axis=1)

        self.lengths = []
        found = text.LimeTextExplainer(random_state=0).explain_instance(
            self.text, both, labels=(1,), num_features=10**6, num_samples=samples
        )
        word = found.domain_mapper.indexed_string.word
        weights = {word(number): float(weight) for number, weight in found.local_exp[1]}
        return weights, float(found.intercept[1])

    def kernel_shap(self, samples: int) -> Floats:
        """A Shapley value for every word."""
        shap: Any = need("shap", "peers", _PURPOSE)
        n = len(self.words)
        self.lengths = []
        with silent(), own_random_numbers():
            explainer = shap.KernelExplainer(self.of_masks, np.zeros((1, n)))
            scores = explainer.shap_values(np.ones((1, n)), nsamples=samples, silent=True)
        return np.asarray(scores, dtype=np.float64).reshape(n)


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Without what other libraries print and warn of."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def own_random_numbers() -> Iterator[None]:
    """The library draws from everybody's random numbers: they are put back as they were."""
    before = np.random.get_state()
    np.random.seed(0)
    try:
        yield
    finally:
        np.random.set_state(before)
