"""The second paper's protocol: which units can't be missed, and which are enough.

    python -m benchmarks.eggen --data sst2.parquet --split validation --model sst2 --max-tokens 15

Units are replaced by [MASK] (images: patches are really absent). Comprehensiveness and
sufficiency are sums of differences in the chance of the predicted class at 0, 10, 20 and 50 % of
the units, divided by 5; F1 is that of the class from the top 20 % alone, held against the class of
the whole input. Writes a Markdown table and the paper's figure, the distribution of
comprehensiveness by method, coloured by what the method looks at.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import piste
from piste.evaluation import Example, Results, class_f1, evaluate, read_data
from piste.evaluation.bootstrap import summary
from piste.show.figures.canvas import INK, RULE, canvas, save

ATTENTION = (
    "attention",
    "attention_rollout",
    "attention_norms",
    "grad_sam",
    "gradient_rollout",
    "attention_shapley[game=cls,gradient=none]",
    "attention_shapley[game=mutual,gradient=none]",
    "attention_shapley[game=max_mutual,gradient=none]",
    "attention_shapley[game=cls,gradient=relu]",
    "attention_shapley[game=mutual,gradient=relu]",
    "attention_shapley[game=max_mutual,gradient=relu]",
    "attention_shapley[game=cls,gradient=signed]",
    "attention_shapley",
)
GRADIENT = ("gradient", "gradient_x_input", "integrated_gradients", "attnlrp")
INPUT = ("slalom", "lime", "kernel_shap", "occlusion", "random")
METRICS = ("eraser[bins=eggen]", "alone[share=0.2]")
COLOURS = {"attention": "#0b57a4", "gradient": "#00795c", "input": "#c24e00"}


def group(method: str) -> str:
    """What a method looks at."""
    name = method.split("[")[0].split(":")[0]
    if name in GRADIENT:
        return "gradient"
    return "attention" if name in {one.split("[")[0] for one in ATTENTION} else "input"


def chosen(options: argparse.Namespace, classifier: piste.Classifier) -> list[Example]:
    """Examples of the wanted split, short ones only if asked for."""
    images = {"image": options.image_column} if options.image_column else {}
    found = read_data(options.data, split=options.split, label=options.label_column, **images)
    if options.max_tokens is not None:
        most = options.max_tokens
        tokenizer = getattr(classifier, "tokenizer", None)
        assert tokenizer is not None, "--max-tokens needs a text model"
        ids = [tokenizer(one.text, add_special_tokens=False)["input_ids"] for one in found]
        found = [one for one, own in zip(found, ids, strict=True) if len(own) <= most]
    return found[: options.examples]


def table(results: Results) -> str:
    """A row for every method, the groups one after the other."""
    found = summary(results)
    lines = [
        "| looks at | method | comprehensiveness ↑ | sufficiency ↓ | macro F1 ↑ | weighted F1 ↑ |",
        "|---|---|---|---|---|---|",
    ]
    for method in results.methods:
        if (method, "comprehensiveness") not in found:
            continue
        cells = [
            f"{one.centre:.3f} ({one.low:.3f} to {one.high:.3f})".replace("-", "−")
            for one in (found[method, name] for name in ("comprehensiveness", "sufficiency"))
        ]
        f1 = class_f1(results, method)
        cells += [f"{f1['macro']:.3f}", f"{f1['weighted']:.3f}"]
        lines.append(f"| {group(method)} | {method} | {' | '.join(cells)} |")
    for method, problems in results.problems().items():
        lines.append(f"\n{method}: refused {len(problems)} inputs.")
    return "\n".join(lines)


def draw(results: Results, path: Path, title: str) -> None:
    """The distribution of comprehensiveness, best median first."""
    values = {
        method: np.array(list(results.values(method, "comprehensiveness").values()))
        for method in results.methods
    }
    values = {method: found[np.isfinite(found)] for method, found in values.items()}
    order = sorted((m for m in values if len(values[m])), key=lambda m: np.median(values[m]))
    figure, axes = canvas((9.0, 0.36 * len(order) + 1.6))
    for place, method in enumerate(order):
        colour = COLOURS[group(method)]
        axes.boxplot(
            values[method],
            positions=[place],
            vert=False,
            widths=0.62,
            patch_artist=True,
            boxprops={"facecolor": colour, "alpha": 0.35, "edgecolor": colour},
            medianprops={"color": INK, "linewidth": 1.6},
            whiskerprops={"color": colour},
            capprops={"color": colour},
            flierprops={"marker": ".", "markersize": 3, "markeredgecolor": colour},
        )
    axes.axvline(0, color=RULE, zorder=0)
    axes.set_yticks(range(len(order)), order, fontsize=8)
    axes.set_xlabel("comprehensiveness (higher: the units it names can't be missed)")
    axes.set_title(title, loc="left", fontsize=10)
    for name, colour in COLOURS.items():
        axes.plot([], [], "s", color=colour, alpha=0.6, label=f"{name}-based")
    axes.legend(loc="lower right", frameon=False, fontsize=8)
    save(figure, path)


def main() -> None:
    """Run, print the table, write it and the figure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--split")
    parser.add_argument("--label-column", default="label")
    parser.add_argument("--image-column")
    parser.add_argument("--max-tokens", type=int)
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--removal", default="mask")
    parser.add_argument("--units")
    parser.add_argument("--methods", nargs="+", default=[*ATTENTION, *GRADIENT, *INPUT])
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    classifier = piste.load(options.model)
    results = evaluate(
        classifier,
        chosen(options, classifier),
        methods=options.methods,
        metrics=METRICS,
        examples=options.examples,
        options={name: {"samples": options.samples} for name in ("lime", "kernel_shap")},
        removal=options.removal,
        units=options.units,
        folder=options.folder,
        progress=True,
    )
    found = table(results)
    print(found)
    (options.folder / "table.md").write_text(found + "\n", encoding="utf-8")
    draw(results, options.folder / "comprehensiveness.png", options.folder.name)


if __name__ == "__main__":
    main()
