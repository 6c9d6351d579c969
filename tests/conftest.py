"""Small real models of many families, with tokenizers built here."""

from __future__ import annotations

import hashlib
import re
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    PreTrainedTokenizerFast,
)
from transformers import logging as transformers_logging

import piste

# Some tests press Ctrl + C, which a shell has programs ignore that it starts in the background.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

transformers_logging.set_verbosity_error()
transformers_logging.disable_progress_bar()

LONGEST = ("test_quick.py", "test_docs.py", "test_ray.py", "test_cache_processes.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long come first, so that no process is left alone with them at the end."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


TEXT = "A slow start, don't you think? But what a truly wonderful ending it had."
SENTENCES = [
    TEXT,
    "The film is good and the ending is wonderful.",
    "A bad start and a worse ending, what a slow and dull film.",
    "Do you think it was good? I did not.",
]


def word_pieces() -> dict[str, int]:
    """A vocabulary that is the same in every run, which a trained one is not: ties are drawn."""
    words = sorted(set(re.findall(r"\w+", " ".join(SENTENCES).lower())))
    letters = sorted(set("".join(words)) | set("!?,.'-"))
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces += [*letters, *(f"##{letter}" for letter in letters)]
    for word in words:
        pieces += [word] if len(word) < 5 else [word[:3], f"##{word[3:]}"]
    return {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}


@pytest.fixture(scope="session")
def wordpiece() -> PreTrainedTokenizerFast:
    """A BERT-style tokenizer: lower case, [CLS] … [SEP], pads on the right."""
    tokenizer = Tokenizer(models.WordPiece(word_pieces(), unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def make_bytes(**options: Any) -> PreTrainedTokenizerFast:
    """A GPT-2-style tokenizer: bytes, no special tokens around the text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=340,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", **options)


@pytest.fixture(scope="session")
def byte_pairs() -> PreTrainedTokenizerFast:
    return make_bytes()


SMALL = {
    "vocab_size": 400,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "num_labels": 3,
}
GPT2 = {"vocab_size": 400, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}

# name → (model type, config, tokenizer fixture)
FAMILIES: dict[str, tuple[str, dict[str, Any], str]] = {
    "bert": ("bert", SMALL | {"max_position_embeddings": 64}, "wordpiece"),
    "roberta": ("roberta", SMALL | {"max_position_embeddings": 66, "pad_token_id": 1}, "wordpiece"),
    "deberta-v2": (
        "deberta-v2",
        SMALL | {"relative_attention": True, "pos_att_type": ["c2p"], "pooler_hidden_size": 16},
        "wordpiece",
    ),
    "xlnet": (
        "xlnet",
        {"vocab_size": 400, "d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32}
        | {"num_labels": 3},
        "wordpiece",
    ),
    "fnet": (
        "fnet",
        {k: v for k, v in SMALL.items() if k != "num_attention_heads"},
        "wordpiece",
    ),
    "gpt2-pad": ("gpt2", GPT2 | {"num_labels": 3, "pad_token_id": 0}, "byte_pairs"),
    "gpt2-no-pad": ("gpt2", GPT2 | {"num_labels": 3}, "byte_pairs"),
    "llama-no-pad": ("llama", SMALL | {"num_key_value_heads": 1}, "byte_pairs"),
    "opt": (
        "opt",
        {"vocab_size": 400, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
        | {"ffn_dim": 32, "word_embed_proj_dim": 16, "num_labels": 3},
        "byte_pairs",
    ),
    "bloom": (
        "bloom",
        {"vocab_size": 400, "hidden_size": 16, "n_layer": 2, "n_head": 2, "num_labels": 3},
        "byte_pairs",
    ),
}


def build(kind: str, **config: Any) -> Any:
    """A model with random but lively weights, so that mistakes show in its answers."""
    generator = torch.Generator().manual_seed(7)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = AutoModelForSequenceClassification.from_config(AutoConfig.for_model(kind, **config))
    for parameter in model.parameters():
        scale = 0.3 if parameter.ndim > 1 else 0.05
        parameter.data += scale * torch.randn(parameter.shape, generator=generator)
    return model.eval()


@pytest.fixture(scope="session", params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> tuple[str, Any, Any]:
    """(name, model, tokenizer) of every family."""
    kind, config, tokenizer = FAMILIES[request.param]
    return request.param, build(kind, **config), request.getfixturevalue(tokenizer)


@pytest.fixture(scope="session")
def bert(wordpiece: Any) -> Any:
    """A small encoder as a classifier."""
    return piste.load(build("bert", **FAMILIES["bert"][1]), wordpiece)


@pytest.fixture(scope="session")
def reviews() -> Any:
    return piste.load("piste:reviews")


@pytest.fixture(scope="session")
def reviews_gpt() -> Any:
    return piste.load("piste:reviews-gpt")


class ExactSlalom:
    """A function of texts that is a SLALOM over the words w0, w1, …; optionally noisy."""

    def __init__(self, n: int = 50, classes: int = 1, noise: float = 0.0, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.values = rng.normal(size=(n, classes))
        if classes > 1:
            self.values -= self.values.mean(axis=1, keepdims=True)
        self.importances = rng.normal(size=n)
        self.importances -= self.importances.mean()
        self.noise = noise
        self.text = " ".join(f"w{k}" for k in range(n))

    def answer(self, units: list[int]) -> np.ndarray:
        weights = np.exp(self.importances[units])
        return weights @ self.values[units] / weights.sum()

    def __call__(self, texts: list[str]) -> np.ndarray:
        rows = []
        for text in texts:
            row = self.answer([int(word[1:]) for word in text.split()])
            digest = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
            rows.append(row + self.noise * np.random.default_rng(digest).normal(size=row.shape))
        return np.array(rows)


@pytest.fixture
def exact() -> Callable[..., ExactSlalom]:
    return ExactSlalom


@pytest.fixture(autouse=True)
def global_random_state_is_left_alone() -> Iterator[None]:
    """No test may find the library using or changing anyone's random numbers."""
    numpy_before = np.random.get_state()[1].copy()  # the legacy state is the point
    torch_before = torch.random.get_rng_state().clone()
    yield
    assert (np.random.get_state()[1] == numpy_before).all()
    assert torch.equal(torch.random.get_rng_state(), torch_before)
