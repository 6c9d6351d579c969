"""Objects of other libraries as classifiers, as texts, and as results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from transformers import pipeline

import piste
from piste import PisteError
from piste.errors import install_command, need
from tests.conftest import FAMILIES, TEXT, build

TEXTS = ["a good film", "a bad film", "good ending", "bad start", "good and good", "bad and bad"]
CLASSES = ["good" if "good" in text else "bad" for text in TEXTS]


# -- several texts ---------------------------------------------------------------------------------


class Column(Sequence[str]):
    """A column of a data set: a sequence that is no list."""

    def __getitem__(self, place: Any) -> Any:
        return TEXTS[place]

    def __len__(self) -> int:
        return len(TEXTS)


def generated() -> Iterator[str]:
    yield from TEXTS


@pytest.mark.parametrize(
    "texts",
    [TEXTS, pandas.Series(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), Column()],
    ids=["list", "series", "array", "objects", "column"],
)
def test_several_texts_in_any_form(texts: Any) -> None:
    count = piste.load(lambda texts: [text.count("good") * 1.5 for text in texts])
    found = piste.explain(count, texts, samples=20)
    assert [e.input for e in found] == TEXTS
    assert [e.output.value for e in found] == [1.5 * text.count("good") for text in TEXTS]


def test_generated_texts_and_tables() -> None:
    def count(texts: list[str]) -> list[float]:
        return [text.count("good") * 1.5 for text in texts]

    assert len(piste.explain(count, generated(), samples=20)) == len(TEXTS)
    with pytest.raises(PisteError, match=r"give the column with the texts"):
        piste.explain(count, pandas.DataFrame({"text": TEXTS}))
    with pytest.raises(PisteError, match=r"Input 1: Expected a text.* got nan"):
        piste.explain(count, pandas.Series(["a good film", None]))


# -- estimators ------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [LogisticRegression(), MultinomialNB()])
def test_pipelines_with_probabilities(last: Any) -> None:
    fitted = make_pipeline(CountVectorizer(), last).fit(TEXTS, CLASSES)
    e = piste.explain(fitted, "a good start", target="good", samples=40)
    assert e.output.labels == ("bad", "good")
    expected = fitted.predict_proba(["a good start"])[0]
    assert e.output.probabilities == pytest.approx(expected, abs=1e-6)
    assert "note" not in e.classifier
    assert e.units[int(np.argmax(e.score()))].text == "good"


def test_decisions_and_regressions() -> None:
    machine = make_pipeline(CountVectorizer(), LinearSVC()).fit(TEXTS, CLASSES)
    e = piste.explain(machine, "a good start", samples=40)
    assert e.output.labels == ("good",)
    assert e.output.value == pytest.approx(machine.decision_function(["a good start"])[0])
    lengths = make_pipeline(CountVectorizer(), LinearRegression()).fit(TEXTS, list(map(len, TEXTS)))
    assert piste.explain(lengths, "a good start", samples=40).output.probability is None


def test_estimators_that_cannot_be_explained() -> None:
    class Labels:
        classes_ = ("bad", "good")

        def predict(self, texts: Any) -> list[str]:
            return ["good" for _ in texts]

    with pytest.raises(PisteError, match="which predicts labels only"):
        piste.load(Labels())
    numbers = CountVectorizer().fit(TEXTS)
    bare = LogisticRegression().fit(numbers.transform(TEXTS), CLASSES)
    with pytest.raises(PisteError, match="with its vectorizer"):
        piste.explain(bare, "a good start")
    assert piste.load(make_pipeline(CountVectorizer(), Perceptron()).fit(TEXTS, CLASSES)).name


def test_what_is_like_a_setfit_model_is_asked_for_probabilities() -> None:
    class Model:
        labels = ("bad", "good")

        def __call__(self, texts: list[str]) -> list[str]:
            return self.predict(texts)

        def predict(self, texts: list[str]) -> list[str]:
            return ["good" for _ in texts]

        def predict_proba(self, texts: list[str]) -> torch.Tensor:
            chance = torch.tensor([0.7 if "good" in text else 0.2 for text in texts])
            return torch.stack([1 - chance, chance], dim=1)

    e = piste.explain(Model(), "a good film", samples=40)
    assert e.output.label == "good"
    assert e.output.probability == pytest.approx(0.7)


# -- models ----------------------------------------------------------------------------------------


def test_a_pipeline_of_text_classification(bert: Any) -> None:
    made = pipeline("text-classification", model=bert.model, tokenizer=bert.tokenizer, top_k=None)
    with torch.random.fork_rng():  # its data loader draws a number
        expected = {one["label"]: one["score"] for one in made([TEXT])[0]}
    e = piste.explain(made, TEXT, samples=40)
    found = dict(zip(e.output.labels, e.output.probabilities or (), strict=True))
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(wordpiece: Any, dtype: torch.dtype) -> None:
    model = build("bert", **FAMILIES["bert"][1])
    exact = piste.load(model, wordpiece).subject(TEXT).ask([[0, 1, 2]])
    half = piste.load(model.to(dtype), wordpiece)
    np.testing.assert_allclose(half.subject(TEXT).ask([[0, 1, 2]]), exact, atol=0.1)
    assert piste.explain(half, TEXT, samples=40).classifier["dtype"] in str(dtype)


@pytest.fixture(scope="module")
def exported(wordpiece: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small ONNX model: the sum of a score per token, and of another per type."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    make, numbers = onnx.helper, onnx.numpy_helper
    rng = np.random.default_rng(0)
    size = len(wordpiece)
    tables = {
        "words": rng.normal(size=(size, 3)).astype(np.float32),
        "kinds": rng.normal(size=(2, 3)).astype(np.float32),
        "axis": np.array([1]),
        "last": np.array([2]),
    }
    nodes = [
        make.make_node("Gather", ["words", "input_ids"], ["a"]),
        make.make_node("Gather", ["kinds", "token_type_ids"], ["b"]),
        make.make_node("Add", ["a", "b"], ["c"]),
        make.make_node("Unsqueeze", ["attention_mask", "last"], ["d"]),
        make.make_node("Cast", ["d"], ["e"], to=onnx.TensorProto.FLOAT),
        make.make_node("Mul", ["c", "e"], ["f"]),
        make.make_node("ReduceSum", ["f", "axis"], ["logits"], keepdims=0),
    ]
    names = ("input_ids", "attention_mask", "token_type_ids")
    whole, real = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
    graph = make.make_graph(
        nodes,
        "sums",
        [make.make_tensor_value_info(name, whole, ["rows", "tokens"]) for name in names],
        [make.make_tensor_value_info("logits", real, ["rows", 3])],
        [numbers.from_array(table, name) for name, table in tables.items()],
    )
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8)
    folder = tmp_path_factory.mktemp("exported")
    onnx.save(model, folder / "model.onnx")
    config = build("bert", **FAMILIES["bert"][1]).config
    config.id2label = {0: "bad", 1: "fair", 2: "good"}
    config.save_pretrained(folder)
    wordpiece.save_pretrained(folder)
    return folder


def test_exported_folders_and_sessions(exported: Path, wordpiece: Any) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(
        str(exported / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    classifier = piste.load(exported)
    assert classifier.labels == ("bad", "fair", "good")
    for one in (TEXT, (TEXT, "The film is good.")):
        given = wordpiece(*([one] if isinstance(one, str) else one), return_tensors="np")
        expected = session.run(None, dict(given))[0]
        subject = classifier.subject(one)
        np.testing.assert_allclose(subject.ask([subject.whole]), expected, atol=1e-5)
    e = piste.explain(piste.load(session, wordpiece, labels=list("abc")), TEXT, samples=60)
    assert e.output.labels == ("a", "b", "c")
    assert e.fidelity.words == "very good"
    with pytest.raises(PisteError, match="got the session alone"):
        piste.load(session)


def test_damaged_exports(exported: Path, tmp_path: Path, wordpiece: Any) -> None:
    (tmp_path / "model.onnx").write_bytes((exported / "model.onnx").read_bytes()[:200])
    wordpiece.save_pretrained(tmp_path)
    with pytest.raises(PisteError, match="export it again"):
        piste.load(tmp_path)


# -- results ---------------------------------------------------------------------------------------


def test_shap_plots_work_on_a_result(bert: Any) -> None:
    shap = pytest.importorskip("shap")
    e = piste.explain(bert, TEXT, samples=80)
    made = e.to_shap()
    assert made.base_values + made.values.sum() == pytest.approx(e.output.value)
    assert "".join(made.data) == TEXT
    np.testing.assert_array_equal(e.to_shap("contribution").values, e.scores["contribution"])
    assert "wonderful" in str(shap.plots.text(made, display=False))
    shap.plots.waterfall(made, show=False)
    shap.plots.bar(made, show=False)
    with pytest.raises(PisteError, match="with a direction"):
        e.to_shap("importance")
    every = piste.explain(bert, TEXT, samples=80, target="all").to_shap()
    assert every.values.shape == (len(e), 3)
    assert list(every.output_names) == list(bert.labels)


# -- hints -----------------------------------------------------------------------------------------


def test_hints_name_libraries_that_pip_finds() -> None:
    assert install_command("serve").startswith('pip install "fastapi>=')
    assert install_command("nonesuch") == 'pip install "piste[nonesuch]"'
    with pytest.raises(PisteError, match=r'pip install "duckdb>='):
        need("no_such_library", "query", "Asking")
