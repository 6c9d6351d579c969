"""Runs over a corpus: block after block, each stored as soon as it is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from piste.classifiers import Classifier
from piste.corpus.blocks import DOCUMENT_COLUMNS, Part
from piste.corpus.documents import Columns
from piste.corpus.part_store import KIND, Counts, PartStore
from piste.corpus.plan import BLOCK, TRIED, Plan, explain_block, prompt_fields, suitable_block
from piste.data.tables import TableFile, count_rows
from piste.engine.progress import Progress, ProgressOption
from piste.errors import PisteError, shorten
from piste.methods.base import expected_questions
from piste.subject import Subject
from piste.validation import as_path, check_count

EngineChoice: TypeAlias = Literal["local", "ray"]
Doer: TypeAlias = Callable[[Plan, Classifier, Sequence[TableFile], Sequence[int]], Iterator[Part]]
"""Gives the parts of the blocks with these numbers, in any order."""


class _Rows(Progress):
    """Counts rows; within a block, by the questions that are answered.

    A function that is given as the option hears of whole blocks only.
    """

    title = "explaining"
    counted = "rows"
    _whole = 0.0

    def within_block(self, rows: int) -> Callable[[int, int], None]:
        """Told the questions answered and expected of a block of so many rows."""

        def follow(done: int, total: int) -> None:
            share = 0.95 * min(done / max(total, 1), 1.0)  # the rest is solving and storing
            self.done = max(self.done, self._whole + rows * share)
            self.show()

        follow.silent = True  # type: ignore[attr-defined]  # the run has said what it costs
        return follow

    def advance(self, done: float) -> None:
        """So many rows are stored."""
        self.done = self._whole
        super().advance(done)
        self._whole = self.done


@dataclass(frozen=True)
class Estimate:
    """What a run would take."""

    rows: int
    tried: int
    refused: int
    """Of the rows that were looked at, those that would be refused."""
    calls: float
    """Questions to the model, of all rows."""
    seconds: float | None
    bytes: float | None
    """None where nothing was explained."""


def run(
    input: Any,
    model: Any,
    out: str | Path,
    *,
    method: str = "slalom",
    columns: Columns | None = None,
    block: int | None = None,
    runtime: str = "torch",
    loading: Mapping[str, Any] | None = None,
    resume: bool = True,
    engine: EngineChoice = "local",
    address: str | None = None,
    workers: int | None = None,
    progress: ProgressOption = None,
    **how: Any,
) -> Counts:
    """Explain every row of a table, and store everything in the folder ``out``.

    The table is a file, a folder of files, a frame of pandas or polars, a data set of Hugging Face,
    a table of Arrow, or a list of dictionaries or texts.

    The results are those of :func:`piste.explain` with the same options (``how``), for which
    questions of all texts in a block of rows are pooled. Rows that can't be explained are kept
    with their reasons in ``out/errors``. A prompt with several fields is filled from the columns of
    their names. The same call continues a run that was stopped, and its
    results are those of a run that was not; ``resume`` is accepted as before and changes nothing.
    ``block`` is how many rows are explained and stored together; without it, few of a small corpus
    and 128 of a large one. With ``engine="ray"``, ``workers`` processes work on it, on the machines
    of the cluster at ``address``; without an address on this one. ``loading`` are further options
    of :func:`piste.load`, such as prompt and labels. Answers that are paid for, those of a served
    model, are kept in ``out/answers`` unless ``cache`` names another folder.
    """
    if workers is not None:
        check_count("workers", workers)
    as_path("out", out)
    if columns is not None and not isinstance(columns, Columns):
        raise PisteError(f"columns: expected piste.corpus.Columns(text=…), got {shorten(columns)}.")
    if engine not in ("local", "ray"):
        raise PisteError(f"engine: expected 'local' or 'ray', got {engine!r}.")
    with _Rows(progress) as shown:
        shown.stage("counting rows")
        options = (method, how, runtime, block, loading)
        before = _columns_before(columns or Columns(), out)
        plan, files, rows = _planned(input, model, columns, *options, before=before)
        shown.stage("loading the model")
        classifier = plan.load()
        subjects = plan.check(classifier, files)
        cached = False
        if classifier.costly and engine == "local":
            folder_of_answers = Path(plan.how.get("cache") or Path(out) / "answers")
            cached = folder_of_answers.exists()
            if cached:
                classifier.remember(folder_of_answers)
            plan = replace(plan, how={**plan.how, "cache": folder_of_answers})
        calls = _questions(plan, subjects) / max(len(subjects), 1)
        shown.stage("explaining")
        manifest = plan.manifest(classifier, files)
        with PartStore.opened(out, manifest) as folder:
            left = [number for number in range(-(-rows // plan.block)) if number not in folder.done]
            shown.plan(rows)
            shown.advance(folder.counts.rows)
            missing = rows - folder.counts.rows
            if classifier.costly and left:
                if engine == "local" and not cached:
                    classifier.remember(folder_of_answers)
                shown.say(classifier.expect(subjects, calls * missing, cached=cached))
            elif left:
                shown.say(_cost(plan, missing, calls * missing))
            for part in _doer(engine, address, workers, shown)(plan, classifier, files, left):
                folder.add(part)
                shown.advance(part.rows)
            folder.finish()
            return folder.counts


def _doer(engine: EngineChoice, address: str | None, workers: int | None, shown: _Rows) -> Doer:
    """What explains the blocks."""
    if engine == "ray":
        from piste.corpus.ray_runner import RayRunner

        return RayRunner(address, workers)

    def locally(
        plan: Plan, classifier: Classifier, files: Sequence[TableFile], left: Sequence[int]
    ) -> Iterator[Part]:
        wanted = set(left)
        for block in plan.blocks(files):
            if block.number in wanted:
                yield explain_block(plan, classifier, block, shown.within_block(len(block)))

    return locally


def _planned(
    input: Any,
    model: Any,
    columns: Columns | None,
    method: str,
    how: dict[str, Any],
    runtime: str,
    block: int | None,
    loading: Mapping[str, Any] | None,
    before: Columns | None = None,
) -> tuple[Plan, list[TableFile], int]:
    """The plan, its files, and how many rows they have."""
    how = {"long": "truncate", **how}
    plan = Plan(
        str(input) if isinstance(input, Path) else input,
        model,
        (columns or Columns()).of_prompt(prompt_fields(model, loading or {})),
        method,
        how,
        runtime,
        BLOCK if block is None else block,
        loading or {},
    )
    files = plan.files()
    settled = plan.columns.settled(files, DOCUMENT_COLUMNS)
    if before is not None and before.are_in(files):
        settled = before
    plan = replace(plan, columns=settled)
    rows = count_rows(files, plan.columns.wanted)
    if block is None:
        plan = replace(plan, block=suitable_block(rows))
    return plan, files, rows


def _questions(plan: Plan, subjects: Sequence[Subject]) -> float:
    """About how many questions some documents take."""
    method = plan.made_method()
    return float(sum(expected_questions(method, subject) for subject in subjects))


def _cost(plan: Plan, rows: int, calls: float) -> str:
    """What a run will take, in a line."""
    kept = f"; kept columns: {', '.join(plan.columns.keep)}" if plan.columns.keep else ""
    return f"{rows:,} rows to explain, at most about {calls:,.0f} questions to the model{kept}."


def _columns_before(columns: Columns, out: str | Path) -> Columns | None:
    """The columns of a run that goes on, where others are not asked for; None if there is none."""
    if not (Path(out) / KIND.manifest).is_file():
        return None
    before = KIND.read(out).get("settings", {}).get("columns", {})
    keep = tuple(before.get("keep") or ()) if columns.keep is None else columns.keep
    return replace(columns, id=columns.id or before.get("id"), keep=keep)


def estimate(
    input: Any,
    model: Any,
    *,
    method: str = "slalom",
    columns: Columns | None = None,
    block: int | None = None,
    runtime: str = "torch",
    loading: Mapping[str, Any] | None = None,
    **how: Any,
) -> Estimate:
    """What :func:`run` would take, from some documents of the first block, explained.

    Documents of one block share questions, so that a whole block takes less than this says. Of a
    served model nothing is explained: only the questions are known.
    """
    plan, files, rows = _planned(input, model, columns, method, how, runtime, block, loading)
    first = next(plan.blocks(files), None)
    if first is None or not first.documents:
        raise PisteError(f"{files[0].name!r} has no row to explain in its first {plan.block}.")
    step = max(len(first.documents) // TRIED, 1)
    tried = tuple(islice(first.documents, 0, None, step))[:TRIED]
    classifier = plan.load()
    subjects = plan.check(classifier, files)
    if classifier.costly:
        share = len(first.documents) / len(first)
        each = _questions(plan, subjects) / max(len(subjects), 1)
        return Estimate(rows, 0, len(first.refused), each * rows * share, None, None)
    warm = type(first)(first.number, tried[:1], ())
    explain_block(plan, classifier, warm)
    start = time.perf_counter()
    part = explain_block(plan, classifier, type(first)(first.number, tried, ()))
    spent = time.perf_counter() - start
    share = len(first.documents) / len(first)
    factor = rows * share / len(tried)
    return Estimate(
        rows,
        len(tried),
        len(first.refused),
        part.calls * factor,
        spent * factor,
        (len(part.documents) + len(part.units)) * factor,
    )
