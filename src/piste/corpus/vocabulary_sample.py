"""A vocabulary of a corpus: some of its documents, wherever they stand, are asked about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from piste.classifiers import Classifier
from piste.corpus.documents import Columns, Document, check
from piste.corpus.plan import Plan, prompt_fields
from piste.data.tables import count_rows, read_rows
from piste.engine.progress import Progress, ProgressOption
from piste.errors import PisteError
from piste.subject import Subject
from piste.validation import check_count
from piste.vocabulary import Vocabulary, fit_vocabulary
from piste.vocabulary.estimation import QUESTIONS


class _Documents(Progress):
    title = "asking about documents"
    counted = "documents"


def vocabulary(
    input: Any,
    model: Any,
    *,
    target: int | str | None = None,
    documents: int = 2000,
    questions: int = QUESTIONS,
    units: Any = None,
    columns: Columns | None = None,
    seed: int = 0,
    runtime: str = "torch",
    loading: Mapping[str, Any] | None = None,
    progress: ProgressOption = None,
) -> Vocabulary:
    """One surrogate for the words of a corpus, from a sample of its documents drawn by the seed."""
    check_count("documents", documents)
    check_count("questions", questions)
    with _Documents(progress) as shown:
        shown.stage("loading the model")
        given = str(input) if isinstance(input, Path) else input
        loading = loading or {}
        named = (columns or Columns()).of_prompt(prompt_fields(model, loading))
        plan = Plan(given, model, named, runtime=runtime, loading=loading)
        files = plan.files()
        rows = count_rows(files, plan.columns.wanted)
        if rows == 0:
            raise PisteError(f"{files[0].name!r} has no rows.")
        rng = np.random.default_rng(seed)
        chosen = set(rng.choice(rows, min(documents, rows), replace=False).tolist())
        classifier = plan.load()
        replace(plan, how={"target": target, "units": units}).check(classifier, files)
        shown.stage("asking about documents")
        shown.plan(len(chosen))
        found = _subjects(plan, classifier, files, chosen, units, shown)
        about = {"units": units or "words", "rows": rows}
        return fit_vocabulary(
            classifier, found, target=target, questions=questions, seed=seed, about=about
        )


def _subjects(
    plan: Plan, classifier: Classifier, files: Any, chosen: set[int], units: Any, shown: Progress
) -> Iterator[Subject]:
    """The documents drawn, as far as the classifier can read them; long ones are cut."""
    for number, row in enumerate(read_rows(files, plan.columns.wanted)):
        if number not in chosen:
            continue
        document = check(number, row, plan.columns)
        shown.advance(1)
        if isinstance(document, Document):
            try:
                yield classifier.subject(document.input, units=units, long="truncate")
            except PisteError:
                continue  # a corpus run says why; here another document does as well
