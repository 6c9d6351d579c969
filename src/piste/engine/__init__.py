"""The one place that moves questions to models and answers back."""

from piste.engine.cache import AnswerCache
from piste.engine.engine import CacheOption, Engine, opened
from piste.engine.progress import Progress, ProgressOption

__all__ = ["AnswerCache", "CacheOption", "Engine", "Progress", "ProgressOption", "opened"]
