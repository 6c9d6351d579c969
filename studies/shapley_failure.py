"""Figure 6: Shapley values find the additive rule in a ReLU network, but not in a transformer.

A text of one word repeated k times is explained by KernelSHAP. By the rule every copy adds 1.5,
however many there are. Shapley values share out what the whole text adds, so what a model says
alike for every k (see the study ``additive``) gives each copy 1/k of it.

A word that is left out is replaced by "the", whose weight is 0: GPT-2 can't read an empty text,
and all models shall be asked the same. Every removal there is is asked, so nothing is estimated.
The network is the paper's: counts of words, 400 hidden units, log-odds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from matplotlib.figure import Figure

import piste
from piste.evaluation import interval
from piste.show.figures.canvas import panels
from piste.types import Floats
from studies.base import Findings, Study, Table, Work, graded
from studies.synthetic import (
    ADDITIVE,
    FIRST_ID,
    KINDS,
    SUM,
    Recipe,
    draw_lengths,
    recipes,
    train_additive,
    word_tokenizer,
)

WORD, NEUTRAL = "perfect", "the"
RULE, NETWORK = "the rule itself", "ReLU network"
_TRUE = ADDITIVE[WORD]
_HIDDEN = 400
_EVERY_REMOVAL = 2000
"""More questions than ten words have removals."""


class ShapleyFailure(Study):
    """KernelSHAP on one word repeated, for models that learned the same additive data."""

    name: ClassVar[str] = "shapley-failure"
    title: ClassVar[str] = "Shapley values recover an additive rule from a network that can hold it"

    def run(self, work: Work) -> Findings:
        """Explain the rule, networks that learned it, and transformers that did."""
        chosen = recipes(work)
        seeds = range(work.seed, work.seed + (3 if work.quick else 10))
        work.plan(1 + len(seeds) + len(chosen))
        rule = work.part(RULE, lambda: attributions(by_counts(log_odds), work))
        networks = [
            work.part(f"{NETWORK} {seed}", partial(_of_network, seed, work)) for seed in seeds
        ]
        transformers = {
            key: work.part(recipe.name, partial(_of_transformer, recipe, work))
            for key, recipe in chosen.items()
        }
        return Findings(
            self.name,
            self.title,
            work.command(self.name),
            [_table(rule, networks, transformers)],
            [_network_claim(networks), _transformer_claim(transformers)],
            {"attributions": lambda: _draw(networks, transformers)},
        )


def attributions(classifier: Any, work: Work) -> dict[str, list[float]]:
    """For every number of repetitions the Shapley value of each copy."""
    # What removal="mask" puts in the place of a word.
    classifier.tokenizer.mask_token = NEUTRAL
    times = (1, 2, 3, 5, 8) if work.quick else range(1, 11)
    texts = [" ".join([WORD] * k) for k in times]
    explained = piste.explain(
        classifier,
        texts,
        method="kernel_shap",
        target=("yes", "no") if len(classifier.labels) == 2 else None,
        removal="mask",
        samples=_EVERY_REMOVAL,
        seed=work.seed,
        progress=False,
    )
    return {
        str(k): one.score("attribution").tolist() for k, one in zip(times, explained, strict=True)
    }


def _of_transformer(recipe: Recipe, work: Work) -> dict[str, list[float]]:
    return attributions(train_additive(recipe, work.models), work)


def _of_network(seed: int, work: Work) -> dict[str, list[float]]:
    network = train_network(seed, 1000 if work.quick else 4000)

    def said(counts: Floats) -> Floats:
        with torch.no_grad():
            return np.asarray(network(torch.from_numpy(counts).float()).double())

    return attributions(by_counts(said), work)


def log_odds(counts: Floats) -> Floats:
    """The rule, of word counts: texts × 1."""
    return np.asarray(counts @ np.array(list(ADDITIVE.values())))[:, None]


def by_counts(function: Callable[[Floats], Floats]) -> Any:
    """A function of word counts as a classifier of texts."""

    def read(ids: torch.Tensor, mask: torch.Tensor) -> Floats:
        rows = [
            row[kept > 0] - FIRST_ID for row, kept in zip(ids.numpy(), mask.numpy(), strict=True)
        ]
        return np.asarray(function(SUM.counts(rows)))

    return piste.load(read, word_tokenizer("gpt2", SUM.words), outputs="logits")


def train_network(
    seed: int, steps: int, *, batch: int = 512, rate: float = 5e-3
) -> torch.nn.Module:
    """Two layers with ReLU between them, from counts to log-odds, trained on drawn labels."""
    rng = np.random.default_rng([seed, 3])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = torch.nn.Sequential(
            torch.nn.Linear(len(SUM.words), _HIDDEN),
            torch.nn.ReLU(),
            torch.nn.Linear(_HIDDEN, 1),
        )
    optimiser = torch.optim.Adam(network.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    for _ in range(steps):
        lengths = draw_lengths(batch, rng)
        counts = rng.multinomial(lengths, np.full(len(SUM.words), 1 / len(SUM.words)))
        chances = 1 / (1 + np.exp(-log_odds(counts.astype(float))))
        labels = torch.from_numpy((rng.random((batch, 1)) < chances).astype(np.float32))
        said = network(torch.from_numpy(counts).float())
        loss = torch.nn.functional.binary_cross_entropy_with_logits(said, labels)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own stub lacks a type
        optimiser.step()
        schedule.step()
    return network


def exponent(found: dict[str, list[float]]) -> float:
    """The b of attribution = a · k^b, by least squares of the logarithms; −1 is a share of 1/k.

    >>> round(exponent({"1": [6.0], "2": [3.0, 3.0], "3": [1.5, 2.0, 2.5]}), 6)
    -1.0
    """
    times = np.array([float(k) for k in found])
    means = np.array([np.mean(one) for one in found.values()])
    if (means <= 0).any():
        return float("nan")  # no power of k changes its sign
    return float(np.polyfit(np.log(times), np.log(means), 1)[0])


def _network_claim(networks: list[dict[str, list[float]]]) -> tuple[str, str, str]:
    means = [float(np.mean([np.mean(one[k]) for one in networks])) for k in networks[0]]
    off = max(abs(mean - _TRUE) for mean in means) / _TRUE
    return (
        "a two-layer ReLU network recovers the correct scores",
        f"each copy gets {min(means):.2f} to {max(means):.2f} for {_span(networks[0])} copies, "
        f"mean of {len(networks)} networks, where {_TRUE} is true",
        graded(off < 0.1, off < 0.25),
    )


def _transformer_claim(
    transformers: dict[tuple[str, int], dict[str, list[float]]],
) -> tuple[str, str, str]:
    powers = [exponent(one) for one in transformers.values()]
    shared = [power < -0.9 for power in powers]
    return (
        "transformers fail to reflect the true relationship",
        f"each copy gets a share that falls like k to the power of {min(powers):.2f} to "
        f"{max(powers):.2f} (1/k: -1.00; the rule: 0.00)",
        graded(all(shared), any(shared)),
    )


def _span(found: dict[str, list[float]]) -> str:
    return f"{next(iter(found))} to {list(found)[-1]}"


def _table(
    rule: dict[str, list[float]],
    networks: list[dict[str, list[float]]],
    transformers: dict[tuple[str, int], dict[str, list[float]]],
) -> Table:
    times = list(rule)

    def row(name: str, layers: str, found: list[dict[str, list[float]]], paper: str) -> list[str]:
        cells = [f"{np.mean([np.mean(one[k]) for one in found]):.3f}" for k in times]
        # Over networks, or over the places of the copies in one model's longest text.
        spread = interval(
            [np.mean(one[times[-1]]) for one in found] if len(found) > 1 else found[0][times[-1]]
        )
        power = np.mean([exponent(one) for one in found])
        cells[-1] += f" ({spread.low:.3f} to {spread.high:.3f})"
        return [name, layers, *cells, f"{power:.2f}", paper]

    rows = [row(RULE, "", [rule], f"{_TRUE}"), row(NETWORK, "2", networks, f"about {_TRUE}")]
    rows += [row(kind, str(layers), [one], "falls") for (kind, layers), one in transformers.items()]
    return Table(
        f'Shapley value of each "{WORD}", by their number k',
        ("model", "layers", *(f"k = {k}" for k in times), "power of k", "paper"),
        rows,
    )


def _draw(
    networks: list[dict[str, list[float]]],
    transformers: dict[tuple[str, int], dict[str, list[float]]],
) -> Figure:
    figure, (axes,) = panels((11.0, 3.6), 1, len(KINDS), sharey=True)
    times = [int(k) for k in networks[0]]
    for place, (kind, own) in enumerate(zip(KINDS, axes, strict=True)):
        own.axhline(_TRUE, linestyle="--", color="#7a7a85", label="the rule")
        means = [np.mean([np.mean(one[str(k)]) for one in networks]) for k in times]
        own.plot(times, means, "o-", markersize=3, color="#22262b", label=NETWORK)
        for one, layers in transformers:
            if one == kind:
                found = transformers[kind, layers]
                shares = [np.mean(found[str(k)]) for k in times]
                own.plot(times, shares, label=f"{layers} layer{'s' * (layers > 1)}")
        own.set_title(kind, loc="left", fontsize=10)
        own.set_xlabel(f'times "{WORD}"')
        if place == 0:
            own.set_ylabel("Shapley value of each")
            own.legend(frameon=False, fontsize=8)
    return figure


STUDY = ShapleyFailure()
