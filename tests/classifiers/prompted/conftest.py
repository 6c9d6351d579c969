"""Small causal language models with random weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from tests.conftest import FAMILIES, make_bytes

CAUSAL = ("gpt2-no-pad", "gpt2-pad", "llama-no-pad", "opt", "bloom")
CHAT = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def language_model(name: str, **more: Any) -> Any:
    kind, config, _ = FAMILIES[name]
    config = {key: value for key, value in config.items() if key != "num_labels"}
    for size in ("n_positions", "max_position_embeddings"):
        if size in config:
            config[size] = 512
    generator = torch.Generator().manual_seed(7)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **config | more))
    for parameter in model.parameters():
        scale = 0.3 if parameter.ndim > 1 else 0.05
        parameter.data += scale * torch.randn(parameter.shape, generator=generator)
    return model.eval()


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    made = make_bytes()
    made.chat_template = CHAT
    return made


@pytest.fixture(scope="session", params=CAUSAL)
def causal(request: pytest.FixtureRequest) -> Any:
    return language_model(request.param)


@pytest.fixture(scope="session")
def llama() -> Any:
    return language_model("llama-no-pad")


def log_probability(model: Any, prompt: list[int], answer: list[int]) -> float:
    """By a plain pass over prompt and answer."""
    with torch.no_grad():
        logits = model(torch.tensor([prompt + answer])).logits[0]
    known = torch.log_softmax(logits.double(), dim=-1)
    return sum(float(known[len(prompt) - 1 + k, token]) for k, token in enumerate(answer))
