"""Small models of many architectures, with random weights and a tokenizer that is made here."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedTokenizerFast

TEXT = "A slow start, don't you think? But what a truly wonderful ending it had."
SIDE, PATCH = 32, 8

Config = dict[str, Any]


@dataclass(frozen=True)
class Architecture:
    """A kind of model, and how a small one is made."""

    name: str
    kind: Literal["text", "image", "prompt", "answer"]
    """What is asked: a text, an image, a label behind a prompt, or an answer of the model's own."""
    make: Callable[[], Any]
    frame: Literal["cls", "eos", "none"] = "cls"
    """Of a text: ``[CLS] … [SEP]`` around it, ``</s>`` behind it, or nothing."""
    is_coarse: bool = False
    """Whether its numbers have few digits: batches then differ by more than rounding."""


# -- tokenizer, processor and image ----------------------------------------------------------------


def tokenizer(frame: str = "cls") -> PreTrainedTokenizerFast:
    """Words and letters of the text, with the special tokens that an architecture expects."""
    words = sorted(set(re.findall(r"\w+", TEXT.lower())))
    letters = sorted(set("".join(words)) | set("!?,.'-"))
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "</s>"]
    pieces = [*special, *letters, *(f"##{letter}" for letter in letters)]
    for word in words:
        pieces += [word] if len(word) < 5 else [word[:3], f"##{word[3:]}"]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    template = {"cls": "[CLS] $A [SEP]", "eos": "$A </s>", "none": "$A"}[frame]
    made.post_processor = processors.TemplateProcessing(
        single=template,
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]", "</s>")],
    )
    tokens = {"cls": {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}}
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        unk_token="[UNK]",
        eos_token="</s>",
        model_max_length=64,
        **({} if frame == "none" else {"pad_token": "[PAD]"}),
        **tokens.get(frame, {}),
    )


def processor() -> Any:
    """Makes pixels of an image, as large as all models here read them."""
    return transformers.ViTImageProcessorPil(
        size={"height": SIDE, "width": SIDE}, image_mean=[0.5, 0.4, 0.3]
    )


def photo(height: int = 45, width: int = 60) -> NDArray[np.uint8]:
    """Coloured bands and a disc: no two patches are alike."""
    rows, columns = np.mgrid[:height, :width]
    colours = np.stack([2 * rows, 3 * columns, rows + columns], axis=2) % 256
    colours[(rows - 20) ** 2 + (columns - 30) ** 2 < 80] = (200, 40, 90)
    return colours.astype(np.uint8)


# -- models ----------------------------------------------------------------------------------------


def random_model(make: Callable[[], Any]) -> Any:
    """The model with random weights that are large enough for mistakes to show in its answers."""
    generator = torch.Generator().manual_seed(7)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = make()
    for parameter in model.parameters():
        scale = 0.3 if parameter.ndim > 1 else 0.05
        parameter.data += scale * torch.randn(parameter.shape, generator=generator)
    return model.eval()


def text_model(model_type: str, config: Config) -> Any:
    """A sequence classifier of three classes."""
    return random_model(
        lambda: AutoModelForSequenceClassification.from_config(
            AutoConfig.for_model(model_type, **config | {"num_labels": 3})
        )
    )


def class_model(class_name: str, config: Config) -> Any:
    """A model of this class of transformers; a classifier has three classes."""
    model_class = getattr(transformers, class_name)
    return random_model(lambda: model_class(model_class.config_class(**config | {"num_labels": 3})))


def with_adapter() -> Any:
    """BERT wrapped by PEFT, with an adapter (LoRA) that changes the answers."""
    import peft

    config = peft.LoraConfig(r=2, target_modules=["query", "value"], task_type="SEQ_CLS")
    return random_model(lambda: peft.get_peft_model(text_model("bert", ENCODER), config))


def quantised() -> Any:
    """BERT with linear layers in 8-bit integers, as torch quantises them dynamically."""
    return torch.ao.quantization.quantize_dynamic(  # type: ignore[no-untyped-call]
        text_model("bert", ENCODER), {torch.nn.Linear}
    )


