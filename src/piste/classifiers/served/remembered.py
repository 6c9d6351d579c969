"""What a server was found to return, kept beside the answers, so that it is not probed again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from piste.classifiers.prompted.labels import LabelTokens
from piste.classifiers.served.client import Client
from piste.classifiers.served.endpoint import Endpoint
from piste.classifiers.served.probing import AGREE, Findings
from piste.classifiers.served.scoring import (
    Paths,
    PromptScoring,
    Scoring,
    TokenIdScoring,
    TopScoring,
)
from piste.data.files import make_folder, write_text
from piste.errors import PisteError
from piste.types import Floats

_SCHEME = 1


def write(file: Path, found: Findings, sample: Floats) -> None:
    """Keep findings, with what the labels of the sample text were; where it can't be, without."""
    how = found.scoring
    paths = how.paths
    data: dict[str, Any] = {
        "scheme": _SCHEME,
        "chat": found.endpoint.chat,
        "rate": found.tokens_per_character,
        "returns": found.returns,
        "generation": found.generation,
        "sample": [float(value) for value in sample],
        "names": list(paths.tokens.names),
        "wordings": [[label, list(tokens)] for label, tokens in paths.tokens.wordings],
        "texts": list(paths.texts),
        "pieces": [[piece.hex() for piece in path] for path in paths.pieces],
    }
    if isinstance(how, PromptScoring):
        data["option"] = how.option
    elif isinstance(how, TokenIdScoring):
        data["ids"] = list(how.ids)
    else:
        assert isinstance(how, TopScoring)
        data |= {"top": how.top, "continues": how.continues, "whole": how.whole}
    with suppress(PisteError):
        make_folder(file.parent)
        write_text(file, json.dumps(data, ensure_ascii=False))


def read(file: Path, client: Client, model: str | None) -> tuple[Findings, Floats] | None:
    """Findings and the labels of the sample text; None if there are none that can be read."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["scheme"] != _SCHEME:
            return None
        endpoint = Endpoint(client, model, chat=bool(data["chat"]))
        found = Findings(
            endpoint,
            _scoring(data, endpoint),
            float(data["rate"]),
            dict(data["returns"]),
            int(data["generation"]),
        )
        return found, np.array(data["sample"], dtype=np.float64)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def agree(one: Floats, other: Floats) -> bool:
    """Whether a server says the same as before, up to what batching changes."""
    return one.shape == other.shape and bool((np.abs(one - other) <= AGREE).all())


def _scoring(data: Mapping[str, Any], endpoint: Endpoint) -> Scoring:
    tokens = LabelTokens(
        tuple(map(str, data["names"])),
        tuple((int(label), tuple(map(int, own))) for label, own in data["wordings"]),
    )
    pieces = tuple(tuple(map(bytes.fromhex, path)) for path in data["pieces"])
    paths = Paths(tokens, tuple(map(str, data["texts"])), pieces)
    if "option" in data:
        return PromptScoring(endpoint, paths, data["option"])
    if "ids" in data:
        return TokenIdScoring(endpoint, paths, tuple(map(int, data["ids"])))
    return TopScoring(
        endpoint, paths, int(data["top"]), bool(data["continues"]), bool(data["whole"])
    )
