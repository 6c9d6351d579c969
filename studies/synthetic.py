"""Made-up texts with a known rule, and small transformers that learn it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    PreTrainedTokenizerFast,
)

import piste
from piste.classifiers import Classifier
from piste.engine import Engine
from piste.types import Floats, Ints
from studies.base import Work

ADDITIVE: Mapping[str, float] = {
    "the": 0.0,
    "we": 0.0,
    "movie": 0.0,
    "watch": 0.0,
    "good": 0.6,
    "best": 1.0,
    "perfect": 1.5,
    "ok": -0.6,
    "bad": -1.0,
    "worst": -1.5,
}
"""The paper's vocabulary and weights: log-odds are their sum."""
MOST_WORDS = 30
KINDS = ("bert", "distilbert", "gpt2")
FIRST_ID = 4
"""Special tokens come before the words."""


@dataclass(frozen=True)
class Recipe:
    """How a transformer is trained; its numbers are part of the name it is kept under."""

    kind: str
    layers: int
    width: int = 64
    heads: int = 4
    steps: int = 2500
    batch: int = 128
    rate: float = 5e-4
    seed: int = 0

    @property
    def name(self) -> str:
        return "-".join(str(part) for part in asdict(self).values())


def draw_lengths(count: int, rng: np.random.Generator) -> Ints:
    """Numbers of words, Binomial(30, ½), at least 1.

    >>> draw_lengths(3, np.random.default_rng(0)).tolist()
    [16, 13, 10]
    """
    return np.maximum(rng.binomial(MOST_WORDS, 0.5, count), 1)


@dataclass(frozen=True)
class Rule:
    """What texts are made of, and how their words decide the log-odds of their labels."""

    name: str
    """What models that learned it are kept under."""
    words: tuple[str, ...]
    log_odds: Callable[[Ints], Floats]
    """Of texts of one length: numbers of words, the last axis along a text."""
    lengths: Callable[[int, np.random.Generator], Ints] = draw_lengths
    longest: int = MOST_WORDS

    def read(self, drawn: Sequence[Ints]) -> list[str]:
        """Texts as a model reads them."""
        return [" ".join(self.words[word] for word in one) for one in drawn]

    def truth(self, drawn: Sequence[Ints]) -> Floats:
        """The log-odds of texts of any length."""
        return np.array([self.log_odds(one) for one in drawn])

    def counts(self, drawn: Sequence[Ints]) -> Floats:
        """Texts × words: how often each occurs."""
        rows = [np.bincount(one, minlength=len(self.words)) for one in drawn]
        return np.stack(rows).astype(float)


def _add(drawn: Ints) -> Floats:
    return np.asarray(np.array(list(ADDITIVE.values()))[drawn].sum(axis=-1))


SUM = Rule("additive", tuple(ADDITIVE), _add)
"""Log-odds are the sum of the words' weights."""


def draw_texts(
    count: int, rng: np.random.Generator, rule: Rule = SUM
) -> tuple[list[Ints], list[str]]:
    """Texts of random words, as numbers of words and as they are read.

    >>> draw_texts(1, np.random.default_rng(7))[1]
    ['perfect bad best ok bad movie the watch movie bad worst the good bad we ok']
    """
    drawn = [rng.integers(0, len(rule.words), length) for length in rule.lengths(count, rng)]
    return drawn, rule.read(drawn)


def answers(classifier: Classifier, texts: Sequence[str]) -> Floats:
    """Log-odds of the second class for every text."""
    subjects = [classifier.subject(text) for text in texts]
    rows = Engine(classifier).ask([(subject, [subject.whole]) for subject in subjects])
    found = np.concatenate(rows)
    return np.asarray(found[:, 1] - found[:, 0])


