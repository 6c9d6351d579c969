from __future__ import annotations

import pytest

from piste.classifiers.served.client import KEYS, Client


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses between tries, which take no time here."""
    found: list[float] = []
    monkeypatch.setattr(Client, "_wait", lambda self, seconds: found.append(seconds))
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    return found
