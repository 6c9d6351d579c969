"""The loader of causal language models: folders, hub ids, GGUF files, models in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError

from piste.classifier import Classifier
from piste.classifiers.hugging_face import device_of
from piste.classifiers.prompted.classifier import PromptedClassifier
from piste.classifiers.prompted.generating import LanguageModel
from piste.errors import PisteError, need

if TYPE_CHECKING:
    from piste.classifiers.loading import Loading

_CAUSAL = ("ForCausalLM", "LMHeadModel")


class LanguageModelSource:
    """A causal language model, with a prompt and labels or without."""

    def accepts(self, source: Any, how: Loading) -> bool:
        if isinstance(source, (str, Path)):
            place = str(source)
            if place.startswith(("http://", "https://")):
                return False
            return how.prompt is not None or place.endswith(".gguf") or _says_causal(place)
        model = _model_of(source)
        return model is not None and (how.prompt is not None or is_causal(model))

    def load(self, source: Any, how: Loading) -> Classifier:
        if how.runtime != "torch":
            raise PisteError(
                f"runtime: expected 'torch' for a language model, got {how.runtime!r}: leave "
                "it out."
            )
        if isinstance(source, (str, Path)):
            model, tokenizer = _from_name(str(source), how)
            name = how.name or str(source)
        else:
            model, name = _model_of(source), how.name or ""
            tokenizer = how.reader or getattr(source, "tokenizer", None)
        if not hasattr(tokenizer, "encode"):
            raise PisteError(
                f"Expected a {type(model).__name__} and its tokenizer, got the model alone: call "
                "piste.load(model, tokenizer, …)."
            )
        prompt = how.filled_prompt()
        if how.labels is None:
            return LanguageModel(model, tokenizer, prompt, pinned=how.pinned, name=name)
        if prompt is None:
            raise PisteError(
                "labels were given without a prompt: say how the model is asked, for example "
                "prompt='Review: {text}\\nSentiment:'."
            )
        return PromptedClassifier(
            model, tokenizer, prompt, how.labels, content_free=how.content_free, name=name
        )


def _model_of(source: Any) -> torch.nn.Module | None:
    """A model, or that of a pipeline."""
    model = source if isinstance(source, torch.nn.Module) else getattr(source, "model", None)
    return model if isinstance(model, torch.nn.Module) else None


def is_causal(model: torch.nn.Module) -> bool:
    """Whether this is a causal language model, wrapped or not."""
    inner: Any = model
    for _ in range(4):
        if type(inner).__name__.endswith(_CAUSAL):
            return True
        inner = getattr(inner, "base_model", None) or getattr(inner, "model", None)
        if not isinstance(inner, torch.nn.Module):
            return False
    return False


def _says_causal(place: str) -> bool:
    """Whether a folder's config names a causal language model; of hub ids nothing is known yet."""
    config = Path(place) / "config.json"
    if (Path(place) / "adapter_config.json").is_file() and not config.is_file():
        return '"CAUSAL_LM"' in (Path(place) / "adapter_config.json").read_text("utf-8", "replace")
    if not config.is_file():
        return False
    text = config.read_text("utf-8", "replace")
    return any(f'{name}"' in text for name in _CAUSAL)


def _from_name(source: str, how: Loading) -> tuple[Any, Any]:
    import transformers

    options: dict[str, Any] = {}
    place = Path(source)
    folder = source
    if source.startswith("piste:"):
        raise PisteError(
            f"Expected a language model for a prompt, got the bundled {source!r}, which answers "
            "without one: leave prompt out."
        )
    if source.endswith(".gguf"):
        need("gguf", "gguf", "A GGUF file")
        need("accelerate", "gguf", "A GGUF file")
        if not place.is_file():
            raise PisteError(f"The file {source!r} does not exist: check the path.")
        # Not resolved: files of the hub are links to files of other names.
        folder, options = str(place.absolute().parent), {"gguf_file": place.name}
    elif not place.exists() and (source.startswith((".", "/", "~")) or source.count("/") > 1):
        raise PisteError(f"The folder {source!r} does not exist: check the path.")
    elif (place / "adapter_config.json").is_file():
        need("peft", "adapters", "An adapter (LoRA)")
    chosen = device_of(how.device)
    dtype: Any = torch.float32 if chosen.type == "cpu" else "auto"
    try:
        # Adapters are drawn at random before their weights are read.
        with _quiet(), torch.random.fork_rng([]), _read_once() if options else nullcontext():
            tokenizer = how.reader or transformers.AutoTokenizer.from_pretrained(folder, **options)
            if not options:
                options = {"use_safetensors": True}
            model = transformers.AutoModelForCausalLM.from_pretrained(
                folder, dtype=dtype, **options
            )
    except (OSError, ValueError, ImportError, KeyError, RuntimeError, SafetensorError) as problem:
        first = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        raise PisteError(
            f"No language model could be loaded from {source!r}: expected a folder with "
            "config.json, model.safetensors and a tokenizer, a .gguf file, or a hub id that can "
            f"be reached ({first})."
        ) from problem
    return model.to(chosen).eval(), tokenizer


@contextmanager
def _read_once() -> Iterator[None]:
    """A GGUF file is read once, not for config, tokenizer and weights each, and without a bar.

    transformers also makes the same table of names for every module; both are kept meanwhile,
    which halves the time. Its bar for these files can't be switched off otherwise.
    """
    gguf: Any = import_module("gguf")
    converting: Any = import_module("transformers.modeling_gguf_pytorch_utils")
    replaced: list[tuple[Any, str, Callable[[Any], Any]]] = [
        (gguf, "GGUFReader", cache),
        (gguf, "get_tensor_name_map", cache),
        (converting, "tqdm", lambda bar: partial(bar, disable=True)),
    ]
    before = [
        (module, name, getattr(module, name), change)
        for module, name, change in replaced
        if hasattr(module, name)
    ]
    for module, name, made, change in before:
        setattr(module, name, change(made))
    try:
        yield
    finally:
        for module, name, made, _ in before:
            setattr(module, name, made)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without progress bars of other libraries."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
