"""What a corpus run is to do, in a form that can be passed to another process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from piste.classifiers import Classifier, load
from piste.classifiers.prompted.generating import LanguageModel
from piste.classifiers.prompted.prompt import Prompt
from piste.corpus.blocks import DOCUMENT_COLUMNS, Part, make_part
from piste.corpus.document_records import write_records
from piste.corpus.documents import Block, Columns, Document, RefusedDocument, blocks, check_kept
from piste.corpus.learning_slalom import LearningSlalom
from piste.data.frames import frame_table
from piste.data.tables import TableFile, check_columns, read_rows, table_files
from piste.engine.engine import fix_batch_sizer, release_memory
from piste.engine.progress import ProgressOption
from piste.errors import PisteError, ServiceError, shorten
from piste.explanation import Explanation
from piste.methods import Method, MethodChoice, make
from piste.methods.slalom import SlalomMethod
from piste.options import DEFAULTS, separated
from piste.phrases import check_method, check_phrases
from piste.pipeline import explain
from piste.subject import Subject, levels_of
from piste.validation import check_count, check_seed
from piste.vocabulary.corpus_prior import CorpusPrior, DocumentRecord

BLOCK = 128
"""Rows that share their questions and are stored together, in a large corpus."""
TRIED = 12
"""Documents by which the whole is judged before the work."""


def suitable_block(rows: int) -> int:
    """Rows in a block, so that a small corpus, too, has blocks for some workers.

    It depends on the corpus alone: whoever does the work, the parts are the same.
    """
    return min(max(rows // 32, 8), BLOCK)


def prompt_fields(model: Any, loading: Mapping[str, Any]) -> tuple[str, ...]:
    """Fields of the prompt, that of the classifier or of the options it is loaded with."""
    template = loading.get("prompt")
    prompt = getattr(model, "prompt", None) if template is None else Prompt(template)
    return prompt.fields if isinstance(prompt, Prompt) else ()


@dataclass(frozen=True)
class Plan:
    """Input, model and method of a run."""

    input: Any
    """A file, a folder, or a table in memory."""
    model: Any
    """What :func:`piste.load` takes; for more than one process, a name or a folder."""
    columns: Columns = field(default_factory=Columns)
    method: str = "slalom"
    how: Mapping[str, Any] = field(default_factory=dict)
    """Options of :func:`piste.explain`."""
    runtime: str = "torch"
    block: int = BLOCK
    loading: Mapping[str, Any] = field(default_factory=dict)
    """Further options of :func:`piste.load`: prompt, labels, the name on a server …"""
    learns: bool = False
    """Whether what documents tell is kept for later ones."""
    prior: CorpusPrior | None = None
    """What earlier documents told."""

    def __post_init__(self) -> None:
        check_count("block", self.block)
        if not isinstance(self.loading, Mapping):
            raise PisteError(
                f"loading: expected options of piste.load by name, got {shorten(self.loading)}."
            )
        check_kept(self.columns.keep or (), DOCUMENT_COLUMNS)
        check_seed(self.how.get("seed", 0))
        method = self.made_method()  # refused here, before anything is read
        check_phrases(self.how.get("phrases"), self.how.get("units"), "texts")
        check_method(self.how.get("phrases"), method)

    def made_method(self) -> Method:
        """The method with its options."""
        shared, own = separated(self.how)
        if shared.get("samples") is not None:
            own["samples"] = shared["samples"]
        return make(self.method, own)

    def can_learn(self, classifier: Classifier) -> bool:
        """Whether later documents can be asked less: by SLALOM with its usual questions."""
        if isinstance(classifier, LanguageModel):
            return False
        method = self.made_method()
        usual = SlalomMethod(
            pairs=getattr(method, "pairs", True), guide=getattr(method, "guide", True)
        )
        plain = len(levels_of(self.how.get("units"))) == 1 and self.how.get("phrases") is None
        deletes = self.how.get("removal", DEFAULTS["removal"]) == "delete"
        return method == usual and plain and deletes and self.how.get("target") != "all"

    def files(self) -> list[TableFile]:
        """The files, checked for their columns."""
        found: list[TableFile]
        if isinstance(self.input, (str, Path)):
            found = table_files(self.input)
        else:
            found = [frame_table(self.input)]
        check_columns(found, self.columns.wanted)
        return found

    def blocks(self, files: Sequence[TableFile]) -> Iterator[Block]:
        """The rows of the files in blocks."""
        return blocks(read_rows(files, self.columns.wanted), self.columns, self.block)

    def load(self) -> Classifier:
        """The classifier, with batches that are always the same."""
        classifier = load(self.model, runtime=self.runtime, **self.loading)
        fix_batch_sizer(classifier)
        return classifier

    def check(self, classifier: Classifier, files: Sequence[TableFile]) -> list[Subject]:
        """Refuse what would be refused of every row; some documents, bound.

        Nothing is asked, but where a function's classes are to be known for the target.
        """
        if classifier.reads != "texts":
            raise PisteError(
                f"Expected a model that reads texts, got {classifier.name!r}, which reads "
                f"{classifier.reads}."
            )
        how: dict[str, Any] = {"long": self.how.get("long", "error")}
        how["removal"] = self.how.get("removal", DEFAULTS["removal"])
        classifier.check_choices(self.how.get("units"), **how)
        how["units"] = levels_of(self.how.get("units"))[0]
        subjects, problems = [], []
        first = next(self.blocks(files), None)
        for document in islice(first.documents if first else (), TRIED):
            try:
                subjects.append(classifier.subject(document.input, **how))
            except PisteError as problem:  # refused when its turn comes
                problems.append(problem)
        if not subjects and len(problems) > 1 and len(set(map(str, problems))) == 1:
            raise problems[0]
        self._check_target(classifier, subjects)
        return subjects

    def _check_target(self, classifier: Classifier, subjects: Sequence[Subject]) -> None:
        target = self.how.get("target")
        if target is None or not subjects or isinstance(classifier, LanguageModel):
            return
        logits = np.zeros(len(classifier.labels))
        if not classifier.labels:
            try:
                logits = subjects[0].ask([subjects[0].whole])[0]
            except PisteError:
                return  # the row is refused when its turn comes
        classifier.resolve(target, logits)

    def manifest(self, classifier: Classifier, files: Sequence[TableFile]) -> dict[str, Any]:
        """What results will be results of."""
        settings = {
            "method": self.method,
            "runtime": self.runtime,
            "block": self.block,
            "columns": asdict(self.columns),
            **{name: value for name, value in self.how.items() if name != "cache"},
            **({"prior": "auto"} if self.learns else {}),
        }
        packages = ("piste", "torch", "transformers", "numpy")
        return {
            "input": [file.describe(self.columns.wanted) for file in files],
            "classifier": classifier.describe(),
            "fingerprint": classifier.fingerprint() or classifier.name,
            "settings": settings,
            "versions": {name: version(name) for name in packages},
        }


def explain_block(
    plan: Plan, classifier: Classifier, block: Block, progress: ProgressOption = False
) -> Part:
    """A block's results."""
    told: Records = {}
    explained, failed = _explain(plan, classifier, block.documents, progress, told)
    refused = sorted((*block.refused, *failed), key=lambda one: one.number)
    part = make_part(block, explained, refused, plan.columns.keep or ())
    if plan.learns:
        texts = (one.input for one, _ in explained if isinstance(one.input, (str, tuple)))
        part = replace(part, told=write_records([told[one] for one in texts if one in told]))
    del explained
    release_memory()
    return part


