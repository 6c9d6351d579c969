"""How results are shown and written: one view for each kind of result and medium.

A view is a function of the result and of what its caller gives besides (mostly a path). Results
find their views here by name, so that they need not know the modules that draw them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from piste.registry import Registry

VIEWS: Registry[Callable[..., Any]] = Registry(
    "view",
    "piste.views",
    {
        "explanation_json": "piste.data.storage:to_json",
        "explanation_frame": "piste.data.unit_tables:to_frame",
        "explanation_from_frame": "piste.data.unit_tables:from_frame",
        "explanation_csv": "piste.data.unit_tables:to_csv",
        "explanation_parquet": "piste.data.unit_tables:to_parquet",
        "explanation_shap": "piste.data.shap_values:to_shap",
        "explanation_plot": "piste.show.figures.explanation_figure:plot",
        "plot_plane": "piste.show.figures.explanation_figure:plane",
        "plot_text": "piste.show.figures.text_figure:text",
        "plot_heat": "piste.show.figures.heatmap_figure:heat",
        "plot_bars": "piste.show.figures.explanation_figure:bars",
        "explanation_of_span": "piste.answer_spans:explain_span",
        "explanation_html": "piste.show.html.explanation_html:to_html",
        "explanation_notebook": "piste.show.html.explanation_html:fragment",
        "explanation_summary": "piste.show.summary:two_lines",
        "explanation_terminal": "piste.show.terminal.explanation_text:render",
        "comparison_frame": "piste.data.unit_tables:comparison_frame",
        "comparison_html": "piste.show.html.comparison_html:to_html",
        "comparison_notebook": "piste.show.html.comparison_html:notebook",
        "comparison_plot": "piste.show.figures.comparison_figure:plot",
        "comparison_terminal": "piste.show.terminal.comparison_text:render",
        "concepts_html": "piste.show.html.concept_html:to_html",
        "concepts_plot": "piste.show.figures.concept_figure:plot",
        "concepts_markdown": "piste.show.terminal.concept_tables:markdown",
        "concepts_terminal": "piste.show.terminal.concept_tables:render",
        "concept_map_plot": "piste.show.figures.concept_maps:plot",
        "concept_map_terminal": "piste.show.figures.concept_maps:render",
        "concept_map_notebook": "piste.show.figures.concept_maps:fragment",
        "evaluation_markdown": "piste.show.report.result_tables:to_markdown",
        "evaluation_terminal": "piste.show.report.result_tables:render",
    },
)
