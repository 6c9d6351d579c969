"""Label log-probabilities equal those of plain passes, however they are asked."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import peft
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import piste
from piste.classifiers.prompted.labels import LabelTokens
from piste.classifiers.prompted.reader import log_probabilities
from piste.errors import PisteError
from tests.classifiers.prompted.conftest import language_model, log_probability
from tests.language_models import save_language_model

TEXT = "A slow start, but what a truly wonderful ending it had."
PROMPT = "Read this review.\nReview: {text}\nSentiment:"
MESSAGES = [
    {"role": "system", "content": "You judge films."},
    {"role": "user", "content": "Review: {text} Good or bad?"},
]
LABELS = {"one token": ["a", "b"], "several": ["good", "very bad"], "prefix": ["good", "good end"]}


def kept_ids(subject: Any, units: Any) -> list[int]:
    """The tokens of a question without the tail."""
    ((question, _),) = subject.encode(units)
    row = question.payload[0]
    return row[: len(row) - subject.classifier.tail].tolist()


def expected(classifier: Any, model: Any, ids: list[int]) -> np.ndarray:
    """Labels' log-probabilities from plain passes, one per wording."""
    sums = {
        wording: log_probability(model, ids, list(wording))
        for _, wording in classifier.wordings.wordings
    }
    totals = np.zeros(len(classifier.labels))
    for label, wording in classifier.wordings.wordings:
        inside = [one for one in sums if one != wording and one[: len(wording)] == wording]
        totals[label] += np.exp(sums[wording]) - sum(np.exp(sums[one]) for one in inside)
    return np.log(totals)


@pytest.mark.parametrize("labels", list(LABELS.values()), ids=list(LABELS))
@pytest.mark.parametrize("prompt", [PROMPT, MESSAGES], ids=["text", "chat"])
def test_answers_are_those_of_plain_passes(
    causal: Any, tokenizer: Any, prompt: Any, labels: list[str]
) -> None:
    classifier = piste.load(causal, tokenizer, prompt=prompt, labels=labels)
    subject = classifier.subject(TEXT)
    questions = [subject.whole, [0], [3], [0, 1, 2], [2, 5, 7, 9], []]
    questions += [np.arange(k) for k in range(1, len(subject))]  # beginnings are shared
    if causal.config.model_type == "bloom" and not classifier._tail.is_chain:
        with pytest.raises(PisteError, match="one token each"):  # its positions need a flat mask
            subject.ask(questions)
        return
    answers = subject.ask(questions)
    for units, answer in zip(questions, answers, strict=True):
        ids = kept_ids(subject, units)
        np.testing.assert_allclose(answer, expected(classifier, causal, ids), atol=1e-4)


def test_what_a_longer_label_leaves_of_a_shorter_one_is_exact() -> None:
    logits = torch.zeros(1, 2, 1000)
    logits[0, 0, 5] = 20.3
    logits[0, 1, 7] = 14.7  # after 5 it is 7, but for one in 2,400
    labels = LabelTokens.of(["good", "good enough"], [[[5]], [[5, 7]]])
    known = log_probabilities(logits, torch.tensor([0, 1]), torch.tensor([5, 7]))[0]
    found = labels.combine(torch.stack([known[0], known.sum()]))
    sums = torch.log_softmax(logits[0].double(), dim=-1)
    exact = sums[0, 5] + (-torch.expm1(sums[1, 7])).log()
    assert float(found[0]) == pytest.approx(float(exact), abs=1e-5)


def test_the_whole_question_is_the_prompt_as_the_tokenizer_reads_it(
    llama: Any, tokenizer: Any
) -> None:
    text = piste.load(llama, tokenizer, prompt=PROMPT, labels=["good", "bad"]).subject(TEXT)
    assert kept_ids(text, text.whole) == tokenizer(PROMPT.format(text=TEXT))["input_ids"]
    chat = piste.load(llama, tokenizer, prompt=MESSAGES, labels=["good", "bad"]).subject(TEXT)
    messages = [MESSAGES[0], {"role": "user", "content": f"Review: {TEXT} Good or bad?"}]
    whole = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    assert kept_ids(chat, chat.whole) == tokenizer(whole, add_special_tokens=False)["input_ids"]
    assert [unit.text for unit in chat.units] == [unit.text for unit in text.units]
    assert all(TEXT[unit.start : unit.end] == unit.text for unit in chat.units)


