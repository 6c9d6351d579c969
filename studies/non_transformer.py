"""Table 10: does SLALOM explain a model that has no attention at all?

A feed-forward network of three layers that reads nothing but the TF-IDF weights of words. It is a
function of texts to Piste, nothing more. *contributions* are Piste's default, which chooses its
form and asks questions of all sizes; *lin., paper* is SLALOM as published, fitted to short ones.
It is asked about deletions and insertions as in the study ``faithfulness``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch

import piste
from piste.classifiers import Classifier
from piste.errors import need
from piste.evaluation import Example, read_data
from piste.types import Floats, Ints
from studies.base import Findings, Study, Work, shown
from studies.judged import draw, judge, lead, table, verdict
from studies.reviews import LABELS, balanced, made_up

COLUMNS = ("contributions", "lin., paper", "LIME", "SHAP")
# The paper's figures.
_DELETION = {"TF-IDF network": ("", "0.960", "0.948", "0.802")}
_INSERTION = {"TF-IDF network": ("", "0.0039", "0.0053", "0.0120")}
_LARGEST_VOCABULARY = 10_000
_WIDTH = 64
_BATCH = 64
_LEAST_STEPS = 400


class NonTransformer(Study):
    """A network of word weights, explained."""

    name: ClassVar[str] = "non-transformer"
    title: ClassVar[str] = "A network of word weights"

    def run(self, work: Work) -> Findings:
        """Train it, explain it, and ask about deletions and insertions."""
        work.plan(1)
        found = {"TF-IDF network": work.part("network", partial(self.measure, work))}
        deleting = [lead(found, "lin., paper", other, "aopc") for other in ("LIME", "SHAP")]
        inserting = [lead(found, other, "lin., paper", "insertion") for other in ("LIME", "SHAP")]
        accuracy = found["TF-IDF network"]["accuracy"]
        return Findings(
            self.name,
            self.title,
            work.command(self.name),
            [
                table("Deletion, higher is better", found, "aopc", COLUMNS, _DELETION, 3),
                table("Insertion, lower is better", found, "insertion", COLUMNS, _INSERTION, 4),
                table("R² over removals of all sizes", found, "r2_all", COLUMNS, {}),
            ],
            [
                (
                    "deletion: linear SLALOM is above LIME and SHAP, though nothing attends",
                    f"above LIME by {shown(deleting[0], 3)}, above SHAP by "
                    f"{shown(deleting[1], 3)}, on a network of accuracy {accuracy:.3f}",
                    verdict(deleting),
                ),
                (
                    "insertion: it is better, too",
                    f"than LIME by {shown(inserting[0], 4)}, than SHAP by {shown(inserting[1], 4)}",
                    verdict(inserting),
                ),
            ],
            {"deletion": partial(draw, found, "aopc", COLUMNS, "deletion AOPC")},
        )

    def measure(self, work: Work) -> dict[str, Any]:
        """Both areas and the fidelity of all methods, review by review."""
        if work.quick:
            training, test = made_up(600, seed=work.seed), made_up(200, seed=work.seed + 2)
            texts, samples = made_up(8, seed=work.seed + 1), 200
        else:
            path = work.need("imdb.parquet", "data")
            training = balanced(path, "train", None, work.seed)
            test = balanced(path, "test", 4000, work.seed)
            texts = read_data(path, split="test", examples=40, seed=work.seed, words=(0, 200))
            samples = 2000
        classifier, right = train_network(training, test, work.seed)
        found = judge(
            work, "network", classifier, texts, COLUMNS, "deletion,insertion,fidelity", samples
        )
        return found | {"accuracy": right}


def train_network(
    training: Sequence[Example], test: Sequence[Example], seed: int
) -> tuple[Classifier, float]:
    """The network as a classifier, and its accuracy on other texts."""
    text: Any = need("sklearn.feature_extraction.text", "concepts", "The network of this study")
    counter = text.TfidfVectorizer(max_features=_LARGEST_VOCABULARY)
    weights = counter.fit_transform([example.text for example in training]).astype(np.float32)
    labels = np.array([int(example.label or 0) for example in training])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = torch.nn.Sequential(
            torch.nn.Linear(weights.shape[1], _WIDTH),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.3),
            torch.nn.Linear(_WIDTH, _WIDTH),
            torch.nn.ReLU(),
            torch.nn.Linear(_WIDTH, 2),
        )
        _learn(network, weights, labels, np.random.default_rng(seed))

    def logits(texts: Sequence[str]) -> Floats:
        rows = torch.from_numpy(counter.transform(texts).astype(np.float32).toarray())
        with torch.no_grad():
            return np.asarray(network(rows).numpy(), dtype=np.float64)

    said = logits([example.text for example in test]).argmax(axis=1)
    right = float(np.mean(said == [example.label for example in test]))
    classifier = piste.load(logits, labels=LABELS, outputs="logits", name="TF-IDF network")
    return classifier, right


def _learn(network: Any, weights: Any, labels: Ints, rng: Any) -> None:
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.01)
    epochs = max(3, _LEAST_STEPS * _BATCH // len(labels))
    for _ in range(epochs):
        for numbers in np.array_split(rng.permutation(len(labels)), max(len(labels) // _BATCH, 1)):
            loss = torch.nn.functional.cross_entropy(
                network(torch.from_numpy(weights[numbers].toarray())),
                torch.from_numpy(labels[numbers]),
            )
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
    network.eval()


STUDY = NonTransformer()
