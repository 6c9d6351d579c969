"""Words, tokens, sentences and their character spans."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import piste
from piste.classifiers.text.tokenization import read_tokens
from piste.classifiers.text.units import (
    group_tokens,
    paragraph_spans,
    sentence_spans,
    word_spans,
)
from tests.conftest import TEXT


def words(tokenizer: Any, text: str, units: str = "words") -> list[str]:
    tokens = read_tokens(tokenizer, [text])
    groups = group_tokens(tokens, [text], units)
    assert sorted(p for group in groups for p in group) == [
        p for p, token in enumerate(tokens) if not token.fixed
    ]
    spans = [(min(tokens[p].start for p in g), max(tokens[p].end for p in g)) for g in groups]
    return [text[start:end].strip() for start, end in spans]


def test_words_are_words_and_contractions_stay_whole(wordpiece: Any, byte_pairs: Any) -> None:
    expected = ["A", "slow", "start", ",", "don't", "you", "think", "?"]
    for tokenizer in (wordpiece, byte_pairs):
        assert words(tokenizer, TEXT)[:8] == expected


def test_spans_point_into_the_text(wordpiece: Any, byte_pairs: Any, bert: Any) -> None:
    text = "  Good \n\n film — “truly” wonderful… 😀 naïve 電影 ok"
    for tokenizer in (wordpiece, byte_pairs):
        for units in ("words", "tokens"):
            subject = piste.load(bert.model, tokenizer).subject(text, units=units)
            for unit in subject.units:
                assert text[unit.start : unit.end] == unit.text
            if units == "words":
                assert all(unit.text == unit.text.strip() for unit in subject.units)


def test_punctuation_parts_even_where_one_word_id_covers_it() -> None:
    pieces = ["▁what", "▁a", "▁end", "ing", "...", "▁good", ",", "▁he", "<unk>"]
    vocabulary = [(piece, -1.0) for piece in pieces] + [("▁", -5.0)]
    vocabulary += [(letter, -9.0) for letter in "abcdefghijklmnopqrstuvwxyz.,"]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=8))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")
    assert words(fast, "what a good, good ending...") == [
        "what", "a", "good", ",", "good", "ending", "..."
    ]  # fmt: skip
    whole = Tokenizer(models.Unigram(vocabulary, unk_id=8))  # no pre-tokenizer: one word id
    fast = PreTrainedTokenizerFast(tokenizer_object=whole, unk_token="<unk>")
    assert "good" in words(fast, "what good ending")


def test_white_space_tokens_belong_to_the_word_they_lead_to(byte_pairs: Any) -> None:
    text = "good \n\n film\n"
    subject_words = words(byte_pairs, text)
    assert subject_words == ["good", "film"]


def test_sentences(bert: Any) -> None:
    subject = bert.subject("Dr. Bean is slow. Do you think so? No!", units="sentences")
    assert [u.text for u in subject.units] == ["Dr. Bean is slow.", "Do you think so?", "No!"]
    assert sum(unit.tokens for unit in subject.units) == subject.notes["tokens"] - 2


def test_sentence_and_word_spans_of_plain_text() -> None:
    text = "One. Two<br /><br />Three e.g. this... Four"
    cut = [text[a:b] for a, b in sentence_spans(text)]
    assert cut[0] == "One."
    assert cut[1].startswith("Two")
    assert cut[-1] == "Four"
    plain = "It's well-made (3.5/5)."
    assert [plain[a:b] for a, b in word_spans(plain)] == ["It's", "well-made", "(", "3.5/5", ")."]
    assert [a for a, _ in word_spans("電影")] == [0, 1]


def test_equal_words_share_a_type(bert: Any) -> None:
    subject = bert.subject("good film good film bad")
    assert subject.types.tolist() == [0, 1, 0, 1, 2]


def test_slow_tokenizers_work_without_offsets(wordpiece: Any, bert: Any) -> None:
    class Slow:
        """A tokenizer that keeps no offsets, as python-only ones do."""

        is_fast = False
        padding_side = "right"

        def __getattr__(self, name: str) -> Any:
            return getattr(wordpiece, name)

        def __call__(self, *texts: str, **options: Any) -> Any:
            return wordpiece(*texts, **options)

        def get_special_tokens_mask(self, ids: list[int], **_: Any) -> list[int]:
            return [int(token in (0, 2, 3, 4)) for token in ids]

    subject = piste.load(copy.copy(bert.model), Slow()).subject((TEXT, "The film is good."))
    fast = bert.subject((TEXT, "The film is good."))
    assert [u.text.lower() for u in subject.units] == [u.text.lower() for u in fast.units]
    assert [u.segment for u in subject.units] == [u.segment for u in fast.units]
    assert subject.ask([subject.whole]) == pytest.approx(fast.ask([fast.whole]))


def test_paragraphs_are_parted_by_blank_lines_breaks_or_else_by_lines() -> None:
    def cut(text: str) -> list[str]:
        return [text[a:b] for a, b in paragraph_spans(text)]

    assert cut("One.\nStill.\r\n \r\nTwo.") == ["One.\nStill.", "Two."]
    assert cut("One<br /><br>Two<br>two") == ["One<br /><br>", "Two<br>two"]
    assert cut("\n\n<br><br>\nOne\n\n\n") == ["<br><br>\nOne"]
    assert cut("One\nTwo\n") == ["One", "Two"]
    assert cut("Only one. And more.") == ["Only one. And more."]


def test_paragraphs_over_tokens_hold_whole_sentences(bert: Any) -> None:
    text = "A slow start. Really!\n\nDo you think so? No."
    subject = bert.subject(text, units="paragraphs")
    assert [u.text for u in subject.units] == ["A slow start. Really!", "Do you think so? No."]
    assert sum(unit.tokens for unit in subject.units) == subject.notes["tokens"] - 2


def test_long_blanks_cost_no_more_than_their_length() -> None:
    for text in (" " * 200_000, "\n " * 100_000, "<br " * 50_000, "a\n" * 50_000):
        paragraph_spans(text)
        sentence_spans(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我喜歡電影", ["我", "喜", "歡", "電", "影"]),
        ("人々が𠮷", ["人", "々", "が", "𠮷"]),
        ("か\u3099く", ["か\u3099", "く"]),
        ("ภาพยนตร์ดีมาก", ["ภา", "พ", "ย", "น", "ต", "ร์", "ดี", "มา", "ก"]),
        ("เด็กไทย 2๕๖", ["เด็", "ก", "ไท", "ย", "2", "๕๖"]),
        ("ພາສາລາວ", ["ພາ", "ສາ", "ລາ", "ວ"]),
        ("ខ្មែរ", ["ខ្មែ", "រ"]),
        ("မြန်မာဘာသာ", ["မြန်", "မာ", "ဘာ", "သာ"]),
        ("ดีgoodดี", ["ดี", "good", "ดี"]),
        ("हिन्दी film", ["हिन्दी", "film"]),
    ],
)
def test_scripts_without_blanks(text: str, expected: list[str], byte_pairs: Any) -> None:
    assert [text[a:b] for a, b in word_spans(text)] == expected
    assert words(byte_pairs, text) == expected  # a byte is a token here