def test_wordings_are_summed(llama: Any, tokenizer: Any) -> None:
    one = piste.load(llama, tokenizer, prompt=PROMPT, labels=["good", "fine", "bad"])
    several = piste.load(
        llama, tokenizer, prompt=PROMPT, labels={"yes": ["good", "fine"], "no": "bad"}
    )
    apart, together = (c.subject(TEXT).ask([[0, 1, 2]])[0] for c in (one, several))
    np.testing.assert_allclose(together[0], np.logaddexp(apart[0], apart[1]), atol=1e-5)
    np.testing.assert_allclose(together[1], apart[2], atol=1e-5)


def test_a_wording_inside_another_of_its_label_counts_once(llama: Any, tokenizer: Any) -> None:
    plain = piste.load(llama, tokenizer, prompt=PROMPT, labels=["good", "bad"])
    again = piste.load(
        llama, tokenizer, prompt=PROMPT, labels={"good": ["good", "good end"], "bad": "bad"}
    )
    one, other = (c.subject(TEXT).ask([[0, 1]]) for c in (plain, again))
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_content_free_text_is_subtracted(llama: Any, tokenizer: Any) -> None:
    plain = piste.load(llama, tokenizer, prompt=PROMPT, labels=["good", "bad"])
    free = piste.load(llama, tokenizer, prompt=PROMPT, labels=["good", "bad"], content_free="film")
    said = plain.subject("film").ask([[0]])[0]
    np.testing.assert_allclose(free.subject("film").ask([[0]])[0], 0, atol=1e-5)
    one, other = (c.subject(TEXT).ask([[1, 2]])[0] for c in (plain, free))
    np.testing.assert_allclose(one - said, other, atol=1e-5)


def test_examples_are_shown_and_removable_if_free(llama: Any, tokenizer: Any) -> None:
    examples = [("Superb.", "good"), ("Dull.", "bad")]
    how: dict[str, Any] = {"prompt": PROMPT, "labels": ["good", "bad"], "examples": examples}
    pinned = piste.load(llama, tokenizer, **how).subject(TEXT)
    assert [unit.text for unit in pinned.units][:2] == ["A", "slow"]
    free = piste.load(llama, tokenizer, free=["examples"], **how).subject(TEXT, units="parts")
    assert [unit.part for unit in free.units] == ["example 1", "example 2", "text"]
    assert kept_ids(free, free.whole) == kept_ids(pinned, pinned.whole)
    assert "Superb" not in tokenizer.decode(kept_ids(free, [1, 2]))


def test_fields_and_documents_are_parts(llama: Any, tokenizer: Any) -> None:
    classifier = piste.load(
        llama, tokenizer, prompt="{context}\nQ: {question}\nA:", labels=["good", "bad"],
        pinned=["question"],
    )  # fmt: skip
    given = {"context": ["A good film.", "A bad start."], "question": "Is it good?"}
    subject = classifier.subject(given, units="parts")
    assert [(unit.part, unit.text) for unit in subject.units] == [
        ("context 1", "A good film."),
        ("context 2", "A bad start."),
    ]
    assert "Is it good?" in tokenizer.decode(kept_ids(subject, [0]))
    e = piste.explain(classifier, given, units=["parts", "words"], samples=60)
    assert {unit.part for unit in e.units} <= {"context 1", "context 2"}
    again = classifier.subject(e.input, units=e.settings["input"]["units"])
    assert again.units == e.units


def test_the_users_model_stays_as_it_was(tokenizer: Any) -> None:
    model = language_model("llama-no-pad").train()
    model.model.eval()
    before = copy.deepcopy(model.state_dict())
    modes = [module.training for module in model.modules()]
    classifier = piste.load(model, tokenizer, prompt=PROMPT, labels=["good", "very bad"])
    piste.explain(classifier, TEXT, samples=40)
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())
    assert type(model.lm_head) is torch.nn.Linear


