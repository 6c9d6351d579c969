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
from piste.corpus.document_records import read_records
from piste.corpus.documents import Block, Columns, Document
from piste.corpus.part_store import KIND, Counts, PartStore
from piste.corpus.plan import BLOCK, TRIED, Plan, explain_block, prompt_fields, suitable_block
from piste.corpus.stages import Stage, stage_ends, stages
from piste.data.tables import TableFile, count_rows
from piste.engine.progress import Progress, ProgressOption
from piste.errors import PisteError, shorten
from piste.methods.base import expected_questions
from piste.subject import Subject
from piste.validation import as_path, check_count
from piste.vocabulary.corpus_prior import LEAST_DOCUMENTS, CorpusPrior

EngineChoice: TypeAlias = Literal["local", "ray"]
PriorChoice: TypeAlias = Literal["auto", "none"]
Doer: TypeAlias = Callable[[Iterator[Stage], Classifier, Sequence[TableFile]], Iterator[Part]]
"""Gives the parts of all stages; within a stage in any order. A stage is asked for when the parts
of the one before it are taken."""


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
    first: int | None = None
    """Rows that are asked in full, before anything is learned from them; None if nothing is."""
    first_calls: float | None = None
    """Questions of those."""


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
    prior: PriorChoice = "auto",
    progress: ProgressOption = None,
    **how: Any,
) -> Counts:
    """Explain every row of a table, and store everything in the folder ``out``.

    The table is a file, a folder of files, a frame of pandas or polars, a data set of Hugging Face,
    a table of Arrow, or a list of dictionaries or texts.

    The results are those of :func:`piste.explain` with the same options (``how``), for which
    questions of all texts in a block of rows are pooled. In runs of more rows than 32, SLALOM with
    its usual questions learns from the first rows, which have a guide, what words do, and asks less
    about later ones (see :mod:`piste.corpus.stages`); ``prior="none"`` asks about every row in full
    and as :func:`piste.explain` does.

    Rows that can't be explained are kept with their reasons in ``out/errors``. A prompt with
    several fields is filled from the columns of their names. The same call
    continues a run that was stopped, and its results are those of a run that was not; ``resume``
    is accepted as before and changes nothing. ``block`` is how many rows are explained and stored
    together; without it, few of a small corpus and 128 of a large one. With ``engine="ray"``,
    ``workers`` processes work on it, on the machines of the cluster at ``address``; without an
    address on this one. ``loading`` are further options of :func:`piste.load`, such as prompt and
    labels. Answers that are paid for, those of a served model, are kept in ``out/answers`` unless
    ``cache`` names another folder.
    """
    if workers is not None:
        check_count("workers", workers)
    as_path("out", out)
    if columns is not None and not isinstance(columns, Columns):
        raise PisteError(f"columns: expected piste.corpus.Columns(text=…), got {shorten(columns)}.")
    if engine not in ("local", "ray"):
        raise PisteError(f"engine: expected 'local' or 'ray', got {engine!r}.")
    check_prior(prior)
    with _Rows(progress) as shown:
        shown.stage("counting rows")
        options = (method, how, runtime, block, loading)
        before = _columns_before(columns or Columns(), out)
        plan, files, rows = _planned(input, model, columns, *options, before=before)
        shown.stage("loading the model")
        classifier = plan.load()
        subjects = plan.check(classifier, files)
        plan = replace(plan, learns=prior == "auto" and plan.can_learn(classifier))
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
            left = len(folder.done) < -(-rows // plan.block)
            shown.plan(rows)
            shown.advance(folder.counts.rows)
            missing = rows - folder.counts.rows
            if classifier.costly and left:
                if engine == "local" and not cached:
                    classifier.remember(folder_of_answers)
                shown.say(classifier.expect(subjects, calls * missing, cached=cached))
            elif left:
                shown.say(_cost(plan, missing, calls * missing))
            work = stages(plan, folder, rows)
            for part in _doer(engine, address, workers, shown)(work, classifier, files):
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
        work: Iterator[Stage], classifier: Classifier, files: Sequence[TableFile]
    ) -> Iterator[Part]:
        blocks: Iterator[Block] = iter(())
        for number, stage in enumerate(work):
            if number == 0:
                blocks = stage.plan.blocks(files)
            wanted = set(stage.blocks)
            for block in blocks:
                if block.number in wanted:
                    follow = shown.within_block(len(block))
                    yield explain_block(stage.plan, classifier, block, follow)
                if block.number >= stage.blocks[-1]:
                    break

    return locally


