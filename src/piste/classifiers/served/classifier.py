"""A language model behind a server, with a prompt and labels, as a classifier."""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from piste.classifier import Classifier
from piste.classifiers.base import check_text
from piste.classifiers.loading import Loading
from piste.classifiers.prompted.labels import read_labels
from piste.classifiers.prompted.prompt import Prompt
from piste.classifiers.served import remembered
from piste.classifiers.served.client import Client, Refused
from piste.classifiers.served.endpoint import Turns, joined
from piste.classifiers.served.probing import Findings, attempt, probe, sample_turns
from piste.classifiers.served.scoring import Scored
from piste.classifiers.served.subject import PromptSubject, as_turns
from piste.errors import PisteError, ServiceError
from piste.prompt_text import PromptText
from piste.subject import PROMPT_UNITS, Binding, Question, Subject, text_units
from piste.types import Floats

_SCHEME = 1  # another way to read the same answers gets another number


class ServedClassifier(Classifier):
    """A prompt's labels, scored by a server; what it returns is found out first.

    The answer is the log-probability of every label. Questions go out ``concurrency`` at a time,
    and each answer is handed over as soon as it is there, so that a cache keeps it.
    """

    kind = "classes"
    paced = False
    costly = True
    unit_kinds = PROMPT_UNITS

    def __init__(
        self,
        client: Client,
        prompt: Prompt,
        labels: Any,
        *,
        model: str | None = None,
        concurrency: int = 8,
        name: str | None = None,
    ) -> None:
        self.client, self.prompt, self.model = client, prompt, model
        self.wordings = read_labels(labels)
        self.labels = tuple(self.wordings)
        self.name = name or model or client.url
        self.budget = self.concurrency = concurrency
        self.answered = self.bounded = 0
        self._findings: Findings | None = None
        self._file: Path | None = None
        self._probing = threading.Lock()

    # -- inputs ------------------------------------------------------------------------------

    def bind(self, input: Any, how: Binding) -> PromptSubject:
        if how.removal != "delete":
            raise PisteError(
                f"removal={how.removal!r} needs a tokenizer, and a served model keeps its own: "
                "choose removal='delete'."
            )
        kind = text_units(how.units)
        if kind == "tokens":
            raise PisteError(
                "units='tokens' needs a tokenizer, and a served model keeps its own: choose "
                "units='words' or units='sentences'."
            )
        if isinstance(input, tuple) and len(input) > 1:
            raise PisteError(
                "Expected a text or a value for each field of the prompt, got a pair: give "
                "{field: text, …}."
            )
        if isinstance(input, PromptText):
            return PromptSubject(self, as_turns(input), input, kind)
        given = check_text(input)[0] if isinstance(input, (str, tuple)) else input
        return PromptSubject(self, self.prompt.turns(given), given, kind)

    # -- what the server can do --------------------------------------------------------------

    @property
    def findings(self) -> Findings:
        """What the server returns; tried out when it is first needed."""
        with self._probing:
            if self._findings is None:
                begun, sent = time.perf_counter(), self.client.requests
                try:
                    self._findings = self._found()
                except Refused as problem:
                    raise ServiceError(self._refusal(problem)) from problem
                finally:
                    self.calibration.batches += self.client.requests - sent
                    self.calibration.seconds += time.perf_counter() - begun
            return self._findings

    def _found(self) -> Findings:
        """As it was remembered, if the server still says the same of the sample; else probed."""
        sample = sample_turns(self.prompt)
        known = None if self._file is None else remembered.read(self._file, self.client, self.model)
        if known is not None:
            scored, _ = attempt(lambda: known[0].scoring.score(sample))
            if scored is not None and remembered.agree(scored.labels, known[1]):
                return known[0]
        found = probe(self.client, self.model, self.prompt, self.wordings)
        if self._file is None:
            return found
        labels = found.scoring.score(sample).labels
        if known is not None:
            found.generation = known[0].generation
            if not remembered.agree(labels, known[1]):
                found.generation += 1
                warnings.warn(
                    f"{self.client.url} answers otherwise than when the cache was filled: answers "
                    "kept from then are not used.",
                    stacklevel=2,
                )
        remembered.write(self._file, found, labels)
        return found

    def remember(self, folder: Path) -> None:
        name = blake2b(self._identity().encode(), digest_size=12).hexdigest()
        self._file = folder / f"server-{name}.json"
        if self._findings is None or self._file.exists():
            return
        found = self._findings
        scored, _ = attempt(lambda: found.scoring.score(sample_turns(self.prompt)))
        if scored is not None:
            remembered.write(self._file, found, scored.labels)

    def calibrate(self, subject: Subject) -> None:
        _ = self.findings

    def fingerprint(self) -> str:
        found = self.findings
        again = [found.generation] if found.generation else []
        text = self._identity(found.scoring.identity(), *again)
        return f"served {blake2b(text.encode(), digest_size=32).hexdigest()}"

    def _identity(self, *more: object) -> str:
        what = [
            _SCHEME,
            self.client.url,
            self.model,
            self.prompt.template,
            self.prompt.examples,
            self.wordings,
            *more,
        ]
        return json.dumps(what, ensure_ascii=False, sort_keys=True, default=list)

    # -- asking ------------------------------------------------------------------------------

    def expect(self, subjects: Sequence[Subject], questions: float, *, cached: bool = False) -> str:
        if self._findings is None and not cached:
            self._allow(int(questions), 0, "at least ")  # before anything is sent
        each = self.findings.scoring.requests
        wholes = [subject.encode(subject.whole)[0][0].payload for subject in subjects]
        length = sum(map(self._tokens, wholes)) / max(len(wholes), 1)
        requests, tokens = int(questions * each), int(questions * each * length)
        if not cached:
            self._allow(requests, tokens, "about ")
        probing = self.calibration.batches
        return (
            f"{self.name}: up to {requests:,} requests and {tokens:,} tokens, {self.concurrency} "
            f"at a time, after {probing} to find out what the server returns "
            f"({self.findings.scoring.describe()})."
        )

    def answer(self, questions: Sequence[Question]) -> Floats:
        found = {batch[0].key: rows[0] for batch, rows in self.share(questions, self.budget)}
        return np.array([found[question.key] for question in questions])

    def share(
        self, questions: Sequence[Question], budget: int
    ) -> Iterator[tuple[list[Question], Floats]]:
        each = self.findings.scoring.requests
        tokens = each * sum(self._tokens(question.payload) for question in questions)
        self._allow(each * len(questions), int(tokens), "")
        return self._answers(questions)

    def _answers(self, questions: Sequence[Question]) -> Iterator[tuple[list[Question], Floats]]:
        """Answers in the order they come. After a failure, those under way are still taken."""
        waiting = iter(questions)
        running: dict[Future[Scored], Question] = {}
        problem: Exception | None = None
        self.client.stopping.clear()
        pool = ThreadPoolExecutor(self.concurrency, thread_name_prefix="piste-served")
        try:
            while True:
                while problem is None and len(running) < self.concurrency:
                    question = next(waiting, None)
                    if question is None:
                        break
                    running[pool.submit(self._score, question.payload)] = question
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    question = running.pop(future)
                    try:
                        scored = future.result()
                    except (ServiceError, Refused) as failure:
                        problem = problem or failure
                        continue
                    self.answered += 1
                    self.bounded += scored.bounded
                    yield [question], scored.labels[None, :]
        finally:
            if running:  # interrupted: those under way are not tried again
                self.client.stopping.set()
            pool.shutdown(wait=False, cancel_futures=True)
        if isinstance(problem, Refused):  # of this input; others may be taken
            raise PisteError(self._refusal(problem)) from problem
        if problem is not None:
            raise problem

    def _score(self, turns: Turns) -> Scored:
        return self.findings.scoring.score(turns)

    def _refusal(self, problem: Refused) -> str:
        return (
            f"{self.client.url} refuses a question ({problem}): shorten the text, or change the "
            "prompt."
        )

    def _tokens(self, turns: Turns) -> float:
        rate = 0.0 if self._findings is None else self._findings.tokens_per_character
        return rate * len(joined(turns)) + 1

    def _allow(self, requests: int, tokens: int, about: str) -> None:
        """Refuse work that goes beyond a cap, before any of it is sent."""
        for name, most, used, need in (
            ("max_requests", self.client.max_requests, self.client.requests, requests),
            ("max_tokens", self.client.max_tokens, self.client.tokens, tokens),
        ):
            if most is not None and used + need > most:
                what = name.removeprefix("max_")
                raise ServiceError(
                    f"This needs {about}{need:,} more {what}, {used:,} were used, and {name} is "
                    f"{most:,}: raise the cap to {used + need:,}, or ask fewer questions (samples)."
                )

    # -- what results say --------------------------------------------------------------------

    def describe(self) -> dict[str, object]:
        found: dict[str, object] = {
            "name": self.name,
            "url": self.client.url,
            "model": self.model,
            "prompt": self.prompt.template,
            "wordings": {name: list(own) for name, own in self.wordings.items()},
            "requests": self.client.requests,
            "tokens": self.client.tokens,
        }
        if self._findings is not None:
            found["scoring"] = self._findings.scoring.describe()
            found["server_returns"] = dict(self._findings.returns)
            if self.bounded:
                found["bounded"] = (
                    f"{self.bounded} of {self.answered} answers hold upper bounds: a label was "
                    "not among the likeliest tokens"
                )
        return found

    def __repr__(self) -> str:
        said = super().__repr__()
        if self._findings is None:
            return said
        return f"{said[:-1]}; {self._findings.scoring.describe()}>"


class Server:
    """The loader of served models: the URL of an OpenAI-compatible server."""

    def accepts(self, source: Any, how: Loading) -> bool:
        return isinstance(source, str) and source.lower().startswith(("http://", "https://"))

    def load(self, source: Any, how: Loading) -> Classifier:
        if how.prompt is None or how.labels is None:
            raise PisteError(
                "A served model needs prompt='Review: {text}\\nSentiment:' (or messages) and "
                "labels=['positive', 'negative']: give both."
            )
        if how.runtime != "torch" or how.reader is not None:
            raise PisteError("A served model runs on its server: leave runtime and tokenizer out.")
        if how.content_free is not None:
            raise PisteError("content_free is for models that run here: leave it out.")
        client = Client(
            source,
            timeout=how.timeout,
            max_requests=how.max_requests,
            max_tokens=how.max_tokens,
        )
        prompt = how.filled_prompt()
        assert prompt is not None
        return ServedClassifier(
            client,
            prompt,
            how.labels,
            model=how.model,
            concurrency=how.concurrency,
            name=how.name,
        )
