"""An evaluation as one standalone page, and as a folder with tables and figures beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from importlib.util import find_spec
from pathlib import Path

from piste.evaluation.bootstrap import differences, summary
from piste.evaluation.metrics import Figure
from piste.evaluation.results import Difference, Interval, Results, summary_rows, to_csv
from piste.show import labels
from piste.show.html import page_shell
from piste.show.html.inline_figure import colours, inline
from piste.show.labels import styles
from piste.show.report import metric_figures, result_tables
from piste.show.report.standings import (
    Standing,
    Summary,
    bounds,
    headline,
    main_figures,
    places,
    reference,
    sentences,
    sign,
    standing,
    table_figures,
    verdict,
)

_CAPTIONS = {
    "intervals": "Every dot is an average over the examples. Filled dots are the best, or not "
    "clearly different from it on the same examples; open dots are clearly worse.",
    "removal": "Units are removed (or kept) in the order of each method's ranking. The sooner the "
    "answer's chance falls (or rises), the better the method knows what the answer hangs on.",
    "fidelity": "Units are removed at random, and every explanation predicts the change. The "
    "squared error grows with their number; the lower the line, the more faithful.",
    "cost": "Left is faster; each axis says which way is more faithful. Methods on a grey "
    "strip lie off the scale, with their numbers beside them.",
}


def to_html(results: Results, path: str | Path | None = None) -> str:
    """A complete page that works offline and without script, also written to ``path`` if given."""
    return page_shell.document(view(results), path)


def view(results: Results) -> page_shell.View:
    """What the page shows. All text is escaped.

    No difference is claimed that the paired interval doesn't show.
    """
    found = summary(results)
    stands = {name: standing(results, found, name) for name in table_figures(results)}
    main = [stand for name in main_figures(results, found) if (stand := stands[name]) is not None]
    parts = (
        _header(results, found, main),
        _table(results, found, stands),
        _charts(results),
        _differences(results, found),
        _refusals(results),
        _settings(results),
    )
    return page_shell.View(
        headline(main),
        "\n".join(part for part in parts if part),
        styles=("charts.css",),
        rules=colours() + ".piste{max-width:80rem}",
        scripts=("sorting.js",),
    )


def _header(results: Results, found: Summary, main: list[Standing]) -> str:
    examples = len(results.examples)
    model, data = (_name(results.settings.get(key)) for key in ("model", "data"))
    what = " on ".join(filter(None, (model, data))) or "explanations"
    lines = "".join(f"<li>{escape(line)}</li>" for line in sentences(results, found, main))
    few = (
        f'<p class="piste-note">Only {examples} example{"s" if examples > 1 else ""}: intervals '
        "are rough, and small differences can't show.</p>"
        if 0 < examples < 20
        else ""
    )
    return f"""<header>
<p class="piste-kicker">Evaluation of {escape(what)} · {len(results.methods)} methods ·
{examples:,} examples</p>
<h1>{escape(headline(main))}</h1>
<ul class="piste-verdict">{lines}</ul>
{few}
</header>"""


def _name(thing: object) -> str:
    """The name of a model or of data, which may be told with more."""
    if isinstance(thing, Mapping):
        thing = thing.get("name")
    return str(thing) if thing else ""


def _table(results: Results, found: Summary, stands: dict[str, Standing | None]) -> str:
    names = [name for name in table_figures(results) if any(key[1] == name for key in found)]
    if not names:
        return ""
    heads = page_shell.head("method") + "".join(_head(results.figures[name]) for name in names)
    rules = {name: places(found, name) for name in names}
    looks = styles(results.methods)
    rows = []
    for method in results.methods:
        cells = [
            _cell(found.get((method, name)), rules[name], _mark(stands[name], method))
            for name in names
        ]
        dot = f'<i class="piste-family" style="background:var(--c{looks[method].colour[1:]})"></i>'
        rows.append(f'<tr><th scope="row">{dot}{escape(method)}</th>{"".join(cells)}</tr>')
    listed = "".join(
        f"<dt>{escape(figure.title)}</dt><dd>{escape(labels.meaning(figure))}</dd>"
        for figure in map(results.figures.__getitem__, names)
    )
    return f"""<section>
