"""Rows in a file, added one by one, so that a run that was stopped goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Results:
    """Rows in a file of JSON lines, one for every model, group, input and method."""

    def __init__(self, file: Path) -> None:
        self.file = file
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
        self.known = {self._key(row) for row in self.rows}

    @staticmethod
    def _key(row: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in ("model", "group", "input", "method"))

    def has(self, **key: Any) -> bool:
        return self._key(key) in self.known

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        self.known.add(self._key(row))
        with self.file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")