PLAIN: Config = {
    "vocab_size": 400,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
ENCODER = PLAIN | {"max_position_embeddings": 64, "pad_token_id": 0}
OFFSET = PLAIN | {"max_position_embeddings": 66, "pad_token_id": 1}
"""Positions are counted from behind the padding id."""
DECODER = PLAIN | {"num_key_value_heads": 1, "max_position_embeddings": 64} | {
    "pad_token_id": None, "bos_token_id": 2, "eos_token_id": 5, "head_dim": 8,
}  # fmt: skip
SEQ2SEQ = {
    "vocab_size": 400, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32, "max_position_embeddings": 64, "pad_token_id": 0, "eos_token_id": 5,
    "bos_token_id": 2, "decoder_start_token_id": 5, "forced_eos_token_id": 5,
}  # fmt: skip
T5 = {
    "vocab_size": 400, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2,
    "pad_token_id": 0, "eos_token_id": 5, "decoder_start_token_id": 0,
}  # fmt: skip
GPT = {"vocab_size": 400, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64} | {
    "bos_token_id": 2, "eos_token_id": 5,
}  # fmt: skip
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 16}
IMAGE = {key: PLAIN[key] for key in PLAIN if key != "vocab_size"} | {
    "image_size": SIDE, "patch_size": PATCH,
}  # fmt: skip
SWIN = {
    "image_size": SIDE, "patch_size": 4, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2],
    "window_size": 4,
}  # fmt: skip
STAGES = {"hidden_sizes": [8, 16], "depths": [1, 1]}

