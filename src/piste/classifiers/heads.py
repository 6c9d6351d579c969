"""What the head of a Hugging Face classifier gives: how many outputs, their names and meaning."""

from __future__ import annotations

from typing import Any

import torch

from piste.errors import PisteError, shorten
from piste.target import OutputKind

_KINDS: dict[str | None, OutputKind] = {
    "regression": "regression",
    "multi_label_classification": "labels",
    "single_label_classification": "classes",
}


def read_head(config: Any) -> tuple[tuple[str, ...], OutputKind]:
    """Names of the outputs, and how they are read."""
    count = int(config.num_labels)
    named = dict(getattr(config, "id2label", None) or {})
    labels = tuple(str(named.get(k, named.get(str(k), k))) for k in range(count))
    stated = getattr(config, "problem_type", None)
    return labels, _KINDS.get(stated, "regression" if count == 1 else "classes")


def check_logits(logits: Any, rows: int, model: Any, inputs: str = "text") -> torch.Tensor:
    """One row of logits per input, or a clear refusal."""
    if not isinstance(logits, torch.Tensor) or logits.ndim != 2 or len(logits) != rows:
        shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else shorten(logits)
        kind = "Sequence" if inputs == "text" else "Image"
        raise PisteError(
            f"Expected one row of logits per {inputs} from {type(model).__name__}, got {shape} for "
            f"{rows} {inputs}s: load the model with AutoModelFor{kind}Classification."
        )
    return logits