@pytest.mark.parametrize("removal", ["attention"])
def test_units_can_be_hidden(llama: Any, tokenizer: Any, removal: Any) -> None:
    classifier = piste.load(llama, tokenizer, prompt=PROMPT, labels=["good", "very bad"])
    subject = classifier.subject(TEXT, removal=removal)
    plain = classifier.subject(TEXT)
    np.testing.assert_allclose(subject.ask([subject.whole]), plain.ask([plain.whole]), atol=1e-5)
    assert np.abs(subject.ask([[0, 1]]) - subject.ask([[4, 5]])).max() > 1e-3


def test_long_texts_are_cut_inside_the_prompt(tokenizer: Any) -> None:
    model = language_model("gpt2-no-pad", n_positions=48)
    classifier = piste.load(model, tokenizer, prompt=PROMPT, labels=["good", "bad"])
    long = " ".join(["wonderful"] * 60)
    with pytest.raises(PisteError, match="truncate"):
        piste.explain(classifier, long)
    subject = classifier.subject(long, long="truncate")
    ids = kept_ids(subject, subject.whole)
    assert tokenizer.decode(ids).endswith("\nSentiment:")
    assert subject.notes["truncated_tokens"] > 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prompt": "Sentiment:", "labels": ["a", "b"]}, "place for the input"),
        ({"prompt": "{text", "labels": ["a", "b"]}, "fields as"),
        ({"prompt": "{text}", "labels": ["a"]}, "two or more labels"),
        ({"prompt": "{text}", "labels": ["a", "a"]}, "different labels"),
        ({"prompt": "{text}", "labels": {"x": ["a"], "y": ["a"]}}, "each wording once"),
        ({"prompt": "  ", "labels": ["a", "b"]}, "empty text"),
        ({"prompt": [{"role": "user"}], "labels": ["a", "b"]}, "messages"),
        ({"labels": ["a", "b"]}, "without a prompt"),
        ({"prompt": "{text}", "labels": ["a", "b"], "pinned": "text"}, "list of names"),
        ({"prompt": "{text}", "labels": ["a", "b"], "free": ["sytem"]}, "got 'sytem'"),
        ({"prompt": "{text}", "labels": ["a", "b"], "runtime": "onnx"}, "runtime"),
    ],
)
def test_bad_choices_are_refused(
    llama: Any, tokenizer: Any, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(PisteError, match=words):
        piste.load(llama, tokenizer, **options)


def test_wrong_values_are_refused(llama: Any, tokenizer: Any) -> None:
    classifier = piste.load(llama, tokenizer, prompt="{a} {b}", labels=["good", "bad"])
    with pytest.raises(PisteError, match=r'value for each field.*give {"a": "…", "b": "…"}'):
        classifier.subject("text")
    with pytest.raises(PisteError, match="list of texts"):
        classifier.subject({"a": 3, "b": "x"})


@pytest.mark.parametrize(
    "method", ["gradient", "integrated_gradients", "attention_rollout", "attnlrp", "lime"]
)
def test_methods_that_look_inside_work(llama: Any, tokenizer: Any, method: str) -> None:
    classifier = piste.load(llama, tokenizer, prompt=PROMPT, labels=["good", "very bad"])
    e = piste.explain(classifier, TEXT, method=method)
    assert np.isfinite(e.score()).all()
    assert np.ptp(e.score()) > 0


def test_fingerprints_tell_prompts_apart(llama: Any, tokenizer: Any, tmp_path: Any) -> None:
    one = piste.load(llama, tokenizer, prompt=PROMPT, labels=["good", "bad"])
    other = piste.load(llama, tokenizer, prompt=PROMPT, labels=["bad", "good"])
    assert one.fingerprint() != other.fingerprint()
    first = piste.explain(one, TEXT, samples=30, cache=tmp_path)
    again = piste.explain(one, TEXT, samples=30, cache=tmp_path)
    np.testing.assert_array_equal(first.score(), again.score())


def test_adapters_quantised_and_half_precision_models_work(tokenizer: Any) -> None:
    how: dict[str, Any] = {"prompt": PROMPT, "labels": ["good", "very bad"]}
    plain = piste.load(language_model("llama-no-pad"), tokenizer, **how).subject(TEXT).ask([[0, 1]])
    config = peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        adapted = peft.get_peft_model(language_model("llama-no-pad"), config)
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            parameter.data += 0.3
    classifier = piste.load(adapted, tokenizer, **how)
    subject = classifier.subject(TEXT)
    ids = kept_ids(subject, [0, 1])
    adapted.eval()
    np.testing.assert_allclose(
        subject.ask([[0, 1]])[0], expected(classifier, adapted, ids), atol=1e-4
    )
    assert np.abs(subject.ask([[0, 1]]) - plain).max() > 1e-2
    half = language_model("llama-no-pad").to(torch.bfloat16)
    np.testing.assert_allclose(
        piste.load(half, tokenizer, **how).subject(TEXT).ask([[0, 1]]), plain, atol=0.5
    )
    small = torch.ao.quantization.quantize_dynamic(
        language_model("llama-no-pad"), {torch.nn.Linear}, dtype=torch.qint8
    )
    np.testing.assert_allclose(
        piste.load(small, tokenizer, **how).subject(TEXT).ask([[0, 1]]), plain, atol=1.0
    )


def test_a_folder_with_an_adapter_is_the_model_with_it(tmp_path: Any) -> None:
    folder, how = save_language_model(tmp_path / "model"), {"prompt": "review : {text} :"}
    reader = AutoTokenizer.from_pretrained(folder)
    config = peft.LoraConfig(
        r=2, target_modules=["q_proj"], task_type="CAUSAL_LM", init_lora_weights=False
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        adapted = peft.get_peft_model(AutoModelForCausalLM.from_pretrained(folder), config).eval()
    adapted.save_pretrained(tmp_path / "adapter")
    reader.save_pretrained(tmp_path / "adapter")

    def asked(*source: Any) -> np.ndarray:
        classifier = piste.load(*source, labels=["good", "bad"], **how)
        return classifier.subject("the film was slow").ask([[0, 1, 2]])

    stored = asked(str(tmp_path / "adapter"))
    np.testing.assert_allclose(stored, asked(adapted, reader), atol=1e-5)
    assert np.abs(stored - asked(str(folder))).max() > 1e-2
    (folder / "config.json").unlink()
    with pytest.raises(PisteError, match="No language model could be loaded"):
        asked(str(tmp_path / "adapter"))


@pytest.mark.parametrize("method", ["gptq", "awq"])
def test_a_quantised_folder_that_can_not_be_read_here_is_refused(
    method: str, tmp_path: Any
) -> None:
    config = save_language_model(tmp_path) / "config.json"
    quantised = {"quantization_config": {"quant_method": method, "bits": 4}}
    config.write_text(json.dumps(json.loads(config.read_text()) | quantised))
    with pytest.raises(PisteError, match=r"No language model could be loaded.* requires "):
        piste.load(str(tmp_path), prompt="review : {text} :", labels=["good", "bad"])


def test_words_the_tokenizer_does_not_know_are_no_labels(tmp_path: Any) -> None:
    folder = str(save_language_model(tmp_path))
    with pytest.raises(PisteError, match="'zebra', which has unknown tokens"):
        piste.load(folder, prompt="review : {text} :", labels=["good", "zebra"])
    with pytest.raises(PisteError, match="unknown tokens"):
        piste.explain(piste.load(folder), "the film is good", answer="yes zebra")
    with pytest.raises(PisteError, match="bundled"):
        piste.load("piste:reviews", prompt="{text}", labels=["good", "bad"])


def test_a_label_has_a_blank_before_it_where_a_text_has_one(llama: Any, tokenizer: Any) -> None:
    def first(prompt: str, label: str) -> str:
        classifier: Any = piste.load(llama, tokenizer, prompt=prompt, labels=[label, "zz"])
        return tokenizer.decode(list(classifier.wordings.wordings[0][1]))

    assert first("{text} Mood:", "good") == " good"
    assert first("{text} Mood: ", "good") == "good"
    assert first("{text} Mood: (", "good") == "good"
    assert first('"{text}"', "good") == " good"
    assert first('{text} is "', "good") == "good"