def train(rule: Rule, recipe: Recipe, folder: Path) -> Classifier:
    """A transformer that learned from labels of texts, drawn by the rule's log-odds.

    It is kept in ``folder`` and only trained if it is not there.
    """
    own = folder / f"{rule.name}-{recipe.name}"
    if not (own / "model.safetensors").is_file():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(recipe.seed)
            model = _model(recipe, rule)
            _learn(model, recipe, rule)
        model.save_pretrained(own)
        word_tokenizer(recipe.kind, rule.words).save_pretrained(own)
        (own / "recipe.json").write_text(json.dumps(asdict(recipe)), encoding="utf-8")
    return piste.load(str(own), name=f"{recipe.kind}, {recipe.layers} layers")


def train_additive(recipe: Recipe, folder: Path) -> Classifier:
    """A transformer that learned from texts whose log-odds are the sum of their words' weights."""
    return train(SUM, recipe, folder)


def recipes(work: Work) -> dict[tuple[str, int], Recipe]:
    """One for every kind and depth; small, short and shallow models if quick."""
    depths = (1, 2) if work.quick else (1, 2, 6, 12)
    small = {"width": 32, "heads": 2, "steps": 250, "batch": 64} if work.quick else {}
    return {
        (kind, layers): Recipe(kind, layers, seed=work.seed, **small)
        for kind in KINDS
        for layers in depths
    }


def by_model(
    work: Work,
    measure: Callable[[Recipe, Work], dict[str, Any]],
    wanted: Mapping[tuple[str, int], Recipe] | None = None,
) -> dict[tuple[str, int], Any]:
    """What is measured of every kind and depth, by other recipes if wanted."""
    chosen = recipes(work) if wanted is None else wanted
    work.plan(len(chosen))
    return {
        key: work.part(recipe.name, partial(measure, recipe, work))
        for key, recipe in chosen.items()
    }


def _model(recipe: Recipe, rule: Rule) -> Any:
    count = FIRST_ID + len(rule.words)
    positions = rule.longest + 2
    common: dict[str, Any] = {"vocab_size": count, "pad_token_id": 0}
    labels = {"id2label": {0: "no", 1: "yes"}, "label2id": {"no": 0, "yes": 1}}
    sizes: dict[str, dict[str, Any]] = {
        "bert": {
            "hidden_size": recipe.width,
            "num_hidden_layers": recipe.layers,
            "num_attention_heads": recipe.heads,
            "intermediate_size": 2 * recipe.width,
            "max_position_embeddings": positions,
        },
        "distilbert": {
            "dim": recipe.width,
            "n_layers": recipe.layers,
            "n_heads": recipe.heads,
            "hidden_dim": 2 * recipe.width,
            "max_position_embeddings": positions,
        },
        "gpt2": {
            "n_embd": recipe.width,
            "n_layer": recipe.layers,
            "n_head": recipe.heads,
            "n_positions": positions,
        },
    }
    config = AutoConfig.for_model(recipe.kind, **common, **sizes[recipe.kind], **labels)
    return AutoModelForSequenceClassification.from_config(config)


def word_tokenizer(kind: str, words: Sequence[str]) -> PreTrainedTokenizerFast:
    """One token for every word; special tokens around them as the kind of model wants them."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: number for number, word in enumerate([*special, *words])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]"}
    if kind != "gpt2":
        made.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        names |= {"cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=made, **names)


def _learn(model: Any, recipe: Recipe, rule: Rule) -> None:
    """Batches hold texts of one length, so nothing is ever padded."""
    rng = np.random.default_rng(recipe.seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=recipe.rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, recipe.rate, total_steps=recipe.steps, pct_start=0.1
    )
    model.train()
    for length in rule.lengths(recipe.steps, rng):
        drawn = rng.integers(0, len(rule.words), (recipe.batch, length))
        chances = 1 / (1 + np.exp(-rule.log_odds(drawn)))
        labels = torch.from_numpy((rng.random(recipe.batch) < chances).astype(np.int64))
        ids = torch.from_numpy(drawn + FIRST_ID)
        if recipe.kind != "gpt2":
            first, last = (torch.full((recipe.batch, 1), token) for token in (2, 3))
            ids = torch.cat([first, ids, last], dim=1)
        loss = model(input_ids=ids, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    model.eval()
