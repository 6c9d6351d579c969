"""Everything a run leaves behind for readers: tables, figures and a page."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from piste.evaluation import exports
from piste.evaluation.results import Results
from piste.show.report import result_tables


def write_report(results: Results, folder: str | Path) -> list[Path]:
    """Write results.md, .csv and .parquet, summary.csv, index.html and figures/ into a folder.

    ``results`` files hold every example, ``summary.csv`` a row per method. The Parquet file is
    left out where pyarrow is not installed: it says what the CSV file says.
    """
    from piste.show.report.evaluation_html import to_html
    from piste.show.report.metric_figures import write_figures

    home = Path(folder)
    markdown, rows, summary, page = (
        home / name for name in ("results.md", "results.csv", "summary.csv", "index.html")
    )
    result_tables.to_markdown(results, markdown)
    exports.to_csv(results, rows)
    exports.to_csv(results, summary, exports.summary_rows)
    written = [page, markdown, rows, summary]
    if find_spec("pyarrow") is not None:
        written.append(home / "results.parquet")
        exports.to_parquet(results, written[-1])
    to_html(results, page)
    return [*written, *write_figures(results, home / "figures")]
