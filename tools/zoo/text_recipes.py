"""What is trained on texts: tokenizer, architecture and settings of each shipped model."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from tools.zoo.optimising import Settings

MAX_TOKENS = 512
VOCABULARY_SIZE = 10_000
LABELS = {0: "negative", 1: "positive"}
PAD, UNKNOWN, CLASSIFY, SEPARATE, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
# What is left of English text after lower-casing and stripping accents; anything else is rare
# enough in the reviews to be [UNK].
ALPHABET = string.ascii_lowercase + string.digits + string.punctuation + "£½"


@dataclass(frozen=True, kw_only=True)
class TextRecipe(Settings):
    """All settings of one training run on texts."""

    build_tokenizer: Callable[[Iterable[str]], PreTrainedTokenizerFast]
    build_model: Callable[[PreTrainedTokenizerFast], PreTrainedModel]
    # One entry per epoch: the longest sequence shown in it. Short crops first give many cheap
    # updates; the last epochs run at full length so that every position is trained.
    epoch_lengths: tuple[int, ...]
    # Content tokens that must survive augmentation: a causal model cannot read an empty input.
    shortest_input: int
    # Weight of the loss that asks a causal model for the label at every position, not only at
    # the last one. It gives hundreds of training signals per review. Zero for the encoder.
    every_position_weight: float
    highest_deletion_rate: float = 0.5
    short_crop_share: float = 0.1
    short_crop_limit: int = 96


def _cleaning_steps() -> list[normalizers.Normalizer]:
    """Turn HTML line breaks, runs of blanks and stray control characters into one blank.

    This is part of the tokenizer, rather than of the data loading, so that raw reviews are
    treated alike in training and in use, and offsets still refer to the raw text.
    """
    return [
        normalizers.Replace("<br />", " "),
        # The control characters are Windows-1252 dashes and dots that were decoded as Latin-1.
        normalizers.Replace(Regex("[\\s\u0080-\u009f]+"), " "),
    ]


def _learn_wordpieces(texts: Iterable[str], normalizer: normalizers.Normalizer) -> dict[str, int]:
    """Learn a WordPiece vocabulary that is the same in every run.

    The trainer numbers continuation characters in hash order, and breaks ties by number. Passing
    the alphabet and its continuations as if they were special tokens fixes their numbers.
    """
    special = [PAD, UNKNOWN, CLASSIFY, SEPARATE, MASK]
    learner = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    learner.normalizer = normalizer
    learner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=[*special, *ALPHABET, *(f"##{letter}" for letter in ALPHABET)],
        initial_alphabet=list(ALPHABET),
        # Rare foreign letters would otherwise take vocabulary entries away from words.
        limit_alphabet=len(ALPHABET),
        show_progress=False,
    )
    learner.train_from_iterator(texts, trainer)
    return learner.get_vocab()


def build_wordpiece_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Train a lower-case WordPiece vocabulary; texts are framed as ``[CLS] text [SEP]``."""
    normalizer = normalizers.Sequence(
        [*_cleaning_steps(), normalizers.BertNormalizer(lowercase=True)]
    )
    vocabulary = _learn_wordpieces(texts, normalizer)
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{CLASSIFY} $A {SEPARATE}",
        pair=f"{CLASSIFY} $A {SEPARATE} $B:1 {SEPARATE}:1",
        special_tokens=[(token, vocabulary[token]) for token in (CLASSIFY, SEPARATE)],
    )
    tokenizer.decoder = decoders.WordPiece()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        unk_token=UNKNOWN,
        cls_token=CLASSIFY,
        sep_token=SEPARATE,
        mask_token=MASK,
        model_max_length=MAX_TOKENS,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def build_byte_level_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE vocabulary; nothing is added around the text.

    Lower-casing and the prefix blank map a word at the start of a sentence and inside it to the
    same token, which a vocabulary of this size and 25,000 reviews need.
    """
    tokenizer = Tokenizer(models.BPE())
    # Without stripping, a blank at the end would become the token that the model classifies from.
    tokenizer.normalizer = normalizers.Sequence(
        [*_cleaning_steps(), normalizers.Strip(), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=["<|pad|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    # Trimmed offsets point at the word itself and leave out the blank before it.
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|pad|>",
        model_max_length=MAX_TOKENS,
        padding_side="right",
        # GPT-2 would add the word embeddings of segment ids to its input, so none are made.
        model_input_names=["input_ids", "attention_mask"],
    )


def _label_settings() -> dict[str, Any]:
    return {"id2label": LABELS, "label2id": {name: index for index, name in LABELS.items()}}


def build_bert(tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """Make an untrained two-layer BERT encoder that classifies from ``[CLS]``."""
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=256,
            max_position_embeddings=MAX_TOKENS,
            hidden_dropout_prob=0.1,
            # Dropout inside attention rules out the fused kernel and halves the speed.
            attention_probs_dropout_prob=0.0,
            classifier_dropout=0.3,
            pad_token_id=tokenizer.pad_token_id,
            **_label_settings(),
        )
    )


def build_gpt2(tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """Make an untrained two-layer GPT-2 that classifies from the last token that is no pad."""
    return GPT2ForSequenceClassification(
        GPT2Config(
            vocab_size=len(tokenizer),
            n_embd=128,
            n_layer=2,
            n_head=4,
            n_inner=256,
            n_positions=MAX_TOKENS,
            embd_pdrop=0.1,
            resid_pdrop=0.1,
            attn_pdrop=0.0,
            bos_token_id=None,
            eos_token_id=None,
            pad_token_id=tokenizer.pad_token_id,
            use_cache=False,
            **_label_settings(),
        )
    )


TEXT_RECIPES = {
    "reviews": TextRecipe(
        name="reviews",
        architecture="BERT encoder, 2 layers, hidden size 128, 4 heads, feed-forward size 256, "
        "lower-case WordPiece vocabulary",
        build_tokenizer=build_wordpiece_tokenizer,
        build_model=build_bert,
        epoch_lengths=(128, 128, 128, 128, 256, 256, 512, 512),
        shortest_input=0,
        every_position_weight=0.0,
    ),
    "reviews-gpt": TextRecipe(
        name="reviews-gpt",
        architecture="GPT-2 (causal), 2 layers, hidden size 128, 4 heads, feed-forward size 256, "
        "lower-case byte-level BPE vocabulary",
        build_tokenizer=build_byte_level_tokenizer,
        build_model=build_gpt2,
        epoch_lengths=(128, 128, 128, 128, 256, 256, 512, 512),
        shortest_input=1,
        every_position_weight=0.5,
    ),
}