<h2>All methods</h2>
<p class="piste-faint">Means over examples (medians of errors and R²) with 95 % intervals.
<b>Bold</b> is the best; <span class="piste-dot-key"></span>marks it and all that are not clearly
different from it on the same examples. Click a heading to sort.</p>
<div class="piste-scroll piste-tall" tabindex="0"><table><thead><tr>{heads}</tr></thead>
<tbody>{"".join(rows)}</tbody></table></div>
<details class="piste-plain"><summary>What the figures mean</summary><dl>{listed}</dl></details>
</section>"""


def _head(figure: Figure) -> str:
    return page_shell.head(figure.title, about=labels.meaning(figure), first=labels.sorting(figure))


def _mark(stand: Standing | None, method: str) -> str:
    if stand is None:
        return "piste-rest"
    if method == stand.best:
        return "piste-best piste-lead"
    return "piste-lead" if method in stand.level else "piste-rest"


def _cell(one: Interval | None, rule: labels.Places, mark: str) -> str:
    if one is None or math.isnan(one.centre):
        return '<td data-v="">–</td>'
    spread = bounds(one, rule)
    centre = labels.shown(one.centre, rule)
    return (
        f'<td data-v="{one.centre:.6g}" title="{_examples(one)}"><span class="{mark}">'
        f"{centre}</span>{spread and f'<small>{spread}</small>'}</td>"
    )


def _examples(one: Interval) -> str:
    return f"{one.examples:,} example{'s' if one.examples != 1 else ''}"


def _charts(results: Results) -> str:
    sections = []
    for name, figure in metric_figures.draw(results).items():
        chart = inline(figure, _CAPTIONS[name])
        sections.append(
            f'<section><div class="piste-wide-chart" tabindex="0">{chart}</div>'
            f'<p class="piste-faint">{escape(_CAPTIONS[name])}</p></section>'
        )
    return "\n".join(sections)


def _differences(results: Results, found: Summary) -> str:
    """Every method minus the reference on the same examples, figure by figure."""
    against = reference(results)
    names = [name for name in main_figures(results, found) if sign(results, name)]
    names = [name for name in names if (against, name) in found]
    if against is None or not names or len(results.methods) < 2:
        return ""
    columns = {
        name: {one.method: one for one in differences(results, name, against)} for name in names
    }
    heads = page_shell.head("method") + "".join(_head(results.figures[name]) for name in names)
    rows = "".join(
        f'<tr><th scope="row">{escape(method)}</th>'
        + "".join(_difference(results, columns[name][method]) for name in names)
        + "</tr>"
        for method in results.methods
        if method != against
    )
    return f"""<section>
<h2>Against {escape(against)}, on the same examples</h2>
<p class="piste-faint">Method minus {escape(against)}, with the 95 % interval of the paired
difference. Only where the interval leaves zero out are two methods called different; of twenty such
intervals, about one does so by chance.</p>
<div class="piste-scroll piste-tall" tabindex="0"><table><thead><tr>{heads}</tr></thead>
<tbody>{rows}</tbody></table></div>
</section>"""


def _difference(results: Results, one: Difference) -> str:
    interval = one.interval
    if math.isnan(interval.centre):
        return '<td data-v="">–</td>'
    ends = [end for end in (interval.centre, interval.low, interval.high) if not math.isnan(end)]
    rule = labels.places(one.figure, ends)
    words = verdict(results, one)
    look = {"better": "piste-better", "worse": "piste-worse"}.get(words, "piste-faint")
    plus = "+" if interval.centre > 0 else ""
    return (
        f'<td data-v="{interval.centre:.6g}" title="{_examples(interval)}">'
        f'<span class="{look}">{words}</span> {plus}{labels.shown(interval.centre, rule)}'
        f"<small>{bounds(interval, rule)}</small></td>"
    )


def _refusals(results: Results) -> str:
    """Methods that could not explain some examples with their reasons, and what was noted."""
    rows = "".join(
        f"<dt>{escape(method)}</dt><dd>{escape(reason)} <small>({_of(results, count)})</small></dd>"
        for method, reasons in results.problems().items()
        for reason, count in reasons.items()
    )
    notes = "".join(
        f"<dt>{escape(note)}</dt><dd>{_of(results, count)}</dd>"
        for note, count in results.notes().items()
    )
    refused = f"<section><h2>Refused or failed</h2><dl>{rows}</dl></section>" if rows else ""
    noted = f"<section><h2>Noted</h2><dl>{notes}</dl></section>" if notes else ""
    return refused + noted


def _of(results: Results, count: int) -> str:
    return f"{count:,} of {len(results.examples):,} examples"


def _settings(results: Results) -> str:
    """Everything needed to do it again; what has parts of its own is listed apart."""
    plain = {
        key: thing for key, thing in results.settings.items() if not isinstance(thing, Mapping)
    }
    groups = {"Run": plain} | {
        str(key): thing for key, thing in results.settings.items() if isinstance(thing, Mapping)
    }
    return page_shell.details("Settings and versions", groups)


def write_report(results: Results, folder: str | Path) -> list[Path]:
    """Write results.md, .csv and .parquet, summary.csv, index.html and figures/ into a folder.

    ``results`` files hold every example, ``summary.csv`` a row per method. The Parquet file is
    left out where pyarrow is not installed: it says what the CSV file says.
    """
    home = Path(folder)
    markdown, rows, summary, page = (
        home / name for name in ("results.md", "results.csv", "summary.csv", "index.html")
    )
    result_tables.to_markdown(results, markdown)
    results.to_csv(rows)
    to_csv(results, summary, summary_rows)
    written = [page, markdown, rows, summary]
    if find_spec("pyarrow") is not None:
        written.append(home / "results.parquet")
        results.to_parquet(written[-1])
    to_html(results, page)
    return [*written, *metric_figures.write_figures(results, home / "figures")]