Explained = list[tuple[Document, Explanation]]
Records = dict[Any, DocumentRecord]


def _explain(
    plan: Plan,
    classifier: Classifier,
    documents: Sequence[Document],
    progress: ProgressOption,
    told: Records,
) -> tuple[Explained, list[RefusedDocument]]:
    """All at once; if that can't be, without those that can't be read, or one after the other."""
    if not documents:
        return [], []
    try:
        return _together(plan, classifier, documents, told, progress), []
    except ServiceError:
        raise
    except PisteError:
        good, refused = _readable(plan, classifier, documents)
    if refused and good:
        try:
            return _together(plan, classifier, good, told, progress), refused
        except ServiceError:
            raise
        except PisteError:
            pass
    explained: Explained = []
    for document in good:
        try:
            explained += _together(plan, classifier, [document], told)
        except ServiceError:
            raise
        except PisteError as problem:
            refused.append(_refusal(document, problem))
    return explained, refused


def _together(
    plan: Plan,
    classifier: Classifier,
    documents: Sequence[Document],
    told: Records,
    progress: ProgressOption = False,
) -> Explained:
    inputs = [document.input for document in documents]
    method: MethodChoice = plan.method
    if plan.learns or plan.prior is not None:
        method = LearningSlalom(prior=plan.prior, records=told if plan.learns else None)
    found = explain(classifier, inputs, method=method, progress=progress, **plan.how)
    return list(zip(documents, found, strict=True))


def _readable(
    plan: Plan, classifier: Classifier, documents: Sequence[Document]
) -> tuple[list[Document], list[RefusedDocument]]:
    """Those the classifier can read, and why it can't read the others."""
    how = {name: plan.how[name] for name in ("units", "removal") if name in plan.how}
    how["units"] = levels_of(how.get("units"))[0]
    long = plan.how.get("long", "error")
    good, refused = [], []
    for document in documents:
        try:
            subject = classifier.subject(document.input, long=long, **how)
            subject.encode_all([subject.whole])
            good.append(document)
        except PisteError as problem:
            refused.append(_refusal(document, problem))
    return good, refused


def _refusal(document: Document, problem: Exception) -> RefusedDocument:
    reason = str(problem).removeprefix("Input 0: ")
    return RefusedDocument(document.number, document.source, reason)
