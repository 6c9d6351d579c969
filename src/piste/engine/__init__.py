"""The one place that moves questions to models and answers back."""

from typing import TYPE_CHECKING

from piste.registry import lazy_names

if TYPE_CHECKING:
    from piste.engine.cache import AnswerCache
    from piste.engine.engine import CacheOption, Engine, opened
    from piste.engine.progress import Progress, ProgressOption
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "piste.engine.cache": ["AnswerCache"],
            "piste.engine.engine": ["CacheOption", "Engine", "opened"],
            "piste.engine.progress": ["Progress", "ProgressOption"],
        },
    )

__all__ = ["AnswerCache", "CacheOption", "Engine", "Progress", "ProgressOption", "opened"]
