"""The benchmark: all methods on the same examples, judged by the same questions, resumable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from piste.classifiers import Classifier, load
from piste.data.examples import DataOption, Example, as_examples
from piste.engine import Progress, ProgressOption, opened
from piste.errors import PisteError, ServiceError
from piste.evaluation.benchmark.example_run import ExampleRun, RunContext
from piste.evaluation.benchmark.explainers import MethodExplainer, make_entries
from piste.evaluation.benchmark.metric_set import make_metric_set
from piste.evaluation.benchmark.run_store import Plan, RowStore
from piste.evaluation.metrics import MetricOption
from piste.evaluation.results import Results, Row
from piste.methods import METHODS
from piste.options import DEFAULTS, Options, checked
from piste.subject import levels_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ExampleProgress(Progress):
    """Counts examples, each in as many steps as there are methods.

    A function that is given as the option hears of whole examples only.
    """

    title = "evaluating examples"

    def __init__(self, option: ProgressOption, done: int, total: int, steps: int) -> None:
        super().__init__(option)
        self.done, self.total = done, total
        self._steps = max(steps, 1)

    def step(self) -> None:
        """One method of an example is explained."""
        # Never a whole example before it is judged and stored.
        self.done += 0.9 / self._steps
        self.show()

    def example(self) -> None:
        """An example is finished."""
        self.advance(int(self.done) + 1 - self.done)


DEFAULT_METRICS = ("deletion", "insertion", "fidelity")
EXPLANATIONS = "explanations"
"""The folder, within that of a run, that explanations are saved to."""


def usual_methods() -> list[str]:
    """What is evaluated if no methods are named."""
    return [name for name, method in METHODS.items() if method.evaluated]


def evaluate(
    classifier: Any,
    data: DataOption,
    *,
    methods: str | Iterable[str] | None = None,
    metrics: MetricOption | Iterable[MetricOption] = DEFAULT_METRICS,
    examples: int | None = 50,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    folder: str | Path | None = None,
    progress: ProgressOption = None,
    reference: str | None = None,
    save_explanations: bool = False,
    labelled: Sequence[Example] | None = None,
    about: Mapping[str, Any] | None = None,
    **shared: Unpack[Options],
) -> Results:
    """Explain the same examples by all methods, and ask the classifier how faithful they are.

    ``data`` is a file (see :func:`~piste.evaluation.read_data`), or a list of examples or
    texts, of which the first ``examples`` are taken. A method is a name, ``name:score`` (the same
    explanation judged by another score) or ``name[option=value]``; every method with such an
    option gets the same ``samples``. A metric is a name of :data:`~piste.evaluation.METRICS`,
    ``name[option=value]`` or an instance; those that need labels are fitted to the ``labelled``
    texts (the data, if none are given). Methods are compared with the ``reference``. ``about`` is
    kept with the results. Further options (``units``, ``samples``, ``seed`` …) are those of
    :func:`piste.explain`; a long text is truncated unless ``long`` says otherwise, and it is
    always the predicted class that is explained.

    With a ``folder``, rows are stored after every example, and the same call goes on where it was
    stopped; a larger number of examples goes on, too. A method that refuses an example gives a row
    with its reason. The same seed gives the same figures, seconds apart.

    >>> import piste
    >>> loud = piste.load(lambda texts: [text.count("!") for text in texts])
    >>> found = evaluate(loud, ["Stop it now !", "Go away !"], methods=["occlusion", "random"])
    >>> found.values("occlusion", "r2_all")
    {'0': 1.0, '1': 1.0}
    """
    loaded = load(classifier)
    asking: Options = {**DEFAULTS, "long": "truncate", **checked(shared, "evaluate")}
    if asking["target"] is not None:
        raise PisteError("evaluate explains the predicted class: leave target out.")
    if asking["phrases"] is not None:
        raise PisteError("evaluate explains words one by one: leave phrases out.")
    samples, seed, cache = asking["samples"], asking["seed"], asking["cache"]
    how = {"units": asking["units"], "removal": asking["removal"], "long": asking["long"]}
    loaded.check_choices(asking["units"], asking["long"], asking["removal"])
    entries = make_entries(usual_methods() if methods is None else methods, samples, options)
    everything = as_examples(data, None, seed)
    chosen = as_examples(everything, examples, seed)
    _calibrate(loaded, chosen, how)
    known = everything if labelled is None else labelled
    measured = make_metric_set(metrics, loaded, lambda: known)
    if save_explanations and folder is None:
        raise PisteError("save_explanations needs a folder, but no folder was given.")
    settings: dict[str, Any] = {
        "samples": samples,
        "seed": seed,
        **how,
        "options": {method: dict(own) for method, own in (options or {}).items()},
        "save_explanations": save_explanations,
    }
    with opened(cache) as kept:
        explainer = MethodExplainer(loaded, seed, how, kept)
        context = RunContext(loaded, entries, measured, explainer, seed, kept)
        plan = make_plan(context, chosen, settings, reference, about or {})
        return run(context, chosen, plan, folder, progress)


def make_plan(
    context: RunContext,
    examples: Sequence[Example],
    settings: Mapping[str, Any],
    reference: str | None,
    about: Mapping[str, Any],
) -> Plan:
    """What the run is: ``settings`` must stay the same for it to go on, the rest may change."""
    labels = tuple(entry.label for entry in context.entries)
    if reference is not None and reference not in labels:
        raise PisteError(
            f"reference={reference!r}: expected one of the methods {', '.join(labels)}."
        )
    classifier, metrics = context.classifier, context.metrics.describe()
    return Plan(
        configuration={
            "model": classifier.fingerprint() or classifier.name,
            "methods": labels,
            "metrics": metrics,
            **settings,
            "version": version("piste"),
        },
        examples=tuple((example.id, example.digest) for example in examples),
        methods=labels,
        figures=context.metrics.figures,
        settings={
            "model": classifier.describe(),
            "examples": len(examples),
            "methods": labels,
            "metrics": list(metrics),
            **settings,
            "reference": reference,
            "versions": {name: version(name) for name in ("piste", "torch", "transformers")},
            **about,
        },
    )


def run(
    context: RunContext,
    examples: Sequence[Example],
    plan: Plan,
    folder: str | Path | None = None,
    progress: ProgressOption = None,
) -> Results:
    """Work through the examples that are not done yet, storing the rows of each at once."""
    stored = nullcontext() if folder is None else RowStore.opened(folder, plan)
    with stored as kept:
        done: dict[str, Sequence[Row]] = {} if kept is None else {**kept.done}
        todo = [example for example in examples if example.id not in done]
        before = len(examples) - len(todo)
        steps = len({entry.variant for entry in context.entries})
        with ExampleProgress(progress, before, len(examples), steps) as shown:
            for example in todo:
                one = ExampleRun(context, example)
                rows = one.rows(shown.step)
                if kept is not None:
                    if plan.settings.get("save_explanations"):
                        one.save(kept.path / EXPLANATIONS)
                    kept.add(rows)
                done[example.id] = rows
                shown.example()
    return plan.results(done)


def _calibrate(classifier: Classifier, examples: Sequence[Example], how: Mapping[str, Any]) -> None:
    """On a first input: a function's outputs, and so its fingerprint, are known after that."""
    coarsest = {**how, "units": levels_of(how["units"])[0]}
    for example in examples:
        try:
            classifier.calibrate(classifier.subject(example.input, **coarsest))
        except ServiceError:
            raise
        except PisteError:
            continue
        return
