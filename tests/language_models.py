"""A tiny random language model, as a folder, for tests that need no sensible answers."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = """the a in on of is was and year moon tower paris man walked landed stands question
answer context when where did who first 1969 1889 : . ? , yes no good bad review sentiment user
assistant it film slow wonderful ending great"""
CHAT = (
    "{% for m in messages %}{{ m['role'] }} : {{ m['content'] }} . {% endfor %}"
    "{% if add_generation_prompt %}assistant :{% endif %}"
)


def save_language_model(folder: Path, chat: bool = True, seed: int = 0) -> Path:
    """Write the model and its tokenizer, whose tokens are words with the blank before them."""
    words = list(dict.fromkeys(WORDS.split()))
    pieces = ["<unk>", "<s>", "</s>", "\n", *words, *(f"▁{word}" for word in words)]
    tokenizer = Tokenizer(models.WordLevel({p: n for n, p in enumerate(pieces)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split("\n", "isolated"), pre_tokenizers.Metaspace(prepend_scheme="never")]
    )
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="never")
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    if chat:
        fast.chat_template = CHAT
    fast.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(pieces),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=512,
        initializer_range=0.3,  # so that answers depend on the prompt
        bos_token_id=1,
        eos_token_id=2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        LlamaForCausalLM(config).save_pretrained(folder)
    return folder
