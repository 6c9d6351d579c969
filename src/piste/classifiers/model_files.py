"""What a model's files and its class say before it is explained: refused where it can't be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from piste.errors import PisteError, shorten

_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".h5", ".msgpack")

# How the names of model classes end, what such a model does, and what to use instead.
_OTHER_HEADS = {
    "ForTokenClassification": (
        "tags every token",
        "to explain a tag, load a function of texts that returns that tag's score",
    ),
    "ForQuestionAnswering": (
        "marks an answer in a text",
        "to explain an answer, load a function of texts that returns its score",
    ),
    "ForMultipleChoice": (
        "chooses between several texts",
        "to explain a choice, load a function of texts that returns its score",
    ),
    "ForConditionalGeneration": (
        "writes texts (sequence to sequence)",
        "load a causal language model with a prompt, or a function of texts that returns scores",
    ),
    "ForMaskedLM": ("fills in masked words", "train it for sequence classification first"),
    "ForPreTraining": ("is not trained for a task", "train it for sequence classification first"),
    "ForObjectDetection": (
        "finds objects in images",
        "load an image classifier, or a function with inputs='pixels'",
    ),
    "ForSemanticSegmentation": (
        "labels pixels of images",
        "load an image classifier, or a function with inputs='pixels'",
    ),
}

_OTHER_TASKS = {
    "token-classification": "ForTokenClassification",
    "ner": "ForTokenClassification",
    "question-answering": "ForQuestionAnswering",
    "document-question-answering": "ForQuestionAnswering",
    "table-question-answering": "ForQuestionAnswering",
    "summarization": "ForConditionalGeneration",
    "text2text-generation": "ForConditionalGeneration",
    "fill-mask": "ForMaskedLM",
    "object-detection": "ForObjectDetection",
    "image-segmentation": "ForSemanticSegmentation",
}


def check_head(name: str, source: str) -> None:
    """Refuse a model class that does something else than classify whole inputs."""
    for ending, (does, instead) in _OTHER_HEADS.items():
        if name.endswith(ending):
            raise PisteError(
                f"Expected a classifier of whole inputs, got {source} ({name}), which {does}: "
                f"{instead}."
            )


def check_task(task: str) -> None:
    """Refuse a pipeline that does something else than classify whole inputs."""
    if task in _OTHER_TASKS:
        does, instead = _OTHER_HEADS[_OTHER_TASKS[task]]
        raise PisteError(
            f"Expected a pipeline of text, image or zero-shot classification, got one of {task}, "
            f"which {does}: {instead}."
        )


def check_folder(folder: Path) -> None:
    """Refuse a model folder whose files are missing, damaged or pickled, naming the file."""
    read_config(folder)
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        pickled = [file.name for file in sorted(folder.iterdir()) if file.suffix in _PICKLES]
        if pickled:
            raise PisteError(
                f"The folder {str(folder)!r} holds its weights only as {pickled[0]}, which Piste "
                "does not open, because opening it may run code: expected model.safetensors, so "
                "load the model with transformers and save it with save_pretrained."
            )
        raise PisteError(
            f"The folder {str(folder)!r} holds no weights: expected model.safetensors beside "
            "config.json, as save_pretrained writes it."
        )
    for file in files:
        try:
            with safe_open(file, framework="numpy"):
                pass
        except (SafetensorError, OSError) as problem:
            raise PisteError(
                f"The weights {str(file)!r} can't be read ({_first_line(problem)}): the file is "
                "cut short or damaged, so copy or download it again."
            ) from problem


def read_config(folder: Path) -> dict[str, Any]:
    """The folder's config.json, or a refusal that names what is wrong with it."""
    path = folder / "config.json"
    if not path.is_file():
        raise PisteError(
            f"The folder {str(folder)!r} holds no config.json: expected a model saved with "
            "save_pretrained."
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise PisteError(
            f"{str(path)!r} is not valid JSON ({_first_line(problem)}): save the model again, or "
            "copy the file again."
        ) from problem
    if not isinstance(config, dict) or "model_type" not in config:
        raise PisteError(
            f"{str(path)!r} names no model_type: expected the config of a transformers model, got "
            f"{shorten(config)}."
        )
    return config


def check_loaded(report: dict[str, Any], source: str) -> None:
    """Refuse a model some of whose weights are not in its files: they are drawn at random."""
    missing = sorted(report.get("missing_keys", ()))
    mismatched = sorted(str(one[0]) for one in report.get("mismatched_keys", ()))
    for names, problem in (
        (missing, "no trained weights"),
        (mismatched, "weights of another size"),
    ):
        if names:
            more = " …" if len(names) > 4 else ""
            raise PisteError(
                f"Expected a trained classifier, got {source!r}, which has {problem} for "
                f"{', '.join(names[:4])}{more}: they would be random, and so the answers. Train "
                "it for classification, or load the model of that training."
            )


def check_vocabulary(tokenizer: Any, name: str) -> None:
    """Refuse a tokenizer that knows only special tokens: every word would be the same to it."""
    special = getattr(tokenizer, "all_special_ids", None)
    count = getattr(tokenizer, "__len__", None)  # of a wrapper too, which len() does not find
    if special is None or count is None:
        return
    if count() - len(set(special)) <= _SPARE:
        raise PisteError(
            f"The tokenizer of {name!r} knows no words, only {count()} special tokens: its "
            "files are missing from the folder, so save them there with "
            "tokenizer.save_pretrained, or give the tokenizer to piste.load."
        )


_SPARE = 3
"""Tokens beside the special ones that a tokenizer without files may have, such as a blank."""


def _first_line(problem: Exception) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0].rstrip(".")
