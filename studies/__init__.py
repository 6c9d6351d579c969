"""The papers' experiments, each one file: from data to table and figure.

>>> "additive" in names()
True
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from piste.engine.progress import ProgressOption
from piste.errors import PisteError
from studies.base import Findings, Study, Work

_STUDIES = {
    "additive": "figure 3: transformers that learned from additive data are not additive",
    "shapley-failure": "figure 6: Shapley values of repeated words, of a network and transformers",
    "surrogates": "table 6, figure 4: linear, GAM and SLALOM fitted to those transformers",
    "recovery": "tables 7, 8, figure 4: SLALOMs found again in transformers that learned them",
    "solvers": "figure 9: analytic, SGD and Newton solutions, by vocabulary and context",
    "naive-bayes": "table 2a: scores held against counted words",
    "human-attention": "table 2b: scores held against the words people marked",
    "faithfulness": "tables 2c, 9: deletion and insertion, SLALOM beside LIME, SHAP, gradients",
    "non-transformer": "table 10: a network that reads TF-IDF weights",
    "runtime": "tables 11, 12: what an explanation costs, and how few questions are enough",
    "large": "table 13: large classifiers, and one that is no transformer",
    "case-study": "a shortcut planted in training texts, found in the plane of SLALOM",
}
"""What each shows, by its name; its module has the same name."""


def names() -> tuple[str, ...]:
    """The studies there are."""
    return tuple(_STUDIES)


def describe(name: str) -> str:
    """One line about a study."""
    return _STUDIES[name]


def run(
    name: str,
    folder: str | Path = "piste-studies",
    *,
    quick: bool = False,
    seed: int = 0,
    data: str | Path | None = None,
    weights: str | Path | None = None,
    progress: ProgressOption = None,
) -> Findings:
    """Run a study, or what is left of it, and write its table, figure and numbers.

    They go to a folder of the study's name within ``folder``, trained models to ``models`` beside
    it. What was measured before with the same settings is not measured again. Full runs on real
    texts read them from the folder ``data``, and pretrained weights from folders in ``weights``.
    """
    if name not in _STUDIES:
        raise PisteError(f"No study is called {name!r}: choose {', '.join(_STUDIES)}.")
    study: Study = import_module(f"studies.{name.replace('-', '_')}").STUDY
    given = {
        "data": None if data is None else Path(data),
        "weights": None if weights is None else Path(weights),
    }
    with Work.on(Path(folder), study, quick=quick, seed=seed, progress=progress, **given) as work:
        findings = study.run(work)
    findings.write(work.folder)
    return findings


__all__ = ["Findings", "describe", "names", "run"]
