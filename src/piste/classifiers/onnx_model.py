"""Exported models: a session of ONNX Runtime, a file, or a folder with model.onnx."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from piste.classifier import Classifier
from piste.classifiers.base import check_head, check_logits, read_head
from piste.classifiers.hugging_face import read_config
from piste.classifiers.loading import Loading
from piste.classifiers.outputs import OutputReader, Reading, call
from piste.classifiers.text.batching import Batch
from piste.classifiers.text.function import TokenFunction
from piste.classifiers.text.tokenization import check_vocabulary
from piste.errors import PisteError, need

_PLACES = ("model.onnx", "onnx/model.onnx")


class OnnxSource:
    """What holds an exported model of texts; its tokenizer comes with it or from the folder."""

    def accepts(self, source: Any, how: Loading) -> bool:
        if isinstance(source, (str, Path)):
            return _file(Path(source)) is not None
        return all(hasattr(source, name) for name in ("run", "get_inputs", "get_outputs"))

    def load(self, source: Any, how: Loading) -> Classifier:
        session, tokenizer, config = source, how.reader, None
        name = how.name or "ONNX model"
        if isinstance(source, (str, Path)):
            name = how.name or str(source)
            folder = Path(source) if Path(source).is_dir() else Path(source).parent
            config = _config(folder)
            session = _session(Path(source))
            tokenizer = tokenizer or _tokenizer(folder)
        if tokenizer is None:
            raise PisteError(
                "Expected an ONNX session and its tokenizer, got the session alone: call "
                "piste.load(session, tokenizer)."
            )
        check_vocabulary(tokenizer, name)
        labels, kind = how.label_names(), how.kind
        if config is not None:
            own, own_kind = read_head(config)
            labels, kind = labels or own, kind or own_kind
        stated: Reading = "probabilities" if how.outputs == "probabilities" else "logits"
        made = OnnxClassifier(session, tokenizer, OutputReader(stated, kind, labels), name=name)
        made.version = how.version
        return made


class OnnxClassifier(TokenFunction):
    """A session that reads token ids; what it takes is known by the names of its inputs."""

    def __init__(self, session: Any, tokenizer: Any, reader: OutputReader, *, name: str) -> None:
        super().__init__(lambda ids, mask: None, tokenizer, reader, name=name)
        self.exported = session
        self._inputs = [one.name for one in session.get_inputs()]
        outputs = [one.name for one in session.get_outputs()]
        self._output = "logits" if "logits" in outputs else outputs[0]
        unknown = [one for one in self._inputs if one not in _KNOWN]
        if "input_ids" not in self._inputs or unknown:
            raise PisteError(
                f"Expected an ONNX model of texts with the inputs {', '.join(_KNOWN)}, got one "
                f"with {', '.join(self._inputs)}: load a function that runs it."
            )

    def _forward(self, batch: Batch) -> torch.Tensor:
        given = {"input_ids": batch.ids, "attention_mask": batch.mask}
        given |= {"token_type_ids": batch.types}
        feeds = {name: given[name] for name in self._inputs}
        (logits,) = call(self.exported.run, self.name, [self._output], feeds)
        return check_logits(torch.from_numpy(logits).double(), len(batch.ids), self.exported)


_KNOWN = ("input_ids", "attention_mask", "token_type_ids")


def _file(place: Path) -> Path | None:
    """The exported model at a place, unless there are weights for torch as well."""
    if place.suffix == ".onnx":
        return place if place.is_file() else None
    if not place.is_dir() or any(place.glob("*.safetensors")):
        return None
    return next((place / name for name in _PLACES if (place / name).is_file()), None)


def _session(place: Path) -> Any:
    runtime: Any = need("onnxruntime", "onnx", "An ONNX model")
    try:
        return runtime.InferenceSession(str(_file(place)), providers=["CPUExecutionProvider"])
    except Exception as problem:  # the runtime has its own exceptions for every kind of damage
        first = (str(problem).strip() or type(problem).__name__).splitlines()[0].rstrip(".")
        raise PisteError(
            f"The ONNX model {str(place)!r} can't be read ({first[:200]}): export it again."
        ) from problem


def _config(folder: Path) -> Any:
    """Labels and kind of the head, where the export kept its config."""
    if not (folder / "config.json").is_file():
        return None
    config = read_config(folder)
    for name in config.get("architectures") or ():
        check_head(str(name), repr(str(folder)))
    labels = config.get("id2label")
    if not labels:
        return None
    stated = config.get("problem_type")
    return SimpleNamespace(num_labels=len(labels), id2label=labels, problem_type=stated)


def _tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(str(folder))
    except (OSError, ValueError, KeyError) as problem:
        raise PisteError(
            f"The folder {str(folder)!r} holds no tokenizer for its ONNX model: save it there with "
            "tokenizer.save_pretrained, or give it to piste.load."
        ) from problem
