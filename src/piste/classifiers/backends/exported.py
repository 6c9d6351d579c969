"""Runtimes that take a copy of the model's graph: ONNX Runtime and OpenVINO."""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import logging
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from piste.classifiers.backends.backend import Inputs, Runtime


class OnnxRuntime(Runtime):
    """The model's graph in ONNX Runtime, on the CPU, in float32."""

    name = "onnx"
    allowed = 0.01

    def __init__(self, model: Any, example: Inputs) -> None:
        import onnxruntime
        import onnxscript  # noqa: F401  # torch's exporter needs it: fail early, with its name

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 3
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            export_onnx(model, example, path)
            self._session = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        self._names = {entry.name for entry in self._session.get_inputs()}

    def run(self, inputs: Inputs, pad: int | None = None) -> torch.Tensor:
        wanted = {name: array for name, array in inputs.items() if name in self._names}
        return torch.from_numpy(self._session.run(None, wanted)[0])


def export_onnx(model: Any, example: Inputs, path: Path) -> None:
    """Write the graph with free numbers of rows and tokens."""
    free = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            _Logits(model),
            kwargs=_tensors(example),
            dynamic_shapes=dict.fromkeys(example, free),
            input_names=list(example),
            output_names=["logits"],
            dynamo=True,
            verbose=False,
        )
        assert program is not None
        program.save(str(path))


class OpenVinoRuntime(Runtime):
    """The model's graph in OpenVINO, on the CPU, in float32."""

    name = "openvino"
    allowed = 0.01
    precision: ClassVar[str] = "f32"

    def __init__(self, model: Any, example: Inputs) -> None:
        import openvino

        with _quiet(), torch.no_grad():
            graph = openvino.convert_model(_Logits(model), example_input=_tensors(example))
        options = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": self.precision,
            "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        }
        self._request = openvino.compile_model(graph, "CPU", options).create_infer_request()
        self._names = {name for entry in graph.inputs for name in entry.get_names()}

    def run(self, inputs: Inputs, pad: int | None = None) -> torch.Tensor:
        wanted = {name: array for name, array in inputs.items() if name in self._names}
        return torch.from_numpy(np.array(self._request.infer(wanted)[0]))  # its buffer is reused


class OpenVinoBfloat16Runtime(OpenVinoRuntime):
    """OpenVINO in bfloat16: for CPUs with instructions for it."""

    name = "openvino-bf16"
    allowed = 0.1
    precision = "bf16"


def _tensors(example: Inputs) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in example.items()}


class _Logits(torch.nn.Module):
    """A model as converters like it: named inputs in, logits out.

    One that knows no pad token refuses batches, so a copy of it gets one that never occurs. Then
    every token counts, and rows of equal length or padded on the left are right.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = copy.copy(model)
        self.model.config = copy.deepcopy(model.config)
        inner = self.model.config.get_text_config()
        if getattr(inner, "pad_token_id", None) is None:
            inner.pad_token_id = -1
        caches = "use_cache" in inspect.signature(model.forward).parameters
        self._options = {"use_cache": False} if caches else {}

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        named = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "token_type_ids": token_type_ids,
            "position_ids": position_ids,
        }
        given = {name: tensor for name, tensor in named.items() if tensor is not None}
        logits: torch.Tensor = self.model(**given, **self._options).logits
        return logits


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Converters talk a lot; what matters is whether the answers agree, and that is checked."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "transformers")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
