"""What all pages share: the shell with its policy, the assets, data for scripts, lists."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from piste.data import files


@dataclass(frozen=True)
class View:
    """What a page shows, wherever it is shown: in a file, in a notebook, by the server.

    ``body`` must be escaped already; styles and scripts are names of assets, ``rules`` further
    rules of style, and ``data`` what the scripts need.
    """

    title: str
    body: str
    styles: Sequence[str] = ()
    rules: str = ""
    scripts: Sequence[str] = ()
    data: Mapping[str, Any] | None = None


def document(view: View, path: str | Path | None = None) -> str:
    """A complete page that works offline, also written to ``path`` if given.

    It asks nothing of any network: styles and scripts are inline, and its own content security
    policy forbids everything else.
    """
    names = ("piste.js", *view.scripts, "starting.js") if view.scripts else ()
    script = "\n".join(asset(name) for name in names)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" if script else "'none'"
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    sheets = "".join(asset(name) for name in ("parts.css", "page.css", *view.styles))
    end = ""
    if view.data is not None:
        end += f'<script type="application/json" class="piste-data">{as_json(view.data)}</script>\n'
    if script:
        end += f"<script>{script}</script>\n"
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(view.title)} · Piste</title>
<style>{sheets}{view.rules}</style>
</head>
<body>
<main class="piste">
{view.body}
</main>
<div class="piste-tip" role="tooltip" hidden></div>
{end}</body>
</html>
"""
    if path is not None:
        files.write_text(path, page)
    return page


def framed(view: View, summary: str) -> str:
    """The page inside another one, such as a notebook: it opens on demand, alone in its frame."""
    return (
        f"<details><summary>{escape(summary)}</summary>"
        '<iframe sandbox="allow-scripts" loading="lazy" title="Piste" '
        'style="width:100%;height:46rem;border:0;background:#fff" '
        f'srcdoc="{escape(document(view))}"></iframe></details>'
    )


@cache
def assets(suffix: str, first: tuple[str, ...] = (), last: tuple[str, ...] = ()) -> list[str]:
    """The names of all style sheets or scripts, some of them first or last."""
    names = [file.name for file in (resources.files(__package__) / "assets").iterdir()]
    between = sorted(n for n in names if n.endswith(suffix) and n not in (*first, *last))
    return [*first, *between, *last]


@cache
def asset(name: str) -> str:
    """A style sheet or script that is part of a page."""
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8").strip()


def as_json(data: Mapping[str, Any]) -> str:
    r"""Data for a script, as JSON that can't end its element or open another.

    >>> as_json({"text": "</script>"})
    '{"text":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def listed(things: Mapping[str, Any]) -> str:
    """Settings as a list of terms; what is no text is shown as JSON."""
    rows = []
    for name, thing in things.items():
        plain = thing if isinstance(thing, str) else json.dumps(thing, default=str)
        rows.append(f"<dt>{escape(str(name))}</dt><dd>{escape(plain)}</dd>")
    return f"<dl>{''.join(rows)}</dl>"


def details(summary: str, parts: Mapping[str, Mapping[str, Any]]) -> str:
    """Lists of settings that open on demand; empty ones are left out."""
    lists = "".join(
        f"<h3>{escape(title)}</h3>{listed(things)}" for title, things in parts.items() if things
    )
    return f"<details><summary>{escape(summary)}</summary>{lists}</details>"


def head(name: str, *, about: str = "", first: str = "") -> str:
    """A column's heading that sorts on a click; ``first`` is the direction it begins with."""
    title = f' title="{escape(about)}"' if about else ""
    start = f' data-first="{first}"' if first else ""
    broken = escape(name).replace("_", "_<wbr>")  # long names may break there
    button = f'<button type="button">{broken}</button>'
    return f'<th scope="col" aria-sort="none"{start}{title}>{button}</th>'
