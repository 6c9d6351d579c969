"""How tests run a command."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from piste import cli


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str, str]:
    """The command in this process: exit code, output, errors."""
    return run_main(cli.main, monkeypatch, capsys, *arguments)


def run_main(
    main: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *arguments: object,
) -> tuple[int, str, str]:
    """The same for any program."""
    monkeypatch.setattr(sys, "argv", ["piste", *map(str, arguments)])
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err
