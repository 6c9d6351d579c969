"""The gallery of docs/gallery.md: five examples as pages, their figures, and screenshots of them.

    python examples/gallery.py --folder gallery [--screenshots docs/pictures]

Screenshots need playwright and a Chromium (PISTE_CHROMIUM, or the one that is found); with them
come those of the page that `piste serve` opens.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import piste
import piste.corpus
from piste.zoo.clothes import draw_clothes
from studies.reviews import made_up

METHODS = ("slalom", "lime", "kernel_shap", "partition_shap")


@dataclass(frozen=True)
class Example:
    """An input, and the model that is asked about it."""

    name: str
    model: str
    input: Any


EXAMPLES = (
    Example(
        "seven-times-boring",
        "piste:reviews-gpt",
        "Boring plot, boring dialogue, boring music, boring camera, boring actors, boring jokes, "
        "boring ending. Only the dog is excellent.",
    ),
    Example(
        "mixed-feelings",
        "piste:reviews",
        "The cast is good and the photography is superb, but none of it can save this mess: the "
        "plot is ridiculous, the jokes are awful, and after an hour I just didn't care any more. "
        "What a waste of talent.",
    ),
    Example(
        "one-word-decides",
        "piste:reviews",
        "A slow start, but a wonderful ending.",
    ),
    Example(
        "twice-negated",
        "piste:reviews",
        "I can't say that I was not entertained, and nobody who loves the genre will be "
        "disappointed, but it is not as good as the first one and it is never as funny as it "
        "wants to be.",
    ),
    Example("dress", "piste:fashion", draw_clothes("dress")),
)


def write(example: Example, folder: Path) -> piste.Comparison:
    """The example's page; its figures are printed."""
    comparison = piste.compare(piste.load(example.model), example.input, METHODS)
    comparison.to_html(folder / f"{example.name}.html")
    several = [one for one in comparison.checks if len(one.removed) > 1]
    for method, verdict in comparison.verdicts.items():
        off = np.mean([abs(one.expected[method] - one.answer) for one in several])
        print(f"| {example.name} | {method} | {verdict['r2_all']:.2f} | {off:.2f} |", flush=True)
    return comparison


def remove_one_after_another(example: Example, comparison: piste.Comparison, word: str) -> None:
    """What is expected as more and more copies of a word are removed, and what comes."""
    told = list(comparison.explanations.values())
    places = [number for number, unit in enumerate(told[0].units) if unit.text.lower() == word]
    removed = [places[: count + 1] for count in range(len(places))]
    for one in piste.check(piste.load(example.model), told, removed):
        said = " | ".join(f"{expected:.2f}" for expected in one.expected.values())
        print(f"| {len(one.removed)} | {one.answer:.2f} | {said} |")


def photograph(folder: Path, screenshots: Path) -> None:
    """Screenshots of all pages, and of the server's own."""
    from playwright.sync_api import sync_playwright

    screenshots.mkdir(parents=True, exist_ok=True)
    chromium = os.environ.get("PISTE_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for example in EXAMPLES:
            page = browser.new_page(viewport={"width": 1240, "height": 900})
            page.goto((folder / f"{example.name}.html").resolve().as_uri())
            for number in (2, 4) if example.name == "dress" else ():
                page.locator(".piste-marked >> nth=0 >> .piste-area").nth(number).hover()
            page.screenshot(path=screenshots / f"{example.name}.png")
            page.close()
        photograph_server(browser, screenshots, made_run(folder))
        browser.close()


def made_run(folder: Path) -> Path:
    """A small corpus run to browse, of made-up reviews and what their writers thought."""
    with (folder / "reviews.jsonl").open("w", encoding="utf-8") as file:
        for one in made_up(120):
            row = {"text": one.text, "label": ("negative", "positive")[int(one.label or 0)]}
            file.write(json.dumps(row) + "\n")
    run, columns = folder / "reviews-run", piste.corpus.Columns(keep=("label",))
    piste.corpus.run(file.name, "piste:reviews", run, columns=columns, resume=True, progress=False)
    return run


def photograph_server(browser: Any, screenshots: Path, run: Path) -> None:
    """The page of `piste serve`: words removed, light and dark and narrow, and a run's results."""
    command = [sys.executable, "-m", "piste.cli", "serve", "--port", "8765", "--results", str(run)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        for line in server.stderr:
            if "http://" in line:
                break
        for name, width, scheme in (("page", 1240, "light"), ("page-dark", 430, "dark")):
            page = browser.new_page(
                viewport={"width": width, "height": 1180 if width > 1000 else 900},
                color_scheme=scheme,
            )
            page.goto("http://127.0.0.1:8765/")
            page.fill("#piste-text", EXAMPLES[1].input)
            for method in ("lime", "kernel_shap"):
                page.check(f"input[value={method}]")
            page.click(".piste-go")
            page.wait_for_selector(".piste-result .piste-checks tbody tr", timeout=120_000)
            for word in ("mess", "awful", "waste"):
                page.click(f".piste-marked >> nth=0 >> .piste-unit:text-is('{word}')")
            page.wait_for_selector(".piste-now:has-text('waste')")
            page.locator(".piste-check").scroll_into_view_if_needed()
            page.evaluate("document.querySelector('.piste-result h1').scrollIntoView()")
            page.wait_for_timeout(800)
            page.mouse.move(2, 2)
            page.screenshot(path=screenshots / f"{name}.png")
            page.close()
        page = browser.new_page(viewport={"width": 1240, "height": 760})
        page.goto("http://127.0.0.1:8765/")
        page.get_by_role("button", name="Results").click()
        page.locator(".piste-results tbody tr").first.wait_for()
        page.screenshot(path=screenshots / "results.png")
        page.close()
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)


def main() -> None:
    """Write pages, and screenshots if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("gallery"))
    parser.add_argument("--screenshots", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    print("| example | method | R² | off by, several removed |\n|---|---|---|---|")
    found = {example: write(example, options.folder) for example in EXAMPLES}
    print(f"\n| boring removed | the model | {' | '.join(METHODS)} |\n|---|---|---|---|---|---|")
    remove_one_after_another(EXAMPLES[0], found[EXAMPLES[0]], "boring")
    if options.screenshots is not None:
        photograph(options.folder, options.screenshots)


if __name__ == "__main__":
    main()
