"""A concept report as one standalone page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from piste.concepts.localization import ConceptMap
from piste.concepts.report import VERDICTS, ConceptReport, ConceptScore
from piste.concepts.sensitivity import ABOUT, KINDS, Kind
from piste.show.figures import concept_maps
from piste.show.figures.concept_figure import plot
from piste.show.html import page_shell
from piste.show.html.inline_figure import colours, inline
from piste.show.terminal.concept_tables import COLUMNS, about, cells, headline, how_to_read

_CAPTION = (
    "Bars are scores with 95 % intervals; grey bands hold 95 % of the scores of random sets. Full "
    "bars are shown to differ from random sets, pale ones are not."
)
_LOOKS = {"raises": "piste-better", "lowers": "piste-worse"}


def to_html(
    report: ConceptReport, path: str | Path | None = None, *, maps: Sequence[ConceptMap] = ()
) -> str:
    """A complete page that works offline, also written to ``path`` if given; all is escaped."""
    return page_shell.document(view(report, maps), path)


def view(report: ConceptReport, maps: Sequence[ConceptMap] = ()) -> page_shell.View:
    """What is shown of a report, and of the concepts in single inputs."""
    others = [kind for kind in report.kinds if kind != report.main_kind]
    parts = [
        _header(report),
        f'<section><div class="piste-wide-chart" tabindex="0">{inline(plot(report), _CAPTION)}'
        f'</div><p class="piste-faint">{escape(_CAPTION)}</p></section>',
        _table(report, report.main_kind),
        *(concept_maps.section(found) for found in maps),
        *(_table(report, kind, folded=True) for kind in others),
        page_shell.details(
            "Settings and versions",
            {
                "Model": report.classifier,
                "Concepts": report.concepts,
                "Settings": report.settings,
                "Versions": report.versions,
            },
        ),
    ]
    return page_shell.View(
        headline(report),
        "\n".join(parts),
        styles=("charts.css", *concept_maps.STYLES),
        rules=colours(),
        scripts=("sorting.js",),
    )


def _header(report: ConceptReport) -> str:
    model = str(report.classifier.get("name") or "the model")
    notes = "".join(f'<p class="piste-note">{escape(note)}</p>' for note in report.notes)
    return f"""<header>
<p class="piste-kicker">What {escape(model)} reacts to</p>
<h1>{escape(headline(report))}</h1>
<p>{escape(about(report))}</p>
{notes}
</header>"""


def _table(report: ConceptReport, kind: Kind, *, folded: bool = False) -> str:
    several = len(report.targets) > 1
    titles = (*(("class",) if several else ()), *COLUMNS)
    heads = "".join(page_shell.head(title) for title in titles)
    rows = "".join(_row(one, several) for one in report.select(kind=kind))
    table = (
        f'<div class="piste-scroll piste-tall" tabindex="0"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
    if folded:
        return f"<details><summary>{escape(ABOUT[kind])}</summary>{table}</details>"
    meanings = "".join(
        f"<dt>{escape(verdict)}</dt><dd>{escape(words)}</dd>" for verdict, words in VERDICTS.items()
    )
    spaces = "".join(f"<dt>{escape(name)}</dt><dd>{escape(ABOUT[name])}</dd>" for name in KINDS)
    return f"""<section>
<h2>All scores, {escape(ABOUT[kind])}</h2>
<p class="piste-faint">{escape(how_to_read(report))}</p>
{table}
<details class="piste-plain"><summary>What the verdicts and kinds mean</summary>
<dl>{meanings}{spaces}</dl></details>
</section>"""


def _row(one: ConceptScore, several: bool) -> str:
    # What a column is sorted by, nothing where a number is not told; words sort by themselves.
    keys: dict[str, float | str] = {
        "layer": one.layer,
        "random sets": one.random_score,
        "told apart": one.accuracy,
        "score": one.score,
        "p": one.p_corrected,
    }
    if one.verdict == "not separable":
        keys |= {"score": "", "p": ""}
    found = []
    for column, cell in zip(COLUMNS, cells(one), strict=True):
        key = f' data-v="{keys[column]}"' if column in keys else ""
        look = f' class="{_LOOKS.get(one.verdict, "piste-faint")}"' if column == "verdict" else ""
        found.append(f"<td{key}><span{look}>{escape(cell)}</span></td>")
    first = one.target if several else one.concept
    rest = found if several else found[1:]
    return f'<tr><th scope="row">{escape(first)}</th>{"".join(rest)}</tr>'
