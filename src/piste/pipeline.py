"""``explain``: from subjects to questions, answers and explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, overload

from piste.classifiers import load
from piste.classifiers.prompted.generating import LanguageModel
from piste.classifiers.text.word_models import WordModel
from piste.engine import CacheOption, Engine, Progress, ProgressOption, opened
from piste.errors import PisteError
from piste.explanation import Explanation
from piste.explanation_run import StagedRun, bind, explain_subjects
from piste.levels import LevelRun
from piste.methods import MethodChoice, make
from piste.methods.base import expected_questions
from piste.options import Phrases, Samples
from piste.phrases import (
    PhraseRun,
    check_method,
    check_phrases,
    find_phrases,
    joined_spans,
    phrase_texts,
    read_phrases,
)
from piste.subject import (
    LongChoice,
    RawInput,
    Removal,
    UnitChoice,
    levels_of,
    listed_inputs,
)
from piste.target import TargetChoice
from piste.validation import check_seed

AnswerChoice: TypeAlias = str | list[str] | None
"""An answer of a language model; of several prompts one for each."""

_Options = ParamSpec("_Options")


class _Explain(Protocol[_Options]):
    """The types of :func:`explain`: one explanation of one input, a list of them of a list."""

    @overload
    def __call__(
        self, classifier: Any, input: RawInput, /, *_: _Options.args, **options: _Options.kwargs
    ) -> Explanation: ...

    @overload
    def __call__(
        self,
        classifier: Any,
        input: Iterable[Any],
        /,
        *_: _Options.args,
        **options: _Options.kwargs,
    ) -> list[Explanation]: ...


def _one_or_many(function: Callable[Concatenate[Any, Any, _Options], Any]) -> _Explain[_Options]:
    return function


@_one_or_many  # type: ignore[arg-type]  # its own options are never called classifier or input
def explain(
    classifier: Any,
    input: RawInput | Iterable[Any],
    *,
    method: MethodChoice = "slalom",
    target: TargetChoice = None,
    units: UnitChoice = None,
    phrases: Phrases = None,
    samples: Samples = None,
    seed: int = 0,
    long: LongChoice = "error",
    removal: Removal = "delete",
    progress: ProgressOption = None,
    cache: CacheOption = None,
    answer: AnswerChoice = None,
    against: AnswerChoice = None,
    **options: Any,
) -> Explanation | list[Explanation]:
    """Explain the classifier's decision on a text, a pair of texts, an image, or several of them.

    Several are a list, a Series, a column of a data set, an array of texts or a generator, and
    give a list of explanations.

    An image is a file, its bytes, a PIL image, or an array (height × width × 3) of bytes or of
    numbers in 0 … 1. ``method`` is a name (see ``piste methods``), or a method of yours.
    ``target`` is the number that is explained (default: log-odds of the
    predicted class), ``units`` what the input is cut into. Of a text: "words", "tokens",
    "sentences" or "paragraphs"; spans of your own, [(start, end), …], or a function from a text to
    spans, and the text outside them stays in every question; or levels from coarse to fine,
    ["paragraphs", "words"], of which each splits only units that matter on the one before (see
    :attr:`Explanation.levels`). Of an image: "patches", "grid:K" (K × K groups of patches) or
    "superpixels:K" (about K regions). None is "words", and of an image its patches, or "grid:7" if
    there are more than 64 of them: the questions a method needs grow with the number of units.
    ``phrases`` are words that are joined into one unit each: pieces of the text, ["not bad"], which
    are joined wherever they stand, or spans; "auto" explains the words first, joins pairs that act
    together, explains again with as many questions, and keeps what predicts the model better. A
    list of texts need not hold every phrase.
    ``samples`` is the number of questions, of all levels together (None: the method's default),
    ``long`` what happens to a text longer than the model reads, ``removal`` what becomes of units
    that are left out of a question (see :data:`piste.subject.Removal`). ``cache`` is a folder in
    which answers are kept for later runs. Further options are the method's own. The same seed
    gives the same result.

    A language model without labels is given a prompt or messages, and what is explained is the
    log-probability of ``answer`` (None: the model's own), or how much likelier it is than the
    answer ``against``. :meth:`Explanation.of` then explains any span of it. Of a list of prompts
    each has an answer of its own; ``answer`` and ``against`` may then be lists too.

    >>> import piste
    >>> loud = piste.load(lambda texts: [text.count("!") for text in texts])
    >>> e = piste.explain(loud, "Stop it now !", samples=50)
    >>> e.units[int(e.scores["value"].argmax())].text
    '!'
    """
    with Progress(progress) as shown:
        shown.stage("loading the model")
        loaded = load(classifier)
        if isinstance(loaded, LanguageModel):
            shown.stage("asking for an answer")
            prompts = loaded.prompts(input)
            if prompts is not None:
                same: dict[str, Any] = {"method": method, "target": target, "units": units}
                same |= {"samples": samples, "seed": seed, "long": long, "removal": removal}
                same |= {"phrases": phrases, "progress": shown, "cache": cache}
                return _each_prompt(loaded, prompts, answer, against, **same, **options)
            loaded, input = loaded.answering(input, _one(answer), _one(against))
        elif answer is not None or against is not None:
            raise PisteError(
                "answer and against are for a language model without labels: choose a class by "
                "target, or load a language model."
            )
        if isinstance(loaded, WordModel) and loaded.place is None:
            loaded, target = loaded.at(input, target)
        if samples is not None:
            options["samples"] = samples
        check_seed(seed)
        chosen = make(method, options)
        given = listed_inputs(input)
        several, inputs = given is not None, [input] if given is None else given
        levels = levels_of(units)
        loaded.check_choices(units, long, removal)
        wanted = None
        if phrases is not None:
            check_phrases(phrases, units, loaded.reads)
            check_method(phrases, chosen)
            wanted = read_phrases(phrases)
        how = {"long": long, "removal": removal}
        shown.stage("reading the input")
        subjects, joined = [], []
        for number, one in enumerate(inputs):
            try:
                subject = bind(loaded, one, chosen, units=levels[0], **how)
                if isinstance(wanted, tuple):
                    ranges = find_phrases(subject, wanted, strict=not several)
                    joined.append(phrase_texts(subject, ranges))
                    if ranges:
                        spans = joined_spans(subject, ranges)
                        subject = bind(loaded, one, chosen, units=spans, **how)
                subjects.append(subject)
            except PisteError as problem:
                raise PisteError(f"Input {number}: {problem}") if several else problem  # noqa: B904  # same error, with its place
        unused = samples is not None and not hasattr(chosen, "samples")
        shown.expect(sum(expected_questions(chosen, subject) for subject in subjects))
        with opened(cache) as kept:
            engine = Engine(loaded, shown, kept)
            if loaded.costly:
                questions = sum(expected_questions(chosen, subject) for subject in subjects)
                shown.say(loaded.expect(subjects, questions, cached=kept is not None))
            if len(levels) > 1 or wanted == "auto":
                kind: type[StagedRun] = LevelRun if len(levels) > 1 else PhraseRun
                explanations = []
                for subject in subjects:
                    run = kind(chosen, target, seed, engine, unused, how, levels)
                    explanations.append(run.explain(subject))
                    engine.forget(run.subjects)
            else:
                explanations = explain_subjects(chosen, subjects, target, seed, engine, unused)
        for number, found in enumerate(joined):
            e = explanations[number]
            explanations[number] = replace(e, settings=dict(e.settings) | {"phrases": found})
    return explanations if several else explanations[0]


def _one(answer: AnswerChoice) -> str | None:
    if isinstance(answer, list):
        raise PisteError("Expected one answer for one prompt, got a list of answers.")
    return answer


def _each_prompt(
    model: LanguageModel,
    prompts: Sequence[Any],
    answer: AnswerChoice,
    against: AnswerChoice,
    **how: Any,
) -> list[Explanation]:
    """An explanation of the answer to each prompt, one after the other."""
    columns = []
    for name, given in (("answer", answer), ("against", against)):
        column = given if isinstance(given, list) else [given] * len(prompts)
        if len(column) != len(prompts):
            raise PisteError(
                f"{name}: expected one for each of the {len(prompts)} prompts, got {len(column)}."
            )
        columns.append(column)
    found = []
    for number, (prompt, own, other) in enumerate(zip(prompts, *columns, strict=True)):
        try:
            found.append(explain(model, prompt, answer=own, against=other, **how))
        except PisteError as problem:
            raise type(problem)(f"Input {number}: {problem}") from problem
    return found
