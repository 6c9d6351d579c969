"""The wrong files, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_inputs.files import make_all


@pytest.fixture(scope="session")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_all(tmp_path_factory.mktemp("bad"))
