"""The page around the views: its controls, its style sheet and its script."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape

from PIL import Image

from piste.methods import METHODS
from piste.serve.model_host import METHOD_DESCRIPTIONS
from piste.serve.schemas import ModelInfo
from piste.show.html import inline_figure, page_shell
from piste.zoo.clothes import CLOTHES, draw_clothes

FIRST = (*(name for name, method in METHODS.items() if method.compared), "occlusion")
"""Methods that are shown first; the others on demand."""


def _sheet() -> str:
    names = page_shell.assets(".css", first=("parts.css", "page.css"))
    return "\n".join(page_shell.asset(name) for name in names) + inline_figure.colours()


def _script() -> str:
    names = page_shell.assets(".js", first=("piste.js",), last=("serving.js",))
    # A standalone page begins by itself, the server's page by what is asked.
    return "\n".join(page_shell.asset(name) for name in names if name != "starting.js")


def _drawn(kind: str) -> tuple[bytes, str]:
    buffer = io.BytesIO()
    Image.fromarray(draw_clothes(kind).pixels).save(buffer, "PNG")
    return buffer.getvalue(), "image/png"


ASSETS: Mapping[str, Callable[[], tuple[str | bytes, str]]] = {
    "piste.css": lambda: (_sheet(), "text/css"),
    "piste.js": lambda: (_script(), "text/javascript"),
    **{f"{kind}.png": partial(_drawn, kind) for kind in CLOTHES},
}
"""All files that the server gives away, by name: nothing is read by a path from a client."""


def page(models: Sequence[ModelInfo], results: Sequence[str]) -> str:
    """The page before anything was asked."""
    about = {
        "models": [one.model_dump() for one in models],
        "methods": dict(METHOD_DESCRIPTIONS),
        "first": list(FIRST),
        "results": list(results),
        "samples": list(CLOTHES),
    }
    options = "".join(f"<option>{escape(one.name)}</option>" for one in models)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Piste</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="assets/piste.css">
</head>
<body>
<header class="piste-top"><div><b>Piste</b>
<span class="piste-claim">what each word says alone, and what it does in the text</span>
<nav hidden><button type="button" data-tab="explain" aria-current="page">Explain</button><button
type="button" data-tab="results">Results</button></nav></div></header>
<form class="piste-form piste" autocomplete="off">
<div class="piste-row1"><label>Model <select name="model">{options}</select></label>
<span class="piste-labels piste-faint"></span></div>
<div class="piste-texts">
<label class="piste-hidden" for="piste-text">The text</label>
<textarea id="piste-text" name="text" rows="4" dir="auto" placeholder="Type or paste a text …"
></textarea>
<details class="piste-plain piste-second">
<summary>A second text, for models that read pairs</summary>
<label class="piste-hidden" for="piste-pair">The second text</label>
<textarea id="piste-pair" name="pair" rows="2" dir="auto"></textarea></details>
<p class="piste-examples piste-faint">Try: </p></div>
<div class="piste-prompted" hidden>
<details class="piste-plain piste-template"><summary>The prompt</summary><pre></pre></details>
<div class="piste-fields"></div>
<div class="piste-answers" hidden>
<label class="piste-chat"><input type="checkbox" name="chat"> Send it as a message of a chat</label>
<label for="piste-given">The answer to explain <small>(empty: the model's own)</small></label>
<textarea id="piste-given" name="answer" rows="1" dir="auto"></textarea>
<label for="piste-against">Against another answer <small>(may be empty)</small></label>
<textarea id="piste-against" name="against" rows="1" dir="auto"></textarea></div></div>
<div class="piste-drop" hidden tabindex="0" role="button"
aria-label="Drop an image here, paste one, or press Enter to choose a file">
<img alt="" hidden><p>Drop an image here, paste one, or click to choose a file.</p>
<input type="file" accept="image/*" hidden>
<p class="piste-samples piste-faint">Try: </p></div>
<details class="piste-plain piste-settings" open><summary>Methods and settings
<span class="piste-in-short"></span></summary>
<fieldset class="piste-choices piste-methods"><legend>Methods</legend></fieldset>
<details class="piste-plain piste-more"><summary>More methods</summary>
<fieldset class="piste-choices piste-methods"><legend class="piste-hidden">More methods</legend>
</fieldset></details>
<div class="piste-row2">
<label>Cut into <select name="units"></select></label>
<span class="piste-marking" hidden></span>
<label class="piste-phrases"><input type="checkbox" name="phrases"> Join words that act
together</label>
<label class="piste-target">Explain <select name="target"></select></label>
<label class="piste-budget">Budget <input type="range" name="samples" min="0" max="7" value="0">
<output></output></label>
</div></details>
<div class="piste-row3"><button type="submit" class="piste-go" disabled>Explain</button>
<span class="piste-faint piste-keys">or press Ctrl + Enter</span>
<details class="piste-plain piste-history" hidden><summary>History</summary></details></div>
</form>
<div class="piste piste-working" hidden><p><span role="status"></span>
<button type="button" class="piste-button">Cancel</button></p>
<progress></progress></div>
<p class="piste piste-problem" role="alert" hidden></p>
<div class="piste piste-exports" hidden>
<a class="piste-button" data-kind="html" download="explanation.html">Save as HTML</a>
<a class="piste-button" data-kind="png" download="explanation.png">PNG</a>
<a class="piste-button" data-kind="json" download="explanation.json">JSON</a>
<button type="button" class="piste-button" data-kind="link">Copy link</button>
<button type="button" class="piste-button" data-kind="keep">Compare with another text or
model</button>
<span role="status" class="piste-faint"></span></div>
<p class="piste piste-keeping" hidden><span role="status"></span>
<button type="button" class="piste-button">Stop comparing</button></p>
<div class="piste piste-two" hidden></div>
<main class="piste piste-result"></main>
<section class="piste piste-results" hidden></section>
<div class="piste-tip" role="tooltip" hidden></div>
<script type="application/json" class="piste-about">{page_shell.as_json(about)}</script>
<script src="assets/piste.js"></script>
</body>
</html>
"""
