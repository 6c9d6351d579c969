"""Which runtime is quickest, on short and on long questions, and how near its answers are.

    python -m benchmarks.runtimes [--cases encoder,decoder,piste:reviews]

Runtimes that Piste offers, and those that were tried and left out: torch.compile, integer
quantisation in ONNX Runtime and in OpenVINO. All in one run, in turn, the quickest of several
passes; ratios are to torch in float32.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.speed.cases import bundled
from piste.classifiers.backends import RUNTIMES, Runtime, start
from piste.classifiers.backends.backend import Inputs, TorchRuntime
from piste.classifiers.backends.exported import OpenVinoRuntime, export_onnx
from studies.cases import Case, decoder, encoder

LENGTHS = (5, 50, 200)
TOKENS = (1024, 2048)
PASSES = 3


class Compiled(TorchRuntime):
    """torch.compile with free shapes."""

    def __init__(self, model: Any, example: Inputs) -> None:
        super().__init__(model)
        self.model = torch.compile(model, dynamic=True)
        self.model.parameters = model.parameters
        self.run(example)


class OnnxInt8(Runtime):
    """ONNX Runtime's dynamic quantisation: one scale per batch of activations."""

    def __init__(self, model: Any, example: Inputs) -> None:
        import onnx
        import onnxruntime
        from onnxruntime.quantization import QuantType, quantize_dynamic

        with tempfile.TemporaryDirectory() as folder:
            plain, rounded = Path(folder) / "plain.onnx", Path(folder) / "int8.onnx"
            export_onnx(model, example, plain)
            graph = onnx.load(plain)
            del graph.graph.value_info[:]  # stale shapes confuse the quantiser
            onnx.save(graph, plain)
            quantize_dynamic(
                plain, rounded, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True
            )
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = torch.get_num_threads()
            self._session = onnxruntime.InferenceSession(str(rounded), options)

    def run(self, inputs: Inputs, pad: int | None = None) -> torch.Tensor:
        return torch.from_numpy(self._session.run(None, dict(inputs))[0])


class OpenVinoInt8(OpenVinoRuntime):
    """OpenVINO with weights and activations quantised by NNCF, calibrated on random texts."""

    def __init__(self, model: Any, example: Inputs) -> None:
        import nncf
        import openvino

        from piste.classifiers.backends.exported import _Logits, _tensors

        nncf.set_log_level(logging.ERROR)
        graph = openvino.convert_model(_Logits(model), example_input=_tensors(example))
        rng = np.random.default_rng(0)
        samples = [_inputs(rng, list(example), 1, length, model) for length in LENGTHS * 8]
        graph = nncf.quantize(
            graph, nncf.Dataset(samples), model_type=nncf.ModelType.TRANSFORMER, subset_size=24
        )
        self._request = openvino.compile_model(graph, "CPU").create_infer_request()
        self._names = {name for entry in graph.inputs for name in entry.get_names()}


def _inputs(
    rng: np.random.Generator, names: list[str], rows: int, length: int, model: Any
) -> dict[str, Any]:
    ids = rng.integers(200, model.config.vocab_size, (rows, length))
    whole = {
        "input_ids": ids,
        "attention_mask": np.ones_like(ids),
        "token_type_ids": np.zeros_like(ids),
    }
    return {name: whole[name] for name in names}


def _started(name: str, model: Any, example: Inputs) -> tuple[Runtime | None, float, str]:
    others: dict[str, Callable[..., Runtime]] = {
        "torch-compile": Compiled,
        "onnx-int8": OnnxInt8,
        "openvino-int8": OpenVinoInt8,
    }
    begun = time.perf_counter()
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            make = others.get(name)
            runtime = make(model, example) if make else start(name, model, example)
            runtime.run(example)
    except Exception as problem:  # what does not run here is a line of the table
        return None, 0.0, str(problem).splitlines()[0][:60]
    return runtime, time.perf_counter() - begun, ""


def compare(case: Case) -> None:
    """One table: seconds per 1,000 questions of each length at the best batch size."""
    rng = np.random.default_rng(0)
    names = ["input_ids", "attention_mask"]
    if "token_type_ids" in case.tokenizer.model_input_names:
        names.append("token_type_ids")
    example = _inputs(rng, names, 3, 7, case.model)
    check = _inputs(rng, names, 16, 30, case.model)
    lengths = [length for length in LENGTHS if length <= case.model.config.max_position_embeddings]
    batches = {
        length: [_inputs(rng, names, max(size // length, 1), length, case.model) for size in TOKENS]
        for length in lengths
    }
    head = " | ".join(f"{length} tokens" for length in lengths)
    print(f"\n### {case.name}\n\n| runtime | start, s | {head} | max difference ÷ spread |")
    print("|---|---|" + "---|" * len(lengths) + "---|", flush=True)
    base: dict[int, float] = {}
    truth = None
    for name in (*RUNTIMES, "torch-compile", "onnx-int8", "openvino-int8"):
        runtime, begun, trouble = _started(name, case.model, example)
        if runtime is None:
            print(f"| {name} | {trouble} |", flush=True)
            continue
        cells = []
        with torch.no_grad():
            answers = runtime.run(check).double().numpy()
            truth = answers if truth is None else truth
            for length in lengths:
                cost = _cost(runtime, batches[length][0])
                if cost > 3 * base.get(length, np.inf):
                    cells += [f"{base[length] / cost:.2f} × ({1000 * cost:.2f} s)"]
                    break  # what is several times slower need not be tried on everything
                cost = min(cost, *(_cost(runtime, inputs) for inputs in batches[length][1:]))
                base.setdefault(length, cost)
                cells.append(f"{base[length] / cost:.2f} × ({1000 * cost:.2f} s)")
        cells += ["not tried"] * (len(lengths) - len(cells))
        difference = np.abs(answers - truth).max() / np.ptp(truth, axis=0).max()
        print(f"| {name} | {begun:.1f} | {' | '.join(cells)} | {difference:.1e} |", flush=True)


def _cost(runtime: Runtime, inputs: Inputs) -> float:
    """Seconds per question."""
    times = []
    for _ in range(PASSES + 1):  # the first is often slower, the quickest counts
        begun = time.perf_counter()
        runtime.run(inputs)
        times.append(time.perf_counter() - begun)
    return min(times) / len(inputs["input_ids"])


def main() -> None:
    """Compare on the large and on the bundled models."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", default="encoder,decoder,piste:reviews,piste:reviews-gpt")
    options = parser.parse_args()
    print("Speed in multiples of torch in float32 (seconds for 1,000 questions).")
    for name in options.cases.split(","):
        made = {"encoder": encoder, "decoder": decoder}.get(name)
        compare(made() if made else bundled(name, ["A text ."]))


if __name__ == "__main__":
    main()
