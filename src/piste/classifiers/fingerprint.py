"""What a model is, as one short text: models that answer differently have different ones."""

from __future__ import annotations

import functools
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from typing import Any

import numpy as np
import torch

_SCHEME = "1"  # another way to compute fingerprints gets another number
_PIECE = 1 << 20  # bytes hashed at a time: large enough for threads to pay

# Where a model came from, how it was saved, and which of several equal computations it uses. The
# type of the weights is read from the weights.
_VOLATILE = frozenset(
    (
        "_name_or_path",
        "name_or_path",
        "transformers_version",
        "architectures",
        "dtype",
        "torch_dtype",
        "attn_implementation",
        "_attn_implementation",
        "_attn_implementation_internal",
        "_attn_implementation_autoset",
    )
)
_PASSING = _VOLATILE | {
    "training",
    "gradient_checkpointing",
    "kernel_config",
    "_is_hf_initialized",
    "_weight_conversions",
    "_use_kernels",
}


def fingerprint_model(model: torch.nn.Module, extra: Mapping[str, object]) -> str:
    """64 hexadecimal digits over everything in a model that its answers depend on.

    Its classes, its config, the plain attributes of its modules, and every parameter and buffer
    with name, type, shape and content; and ``extra``, in which the caller states what else counts
    (runtime, precision, library versions). Saving a model and loading it again changes nothing,
    nor does where it was loaded from or whether it is training. Not seen: the source code of its
    classes and functions, which count by name only.

    >>> model = torch.nn.LayerNorm(2)
    >>> before = fingerprint_model(model, {"precision": "float32"})
    >>> fingerprint_model(model.eval(), {"precision": "float32"}) == before
    True
    >>> model.weight.data[1] += 1e-6
    >>> fingerprint_model(model, {"precision": "float32"}) == before
    False
    """
    whole = blake2b(digest_size=32)
    parts: list[object] = [
        _SCHEME,
        _plain(dict(extra), str),
        _config(model),
        [[name, *_describe(module)] for name, module in model.named_modules()],
    ]
    whole.update(_encoded(parts))
    # Shared weights are read once. The tensors are kept as well: an id holds as long as its owner.
    known: dict[int, tuple[torch.Tensor, bytes]] = {}
    with ThreadPoolExecutor(_cores()) as pool:
        for name, tensor in _tensors(model):
            if id(tensor) not in known:
                known[id(tensor)] = tensor, _content(tensor, pool)
            whole.update(_encoded([name, str(tensor.dtype), list(tensor.shape)]))
            whole.update(known[id(tensor)][1])
    return whole.hexdigest()


def _encoded(parts: object) -> bytes:
    """Text that says where each part ends, so that no two lists give the same bytes."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()
    return b"%d:%b" % (len(text), text)


# -- structure -----------------------------------------------------------------------------------


def _config(model: torch.nn.Module) -> object:
    config: Any = getattr(model, "config", None)
    as_dict = getattr(config, "to_dict", None)
    if callable(as_dict):
        config = as_dict()
    return _plain(config, str, without=_VOLATILE)


def _describe(module: torch.nn.Module) -> tuple[str, object, list[object]]:
    """A module's class, plain attributes (sizes, constants, switches) and hooks."""
    attributes = {
        name: _plain(value, _type_name)
        for name, value in vars(module).items()
        if name not in _PASSING and not _is_bookkeeping(name, value)
    }
    hooks = [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]
    return _type_name(module), attributes, [_plain(hook, _type_name) for hook in hooks]


def _is_bookkeeping(name: str, value: object) -> bool:
    """Whether an attribute says nothing about answers, or is a tensor, which is read elsewhere."""
    if value is None or isinstance(value, torch.Tensor):
        return True
    # Switches that are off come and go with loading; private collections are plans and names.
    off = value is False or (isinstance(value, (list, tuple)) and not value)
    return name.startswith("_") and (off or isinstance(value, (Mapping, set, frozenset)))


def _plain(
    value: object, unknown: Callable[[object], str], without: frozenset[str] = frozenset()
) -> object:
    """A value as JSON can hold it; what is none of the usual kinds goes through ``unknown``."""
    recur = functools.partial(_plain, unknown=unknown, without=without)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): recur(item) for key, item in value.items() if str(key) not in without}
    if isinstance(value, (list, tuple)):
        return [recur(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(json.dumps(recur(item)) for item in value)
    if isinstance(value, torch.dtype):
        return str(value)
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), _hash(value.tobytes()).hex()]
    if isinstance(value, functools.partial):
        return [recur(value.func), recur(value.args), recur(value.keywords)]
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{getattr(value, '__module__', None)}.{value.__qualname__}"
    return unknown(value)


def _type_name(thing: object) -> str:
    return type(thing).__qualname__


# -- numbers -------------------------------------------------------------------------------------


def _tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """All tensors by name: registered ones, attributes, and what quantised modules would save."""
    seen = set()
    for named in (model.named_parameters, model.named_buffers):
        for name, tensor in named(remove_duplicate=False):
            seen.add(name)
            yield name, tensor
    for prefix, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor):
                yield f"{prefix}.{name}", value
    for name, value in model.state_dict(keep_vars=True).items():
        if name not in seen:
            yield from _inside(name, value)


def _inside(name: str, value: object) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of a stored value, which may be a tuple or a dictionary of them."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from _inside(f"{name}.{number}", item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _inside(f"{name}.{key}", item)


def _content(tensor: torch.Tensor, pool: ThreadPoolExecutor) -> bytes:
    """A digest of the numbers; of a tensor without numbers (meta) only that it has none."""
    if tensor.is_meta:
        return blake2b(b"meta", digest_size=32).digest()
    data = _bytes_of(tensor)
    pieces = [data[start : start + _PIECE] for start in range(0, len(data), _PIECE)]
    digests = pool.map(_hash, pieces) if len(pieces) > 1 else map(_hash, pieces)
    return blake2b(b"".join(digests), digest_size=32).digest()


def _bytes_of(tensor: torch.Tensor) -> memoryview:
    """The numbers as bytes: a view where the tensor lies in one piece in the CPU's memory."""
    try:
        if tensor.is_quantized or tensor.layout != torch.strided:
            raise TypeError("not one block of numbers")
        flat = tensor.detach().resolve_conj().resolve_neg().cpu().reshape(-1)
        return flat.view(torch.uint8).numpy().data  # as bytes: numpy itself has no bfloat16
    except (TypeError, RuntimeError, NotImplementedError):
        whole = io.BytesIO()  # scales, indices and inner tensors come along
        torch.save(tensor.detach(), whole)
        return whole.getbuffer()


def _hash(piece: memoryview | bytes) -> bytes:
    return blake2b(piece, digest_size=32).digest()  # lets other threads run meanwhile


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1
