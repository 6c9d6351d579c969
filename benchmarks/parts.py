"""Where the time of explanations goes: milliseconds of the processor by part of the work."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import piste.corpus.learning_slalom
import piste.methods.slalom
import piste.slalom.fitting
from piste.classifiers import Classifier
from piste.corpus.part_store import PartStore
from piste.engine import Engine
from piste.vocabulary.corpus_prior import CorpusPrior

_MODULES = (piste.methods.slalom, piste.corpus.learning_slalom)
_METHODS = (piste.methods.slalom.SlalomMethod, piste.corpus.learning_slalom.LearningSlalom)
PASSES, ASKING = "passes", "asking, without passes"
LEARNING = "learning the prior, fits included"
_WORK: tuple[tuple[str, Any, str], ...] = (
    ("looking inside", piste.methods.slalom.SlalomMethod, "trace"),
    *(("planning", method, "plan") for method in _METHODS),
    (ASKING, Engine, "ask"),
    ("fits", piste.slalom.fitting, "solve"),
    *(("Shapley values and other scores", module, "text_scores") for module in _MODULES),
    *(("pairs", module, "pairs_beside") for module in _MODULES),
    *(("solving, the rest", method, "solve") for method in _METHODS),
    (LEARNING, CorpusPrior, "learned"),
    ("storing", PartStore, "add"),
)
NAMES = (PASSES, *dict.fromkeys(one[0] for one in _WORK))


class Parts:
    """Seconds by part; what a part calls that is itself a part counts there only.

    Passes are those of ``Classifier.answer``; shared beginnings and calibration are asking.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._inner = threading.local()

    def timed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """The same work, with its time taken; time is that of the thread it runs in."""

        def measured(*args: Any, **options: Any) -> Any:
            if getattr(self._inner, "learning", False):
                return work(*args, **options)
            self._inner.learning = name == LEARNING
            outer = getattr(self._inner, "seconds", 0.0)
            self._inner.seconds = 0.0
            begun = time.thread_time()
            try:
                return work(*args, **options)
            finally:
                spent = time.thread_time() - begun
                self.seconds[name] += spent - self._inner.seconds
                self._inner.seconds, self._inner.learning = outer + spent, False

        return measured

    @property
    def solving(self) -> float:
        """Seconds of all parts but asking: of planning and solving, where nothing is stored."""
        return sum(own for name, own in self.seconds.items() if name not in (PASSES, ASKING))

    def milliseconds(self, before: dict[str, float], count: int) -> dict[str, float]:
        """By part and explanation, since ``before``; parts that took no time are left out."""
        spent = {name: 1000 * (self.seconds[name] - before.get(name, 0.0)) for name in NAMES}
        return {name: total / count for name, total in spent.items() if total}


@contextmanager
def parts(classifier: Classifier) -> Iterator[Parts]:
    """Take the time of everything that explanations by SLALOM are made of."""
    found = Parts()
    with ExitStack() as stack:
        for name, owner, work in ((PASSES, type(classifier), "answer"), *_WORK):
            own = found.timed(name, getattr(owner, work))
            static = isinstance(vars(owner).get(work), staticmethod)
            stack.enter_context(patch.object(owner, work, staticmethod(own) if static else own))
        yield found
