"""What documents told, as bytes: stored beside the results until a run is done."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from piste.slalom.family import Form
from piste.slalom.learned_prior import Told
from piste.slalom.surrogate import Noise
from piste.vocabulary.corpus_prior import Asked, DocumentRecord, Key


def write_records(records: Sequence[DocumentRecord]) -> bytes:
    """Records as a file of NumPy's."""
    arrays: dict[str, Any] = {}
    about = []
    for number, record in enumerate(records):
        own = dict(_arrays(record))
        arrays |= {f"{number}/{name}": array for name, array in own.items()}
        form, noise = record.told.form, record.told.noise
        about.append(
            {
                "target": record.target,
                "form": [form.mixing, form.saturation, form.background],
                "noise": [noise.by_size, None if np.isinf(noise.leak) else noise.leak],
                "texts": isinstance(record.keys[0], str),
                "asked": record.asked is not None,
                "guided": record.told.guided,
            }
        )
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _arrays(record: DocumentRecord) -> Iterator[tuple[str, Any]]:
    raw = [key.encode() if isinstance(key, str) else key for key in record.keys]
    yield "keys", np.frombuffer(b"".join(raw), dtype=np.uint8)
    yield "lengths", np.array([len(key) for key in raw], dtype=np.int32)
    yield "logits", record.logits
    yield "alone", record.alone
    yield "estimates", record.told.estimates
    yield "variances", record.told.variances
    yield "shared", record.told.shared
    yield "scale", record.told.noise.scale
    if record.guide is not None:
        yield "guide", record.guide
    if record.asked is not None:
        counts = record.asked.counts
        yield "columns", counts.indices.astype(np.int32)
        yield "starts", counts.indptr.astype(np.int32)
        yield "copies", counts.data.astype(np.int32)
        yield "numbers", record.asked.numbers
        yield "expected", record.asked.expected


def read_records(content: bytes) -> Iterator[DocumentRecord]:
    """The records that were written, one after the other."""
    if not content:
        return
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        for number, about in enumerate(json.loads(arrays["about"].tobytes())):
            names = (name for name in arrays.files if name.startswith(f"{number}/"))
            yield _record({name.partition("/")[2]: arrays[name] for name in names}, about)


def _record(array: Mapping[str, Any], about: dict[str, Any]) -> DocumentRecord:
    ends = np.cumsum(array["lengths"])
    blob = array["keys"].tobytes()
    raw = [blob[start:end] for start, end in pairwise([0, *ends.tolist()])]
    keys: tuple[Key, ...] = tuple(key.decode() for key in raw) if about["texts"] else tuple(raw)
    by_size, leak = about["noise"]
    noise = Noise(array["scale"], by_size, float("inf") if leak is None else leak)
    told = Told(
        Form(*about["form"]),
        array["estimates"],
        array["variances"],
        array["shared"],
        noise,
        about.get("guided", False),
    )
    asked = None
    if about["asked"]:
        entries = (array["copies"].astype(np.float64), array["columns"], array["starts"])
        shape = (len(entries[2]) - 1, len(keys))
        counts = sparse.csr_array(entries, shape=shape)
        asked = Asked(counts, array["numbers"], array["expected"])
    return DocumentRecord(
        keys,
        array["logits"],
        array["alone"],
        about["target"],
        told,
        asked,
        array.get("guide"),
    )