def check_prior(prior: str) -> None:
    """Refuse what is no choice of a prior."""
    if prior not in ("auto", "none"):
        raise PisteError(f"prior: expected 'auto' or 'none', got {prior!r}.")


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
        columns or Columns(),
        method,
        how,
        runtime,
        BLOCK if block is None else block,
        loading or {},
    )
    plan = replace(plan, columns=plan.columns.of_prompt(prompt_fields(model, plan.loading)))
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
    prior: PriorChoice = "auto",
    **how: Any,
) -> Estimate:
    """What :func:`run` would take, from some documents of the first block, explained.

    Where later rows learn from the first ones, some are explained with what others told: the whole
    takes less than this says, because more documents tell more. Documents of one block share
    questions, too. Of a served model nothing is explained: only the questions are known.
    """
    check_prior(prior)
    plan, files, rows = _planned(input, model, columns, method, how, runtime, block, loading)
    first = next(plan.blocks(files), None)
    if first is None or not first.documents:
        raise PisteError(f"{files[0].name!r} has no row to explain in its first {plan.block}.")
    classifier = plan.load()
    subjects = plan.check(classifier, files)
    share = len(first.documents) / len(first)
    if classifier.costly:
        each = _questions(plan, subjects) / max(len(subjects), 1)
        return Estimate(rows, 0, len(first.refused), each * rows * share, None, None)
    plan = replace(plan, learns=prior == "auto" and plan.can_learn(classifier))
    in_full = rows
    if plan.learns:
        in_full = min(stage_ends(rows, plan.block)[0] * plan.block, rows)
        plan = replace(plan, learns=in_full < rows)
    documents = tuple(islice(_some(plan, files), 2 * TRIED))
    tried = documents[:TRIED]
    explain_block(plan, classifier, Block(0, tried[:1], ()))  # loads what is loaded once
    spent = _tried(plan, classifier, tried)
    told = list(read_records(spent.part.told))
    factor = share * in_full / len(tried)
    calls, seconds = spent.part.calls * factor, spent.seconds * factor
    size = spent.size * factor
    if not plan.learns:
        return Estimate(rows, len(tried), len(first.refused), calls, seconds, size)
    learned = CorpusPrior.learned(told, least=min(LEAST_DOCUMENTS, len(told)) or 1)
    others = documents[TRIED:] or tried
    later = _tried(replace(plan, prior=learned, learns=False), classifier, others)
    factor = share * (rows - in_full) / len(others)
    return Estimate(
        rows,
        len(documents),
        len(first.refused),
        calls + later.part.calls * factor,
        seconds + later.seconds * factor,
        size + later.size * factor,
        in_full,
        calls,
    )


@dataclass(frozen=True)
class _Tried:
    """Some documents, explained."""

    part: Part
    seconds: float

    @property
    def size(self) -> int:
        """Bytes of their results."""
        return len(self.part.documents) + len(self.part.units)


def _tried(plan: Plan, classifier: Classifier, documents: Sequence[Document]) -> _Tried:
    start = time.perf_counter()
    part = explain_block(plan, classifier, Block(0, tuple(documents), ()))
    return _Tried(part, time.perf_counter() - start)


def _some(plan: Plan, files: Sequence[TableFile]) -> Iterator[Document]:
    """Documents from all over the first blocks."""
    some = [document for block in islice(plan.blocks(files), 3) for document in block.documents]
    step = max(len(some) // (2 * TRIED), 1)
    return iter(some[::step])