# name → model type and config; the names are those of the table
ENCODERS: dict[str, tuple[str, Config]] = {
    "ALBERT": ("albert", ENCODER | {"embedding_size": 8}),
    "BERT": ("bert", ENCODER),
    "BigBird": ("big_bird", ENCODER | {"block_size": 4, "num_random_blocks": 1}),
    "CamemBERT": ("camembert", OFFSET),
    "CANINE": ("canine", ENCODER | {"num_hash_buckets": 64}),
    "ConvBERT": ("convbert", ENCODER | {"embedding_size": 16, "head_ratio": 1}),
    "Data2VecText": ("data2vec-text", OFFSET),
    "DeBERTa": ("deberta", ENCODER | {"relative_attention": True, "pos_att_type": ["c2p"]}),
    "DeBERTa-v2, v3": (
        "deberta-v2",
        ENCODER | {"relative_attention": True, "pos_att_type": ["c2p"]},
    ),
    "DistilBERT": (
        "distilbert",
        {"vocab_size": 400, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32},
    ),
    "ELECTRA": ("electra", ENCODER | {"embedding_size": 8}),
    "ERNIE": ("ernie", ENCODER),
    "ESM": ("esm", ENCODER | {"mask_token_id": 4}),
    "EuroBERT": ("eurobert", ENCODER),
    "FlauBERT": (
        "flaubert",
        {"emb_dim": 16, "n_layers": 2, "n_heads": 2, "n_words": 400, "pad_index": 0},
    ),
    "FNet": ("fnet", ENCODER),
    "Funnel": (
        "funnel",
        {"vocab_size": 400, "block_sizes": [1, 1], "d_model": 16, "n_head": 2, "d_head": 8}
        | {"d_inner": 32, "num_decoder_layers": 1},
    ),
    "I-BERT": ("ibert", OFFSET),
    "LayoutLM": ("layoutlm", ENCODER),
    "Longformer": ("longformer", OFFSET | {"attention_window": 8}),
    "LUKE": ("luke", OFFSET | {"entity_vocab_size": 8, "entity_emb_size": 8}),
    "MegatronBERT": ("megatron-bert", ENCODER),
    "MobileBERT": (
        "mobilebert",
        ENCODER | {"embedding_size": 16, "intra_bottleneck_size": 16, "true_hidden_size": 16},
    ),
    "ModernBERT": ("modernbert", ENCODER | {"eos_token_id": 3, "bos_token_id": 2}),
    "MPNet": ("mpnet", OFFSET),
    "NomicBERT": ("nomic_bert", ENCODER),
    "Nyströmformer": ("nystromformer", ENCODER | {"num_landmarks": 4, "segment_means_seq_len": 4}),
    "Perceiver": (
        "perceiver",
        {"vocab_size": 400, "num_latents": 8, "d_latents": 16, "d_model": 16, "num_blocks": 1}
        | {"num_self_attends_per_block": 1, "num_self_attention_heads": 2}
        | {"num_cross_attention_heads": 2, "max_position_embeddings": 64},
    ),
    "Reformer": (
        "reformer",
        {"vocab_size": 400, "hidden_size": 16, "feed_forward_size": 32, "num_attention_heads": 2}
        | {"attention_head_size": 8, "attn_layers": ["local", "local"], "axial_pos_embds": False}
        | {"local_attn_chunk_length": 8, "max_position_embeddings": 64, "is_decoder": False},
    ),
    "RemBERT": ("rembert", ENCODER | {"input_embedding_size": 8, "output_embedding_size": 8}),
    "RoBERTa": ("roberta", OFFSET),
    "RoBERTa-PreLayerNorm": ("roberta-prelayernorm", OFFSET),
    "RoFormer": ("roformer", ENCODER | {"embedding_size": 16}),
    "SqueezeBERT": (
        "squeezebert",
        ENCODER
        | {"embedding_size": 16, "q_groups": 2, "k_groups": 2, "v_groups": 2}
        | {"post_attention_groups": 1, "intermediate_groups": 2, "output_groups": 2},
    ),
    "XLM": (
        "xlm",
        {"emb_dim": 16, "n_layers": 2, "n_heads": 2, "n_words": 400, "pad_index": 0},
    ),
    "XLM-RoBERTa": ("xlm-roberta", OFFSET),
    "XLM-RoBERTa-XL": ("xlm-roberta-xl", OFFSET),
    "XLNet": (
        "xlnet",
        {"vocab_size": 400, "d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32},
    ),
    "X-MOD": ("xmod", OFFSET | {"languages": ["en_XX"], "default_language": "en_XX"}),
    "YOSO": ("yoso", ENCODER | {"use_expectation": True}),
}
DECODERS: dict[str, tuple[str, Config]] = {
    "BioGPT": ("biogpt", DECODER),
    "Bloom": ("bloom", {"vocab_size": 400, "hidden_size": 16, "n_layer": 2, "n_head": 2}),
    "CTRL": ("ctrl", {"vocab_size": 400, "n_embd": 16, "n_layer": 2, "n_head": 2, "dff": 32}),
    "Falcon": ("falcon", PLAIN | {"pad_token_id": None, "eos_token_id": 5}),
    "Gemma": ("gemma", DECODER),
    "Gemma 2": ("gemma2", DECODER),
    "Gemma 3 (text)": ("gemma3_text", DECODER),
    "GLM-4": ("glm4", DECODER),
    "GPT-1": ("openai-gpt", GPT),
    "GPT-2": ("gpt2", GPT),
    "GPT-BigCode": ("gpt_bigcode", GPT),
    "GPT-J": ("gptj", GPT | {"rotary_dim": 4}),
    "GPT-Neo": (
        "gpt_neo",
        {"vocab_size": 400, "hidden_size": 16, "num_layers": 2, "num_heads": 2}
        | {"attention_types": [[["global", "local"], 1]], "max_position_embeddings": 64},
    ),
    "GPT-NeoX": ("gpt_neox", DECODER),
    "gpt-oss": ("gpt_oss", DECODER | {"num_local_experts": 2, "num_experts_per_tok": 2}),
    "Jamba": (
        "jamba",
        DECODER
        | {"num_experts": 2, "attn_layer_period": 2, "attn_layer_offset": 1}
        | {"use_mamba_kernels": False, "mamba_d_state": 4, "mamba_dt_rank": 4},
    ),
    "Llama": ("llama", DECODER),
    "Mistral": ("mistral", DECODER),
    "Mixtral": ("mixtral", DECODER | {"num_local_experts": 2}),
    "ModernBERT decoder": ("modernbert-decoder", DECODER | {"pad_token_id": 0}),
    "MPT": ("mpt", {"vocab_size": 400, "d_model": 16, "n_layers": 2, "n_heads": 2}),
    "OLMo 2": ("olmo2", DECODER),
    "OPT": (
        "opt",
        {"vocab_size": 400, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
        | {"ffn_dim": 32, "word_embed_proj_dim": 16, "pad_token_id": None},
    ),
    "Phi": ("phi", DECODER),
    "Phi-3": ("phi3", DECODER),
    "Qwen2": ("qwen2", DECODER),
    "Qwen2-MoE": (
        "qwen2_moe",
        DECODER | EXPERTS | {"num_experts": 2, "shared_expert_intermediate_size": 16},
    ),
    "Qwen3": ("qwen3", DECODER),
    "SmolLM3": ("smollm3", DECODER),
    "StableLM": ("stablelm", DECODER),
    "StarCoder2": ("starcoder2", DECODER),
}
SEQ2SEQS: dict[str, tuple[str, Config]] = {
    "BART": ("bart", SEQ2SEQ),
    "mBART": ("mbart", SEQ2SEQ),
    "MVP": ("mvp", SEQ2SEQ),
    "PLBart": ("plbart", SEQ2SEQ),
    "T5": ("t5", T5),
    "mT5": ("mt5", T5),
    "UMT5": ("umt5", T5),
}
# name → class and config
IMAGES: dict[str, tuple[str, Config]] = {
    "BEiT": ("BeitForImageClassification", IMAGE | {"use_relative_position_bias": True}),
    "BiT": ("BitForImageClassification", STAGES | {"embedding_size": 8, "num_groups": 4}),
    "CLIP": ("CLIPForImageClassification", {"vision_config": IMAGE}),
    "ConvNeXT": ("ConvNextForImageClassification", STAGES | {"num_stages": 2}),
    "ConvNeXT V2": ("ConvNextV2ForImageClassification", STAGES | {"num_stages": 2}),
    "Data2VecVision": (
        "Data2VecVisionForImageClassification",
        IMAGE | {"use_relative_position_bias": True},
    ),
    "DeiT": ("DeiTForImageClassificationWithTeacher", IMAGE),
    "DINOv2": ("Dinov2ForImageClassification", IMAGE),
    "DINOv2 with registers": ("Dinov2WithRegistersForImageClassification", IMAGE),
    "FocalNet": (
        "FocalNetForImageClassification",
        {"image_size": SIDE, "patch_size": 4, "embed_dim": 16, "depths": [1, 1]}
        | {"hidden_sizes": [16, 32], "focal_levels": [1, 1], "focal_windows": [3, 3]},
    ),
    "Hiera": (
        "HieraForImageClassification",
        {"image_size": [SIDE, SIDE], "patch_size": [7, 7], "patch_stride": [4, 4], "embed_dim": 16}
        | {"patch_padding": [3, 3], "depths": [1, 1], "num_heads": [1, 2], "num_query_pool": 1}
        | {"masked_unit_size": [4, 4], "masked_unit_attention": [True, False]},
    ),
    "I-JEPA": ("IJepaForImageClassification", IMAGE),
    "PoolFormer": (
        "PoolFormerForImageClassification",
        {"hidden_sizes": [8, 16], "depths": [1, 1], "num_encoder_blocks": 2}
        | {"patch_sizes": [7, 3], "strides": [4, 2], "padding": [2, 1]},
    ),
    "PVT v2": (
        "PvtV2ForImageClassification",
        {"image_size": SIDE, "hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]}
        | {"num_attention_heads": [1, 1, 2, 2]},
    ),
    "RegNet": ("RegNetForImageClassification", {
        "embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1], "groups_width": 4,
    }),
    "ResNet": (
        "ResNetForImageClassification",
        {"embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1], "layer_type": "basic"},
    ),
    "SegFormer": (
        "SegformerForImageClassification",
        {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]}
        | {"num_attention_heads": [1, 1, 2, 2]},
    ),
    "SigLIP": ("SiglipForImageClassification", {"vision_config": IMAGE}),
    "Swin": ("SwinForImageClassification", SWIN),
    "Swin v2": ("Swinv2ForImageClassification", SWIN),
    "ViT": ("ViTForImageClassification", IMAGE),
    "ViT-MSN": ("ViTMSNForImageClassification", IMAGE),
}  # fmt: skip
STATES = {"vocab_size": 400, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}
LANGUAGE: dict[str, tuple[str, Config]] = {
    "Falcon Mamba": ("FalconMambaForCausalLM", STATES),
    "GPT-2": ("GPT2LMHeadModel", GPT),
    "GPT-NeoX": ("GPTNeoXForCausalLM", DECODER),
    "Jamba": ("JambaForCausalLM", DECODERS["Jamba"][1]),
    "Llama": ("LlamaForCausalLM", DECODER),
    "Mamba": ("MambaForCausalLM", STATES),
    "Mamba-2": ("Mamba2ForCausalLM", STATES | {"num_heads": 4, "head_dim": 8, "n_groups": 1}),
    "Qwen2": ("Qwen2ForCausalLM", DECODER),
    "RecurrentGemma": (
        "RecurrentGemmaForCausalLM",
        DECODER | {"lru_width": 16, "attention_window_size": 16},
    ),
    "RWKV": (
        "RwkvForCausalLM",
        {"vocab_size": 400, "hidden_size": 16, "num_hidden_layers": 2, "intermediate_size": 32}
        | {"attention_hidden_size": 16},
    ),
}
# Models that do something else: name → class and config
OTHERS: dict[str, tuple[str, Config]] = {
    "BERT without a head": ("BertModel", ENCODER),
    "BERT, masked words": ("BertForMaskedLM", ENCODER),
    "BERT, multiple choice": ("BertForMultipleChoice", ENCODER),
    "BERT, next sentence": ("BertForNextSentencePrediction", ENCODER),
    "BART, writing": ("BartForConditionalGeneration", SEQ2SEQ),
    "T5, writing": ("T5ForConditionalGeneration", T5),
}


def architectures() -> list[Architecture]:
    """All of the table, in its order."""
    found: list[Architecture] = []
    for table, frame in ((ENCODERS, "cls"), (DECODERS, "none"), (SEQ2SEQS, "eos")):
        found += [
            Architecture(name, "text", _maker(text_model, *made), frame)  # type: ignore[arg-type]
            for name, made in table.items()
        ]
    found += [
        Architecture("T5, text without an end token", "text", _maker(text_model, "t5", T5), "cls"),
        Architecture("BERT, bfloat16", "text", _cast("bert", torch.bfloat16), is_coarse=True),
        Architecture("BERT, float16", "text", _cast("bert", torch.float16), is_coarse=True),
        Architecture("BERT, PEFT (LoRA)", "text", with_adapter),
        Architecture("BERT, dynamically quantised", "text", quantised, is_coarse=True),
    ]
    found += [
        Architecture(name, "image", _maker(class_model, *made)) for name, made in IMAGES.items()
    ]
    for name, made in LANGUAGE.items():
        make = _maker(class_model, *made)
        found += [Architecture(name, kind, make, "none") for kind in ("prompt", "answer")]
    found += [
        Architecture(name, "text", _maker(class_model, *made)) for name, made in OTHERS.items()
    ]
    return found


def _maker(make: Callable[[str, Config], Any], name: str, config: Config) -> Callable[[], Any]:
    return lambda: make(name, config)


def _cast(model_type: str, dtype: torch.dtype) -> Callable[[], Any]:
    return lambda: text_model(model_type, ENCODER).to(dtype)
